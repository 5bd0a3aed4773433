//! What the clones of a partner share: the engine's state, and the line of those who wait.
//!
//! Uses nothing of this crate but the line and the lock, so that `tests/line_shuttle.rs` can run it
//! under a scheduler that tries the orders of threads.

use std::task::Waker;

use rand_xoshiro::Xoshiro256PlusPlus;
use ressac_policy::{Because, Decision, Operation, Outcome, Partner as Engine, Reason, Timestamp};

use super::line::{Line, Queue, Spot};

/// All behind the partner's lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) rng: Xoshiro256PlusPlus,
    /// Of its own, so that keys do not repeat where a test gives the seed.
    pub(crate) keys: Xoshiro256PlusPlus,
    pub(crate) line: Line,
    pub(crate) latest: Timestamp,
}

/// Who has to be woken once the lock is released.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Called([Option<Waker>; 3]);

impl Called {
    fn one(waker: Option<Waker>) -> Self {
        Called([waker, None, None])
    }

    #[inline]
    pub(crate) fn wake(self) {
        for waker in self.0.into_iter().flatten() {
            waker.wake();
        }
    }
}

impl Core {
    /// The clock is read before the lock is taken, which keeps that short; a caller who then has it
    /// later, with an earlier reading, is given the latest moment known here (LI-2).
    #[inline]
    pub(crate) fn moment(&mut self, read: Timestamp) -> Timestamp {
        self.latest = self.latest.max(read);
        self.latest
    }

    /// Asks the engine what to do now. Who has to wait for others stands in line when this returns;
    /// `spot` is where.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Timestamp,
        operation: &mut Operation,
        spot: &mut Option<Spot>,
        waker: impl FnOnce() -> Waker,
    ) -> (Decision, Called) {
        let decision = operation.poll(now, &mut self.engine, &mut self.rng);
        if spot.is_none() && self.line.is_empty() && !matches!(decision, Decision::Wait(_)) {
            return (decision, Called::default());
        }
        self.line_up(now, decision, spot, waker)
    }

    #[inline(never)]
    fn line_up(
        &mut self,
        now: Timestamp,
        decision: Decision,
        spot: &mut Option<Spot>,
        waker: impl FnOnce() -> Waker,
    ) -> (Decision, Called) {
        let before = spot.take();
        let was_called = before.is_some_and(|before| !self.line.leave(before));
        let queue = match &decision {
            Decision::Wait(wait) => Queue::of(wait.because),
            Decision::Send(_) | Decision::End(_) => None,
        };
        if let Some(queue) = queue {
            // The number is kept within a queue only: each has an order of its own.
            let number = before.filter(|b| b.queue == queue).map(|b| b.number);
            *spot = Some(self.line.join(queue, number, waker()));
        }
        let took_in_vain = before.is_some_and(|b| Some(b.queue) == queue);
        let called = match before {
            // Nothing for the first of a queue is nothing for those behind it.
            Some(before) if was_called && !took_in_vain => self.call_next(now, before.queue),
            Some(_) => Called::default(),
            // A first attempt feeds the budget.
            None if matches!(decision, Decision::Send(_)) => {
                Called::one(self.line.call(Queue::Token))
            }
            None => Called::default(),
        };
        (decision, called)
    }

    /// What was there for one who was called may be there for the next.
    fn call_next(&mut self, now: Timestamp, queue: Queue) -> Called {
        let ready = self.engine.readiness(now);
        let full = ready.at > now && ready.because == Because::Concurrency;
        if queue == Queue::Place && full {
            return Called::default();
        }
        Called::one(self.line.call(queue))
    }

    /// What became of the attempt.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        now: Timestamp,
        operation: &mut Operation,
        outcome: &Outcome,
    ) -> (Decision, Called) {
        let decision = operation.on_outcome(now, outcome, &mut self.engine, &mut self.rng);
        if self.line.is_empty() {
            return (decision, Called::default());
        }
        (decision, Called(self.line.call_each()))
    }

    /// The caller gave up: the place goes back, and whoever was called calls the next.
    pub(crate) fn cancel(
        &mut self,
        now: Timestamp,
        operation: &mut Operation,
        spot: &mut Option<Spot>,
    ) -> (Decision, Called) {
        let (engine, rng) = (&mut self.engine, &mut self.rng);
        let decision = operation.cancel(now, Reason::Cancelled, engine, rng);
        let called = match spot.take() {
            Some(spot) if self.line.leave(spot) => Called::default(),
            Some(spot) => Called::one(self.line.call(spot.queue)),
            None => Called(self.line.call_each()),
        };
        (decision, called)
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;
    use ressac_policy::Policy;

    use super::*;

    #[test]
    fn li_2_an_earlier_reading_is_given_the_latest_moment_known() {
        let at = Timestamp::from_secs;
        let mut core = Core {
            engine: Engine::new(Policy::sync(), at(10)),
            rng: Xoshiro256PlusPlus::seed_from_u64(1),
            keys: Xoshiro256PlusPlus::seed_from_u64(2),
            line: Line::default(),
            latest: at(10),
        };
        let given = [12, 11, 12, 13].map(|read| core.moment(at(read)));
        assert_eq!(given, [12, 12, 12, 13].map(at));
    }
}
