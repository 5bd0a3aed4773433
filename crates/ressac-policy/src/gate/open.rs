//! What opens the gate, for how long, and what closes it again.

use core::time::Duration;

use rand_core::Rng;

use super::{Cause, Gate, Phase, Ramp};
use crate::policy::BreakerConfig;
use crate::problems::MAX_PROBES;
use crate::random;
use crate::ratio::ONE;
use crate::time::{Timestamp, nanos};

impl Gate {
    /// The drain is paced, whatever had opened it; without a breaker nothing else ever did than a
    /// hold or a suspension.
    pub(super) fn close(&mut self, config: &BreakerConfig, paced: bool, now: Timestamp) {
        self.turn(Phase::Closed);
        self.openings = 0;
        self.consecutive = 0;
        self.calls.clear(now);
        self.ramp = paced.then(|| Ramp::begin(config, now));
    }

    /// Opens for a time that doubles while probes fail, drawn to either side of it.
    #[cold]
    #[inline(never)]
    pub(super) fn open<R: Rng + ?Sized>(
        &mut self,
        config: &BreakerConfig,
        cause: Cause,
        now: Timestamp,
        rng: &mut R,
    ) {
        let until = now.plus_nanos(self.open_nanos(config, rng));
        self.openings = self.openings.saturating_add(1);
        self.turn(Phase::Open {
            until,
            cause,
            probes: config.probes.clamp(1, MAX_PROBES),
        });
    }

    fn open_nanos<R: Rng + ?Sized>(&self, config: &BreakerConfig, rng: &mut R) -> u64 {
        let jitter = u64::from(config.open_jitter.millionths()).min(ONE);
        // The middle is capped so that the draw never passes open_max, and stays a draw there.
        let highest =
            u128::from(nanos(config.open_max)) * u128::from(ONE) / u128::from(ONE + jitter);
        let doubled = nanos(config.open).saturating_mul(1 << self.openings.min(40));
        let middle = u128::from(doubled).min(highest) as u64;
        let half = (u128::from(middle) * u128::from(jitter) / u128::from(ONE)) as u64;
        (middle - half)
            .saturating_add(random::up_to(rng, half.saturating_mul(2)))
            .max(1)
    }

    /// The partner asked for nothing before `floor` has passed. With `spread` on top, so that many
    /// senders told the same second do not send their probes in it.
    pub(crate) fn hold<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        floor: Duration,
        spread: u64,
        rng: &mut R,
    ) {
        let holding = matches!(
            self.phase,
            Phase::Open {
                cause: Cause::Hold,
                ..
            }
        );
        if !holding {
            self.hold_jitter = rng.next_u64();
        }
        let end = (now + floor).plus_nanos(random::scale(self.hold_jitter, spread));
        match &mut self.phase {
            Phase::Open {
                until,
                cause,
                probes,
            } => {
                if end > *until && *cause == Cause::Breaker {
                    *cause = Cause::Hold;
                }
                *until = end.max(*until);
                *probes = 1;
            }
            Phase::HalfOpen {
                cause: Cause::Suspension,
                ..
            } => {
                self.turn(Phase::Open {
                    until: end,
                    cause: Cause::Suspension,
                    probes: 1,
                });
            }
            Phase::Closed | Phase::HalfOpen { .. } => {
                self.turn(Phase::Open {
                    until: end,
                    cause: Cause::Hold,
                    probes: 1,
                });
            }
        }
    }

    /// Only a slow probe passes from now on, until one succeeds.
    #[cold]
    #[inline(never)]
    pub(crate) fn suspend<R: Rng + ?Sized>(
        &mut self,
        config: &BreakerConfig,
        now: Timestamp,
        rng: &mut R,
    ) {
        let longest = nanos(config.open_max);
        let wait = longest / 2 + random::up_to(rng, longest / 2);
        // Of two that speak at once, the later moment: a hold still counts.
        let held = match self.phase {
            Phase::Open { until, .. } => until,
            Phase::Closed | Phase::HalfOpen { .. } => now,
        };
        self.turn(Phase::Open {
            until: now.plus_nanos(wait).max(held),
            cause: Cause::Suspension,
            probes: 1,
        });
    }

    /// An operator has mended the cause: the next attempt is a probe, now.
    pub(crate) fn resume(&mut self, now: Timestamp) {
        if let Phase::Open { cause, probes, .. } | Phase::HalfOpen { cause, probes, .. } =
            self.phase
        {
            self.turn(Phase::Open {
                until: now,
                cause,
                probes,
            });
        }
    }

    /// This process starts anew: nobody is out any more, and nothing stored by a clock that was
    /// wrong keeps the gate shut for longer than it could have opened for now.
    pub(crate) fn take_up(&mut self, config: &BreakerConfig, longest_hold: u64, now: Timestamp) {
        if !self.calls.fits(config.window, now) {
            self.count_over(config.window, now);
        }
        let ramp = self.ramp.map(|ramp| ramp.bounded(config, now));
        let phase = match self.phase {
            Phase::Closed => Phase::Closed,
            Phase::Open {
                until,
                cause,
                probes,
            } => Phase::Open {
                until: until.min(now.plus_nanos(match cause {
                    Cause::Hold => longest_hold,
                    Cause::Breaker | Cause::Suspension => longest_hold.max(nanos(config.open_max)),
                })),
                cause,
                probes: probes.clamp(1, MAX_PROBES),
            },
            Phase::HalfOpen { cause, probes, .. } => Phase::Open {
                until: now,
                cause,
                probes: probes.clamp(1, MAX_PROBES),
            },
        };
        self.turn(phase);
        self.ramp = ramp;
    }

    pub(super) fn turn(&mut self, phase: Phase) {
        self.phase = phase;
        self.ramp = None;
        // Skips the generation of passes that were lost.
        self.generation = self.generation.wrapping_add(1) % u32::MAX;
    }
}
