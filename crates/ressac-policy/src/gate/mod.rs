//! The gate before a partner: its breaker, the holds its hints ask for, and its suspension.
//!
//! One state machine for the three, because they say the same: nothing now; one, or a few, when
//! the time has come; then more and more. Where two of them speak at once the later moment and the
//! smaller number hold.
//!
//! ```text
//!             enough failures · a hint · permanent failures that concern the partner
//!   closed ───────────────────────────────────────────────────────────► open until t
//!     ▲                                                                    │  t has come and
//!     │ all probes succeed: the drain is paced                             │  somebody asks
//!     └───────────────────────────── half-open ◄───────────────────────────┘
//!                                        │ one fails: open again, for longer
//!                                        └───────────────────────────────► open until t'
//! ```

mod open;
mod pass;
mod ramp;

use core::time::Duration;

use rand_core::Rng;

use self::pass::NO_PLACE;
pub(crate) use self::pass::{Call, Pass, Word};
use self::ramp::Ramp;
use crate::decision::Because;
use crate::policy::BreakerConfig;
use crate::problems::MAX_PROBES;
use crate::ratio::ONE;
use crate::time::Timestamp;
use crate::verdict::Health;
use crate::window::{Calls, Tally};

/// Why the gate is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Cause {
    /// Too many failures or slow calls.
    Breaker,
    /// A hint: the partner named the time.
    Hold,
    /// Permanent failures in a row that concern the partner; only a probe, or an operator, ends it.
    Suspension,
}

impl Cause {
    pub(crate) const fn because(self) -> Because {
        match self {
            Cause::Breaker => Because::Breaker,
            Cause::Hold => Because::Hold,
            Cause::Suspension => Because::Suspension,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Phase {
    Closed,
    Open {
        until: Timestamp,
        cause: Cause,
        probes: u8,
    },
    HalfOpen {
        cause: Cause,
        probes: u8,
        succeeded: u8,
        places: [Timestamp; MAX_PROBES as usize],
    },
}

/// How the gate stands, for logs and the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// Everything passes, paced for a while after it closed.
    Closed,
    /// Nothing passes before this moment.
    Open {
        /// The moment.
        until: Timestamp,
        /// Why.
        cause: Cause,
    },
    /// A few probes pass.
    HalfOpen {
        /// Why it was open.
        cause: Cause,
    },
}

impl GateState {
    /// `closed`, `open` or `half_open`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            GateState::Closed => "closed",
            GateState::Open { .. } => "open",
            GateState::HalfOpen { .. } => "half_open",
        }
    }
}

/// A probe keeps its place a little longer than it may take, so that its timeout is heard before
/// the place is given away: else a partner that hangs would be probed for ever and never left alone.
const GRACE_NANOS: u64 = 1_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Gate {
    phase: Phase,
    /// Counts the changes of phase: what was admitted in an earlier one no longer counts.
    generation: u32,
    /// How often in a row it opened by itself, for the growth of the open time.
    openings: u32,
    consecutive: u32,
    calls: Calls,
    ramp: Option<Ramp>,
    /// Drawn when a hold begins, so that hints that prolong it do not draw again.
    hold_jitter: u64,
}

impl Gate {
    pub(crate) fn new(config: &BreakerConfig, now: Timestamp) -> Self {
        Gate {
            phase: Phase::Closed,
            generation: 0,
            openings: 0,
            consecutive: 0,
            calls: Calls::new(config.window, now),
            ramp: None,
            hold_jitter: 0,
        }
    }

    /// Counts over another window from now on.
    pub(crate) fn count_over(&mut self, window: crate::policy::CallWindow, now: Timestamp) {
        self.calls = Calls::new(window, now);
    }

    pub(crate) fn state(&self) -> GateState {
        match self.phase {
            Phase::Closed => GateState::Closed,
            Phase::Open { until, cause, .. } => GateState::Open { until, cause },
            Phase::HalfOpen { cause, .. } => GateState::HalfOpen { cause },
        }
    }

    pub(crate) fn failures(&self, now: Timestamp) -> (u32, u32) {
        let tally = self.calls.peek(now);
        (tally.failures, tally.calls)
    }

    /// When the next may pass, and what it waits for until then. Changes nothing (BR-4). For
    /// half-open with all places taken the moment is when the first of them expires.
    #[inline]
    pub(crate) fn ready_at(&self, now: Timestamp) -> (Timestamp, Because) {
        match &self.phase {
            Phase::Closed => (
                self.ramp.map_or(Timestamp::ZERO, |ramp| ramp.next),
                Because::Ramp,
            ),
            Phase::Open { until, cause, .. } => (*until, cause.because()),
            Phase::HalfOpen { .. } => self.half_open_ready_at(now),
        }
    }

    #[cold]
    fn half_open_ready_at(&self, now: Timestamp) -> (Timestamp, Because) {
        let Phase::HalfOpen {
            cause,
            probes,
            succeeded,
            places,
        } = &self.phase
        else {
            return (Timestamp::ZERO, Because::Turn);
        };
        let open = places.iter().filter(|expires| **expires > now);
        if open.clone().count() + usize::from(*succeeded) < usize::from(*probes) {
            return (Timestamp::ZERO, cause.because());
        }
        (
            open.min().copied().unwrap_or(Timestamp::ZERO),
            Because::Probe,
        )
    }

    /// Is the drain after closing still paced?
    #[inline]
    pub(crate) const fn is_paced(&self) -> bool {
        self.ramp.is_some()
    }

    /// Closed, and no drain is paced: everything passes.
    #[inline]
    pub(crate) const fn is_clear(&self) -> bool {
        matches!(self.phase, Phase::Closed) && self.ramp.is_none()
    }

    /// The pass of all who come while the gate is closed.
    #[inline]
    pub(crate) const fn pass(&self) -> Pass {
        Pass {
            generation: self.generation,
            place: NO_PLACE,
            expires: Timestamp::MAX,
        }
    }

    /// Lets one pass; `ready_at` must have said that it may. `limit` is the longest it will take, in
    /// nanoseconds.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        config: &BreakerConfig,
        now: Timestamp,
        limit: u64,
        interval: u64,
    ) -> Pass {
        if let Phase::Closed = self.phase {
            if let Some(ramp) = self.ramp {
                self.ramp = ramp.after_one(config, now, interval);
            }
            return self.pass();
        }
        self.admit_probe(
            now.plus_nanos(limit.saturating_add(GRACE_NANOS))
                .max(now + config.probe_timeout),
        )
    }

    #[cold]
    fn admit_probe(&mut self, expires: Timestamp) -> Pass {
        if let Phase::Open { cause, probes, .. } = self.phase {
            self.turn(Phase::HalfOpen {
                cause,
                probes,
                succeeded: 0,
                places: [Timestamp::ZERO; MAX_PROBES as usize],
            });
        }
        let generation = self.generation;
        let Phase::HalfOpen { places, probes, .. } = &mut self.phase else {
            return Pass::LOST;
        };
        // The place that has been free for longest, or whose holder has been silent for longest:
        // as many places as probes, so that who is late finds his place given away.
        let mut oldest = 0;
        for index in 1..usize::from((*probes).min(MAX_PROBES)) {
            if places[index] < places[oldest] {
                oldest = index;
            }
        }
        places[oldest] = expires;
        Pass {
            generation,
            place: oldest as u8,
            expires,
        }
    }

    /// What became of a call. A word about a call of an earlier phase, or of a probe whose place
    /// had been given away, changes nothing.
    #[inline]
    pub(crate) fn settle<R: Rng + ?Sized>(
        &mut self,
        config: &BreakerConfig,
        enabled: bool,
        now: Timestamp,
        pass: Pass,
        call: Call,
        rng: &mut R,
    ) {
        if pass.generation != self.generation {
            return;
        }
        if let Phase::Closed = self.phase {
            if enabled && call.word.health != Health::Neutral {
                self.count(config, now, call, rng);
            }
            return;
        }
        self.settle_probe(
            config,
            enabled,
            now,
            (pass.place, pass.expires),
            call.word,
            rng,
        );
    }

    /// [`Gate::settle`] for a good call while the gate is closed, all inline; false, and
    /// nothing changed, where there is more to it.
    #[inline]
    pub(crate) fn count_good(
        &mut self,
        config: &BreakerConfig,
        enabled: bool,
        now: Timestamp,
        pass: Pass,
        took: Duration,
    ) -> bool {
        let slow = config.slow_rate.is_some() && took >= config.slow_call;
        let closed = matches!(self.phase, Phase::Closed) && pass.generation == self.generation;
        if slow || !enabled || !closed || !self.calls.is_current(now) {
            return false;
        }
        self.consecutive = 0;
        self.calls.record(now, false, false);
        true
    }

    #[inline]
    fn count<R: Rng + ?Sized>(
        &mut self,
        config: &BreakerConfig,
        now: Timestamp,
        call: Call,
        rng: &mut R,
    ) {
        let failed = call.word.health == Health::Bad;
        let slow = config.slow_rate.is_some() && call.took >= config.slow_call;
        self.consecutive = if failed {
            self.consecutive.saturating_add(1)
        } else {
            0
        };
        let tally = self.calls.record(now, failed, slow);
        if (failed || slow) && self.are_too_bad(tally, config) {
            self.open(config, Cause::Breaker, now, rng);
        }
    }

    /// Did too many of the last calls fail, or were too many slow?
    #[inline]
    fn are_too_bad(&self, tally: Tally, config: &BreakerConfig) -> bool {
        let share = |part: u32, rate: Option<crate::ratio::Ratio>| {
            rate.is_some_and(|rate| {
                u64::from(part) * ONE >= u64::from(rate.millionths()) * u64::from(tally.calls)
            })
        };
        let by_rate = tally.calls >= config.min_calls
            && (share(tally.failures, config.failure_rate) || share(tally.slow, config.slow_rate));
        let in_a_row = config
            .consecutive
            .is_some_and(|limit| self.consecutive >= limit);
        by_rate || in_a_row
    }

    #[cold]
    #[inline(never)]
    fn settle_probe<R: Rng + ?Sized>(
        &mut self,
        config: &BreakerConfig,
        enabled: bool,
        now: Timestamp,
        (place, expires): (u8, Timestamp),
        word: Word,
        rng: &mut R,
    ) {
        let Phase::HalfOpen {
            cause,
            probes,
            succeeded,
            places,
        } = &mut self.phase
        else {
            return;
        };
        let Some(place) = places.get_mut(usize::from(place)) else {
            return;
        };
        if *place != expires {
            return;
        }
        *place = Timestamp::ZERO;
        match word.health {
            Health::Neutral => {}
            // Still refused, or not even reached: no word yet that it is mended.
            _ if *cause == Cause::Suspension && (word.suspect || word.health == Health::Bad) => {
                self.suspend(config, now, rng);
            }
            Health::Good => {
                *succeeded += 1;
                if *succeeded >= *probes {
                    let paced = enabled || *cause != Cause::Breaker;
                    self.close(config, paced, now);
                }
            }
            // The partner named a new time itself: the hold that follows says all there is to say.
            Health::Bad if *cause == Cause::Hold && word.hinted => {}
            // With the breaker off a hold whose probe fails goes on as a hold.
            Health::Bad => {
                let cause = if enabled { Cause::Breaker } else { *cause };
                self.open(config, cause, now, rng);
            }
        }
    }
}
