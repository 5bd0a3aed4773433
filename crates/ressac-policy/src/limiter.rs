//! The limiter: how many attempts at a time, and how fast, as far as the partner bears it.
//!
//! The rate is a GCRA (generic cell rate algorithm, ITU-T I.371): one number, the theoretical
//! arrival time of the next attempt. Both limits adapt: a 429 multiplies them, success gives them
//! back bit by bit (AIMD).

use crate::decision::Because;
use crate::policy::LimitConfig;
use crate::ratio::ONE;
use crate::time::{Timestamp, nanos};

/// A 429 in the same second as the last that counted says the same thing again. Fixed, so that it
/// never hangs on the length of a hint (LI-1).
const COOLDOWN_NANOS: u64 = 1_000_000_000;
/// However often 429 comes, a hundredth of the limit stays.
const LEAST_SHARE: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Limiter {
    /// When the next attempt is due at the exact rate.
    next: Timestamp,
    /// The share of the limit that is allowed now, in millionths.
    share: u64,
    lowered_at: Option<Timestamp>,
    raised_at: Timestamp,
    #[cfg_attr(feature = "serde", serde(skip))]
    in_flight: u32,
    /// Counts restarts: a place taken before one is not given back after it.
    epoch: u32,
}

/// No place: of an attempt that a restart has made the limiter forget.
pub(crate) const NO_EPOCH: u32 = u32::MAX;

impl Limiter {
    pub(crate) fn new(now: Timestamp) -> Self {
        Limiter {
            next: now,
            share: ONE,
            lowered_at: None,
            raised_at: Timestamp::ZERO,
            in_flight: 0,
            epoch: 0,
        }
    }

    /// This process starts anew: nothing is in flight, and no moment of a clock that was wrong
    /// stands in the way for longer than one that is set now.
    pub(crate) fn take_up(&mut self, config: &LimitConfig, now: Timestamp) {
        self.in_flight = 0;
        self.epoch = self.epoch.wrapping_add(1) % NO_EPOCH;
        self.share = self.share.clamp(LEAST_SHARE, ONE);
        self.next = self.next.min(now.plus_nanos(self.interval_nanos(config)));
        self.lowered_at = self.lowered_at.map(|at| at.min(now));
        self.raised_at = self.raised_at.min(now);
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The share of the configured limits in force, in millionths.
    pub(crate) const fn share(&self) -> u64 {
        self.share
    }

    /// When the next may go, and what it waits for until then. [`Timestamp::MAX`] means: when one
    /// of those in flight has ended.
    #[inline]
    pub(crate) fn ready_at(&self, config: &LimitConfig) -> (Timestamp, Because) {
        if let Some(most) = config.concurrency
            && self.in_flight >= self.places(most)
        {
            return (Timestamp::MAX, Because::Concurrency);
        }
        let Some(interval) = self.interval(config) else {
            return (Timestamp::ZERO, Because::Rate);
        };
        let early = interval.saturating_mul(u64::from(config.burst.max(1) - 1));
        (
            Timestamp::from_nanos(self.next.as_nanos().saturating_sub(early)),
            Because::Rate,
        )
    }

    /// Is the whole limit in force, no part of it to be given back?
    #[inline]
    pub(crate) const fn is_whole(&self) -> bool {
        self.share == ONE
    }

    /// No rate, the whole limit in force, and a place free.
    #[inline]
    pub(crate) fn is_clear(&self, config: &LimitConfig) -> bool {
        self.is_whole()
            && config.rate.is_none()
            && config
                .concurrency
                .is_none_or(|most| self.in_flight < most.max(1))
    }

    /// How many of the `most` places the share in force leaves.
    #[inline]
    fn places(&self, most: u32) -> u32 {
        if self.share == ONE {
            return most.max(1);
        }
        // The share is at most one, so the product fits and the quotient is no more than `most`.
        ((u64::from(most) * self.share / ONE) as u32).max(1)
    }

    /// One goes. Its place is given back by [`Limiter::release`] with what this returns.
    #[inline]
    pub(crate) fn admit(&mut self, config: &LimitConfig, now: Timestamp) -> u32 {
        if let Some(interval) = self.interval(config) {
            // `next` never goes back, even where the clock does (LI-2).
            self.next = self.next.max(now).plus_nanos(interval);
        }
        self.take_place()
    }

    /// Counts one more in flight; to be given back with what this returns.
    #[inline]
    pub(crate) fn take_place(&mut self) -> u32 {
        self.in_flight = self.in_flight.saturating_add(1);
        self.epoch
    }

    /// One has ended.
    #[inline]
    pub(crate) fn release(&mut self, epoch: u32) {
        if epoch == self.epoch {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// The partner asked for less.
    #[inline(never)]
    pub(crate) fn on_throttled(&mut self, config: &LimitConfig, now: Timestamp) {
        let due = |at: Timestamp| nanos(now.since(at)) >= COOLDOWN_NANOS;
        if self.lowered_at.is_none_or(due) {
            // Never more than the limit, even where an unsound policy says so.
            self.share = config.decrease.of(self.share).clamp(LEAST_SHARE, ONE);
            self.lowered_at = Some(now);
            self.raised_at = self.raised_at.max(now);
        }
    }

    /// The partner took one: a little more may come, by the time since it last could.
    #[inline]
    pub(crate) fn on_success(&mut self, config: &LimitConfig, now: Timestamp) {
        if self.share < ONE {
            let elapsed = now.as_nanos().saturating_sub(self.raised_at.as_nanos());
            let more = u128::from(elapsed.min(COOLDOWN_NANOS))
                * u128::from(config.increase.millionths())
                / u128::from(COOLDOWN_NANOS);
            if more > 0 {
                self.share = self.share.saturating_add(more as u64).min(ONE);
                self.raised_at = self.raised_at.max(now);
            }
        }
    }

    /// The time between two at the rate in force; zero where there is none.
    pub(crate) fn interval_nanos(&self, config: &LimitConfig) -> u64 {
        self.interval(config).unwrap_or(0)
    }

    #[inline]
    fn interval(&self, config: &LimitConfig) -> Option<u64> {
        let interval = config.rate?.interval_nanos();
        if self.share == ONE {
            return Some(interval);
        }
        Some((u128::from(interval) * u128::from(ONE) / u128::from(self.share)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Rate;

    fn config() -> LimitConfig {
        LimitConfig {
            rate: Some(Rate::per_second(10)),
            ..LimitConfig::default()
        }
    }

    fn ms(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_rate_is_kept_and_a_burst_allowed() {
        let config = LimitConfig {
            burst: 3,
            ..config()
        };
        let mut limiter = Limiter::new(ms(0));
        let mut sent = 0;
        for now in 0..1_000 {
            while limiter.ready_at(&config).0 <= ms(now) {
                let epoch = limiter.admit(&config, ms(now));
                limiter.release(epoch);
                sent += 1;
            }
        }
        assert_eq!(sent, 10 + 2);
    }

    #[test]
    fn li_1_the_limit_moves_again_while_429s_with_long_hints_go_on() {
        let config = config();
        let mut limiter = Limiter::new(ms(0));
        for second in 0..20 {
            limiter.on_throttled(&config, ms(1_000 + second * 1_000));
        }
        assert_eq!(limiter.share(), LEAST_SHARE);
        for second in 21..46 {
            limiter.on_success(&config, ms(second * 1_000));
        }
        assert_eq!(limiter.share(), ONE);
    }

    #[test]
    fn a_429_in_the_first_second_of_virtual_time_counts() {
        let mut limiter = Limiter::new(ms(0));
        limiter.on_throttled(&config(), ms(1));
        assert_eq!(limiter.share(), 700_000);
    }

    #[test]
    fn an_unsound_decrease_neither_raises_the_limit_nor_overflows() {
        let config = LimitConfig {
            decrease: crate::ratio::Ratio::from_millionths(u32::MAX),
            concurrency: Some(u32::MAX),
            ..config()
        };
        let mut limiter = Limiter::new(ms(0));
        for second in 1..10 {
            limiter.on_throttled(&config, ms(second * 1_000));
            limiter.ready_at(&config);
        }
        assert_eq!(limiter.share(), ONE);
    }

    #[test]
    fn one_burst_of_429s_counts_once() {
        let config = config();
        let mut limiter = Limiter::new(ms(0));
        for _ in 0..50 {
            limiter.on_throttled(&config, ms(1_010));
        }
        assert_eq!(limiter.share(), 700_000);
    }

    #[test]
    fn successes_in_between_do_not_shield_from_a_429() {
        let config = config();
        let mut limiter = Limiter::new(ms(0));
        for tenth in 10..40 {
            limiter.on_throttled(&config, ms(tenth * 100));
            limiter.on_success(&config, ms(tenth * 100 + 50));
        }
        assert!(limiter.share() < 500_000, "{}", limiter.share());
    }

    #[test]
    fn li_2_a_clock_that_steps_back_makes_no_room() {
        let config = config();
        let mut limiter = Limiter::new(ms(1_000));
        limiter.admit(&config, ms(1_000));
        let ready = limiter.ready_at(&config).0;
        limiter.admit(&config, ms(10));
        assert!(limiter.ready_at(&config).0 > ready);
    }

    #[test]
    fn one_in_flight_is_always_allowed() {
        let config = LimitConfig {
            concurrency: Some(2),
            rate: None,
            ..config()
        };
        let mut limiter = Limiter::new(ms(0));
        for second in 1..30 {
            limiter.on_throttled(&config, ms(second * 1_000));
        }
        assert_eq!(limiter.ready_at(&config).0, Timestamp::ZERO);
        limiter.admit(&config, ms(0));
        assert_eq!(
            limiter.ready_at(&config),
            (Timestamp::MAX, Because::Concurrency)
        );
    }
}
