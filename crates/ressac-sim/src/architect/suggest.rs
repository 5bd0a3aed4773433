//! A search for settings: base, cap, retries, ratio and spread within given bounds.

use std::ops::RangeInclusive;
use std::time::Duration;

use ressac_policy::{BudgetConfig, Policy, Ratio};
use serde::{Serialize, Serializer};

use super::compare::{Answer, Question, compare};
use crate::core::Stream;

/// Where to search.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Of the base.
    pub base: RangeInclusive<Duration>,
    /// Of the cap.
    pub cap: RangeInclusive<Duration>,
    /// Of the number of retries.
    pub retries: RangeInclusive<u32>,
    /// Of the budget's ratio.
    pub ratio: RangeInclusive<f64>,
    /// Of the spread on top of `Retry-After`.
    pub spread: RangeInclusive<f64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            base: Duration::from_millis(100)..=Duration::from_secs(10),
            cap: Duration::from_secs(5)..=Duration::from_secs(600),
            retries: 2..=30,
            ratio: 0.02..=0.5,
            spread: 0.1..=2.0,
        }
    }
}

/// Settings of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The base.
    #[serde(serialize_with = "seconds")]
    pub base: Duration,
    /// The cap.
    #[serde(serialize_with = "seconds")]
    pub cap: Duration,
    /// The number of retries.
    pub retries: u32,
    /// The budget's ratio.
    pub ratio: f64,
    /// The spread on top of `Retry-After`.
    pub spread: f64,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// What one setting does, when it alone is halved or doubled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// The setting.
    pub setting: &'static str,
    /// What was tried.
    pub tried: Candidate,
    /// What came of it.
    pub answer: Answer,
    /// Its cost against the best's: above 1 is worse.
    pub cost_ratio: f64,
}

/// The best found, with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// The policy as it was given.
    pub before: Answer,
    /// The best settings found.
    pub best: Candidate,
    /// What they do.
    pub after: Answer,
    /// How many settings were tried.
    pub tried: u32,
    /// Around the best.
    pub sensitivity: Vec<Sensitivity>,
}

/// Searches: two thirds of the tries over all of the bounds, then the rest ever nearer to the best.
///
/// All tries meet the same arrivals. The same question, bounds and seed give the same answer.
#[must_use]
pub fn suggest(
    question: &Question,
    policy: &Policy,
    bounds: &Bounds,
    tries: u32,
    progress: &dyn Fn(u32),
) -> Suggestion {
    let mut random = Stream::new(question.seed, "suggest", 0);
    let before = compare(question, "as given", policy);
    let judge = |candidate: &Candidate, name: &str| {
        let answer = compare(question, name, &candidate.apply(policy));
        let cost = answer.cost(question);
        (answer, cost)
    };
    let mut best = Candidate::of(policy).within(bounds);
    let (mut after, mut cost) = judge(&best, "suggested");
    progress(1);
    for index in 1..tries {
        let wide = index < tries * 2 / 3;
        let candidate = if wide {
            Candidate::anywhere(bounds, &mut random)
        } else {
            best.nearby(bounds, &mut random)
        };
        let (answer, found) = judge(&candidate, "suggested");
        if found < cost {
            (best, after, cost) = (candidate, answer, found);
        }
        progress(index + 1);
    }
    let sensitivity = best
        .neighbours(bounds)
        .into_iter()
        .map(|(setting, tried)| {
            let (answer, found) = judge(&tried, setting);
            Sensitivity {
                setting,
                tried,
                answer,
                cost_ratio: found / cost.max(f64::MIN_POSITIVE),
            }
        })
        .collect();
    Suggestion {
        before,
        best,
        after,
        tried: tries.max(1),
        sensitivity,
    }
}

impl Candidate {
    /// The settings of a policy.
    #[must_use]
    pub fn of(policy: &Policy) -> Candidate {
        Candidate {
            base: policy.backoff.base,
            cap: policy.backoff.cap,
            retries: policy.retries,
            ratio: policy.budget.map_or(0.1, |budget| budget.ratio.as_f64()),
            spread: policy.retry_after.spread.as_f64(),
        }
    }

    /// The policy with these settings; a budget that was off is on then.
    #[must_use]
    pub fn apply(&self, policy: &Policy) -> Policy {
        let mut policy = policy.clone();
        policy.backoff.base = self.base;
        policy.backoff.cap = self.cap.max(self.base);
        policy.retries = self.retries;
        let ratio = |value| Ratio::from_f64(value).unwrap_or(Ratio::ONE);
        policy.budget = Some(BudgetConfig {
            ratio: ratio(self.ratio),
            ..policy.budget.unwrap_or_default()
        });
        policy.retry_after.spread = ratio(self.spread);
        policy
    }

    /// A word for each setting, as in `ressac.toml`.
    #[must_use]
    pub fn toml(&self) -> String {
        format!(
            "retries = {}\nbase = \"{}\"\ncap = \"{}\"\nbudget = {{ ratio = {} }}\nretry_after = {{ spread = {} }}\n",
            self.retries,
            ressac_config::format_duration(self.base),
            ressac_config::format_duration(self.cap),
            self.ratio,
            self.spread,
        )
    }

    fn anywhere(bounds: &Bounds, random: &mut Stream) -> Candidate {
        let mut draw = |low: f64, high: f64| low * (high / low).powf(random.unit());
        let time = |seconds: f64| Duration::from_millis((seconds * 1e3).round().max(1.0) as u64);
        let span = |range: &RangeInclusive<Duration>| {
            (
                range.start().as_secs_f64().max(1e-3),
                range.end().as_secs_f64().max(1e-3),
            )
        };
        let (base, cap) = (span(&bounds.base), span(&bounds.cap));
        let retries = (
            f64::from(*bounds.retries.start()) + 1.0,
            f64::from(*bounds.retries.end()) + 1.0,
        );
        Candidate {
            base: time(draw(base.0, base.1)),
            cap: time(draw(cap.0, cap.1)),
            retries: (draw(retries.0, retries.1) - 1.0).round() as u32,
            ratio: thousandth(draw(bounds.ratio.start().max(1e-3), *bounds.ratio.end())),
            spread: thousandth(draw(bounds.spread.start().max(1e-3), *bounds.spread.end())),
        }
        .within(bounds)
    }

    /// Each setting moved by a factor of at most 1.5.
    fn nearby(&self, bounds: &Bounds, random: &mut Stream) -> Candidate {
        let mut factor = || 1.5f64.powf(2.0 * random.unit() - 1.0);
        let time = |time: Duration, factor: f64| {
            Duration::from_millis((time.as_secs_f64() * factor * 1e3).round().max(1.0) as u64)
        };
        Candidate {
            base: time(self.base, factor()),
            cap: time(self.cap, factor()),
            retries: (f64::from(self.retries) * factor()).round() as u32,
            ratio: thousandth(self.ratio * factor()),
            spread: thousandth(self.spread * factor()),
        }
        .within(bounds)
    }

    /// Each setting alone halved and doubled, where the bounds allow.
    fn neighbours(&self, bounds: &Bounds) -> Vec<(&'static str, Candidate)> {
        let one = *self;
        let all = [
            (
                "base",
                Candidate {
                    base: one.base / 2,
                    ..one
                },
            ),
            (
                "base",
                Candidate {
                    base: one.base * 2,
                    ..one
                },
            ),
            (
                "cap",
                Candidate {
                    cap: one.cap / 2,
                    ..one
                },
            ),
            (
                "cap",
                Candidate {
                    cap: one.cap * 2,
                    ..one
                },
            ),
            (
                "retries",
                Candidate {
                    retries: one.retries / 2,
                    ..one
                },
            ),
            (
                "retries",
                Candidate {
                    retries: one.retries.saturating_mul(2),
                    ..one
                },
            ),
            (
                "ratio",
                Candidate {
                    ratio: thousandth(one.ratio / 2.0),
                    ..one
                },
            ),
            (
                "ratio",
                Candidate {
                    ratio: thousandth(one.ratio * 2.0),
                    ..one
                },
            ),
            (
                "spread",
                Candidate {
                    spread: thousandth(one.spread / 2.0),
                    ..one
                },
            ),
            (
                "spread",
                Candidate {
                    spread: thousandth(one.spread * 2.0),
                    ..one
                },
            ),
        ];
        all.into_iter()
            .map(|(setting, candidate)| (setting, candidate.within(bounds)))
            .filter(|(_, candidate)| *candidate != one)
            .collect()
    }

    fn within(self, bounds: &Bounds) -> Candidate {
        Candidate {
            base: held(self.base, &bounds.base),
            cap: held(self.cap, &bounds.cap),
            retries: held(self.retries, &bounds.retries),
            ratio: held(self.ratio, &bounds.ratio),
            spread: held(self.spread, &bounds.spread),
        }
    }
}

/// The nearest in the range; its end where that is below its start.
fn held<T: Copy + PartialOrd>(value: T, range: &RangeInclusive<T>) -> T {
    if value > *range.end() {
        *range.end()
    } else if value < *range.start() {
        *range.start()
    } else {
        value
    }
}

fn thousandth(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_lies_in_the_bounds_and_is_no_worse_than_what_was_given() {
        let question = Question {
            capacity: 60.0,
            rate: 50.0,
            clients: 4,
            seeds: 1,
            ..Question::default()
        };
        let bounds = Bounds {
            retries: 3..=8,
            ratio: 0.05..=0.3,
            ..Bounds::default()
        };
        let policy = Policy::durable();
        let found = suggest(&question, &policy, &bounds, 12, &|_| ());
        assert_eq!(found, suggest(&question, &policy, &bounds, 12, &|_| ()));
        assert_eq!(found.best, found.best.within(&bounds));
        let given = Candidate::of(&policy).within(&bounds).apply(&policy);
        let given = compare(&question, "given", &given);
        assert!(found.after.cost(&question) <= given.cost(&question));
        assert!(found.sensitivity.iter().any(|one| one.setting == "ratio"));
        assert!(found.best.toml().contains("ratio"));
    }
}
