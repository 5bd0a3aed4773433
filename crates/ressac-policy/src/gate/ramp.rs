//! The paced drain after closing: what has piled up must not fall on a partner that has just got
//! up.

use crate::policy::BreakerConfig;
use crate::time::{Timestamp, nanos};

/// After so many doublings the ramp is over: a thousand times the rate it began with.
const STEPS: u32 = 10;

/// A rate that doubles with each step since `started`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Ramp {
    started: Timestamp,
    pub(super) next: Timestamp,
}

impl Ramp {
    pub(super) fn begin(config: &BreakerConfig, now: Timestamp) -> Self {
        Ramp {
            started: now,
            next: next_after(config, now, now),
        }
    }

    /// One goes now; `None` once the limit's own `interval` is as long as the ramp's.
    pub(super) fn after_one(
        self,
        config: &BreakerConfig,
        now: Timestamp,
        interval: u64,
    ) -> Option<Self> {
        let step = step_of(config, self.started, now);
        let still_slower = config.ramp_start.interval_nanos() >> step.min(63) > interval;
        (step < u64::from(STEPS) && still_slower).then(|| Ramp {
            next: next_after(config, self.started, now),
            ..self
        })
    }

    /// Not further ahead than a ramp that begins now: a stored one may come from a clock that was
    /// wrong.
    pub(super) fn bounded(self, config: &BreakerConfig, now: Timestamp) -> Self {
        let begun = Ramp::begin(config, now);
        Ramp {
            started: self.started.min(now),
            next: self.next.min(begun.next),
        }
    }
}

fn step_nanos(config: &BreakerConfig) -> u64 {
    nanos(config.ramp_step).max(1)
}

fn step_of(config: &BreakerConfig, started: Timestamp, now: Timestamp) -> u64 {
    nanos(now.since(started)) / step_nanos(config)
}

/// When the rate, added up from `from`, has reached one more. Summed over the steps, so that a
/// first rate of one an hour does not wait an hour while it doubles every two seconds.
fn next_after(config: &BreakerConfig, started: Timestamp, from: Timestamp) -> Timestamp {
    let length = step_nanos(config);
    let first = u32::try_from(step_of(config, started, from)).unwrap_or(STEPS);
    let mut missing = u128::from(config.ramp_start.interval_nanos());
    let mut at = from;
    for step in first..STEPS {
        let ends = started.plus_nanos(length.saturating_mul(u64::from(step) + 1));
        let here = u128::from(nanos(ends.since(at))) << step;
        if missing <= here {
            // At least a nanosecond, or a rate above the clock's grain would be no pace at all.
            return at.plus_nanos(((missing >> step) as u64).max(1));
        }
        missing -= here;
        at = at.max(ends);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Rate;
    use core::time::Duration;

    fn sends(config: &BreakerConfig, until: Timestamp) -> usize {
        let mut ramp = Some(Ramp::begin(config, Timestamp::ZERO));
        let mut sent = 0;
        while let Some(now) = ramp.map(|ramp| ramp.next).filter(|next| *next < until) {
            ramp = ramp.and_then(|ramp| ramp.after_one(config, now, 0));
            sent += 1;
        }
        sent
    }

    #[test]
    fn the_rate_doubles_each_step() {
        let config = BreakerConfig::default();
        let by = |seconds| sends(&config, Timestamp::from_secs(seconds));
        // 1/s for two seconds, 2/s for two, 4/s for two.
        assert_eq!((by(2), by(4) - by(2), by(6) - by(4)), (1, 4, 8));
    }

    #[test]
    fn a_slow_first_rate_does_not_outlast_its_own_doubling() {
        let config = BreakerConfig {
            ramp_start: Rate::new(1_000_000, Duration::from_secs(3_600)).unwrap(),
            ..BreakerConfig::default()
        };
        let first = Ramp::begin(&config, Timestamp::ZERO).next;
        assert!(first <= Timestamp::from_secs(20), "{first}");
    }
}
