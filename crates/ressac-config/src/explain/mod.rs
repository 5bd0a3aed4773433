//! A policy in numbers, before the outage: waits, totals, load, open times, promises.

mod load;
mod promises;
mod text;
mod waits;

use std::time::Duration;

use ressac_policy::{Mode, Policy};
use serde::Serialize;

use crate::layer::mode_word;
use crate::named::{Field, NamedPolicy};

pub use load::{Breaker, BudgetTerms, OpenTime, Outage};
pub use promises::Promise;
pub use waits::{Total, Wait, Worst};

pub(crate) use load::{open_middles, openings_in};
pub(crate) use promises::time;
pub(crate) use waits::{mean_waits, worst};

/// What to assume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExplainOptions {
    /// The length of the total outage. Default 5 min.
    pub outage: Duration,
    /// First attempts per second, of all callers of one partner; above zero. Default 10.
    pub rate: f64,
    /// Operations drawn for the totals; fewer where one has many retries. Default 20 000.
    pub draws: u32,
    /// Seeds the draws: the same seed, the same numbers. Default 1.
    pub seed: u64,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        ExplainOptions {
            outage: Duration::from_secs(300),
            rate: 10.0,
            draws: 20_000,
            seed: 1,
        }
    }
}

/// A policy in numbers. `Display` writes it for people, `Serialize` for programs (all times in
/// seconds).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The policy's name.
    pub policy: String,
    /// `sync` or `durable`.
    pub mode: &'static str,
    /// The law of the waits.
    pub jitter: &'static str,
    /// The seed of the draws.
    pub seed: u64,
    /// Operations drawn.
    pub draws: u32,
    /// Attempts after the first.
    pub retries: u32,
    /// The wait before each retry, the first fifty.
    pub waits: Vec<Wait>,
    /// All waits of an operation together, if all retries are used and nothing ends them.
    pub total: Total,
    /// The most that one operation can come to.
    pub worst: Worst,
    /// A total outage.
    pub outage: Outage,
    /// The breaker; `None` where it is off.
    pub breaker: Option<Breaker>,
    /// What can be promised to whoever asks when they will know.
    pub promises: Vec<Promise>,
    /// Every setting, its value, and whose value won.
    pub fields: Vec<Field>,
}

/// Puts a policy into numbers.
///
/// The laws of the waits are exact but for decorrelated jitter, which is drawn, as the totals are,
/// with the engine's own [`Backoff::draw`](ressac_policy::Backoff::draw).
///
/// ```
/// use ressac_config::{ExplainOptions, NamedPolicy, explain};
/// use ressac_policy::Mode;
///
/// let sync = NamedPolicy::built_in(Mode::Synchronous);
/// let explanation = explain(&sync, &ExplainOptions::default());
/// // Full jitter, base 0.5 s, 5 retries: 15.5 s of ceilings, half of it on average.
/// assert!((explanation.total.mean - 7.75).abs() < 0.1);
/// assert_eq!(explanation.worst.attempts, 6);
/// assert!(explanation.to_string().contains("amplification"));
/// ```
#[must_use]
pub fn explain(named: &NamedPolicy, options: &ExplainOptions) -> Explanation {
    let policy = named.policy();
    let (waits, total) = waits::of(policy, options);
    let worst = worst(policy);
    let promises = promises::of(policy, &total, &worst);
    Explanation {
        policy: named.name().to_owned(),
        mode: mode_word(policy.mode),
        jitter: policy.backoff.jitter.as_str(),
        seed: options.seed,
        draws: total.draws,
        retries: policy.retries,
        waits,
        total,
        worst,
        outage: load::outage(policy, options),
        breaker: policy
            .breaker
            .as_ref()
            .map(|breaker| load::breaker(policy, breaker)),
        promises,
        fields: named.fields(),
    }
}

fn is_durable(policy: &Policy) -> bool {
    policy.mode == Mode::Durable
}
