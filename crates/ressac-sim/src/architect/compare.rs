//! One question, several policies: who loses nothing, who keeps the peak under capacity, who
//! drains fastest.

use std::sync::Arc;
use std::time::Duration;

use rayon::prelude::*;
use ressac_policy::Policy;

use crate::model::{Arrivals, Clients, Fault, FaultKind, ServerConfig, World};
use crate::run::simulate;
use crate::scenario::Report;
use crate::stats::Sample;
use crate::study::figures;

/// Traffic before the outage, so that budgets and breakers have seen some.
const BEFORE: Duration = Duration::from_secs(20);

/// An outage, and what stands on both sides of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Requests a second that the partner can serve; above 0.
    pub capacity: f64,
    /// Fresh operations a second, over all clients; above 0.
    pub rate: f64,
    /// Clients, each with a budget and a breaker of its own.
    pub clients: u32,
    /// How long the partner refuses everything.
    pub outage: Duration,
    /// The `Retry-After` it answers meanwhile.
    pub retry_after: Option<Duration>,
    /// How long an operation may take in all; takes the place of the policy's own.
    pub window: Duration,
    /// Seconds of work that may queue at the partner.
    pub queue: Duration,
    /// Replications.
    pub seeds: u32,
    /// Of the first replication.
    pub seed: u64,
}

impl Default for Question {
    fn default() -> Self {
        Question {
            capacity: 1_200.0,
            rate: 1_000.0,
            clients: 10,
            outage: Duration::from_secs(5),
            retry_after: None,
            window: Duration::from_secs(300),
            queue: Duration::from_millis(500),
            seeds: 5,
            seed: 1,
        }
    }
}

/// What one policy does there: means over the replications.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Answer {
    /// The policy.
    pub policy: String,
    /// Operations lost, and their share of all.
    pub lost: f64,
    /// See `lost`.
    pub lost_share: f64,
    /// Operations still under way at the end: neither done nor lost.
    pub waiting: f64,
    /// The highest load in a second, from the beginning of the outage on.
    pub peak_per_second: f64,
    /// Attempts for each fresh operation, in the outage.
    pub amplification: f64,
    /// From the outage's end until retries are less than a twentieth of the load again.
    pub recover_seconds: f64,
    /// Completion times: half, and 99 of 100, are faster.
    pub p50_seconds: f64,
    /// See `p50_seconds`.
    pub p99_seconds: f64,
    /// Attempts before the time that `Retry-After` had named.
    pub early: f64,
    /// Arrivals a second, from the beginning, of the first replication.
    #[serde(skip)]
    pub arrivals: Vec<u64>,
}

impl Answer {
    /// Is nothing lost, and nothing left?
    #[must_use]
    pub fn loses_nothing(&self) -> bool {
        self.lost == 0.0 && self.waiting < 1.0
    }

    /// How bad it is: what is lost or left counts most, then load above the capacity, then time.
    #[must_use]
    pub fn cost(&self, question: &Question) -> f64 {
        let operations = question.rate * question.outage.as_secs_f64();
        let over = (self.peak_per_second / question.capacity - 1.0).max(0.0);
        1e3 * (self.lost + self.waiting) / operations.max(1.0)
            + 10.0 * over
            + self.recover_seconds / question.outage.as_secs_f64().max(1.0)
            + self.p99_seconds / question.window.as_secs_f64().max(1.0)
    }
}

impl Question {
    fn world(&self) -> World {
        let server = ServerConfig::single(self.capacity);
        let end = BEFORE + self.outage;
        let tail = self.outage.saturating_mul(20).max(Duration::from_secs(120));
        World {
            horizon: end + tail.min(self.window.saturating_mul(2)) + Duration::from_secs(10),
            warm_up: Duration::ZERO,
            bin: Duration::from_millis(100),
            round_trip: Duration::from_millis(10),
            server: ServerConfig {
                queue: Some((self.queue.as_secs_f64() * self.capacity).min(1e9) as u32),
                rejection: crate::model::Rejection {
                    retry_after: self.retry_after,
                    ..server.rejection
                },
                faults: vec![Fault {
                    from: BEFORE,
                    to: end,
                    kind: FaultKind::Refuse,
                }],
                ..server
            },
            clients: Clients {
                instances: self.clients,
                ..Clients::default()
            },
            arrivals: Arrivals::Poisson {
                rate: self.rate,
                // Late enough to see the recovery, early enough for all to end.
                until: Some(end + tail / 2),
            },
        }
    }
}

/// What this policy does. All policies meet the same arrivals.
///
/// ```
/// use std::time::Duration;
/// use ressac_policy::Policy;
/// use ressac_sim::{Question, compare};
///
/// let question = Question { capacity: 120.0, rate: 100.0, seeds: 2, ..Question::default() };
/// let library = compare(&question, "sync", &Policy::sync());
/// let gateway = compare(&question, "durable", &Policy::durable());
/// assert!(library.lost > 0.0 && gateway.lost == 0.0);
/// ```
#[must_use]
pub fn compare(question: &Question, name: &str, policy: &Policy) -> Answer {
    let world = question.world();
    let policy = Arc::new(Policy {
        window: Some(question.window),
        ..policy.clone()
    });
    let runs: Vec<_> = (0..question.seeds.max(1))
        .into_par_iter()
        .map(|index| {
            let seed = question.seed.wrapping_add(u64::from(index));
            let record = simulate(&world, &policy, seed, false);
            let mut all = figures(&world, Report::Outage, &record);
            let seconds = record.per_second(|bin| bin.offered);
            let from = BEFORE.as_secs() as usize;
            let peak = seconds.iter().skip(from).copied().max().unwrap_or(0);
            all.insert("peak_per_second", peak as f64);
            (all, seconds)
        })
        .collect();
    let mean = |figure: &str| Sample::of(runs.iter().map(|(all, _)| all[figure])).mean();
    Answer {
        policy: name.to_owned(),
        lost: mean("lost"),
        lost_share: mean("lost_share"),
        waiting: mean("waiting"),
        peak_per_second: mean("peak_per_second"),
        amplification: mean("amplification"),
        recover_seconds: mean("recover_seconds"),
        p50_seconds: mean("p50_seconds"),
        p99_seconds: mean("p99_seconds"),
        early: mean("early"),
        arrivals: runs.into_iter().next().map_or_else(Vec::new, |(_, s)| s),
    }
}
