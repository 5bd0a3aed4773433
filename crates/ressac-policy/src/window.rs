//! Counts over a sliding window: the calls a breaker looks at, the first attempts a budget saves
//! from.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::policy::CallWindow;
use crate::time::{Timestamp, nanos};

const SLOTS: usize = 10;

/// Events of the last `length`, in tenths: what is counted is between nine and ten tenths old.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sliding<T> {
    slots: [T; SLOTS],
    total: T,
    head: u8,
    /// When the slot at `head` is over.
    head_ends: Timestamp,
    slot_nanos: u64,
}

/// What can be counted: added and taken away.
pub(crate) trait Count: Copy + Default + PartialEq {
    fn add(&mut self, other: Self);
    fn take(&mut self, other: Self);
}

impl<T: Count> Sliding<T> {
    pub(crate) fn new(length: Duration, now: Timestamp) -> Self {
        let slot_nanos = (nanos(length) / SLOTS as u64).max(1);
        Sliding {
            slots: [T::default(); SLOTS],
            total: T::default(),
            head: 0,
            head_ends: now.plus_nanos(slot_nanos),
            slot_nanos,
        }
    }

    /// Counts it, and gives the total with it.
    #[inline]
    pub(crate) fn add(&mut self, now: Timestamp, count: T) -> T {
        self.advance(now);
        self.add_here(count)
    }

    /// Counts it in the slot that is being counted in.
    #[inline]
    pub(crate) fn add_here(&mut self, count: T) -> T {
        self.slots[usize::from(self.head)].add(count);
        self.total.add(count);
        self.total
    }

    #[inline]
    pub(crate) fn total(&mut self, now: Timestamp) -> T {
        self.advance(now);
        self.total
    }

    /// The total as of `now`, changing nothing.
    pub(crate) fn peek(&self, now: Timestamp) -> T {
        if now < self.head_ends {
            return self.total;
        }
        let gone = self.slots_gone(now).min(SLOTS);
        let mut total = self.total;
        for ahead in 1..=gone {
            total.take(self.slots[(usize::from(self.head) + ahead) % SLOTS]);
        }
        total
    }

    pub(crate) fn clear(&mut self, now: Timestamp) {
        self.slots = [T::default(); SLOTS];
        self.total = T::default();
        self.head_ends = now.plus_nanos(self.slot_nanos);
    }

    /// Does it count over this length, and could it have been made by a clock that agrees with
    /// `now`? Asked of what was stored.
    pub(crate) fn fits(&self, length: Duration, now: Timestamp) -> bool {
        let fresh = nanos(length) / SLOTS as u64;
        self.slot_nanos == fresh.max(1)
            && usize::from(self.head) < SLOTS
            && self.head_ends <= now.plus_nanos(self.slot_nanos)
    }

    /// Does `now` fall into the slot that is being counted in?
    #[inline]
    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        now < self.head_ends
    }

    fn slots_gone(&self, now: Timestamp) -> usize {
        let past = now.as_nanos().saturating_sub(self.head_ends.as_nanos());
        usize::try_from(past / self.slot_nanos)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
    }

    #[inline]
    fn advance(&mut self, now: Timestamp) {
        // A clock that steps back stays in the slot it had reached.
        if !self.is_current(now) {
            self.turn(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Timestamp) {
        let gone = self.slots_gone(now);
        if gone >= SLOTS {
            return self.clear(now);
        }
        for _ in 0..gone {
            self.head = (self.head + 1) % SLOTS as u8;
            let slot = &mut self.slots[usize::from(self.head)];
            self.total.take(core::mem::take(slot));
        }
        self.head_ends = self
            .head_ends
            .plus_nanos(self.slot_nanos.saturating_mul(gone as u64));
    }
}

impl Count for u32 {
    fn add(&mut self, other: u32) {
        *self = self.saturating_add(other);
    }

    fn take(&mut self, other: u32) {
        *self = self.saturating_sub(other);
    }
}

/// How many calls, and how many of them failed or were slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Tally {
    pub(crate) calls: u32,
    pub(crate) failures: u32,
    pub(crate) slow: u32,
}

impl Tally {
    #[inline]
    pub(crate) fn of(failed: bool, slow: bool) -> Self {
        Tally {
            calls: 1,
            failures: u32::from(failed),
            slow: u32::from(slow),
        }
    }
}

impl Count for Tally {
    #[inline]
    fn add(&mut self, other: Tally) {
        self.calls.add(other.calls);
        // Most calls are neither; one by one, so that no wide load waits for a narrow store.
        if other.failures != 0 {
            self.failures.add(other.failures);
        }
        if other.slow != 0 {
            self.slow.add(other.slow);
        }
    }

    fn take(&mut self, other: Tally) {
        self.calls.take(other.calls);
        self.failures.take(other.failures);
        self.slow.take(other.slow);
    }
}

/// The calls of a [`CallWindow`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Calls {
    Time(Sliding<Tally>),
    Count(Ring),
}

/// The last so many calls. Allocated once, with the partner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Ring {
    /// Bit 0: failed; bit 1: slow.
    calls: Vec<u8>,
    next: u32,
    total: Tally,
}

impl Calls {
    pub(crate) fn new(window: CallWindow, now: Timestamp) -> Self {
        match window {
            CallWindow::Time(length) => Calls::Time(Sliding::new(length, now)),
            CallWindow::Count(calls) => {
                let calls = calls.clamp(1, crate::problems::MAX_COUNT_WINDOW);
                Calls::Count(Ring {
                    calls: vec![0; calls as usize],
                    next: 0,
                    total: Tally::default(),
                })
            }
        }
    }

    /// Do these count over this window? Asked of what was stored.
    pub(crate) fn fits(&self, window: CallWindow, now: Timestamp) -> bool {
        match (self, window) {
            (Calls::Time(sliding), CallWindow::Time(length)) => sliding.fits(length, now),
            (Calls::Count(ring), CallWindow::Count(calls)) => ring.fits(calls),
            (Calls::Time(_), CallWindow::Count(_)) | (Calls::Count(_), CallWindow::Time(_)) => {
                false
            }
        }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, now: Timestamp, failed: bool, slow: bool) -> Tally {
        match self {
            Calls::Time(sliding) => sliding.add(now, Tally::of(failed, slow)),
            Calls::Count(ring) => ring.record(failed, slow),
        }
    }

    /// Can a call be counted without moving on?
    #[inline]
    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        match self {
            Calls::Time(sliding) => sliding.is_current(now),
            Calls::Count(_) => false,
        }
    }

    pub(crate) fn peek(&self, now: Timestamp) -> Tally {
        match self {
            Calls::Time(sliding) => sliding.peek(now),
            Calls::Count(ring) => ring.total,
        }
    }

    pub(crate) fn clear(&mut self, now: Timestamp) {
        match self {
            Calls::Time(sliding) => sliding.clear(now),
            Calls::Count(ring) => {
                ring.total = Tally::default();
                ring.next = 0;
            }
        }
    }
}

impl Ring {
    fn fits(&self, calls: u32) -> bool {
        let calls = calls.clamp(1, crate::problems::MAX_COUNT_WINDOW);
        self.calls.len() == calls as usize && self.next < calls && self.total.calls <= calls
    }

    #[inline(never)]
    fn record(&mut self, failed: bool, slow: bool) -> Tally {
        let full = self.total.calls == self.calls.len() as u32;
        let slot = &mut self.calls[self.next as usize];
        if full {
            self.total.take(Tally::of(*slot & 1 != 0, *slot & 2 != 0));
        }
        *slot = u8::from(failed) | u8::from(slow) << 1;
        self.total.add(Tally::of(failed, slow));
        self.next = (self.next + 1) % self.calls.len() as u32;
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn what_is_older_than_the_window_is_gone() {
        let mut sliding = Sliding::<u32>::new(Duration::from_secs(10), at(0));
        sliding.add(at(500), 3);
        sliding.add(at(1_500), 4);
        assert_eq!(sliding.peek(at(9_999)), 7);
        assert_eq!(sliding.peek(at(10_000)), 4);
        assert_eq!(sliding.total(at(10_000)), 4);
        assert_eq!(sliding.total(at(1_000_000)), 0);
    }

    #[test]
    fn a_count_window_forgets_the_oldest() {
        let mut calls = Calls::new(CallWindow::Count(3), at(0));
        for failed in [true, true, false] {
            calls.record(at(0), failed, false);
        }
        calls.record(at(0), false, true);
        assert_eq!(
            calls.peek(at(0)),
            Tally {
                calls: 3,
                failures: 1,
                slow: 1
            }
        );
        calls.clear(at(0));
        calls.record(at(0), false, false);
        assert_eq!(
            calls.peek(at(0)),
            Tally {
                calls: 1,
                failures: 0,
                slow: 0
            }
        );
    }

    proptest! {
        #[test]
        fn sliding_agrees_with_a_list_of_moments(
            mut moments in proptest::collection::vec(0u64..60_000, 1..200),
            length in 100u64..20_000,
        ) {
            moments.sort_unstable();
            let mut sliding = Sliding::<u32>::new(Duration::from_millis(length), at(0));
            for (index, moment) in moments.iter().enumerate() {
                sliding.add(at(*moment), 1);
                let younger_than = |age: u64| {
                    moments[..=index].iter().filter(|m| (moment - **m) * 10 < age).count() as u32
                };
                let got = sliding.peek(at(*moment));
                prop_assert!(got >= younger_than(length * 9), "{got}");
                prop_assert!(got <= younger_than(length * 10), "{got}");
                prop_assert_eq!(got, sliding.total(at(*moment)));
            }
        }
    }
}
