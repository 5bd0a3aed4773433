//! The nearest messages of one class, held in memory; the rest stays in the store.
//!
//! Memory is bounded: a lane holds at most [`HELD`] messages of a class, however many wait.

use std::collections::{HashSet, VecDeque};

use ressac_policy::{Operation, Timestamp};
use ressac_store::{Class, DueMessage};
use uuid::Uuid;

use super::record::decode;

/// Messages of one class in memory.
pub(super) const HELD: usize = 128;
/// Below so many the store is asked again.
const LOW: usize = 32;

/// A message that can be begun when it is due.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) id: Uuid,
    pub(super) class: Class,
    pub(super) due: u64,
    pub(super) seq: u64,
    pub(super) lane: bool,
    pub(super) operation: Operation,
}

impl Candidate {
    /// `None` where the stored operation cannot be read.
    pub(super) fn from_due(message: &DueMessage) -> Option<Self> {
        Some(Candidate {
            id: message.id,
            class: message.class,
            due: message.due,
            seq: message.seq,
            lane: message.lane.is_some(),
            operation: decode(&message.operation)?,
        })
    }

    /// First attempts by nearest deadline, the others by due time; then in order of acceptance.
    fn rank(&self) -> (u64, u64) {
        let by = match self.class {
            Class::First => self.operation.deadline().as_nanos(),
            Class::Retry | Class::Replay => self.due,
        };
        (by, self.seq)
    }
}

/// The nearest of one class, in order.
#[derive(Debug)]
pub(super) struct Queue {
    class: Class,
    items: VecDeque<Candidate>,
    /// The store may hold some of this class that are not here.
    more: bool,
}

impl Queue {
    pub(super) fn new(class: Class) -> Self {
        Queue {
            class,
            items: VecDeque::new(),
            more: true,
        }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Does it want what the store has?
    pub(super) fn is_low(&self) -> bool {
        self.more && self.items.len() < LOW
    }

    pub(super) fn mark_more(&mut self) {
        self.more = true;
    }

    /// Takes what the store answered to "the nearest [`HELD`]"; `busy` are being sent or settled.
    pub(super) fn refill(&mut self, found: Vec<Candidate>, asked: usize, busy: &HashSet<Uuid>) {
        let known: HashSet<Uuid> = self.items.iter().map(|candidate| candidate.id).collect();
        self.more = found.len() >= asked;
        for candidate in found {
            if !known.contains(&candidate.id) && !busy.contains(&candidate.id) {
                self.insert(candidate);
            }
        }
    }

    /// Puts one in its place; the farthest goes if there are too many.
    pub(super) fn insert(&mut self, candidate: Candidate) {
        let rank = candidate.rank();
        let at = self.items.partition_point(|other| other.rank() <= rank);
        if at >= HELD {
            self.more = true;
            return;
        }
        self.items.insert(at, candidate);
        if self.items.len() > HELD {
            self.items.pop_back();
            self.more = true;
        }
    }

    /// The next one in order, if it is due.
    pub(super) fn head(&self, now: Timestamp) -> Option<&Candidate> {
        self.items
            .front()
            .filter(|candidate| candidate.due <= now.as_nanos())
    }

    pub(super) fn pop(&mut self) -> Option<Candidate> {
        self.items.pop_front()
    }

    /// Puts back what was popped, in its place.
    pub(super) fn put_back(&mut self, candidate: Candidate) {
        self.insert(candidate);
    }

    pub(super) fn remove_expired(&mut self, moment: Timestamp) -> Vec<Candidate> {
        let expired = |candidate: &Candidate| candidate.operation.deadline() <= moment;
        if !self.items.iter().any(expired) {
            return Vec::new();
        }
        let (gone, kept) = std::mem::take(&mut self.items)
            .into_iter()
            .partition(expired);
        self.items = kept;
        Vec::from(gone)
    }

    /// When the head is due.
    pub(super) fn due_at(&self) -> Timestamp {
        Timestamp::from_nanos(
            self.items
                .front()
                .map_or(u64::MAX, |candidate| candidate.due),
        )
    }

    /// The first moment at which one of them can no longer be sent.
    pub(super) fn nearest_deadline(&self) -> Timestamp {
        let deadlines = self
            .items
            .iter()
            .map(|candidate| candidate.operation.deadline());
        deadlines.min().unwrap_or(Timestamp::MAX)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ressac_policy::{OperationSpec, Policy};

    fn candidate(due: u64, seq: u64) -> Candidate {
        Candidate {
            id: Uuid::from_u128(u128::from(seq)),
            class: Class::Retry,
            due,
            seq,
            lane: false,
            operation: Operation::new(
                &OperationSpec::new("PUT"),
                &Policy::durable(),
                Timestamp::from_nanos(due),
            ),
        }
    }

    #[test]
    fn the_nearest_are_held_and_the_rest_is_left_to_the_store() {
        let mut queue = Queue::new(Class::Retry);
        queue.refill(Vec::new(), HELD, &HashSet::new());
        assert!(!queue.is_low(), "an empty store has nothing more");
        for seq in (0..1_000).rev() {
            queue.insert(candidate(seq, seq));
        }
        assert_eq!(queue.len(), HELD);
        assert_eq!(queue.pop().map(|candidate| candidate.due), Some(0));
        while queue.len() >= LOW {
            queue.pop();
        }
        assert!(queue.is_low());
    }

    #[test]
    fn what_is_known_or_busy_is_not_taken_twice() {
        let mut queue = Queue::new(Class::Retry);
        let busy = HashSet::from([Uuid::from_u128(2)]);
        for _ in 0..2 {
            queue.refill((0..4).map(|seq| candidate(seq, seq)).collect(), HELD, &busy);
        }
        assert_eq!(queue.len(), 3);
    }
}
