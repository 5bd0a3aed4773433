//! Those who wait for a place, a probe or a token: woken when another operation has ended.
//!
//! One is woken at a time, the oldest. Whoever was called and does not take what there was calls the
//! next; whoever takes it calls the next too, as there may be more. So no wake-up is lost where
//! the one called gives up, and a thousand who wait are not all woken for one place.

use std::collections::BTreeMap;
use std::task::Waker;

use ressac_policy::Because;

/// What is waited for; each has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Place = 0,
    Probe = 1,
    Token = 2,
    /// For what nothing but time ends, or an operator.
    Time = 3,
}

impl Queue {
    /// `None` for what is the operation's own to wait for.
    pub(crate) const fn of(because: Because) -> Option<Queue> {
        match because {
            Because::Concurrency => Some(Queue::Place),
            Because::Probe => Some(Queue::Probe),
            Because::Budget => Some(Queue::Token),
            Because::Hold
            | Because::Breaker
            | Because::Suspension
            | Because::Ramp
            | Because::Rate => Some(Queue::Time),
            Because::Turn | Because::Backoff | Because::RetryAfter | Because::Reply => None,
        }
    }
}

/// A place in a queue. Its number stays with its operation, so that who was called in vain is
/// still the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) queue: Queue,
    pub(crate) number: u64,
}

/// All the queues of a partner.
#[derive(Debug, Default)]
pub(crate) struct Line {
    queues: [BTreeMap<u64, Waker>; 4],
    numbers: u64,
    waiting: usize,
}

impl Line {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Joins, at the end or where `number` says.
    pub(crate) fn join(&mut self, queue: Queue, number: Option<u64>, waker: Waker) -> Spot {
        let number = number.unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers
        });
        if self.queues[queue as usize].insert(number, waker).is_none() {
            self.waiting += 1;
        }
        Spot { queue, number }
    }

    /// Leaves; false for one who had been called.
    pub(crate) fn leave(&mut self, spot: Spot) -> bool {
        let left = self.queues[spot.queue as usize]
            .remove(&spot.number)
            .is_some();
        self.waiting -= usize::from(left);
        left
    }

    /// Still waits, then by this waker; false for one who has been called.
    pub(crate) fn stay(&mut self, spot: Spot, waker: &Waker) -> bool {
        match self.queues[spot.queue as usize].get_mut(&spot.number) {
            Some(known) => {
                known.clone_from(waker);
                true
            }
            None => false,
        }
    }

    /// Calls the oldest of one queue. To be woken outside the lock.
    pub(crate) fn call(&mut self, queue: Queue) -> Option<Waker> {
        let (_, waker) = self.queues[queue as usize].pop_first()?;
        self.waiting -= 1;
        Some(waker)
    }

    /// Calls the oldest of each queue that an ended attempt can be good news for.
    pub(crate) fn call_each(&mut self) -> [Option<Waker>; 3] {
        [
            self.call(Queue::Place),
            self.call(Queue::Probe),
            self.call(Queue::Token),
        ]
    }

    /// Calls everybody.
    pub(crate) fn call_all(&mut self) -> Vec<Waker> {
        self.waiting = 0;
        let queues = self.queues.iter_mut().map(std::mem::take);
        queues.flat_map(BTreeMap::into_values).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waker() -> Waker {
        Waker::noop().clone()
    }

    #[test]
    fn the_oldest_is_called_first_and_who_comes_back_is_still_the_oldest() {
        let mut line = Line::default();
        let first = line.join(Queue::Place, None, waker());
        let second = line.join(Queue::Place, None, waker());
        assert!(line.call(Queue::Place).is_some());
        assert!(!line.leave(first), "was called");
        line.join(Queue::Place, Some(first.number), waker());
        assert!(line.call(Queue::Place).is_some());
        assert!(line.leave(second), "was not called");
        assert!(line.is_empty());
        assert!(line.call(Queue::Place).is_none());
    }

    #[test]
    fn each_queue_hears_of_an_end_and_those_who_wait_for_time_do_not() {
        let mut line = Line::default();
        for queue in [Queue::Place, Queue::Probe, Queue::Token, Queue::Time] {
            line.join(queue, None, waker());
        }
        assert_eq!(line.call_each().into_iter().flatten().count(), 3);
        assert_eq!(line.call_all().len(), 1);
        assert!(line.is_empty());
    }
}
