//! The waits of one operation: each by its law, all together by drawing them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{Backoff, Jitter, Policy};
use serde::Serialize;

use super::ExplainOptions;

/// Retries listed one by one.
const LISTED: u32 = 50;
/// Retries drawn for a total; a policy with more says so.
const DRAWN: u32 = 1_000;
/// Waits drawn in all: a bound on the time that `explain` takes.
const WORK: u32 = 5_000_000;

/// The wait before one retry; all times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// Which retry, from 1.
    pub retry: u32,
    /// The bound that grows, `min(cap, base × factor^(retry − 1))`; the cap for decorrelated
    /// jitter.
    pub ceiling: f64,
    /// The shortest wait.
    pub floor: f64,
    /// The mean.
    pub mean: f64,
    /// One in twenty waits less.
    pub p5: f64,
    /// One in twenty waits more.
    pub p95: f64,
}

/// The sum of an operation's waits, over the operations drawn; all times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Total {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
    /// One operation in twenty waits less.
    pub p5: f64,
    /// Half of them wait less.
    pub p50: f64,
    /// One in twenty waits more.
    pub p95: f64,
    /// The retries summed: all, or the first thousand.
    pub retries: u32,
    #[serde(skip)]
    pub(crate) draws: u32,
}

/// The most that one operation can come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Attempts, if each fails at once and every draw is the shortest; a breaker's probes and a
    /// refused stream's free attempt are not counted.
    pub attempts: u32,
    /// Seconds from the first attempt to the end, if every attempt takes its whole time and every
    /// draw is the longest; `None` where hints, breaker or budget may make it longer without end.
    pub seconds: Option<f64>,
    /// The same seconds without hints, breaker and budget.
    pub undisturbed_seconds: f64,
}

/// Each wait and their total.
pub(super) fn of(policy: &Policy, options: &ExplainOptions) -> (Vec<Wait>, Total) {
    let (totals, by_retry) = draw(policy, options);
    let listed = 0..policy.retries.min(LISTED);
    let waits = match policy.backoff.jitter {
        Jitter::Decorrelated => listed
            .zip(by_retry)
            .map(|(retry, drawn)| drawn_wait(&policy.backoff, retry, drawn))
            .collect(),
        _ => listed
            .map(|retry| exact_wait(&policy.backoff, retry))
            .collect(),
    };
    (waits, summary(totals, policy.retries.min(DRAWN)))
}

fn exact_wait(backoff: &Backoff, retry: u32) -> Wait {
    let ceiling = backoff.ceiling(retry).as_secs_f64();
    let floor = match backoff.jitter {
        Jitter::None => ceiling,
        Jitter::Equal => ceiling / 2.0,
        Jitter::Full | Jitter::Decorrelated => 0.0,
    };
    let at = |share: f64| floor + share * (ceiling - floor);
    Wait {
        retry: retry.saturating_add(1),
        ceiling,
        floor,
        mean: at(0.5),
        p5: at(0.05),
        p95: at(0.95),
    }
}

fn drawn_wait(backoff: &Backoff, retry: u32, mut drawn: Vec<f64>) -> Wait {
    drawn.sort_by(f64::total_cmp);
    Wait {
        retry: retry.saturating_add(1),
        ceiling: backoff.cap.as_secs_f64(),
        floor: backoff.shortest(retry).as_secs_f64(),
        mean: mean(&drawn),
        p5: quantile(&drawn, 0.05),
        p95: quantile(&drawn, 0.95),
    }
}

/// Totals of the operations drawn and, where no law is exact, the listed waits of each.
fn draw(policy: &Policy, options: &ExplainOptions) -> (Vec<f64>, Vec<Vec<f64>>) {
    let retries = policy.retries.min(DRAWN);
    let draws = options.draws.clamp(1, (WORK / retries.max(1)).max(1));
    let keep = match policy.backoff.jitter {
        Jitter::Decorrelated => retries.min(LISTED),
        _ => 0,
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut by_retry = vec![Vec::with_capacity(draws as usize); keep as usize];
    let totals = (0..draws)
        .map(|_| {
            let (mut previous, mut total) = (policy.backoff.base, 0.0);
            for retry in 0..retries {
                previous = policy.backoff.draw(retry, previous, &mut rng);
                total += previous.as_secs_f64();
                if let Some(kept) = by_retry.get_mut(retry as usize) {
                    kept.push(previous.as_secs_f64());
                }
            }
            total
        })
        .collect();
    (totals, by_retry)
}

fn summary(mut totals: Vec<f64>, retries: u32) -> Total {
    totals.sort_by(f64::total_cmp);
    let mean = mean(&totals);
    let square = |total: &f64| (total - mean) * (total - mean);
    let variance = totals.iter().map(square).sum::<f64>() / totals.len().max(1) as f64;
    Total {
        mean,
        sd: variance.sqrt(),
        p5: quantile(&totals, 0.05),
        p50: quantile(&totals, 0.5),
        p95: quantile(&totals, 0.95),
        retries,
        draws: u32::try_from(totals.len()).unwrap_or(u32::MAX),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Of sorted values; 0 of none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

/// The mean of each wait by its law, without end: for decorrelated jitter the mean of its capped
/// uniform draws above the last mean, a little below the truth.
pub(crate) fn mean_waits(backoff: &Backoff) -> impl Iterator<Item = f64> {
    let backoff = *backoff;
    let (base, cap) = (backoff.base.as_secs_f64(), backoff.cap.as_secs_f64());
    let mut previous = base;
    (0..=u32::MAX).map(move |retry| {
        if backoff.jitter == Jitter::Decorrelated {
            previous = ((base + 3.0 * previous) / 2.0).min(cap);
            return previous;
        }
        exact_wait(&backoff, retry).mean
    })
}

/// The most attempts, and the longest time.
pub(crate) fn worst(policy: &Policy) -> Worst {
    let window = policy.window.map(|window| window.as_secs_f64());
    let backoff = &policy.backoff;
    let (mut elapsed, mut attempts) = (0.0, 1u32);
    for retry in 0..policy.retries {
        elapsed += backoff.shortest(retry).as_secs_f64();
        if window.is_some_and(|window| elapsed >= window) {
            break;
        }
        attempts += 1;
    }
    let timeouts = policy.attempt_timeout.as_secs_f64() * (f64::from(policy.retries) + 1.0);
    let longest: f64 = (0..policy.retries)
        .map(|retry| longest(backoff, retry))
        .sum();
    let undisturbed = timeouts + longest;
    Worst {
        attempts,
        seconds: window,
        undisturbed_seconds: window.map_or(undisturbed, |window| undisturbed.min(window)),
    }
}

fn longest(backoff: &Backoff, retry: u32) -> f64 {
    match backoff.jitter {
        Jitter::Decorrelated => {
            let tripled = backoff.base.as_secs_f64() * 3f64.powf(f64::from(retry) + 1.0);
            tripled.min(backoff.cap.as_secs_f64())
        }
        _ => backoff.ceiling(retry).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(jitter: Jitter, retries: u32) -> Policy {
        let mut policy = Policy {
            retries,
            ..Policy::sync()
        };
        policy.backoff.jitter = jitter;
        policy
    }

    fn total(jitter: Jitter) -> Total {
        let options = ExplainOptions {
            draws: 100_000,
            seed: 7,
            ..ExplainOptions::default()
        };
        of(&policy(jitter, 5), &options).1
    }

    /// 100 000 draws: four standard errors of a mean are 0.013 sd.
    fn near(actual: f64, expected: f64, tolerance: f64) {
        assert!(
            (actual - expected).abs() <= tolerance,
            "{actual} is not {expected} ± {tolerance}"
        );
    }

    #[test]
    fn totals_agree_with_the_known_laws() {
        let none = total(Jitter::None);
        near(none.mean, 15.5, 1e-6);
        near(none.sd, 0.0, 1e-6);

        let full = total(Jitter::Full);
        near(full.mean, 7.75, 0.035);
        near(full.sd, 2.67, 0.03);
        near(full.p5, 3.41, 0.06);
        near(full.p50, 7.74, 0.06);
        near(full.p95, 12.1, 0.08);

        let equal = total(Jitter::Equal);
        near(equal.mean, 11.62, 0.02);
        near(equal.sd, 1.33, 0.02);
        near(equal.p5, 9.46, 0.05);
        near(equal.p95, 13.8, 0.05);

        let decorrelated = total(Jitter::Decorrelated);
        near(decorrelated.mean, 16.98, 0.17);
        near(decorrelated.sd, 12.6, 0.2);
        near(decorrelated.p5, 5.05, 0.08);
        near(decorrelated.p50, 12.7, 0.15);
        near(decorrelated.p95, 45.2, 0.6);
    }

    #[test]
    fn each_wait_has_its_law() {
        let options = ExplainOptions::default();
        let (full, _) = of(&policy(Jitter::Full, 8), &options);
        assert_eq!(full.len(), 8);
        near(full[2].ceiling, 2.0, 1e-9);
        near(full[2].p5, 0.1, 1e-9);
        near(full[2].mean, 1.0, 1e-9);
        near(full[7].ceiling, 30.0, 1e-9);
        let (equal, _) = of(&policy(Jitter::Equal, 3), &options);
        near(equal[1].floor, 0.5, 1e-9);
        near(equal[1].mean, 0.75, 1e-9);
        // The first decorrelated wait is uniform in 0.5 to 1.5 s.
        let (decorrelated, _) = of(&policy(Jitter::Decorrelated, 3), &options);
        near(decorrelated[0].mean, 1.0, 0.01);
        near(decorrelated[0].p95, 1.45, 0.02);
        near(decorrelated[0].floor, 0.5, 1e-9);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let options = ExplainOptions {
            draws: 1_000,
            ..ExplainOptions::default()
        };
        let policy = policy(Jitter::Decorrelated, 5);
        assert_eq!(of(&policy, &options), of(&policy, &options));
        let other = ExplainOptions { seed: 2, ..options };
        assert_ne!(of(&policy, &options).1, of(&policy, &other).1);
    }

    #[test]
    fn the_most_attempts_and_the_longest_time() {
        // CF-5: 10 retries, 11 attempts.
        assert_eq!(worst(&policy(Jitter::Full, 10)).attempts, 11);
        assert_eq!(worst(&policy(Jitter::Full, 0)).attempts, 1);
        // 0.5 + 1 + 2 + 4 < 10 s, and 8 s more are not.
        let mut plain = policy(Jitter::None, 10);
        plain.window = Some(std::time::Duration::from_secs(10));
        let bound = worst(&plain);
        assert_eq!(bound.attempts, 5);
        assert_eq!(bound.seconds, Some(10.0));
        plain.window = None;
        plain.retries = 2;
        let free = worst(&plain);
        assert_eq!(free.seconds, None);
        near(free.undisturbed_seconds, 30.0 + 1.5, 1e-9);
    }

    #[test]
    fn a_policy_of_a_million_retries_is_explained_in_bounded_work() {
        let (waits, total) = of(
            &policy(Jitter::Decorrelated, 1_000_000),
            &ExplainOptions::default(),
        );
        assert_eq!((waits.len(), total.retries), (50, 1_000));
        assert!(total.draws >= 1_000);
    }
}
