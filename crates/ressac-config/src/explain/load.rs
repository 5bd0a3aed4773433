//! What a partner feels in a total outage, and how the breaker keeps it away.

use ressac_policy::{
    BreakerConfig, BudgetConfig, CallWindow, Deposit, Policy, amplification_bound,
};
use serde::Serialize;

use super::ExplainOptions;
use crate::units::format_duration;

/// A total outage: every attempt fails, at once. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Its length.
    pub seconds: f64,
    /// First attempts per second.
    pub rate: f64,
    /// First attempts while it lasts.
    pub first_attempts: f64,
    /// Attempts per first attempt are at most this.
    pub amplification: f64,
    /// Attempts while it lasts are at most this.
    pub attempts: f64,
    /// What they would be by `retries` alone: `1 + retries`.
    pub amplification_without_budget: f64,
    /// The terms of the bound; `None` where the budget is off.
    pub budget: Option<BudgetTerms>,
}

/// The bound: `1 + ratio + (capacity + trickle × seconds) / (rate × seconds)`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetTerms {
    /// What each first attempt adds in the outage: the ratio, or nothing if successes deposit.
    pub ratio: f64,
    /// Tokens that may have been saved before it: `max(reserve, ratio × rate × window)`.
    pub capacity: f64,
    /// Tokens per second that come by themselves.
    pub trickle: f64,
}

/// The breaker in a long outage. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breaker {
    /// What opens it, in words.
    pub opens: Vec<String>,
    /// How long it stays open the first time, the second, …, until it no longer grows.
    pub open_times: Vec<OpenTime>,
    /// How often it looks at the partner in an outage of one hour.
    pub probes_per_hour: u64,
    /// The same seconds of healthy partner lost at the end of an outage, at most: the longest open
    /// time.
    pub longest_blind: f64,
}

/// One open time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OpenTime {
    /// The shortest draw.
    pub shortest: f64,
    /// The middle.
    pub middle: f64,
    /// The longest draw.
    pub longest: f64,
}

pub(super) fn outage(policy: &Policy, options: &ExplainOptions) -> Outage {
    let seconds = options.outage.as_secs_f64();
    // Without traffic there is nothing to amplify; a rate that is no number counts as the least.
    let rate = if options.rate > 0.0 {
        options.rate.min(1e9)
    } else {
        1e-9
    };
    let first_attempts = rate * seconds;
    let by_retries = 1.0 + f64::from(policy.retries);
    let budget = policy.budget.as_ref().map(|budget| terms(budget, rate));
    let by_budget = policy
        .budget
        .as_ref()
        .zip(budget.as_ref())
        .map(|(budget, terms)| amplification_bound(budget, rate, options.outage, terms.capacity));
    // An outage of no length: not a number, and `min` leaves the other.
    let amplification = by_budget.map_or(by_retries, |bound| bound.min(by_retries));
    Outage {
        seconds,
        rate,
        first_attempts,
        amplification,
        attempts: amplification * first_attempts,
        amplification_without_budget: by_retries,
        budget,
    }
}

fn terms(budget: &BudgetConfig, rate: f64) -> BudgetTerms {
    let saved = budget.ratio.as_f64() * rate * budget.window.as_secs_f64();
    BudgetTerms {
        ratio: match budget.deposit {
            Deposit::Request => budget.ratio.as_f64(),
            Deposit::Success => 0.0,
        },
        capacity: saved.max(f64::from(budget.reserve)),
        trickle: budget
            .trickle
            .map_or(0.0, |trickle| trickle.per_second_f64()),
    }
}

/// The middle of each open time in a row, without end: doubling, so that no draw passes the
/// maximum.
pub(crate) fn open_middles(breaker: &BreakerConfig) -> impl Iterator<Item = f64> {
    let highest = breaker.open_max.as_secs_f64() / (1.0 + jitter(breaker));
    let open = breaker.open.as_secs_f64();
    (0..).map(move |n: i32| (open * 2f64.powi(n.min(60))).min(highest))
}

fn jitter(breaker: &BreakerConfig) -> f64 {
    breaker.open_jitter.as_f64().min(1.0)
}

/// How often it opens, and so how often a probe looks, in an outage of this many seconds.
pub(crate) fn openings_in(breaker: &BreakerConfig, seconds: f64) -> u64 {
    let mut left = seconds;
    let mut openings = 0;
    let mut last = 0.0;
    for middle in open_middles(breaker) {
        if left <= 0.0 || middle <= 0.0 {
            break;
        }
        if middle == last {
            // It no longer grows: the rest is a division.
            return openings + (left / middle).ceil() as u64;
        }
        last = middle;
        left -= middle;
        openings += 1;
    }
    openings
}

pub(super) fn breaker(policy: &Policy, breaker: &BreakerConfig) -> Breaker {
    let jitter = jitter(breaker);
    let mut open_times: Vec<OpenTime> = Vec::new();
    for middle in open_middles(breaker) {
        if open_times.last().is_some_and(|last| last.middle >= middle) {
            break;
        }
        open_times.push(OpenTime {
            shortest: middle * (1.0 - jitter),
            middle,
            longest: middle * (1.0 + jitter),
        });
    }
    // A probe that is never answered takes its time too.
    let probe = breaker
        .probe_timeout
        .max(policy.attempt_timeout)
        .as_secs_f64();
    Breaker {
        opens: opens(breaker),
        probes_per_hour: openings_in(breaker, 3_600.0),
        longest_blind: open_times.last().map_or(0.0, |last| last.longest) + probe,
        open_times,
    }
}

fn opens(breaker: &BreakerConfig) -> Vec<String> {
    let over = match breaker.window {
        CallWindow::Time(window) => format!("in {}", format_duration(window)),
        CallWindow::Count(calls) => format!("in the last {calls} calls"),
    };
    let at_least = format!("{over}, of at least {} calls", breaker.min_calls);
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 1e2);
    let mut ways = Vec::new();
    if let Some(count) = breaker.consecutive {
        ways.push(format!("{count} failures in a row"));
    }
    if let Some(rate) = breaker.failure_rate {
        ways.push(format!("{} failed {at_least}", percent(rate.as_f64())));
    }
    if let Some(rate) = breaker.slow_rate {
        let slow = format_duration(breaker.slow_call);
        ways.push(format!(
            "{} slower than {slow} {at_least}",
            percent(rate.as_f64())
        ));
    }
    ways
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    #[test]
    fn bu_1_the_bound_is_that_of_the_formula() {
        // 100/s for 5 s: 1 + 0.1 + (max(10, 0.1 × 100 × 10) + 0.1 × 5) / 500.
        let options = ExplainOptions {
            outage: Duration::from_secs(5),
            rate: 100.0,
            ..ExplainOptions::default()
        };
        let outage = outage(&Policy::sync(), &options);
        assert!((outage.amplification - (1.1 + 100.5 / 500.0)).abs() < 1e-9);
        assert!((outage.attempts - 650.5).abs() < 1e-6);
        let without = Policy {
            budget: None,
            ..Policy::sync()
        };
        assert_eq!(super::outage(&without, &options).amplification, 6.0);
    }

    #[test]
    fn no_bound_is_above_the_retries_or_no_number() {
        for (outage_secs, rate) in [
            (0, 10.0),
            (1, 0.0),
            (1, f64::NAN),
            (1, f64::INFINITY),
            (1, -3.0),
        ] {
            let options = ExplainOptions {
                outage: Duration::from_secs(outage_secs),
                rate,
                ..ExplainOptions::default()
            };
            let outage = outage(&Policy::sync(), &options);
            assert!(outage.amplification <= 6.0, "{outage:?}");
            assert!(outage.attempts.is_finite(), "{outage:?}");
        }
    }

    #[test]
    fn open_times_double_and_never_pass_the_maximum() {
        let config = BreakerConfig::default();
        let breaker = breaker(&Policy::sync(), &config);
        let middles: Vec<f64> = breaker.open_times.iter().map(|time| time.middle).collect();
        assert_eq!(middles, [5.0, 10.0, 20.0, 40.0]);
        assert!((breaker.open_times[3].longest - 60.0).abs() < 1e-9);
        // 75 s for the first four, then one each 40 s.
        assert_eq!(breaker.probes_per_hour, 4 + 89);
        let flat = BreakerConfig {
            open: Duration::from_secs(60),
            open_jitter: ressac_policy::Ratio::ZERO,
            ..config
        };
        assert_eq!(openings_in(&flat, 3_600.0), 60);
    }
}
