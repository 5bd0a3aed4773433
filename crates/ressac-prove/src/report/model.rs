//! `report.json`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::claims::{ClientInfo, Promises};
use crate::judge::{CaseVerdict, Verdict};
use crate::plan::{Setup, Tempo};
use crate::run::Options;

/// A run, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub schema: u32,
    /// Version of the suite.
    pub suite: String,
    /// The client.
    pub client: ClientInfo,
    /// What it promises.
    pub claims: Promises,
    /// How many claims that makes.
    pub claims_count: usize,
    /// The profile.
    pub profile: String,
    /// Fast or real.
    pub tempo: Tempo,
    /// Of the mock's chance.
    pub seed: u64,
    /// This machine.
    pub host: Host,
    /// Start of an operation to its first byte, ms.
    pub lambda_ms: f64,
    /// Last byte of a reply to the result, ms.
    pub epsilon_ms: f64,
    /// How long it all took, ms.
    pub took_ms: u64,
    /// Verdicts counted.
    pub totals: Totals,
    /// The cases.
    pub cases: Vec<CaseVerdict>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Cores.
    pub cores: usize,
    /// The largest lag in any case, ms: how late it came round to its work.
    #[serde(default)]
    pub max_lag_ms: f64,
}

/// Verdicts counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Totals {
    pub pass: usize,
    pub warn: usize,
    pub fail: usize,
    pub inconclusive: usize,
    pub not_claimed: usize,
    pub known_failing: usize,
}

impl Totals {
    fn of(cases: &[CaseVerdict]) -> Self {
        let count = |v| cases.iter().filter(|c| c.verdict == v).count();
        Self {
            pass: count(Verdict::Pass),
            warn: count(Verdict::Warn),
            fail: count(Verdict::Fail),
            inconclusive: count(Verdict::Inconclusive),
            not_claimed: count(Verdict::NotClaimed),
            known_failing: count(Verdict::KnownFailing),
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} pass, {} warn, {} fail, {} inconclusive, {} not claimed",
            self.pass, self.warn, self.fail, self.inconclusive, self.not_claimed
        )?;
        match self.known_failing {
            0 => Ok(()),
            n => write!(f, ", {n} known failing"),
        }
    }
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        setup: &Setup,
        cases: Vec<CaseVerdict>,
        took: Duration,
    ) -> Self {
        Self {
            schema: 1,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            client: options.claims.client.clone(),
            claims: options.claims.claims.clone(),
            claims_count: options.claims.count(),
            profile: options.profile.clone(),
            tempo: options.tempo,
            seed: options.seed,
            host: Host {
                cores: std::thread::available_parallelism().map_or(1, usize::from),
                max_lag_ms: cases.iter().map(|c| c.lag_ms).fold(0.0, f64::max),
            },
            lambda_ms: setup.lambda_ms,
            epsilon_ms: setup.epsilon_ms,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            totals: Totals::of(&cases),
            cases,
        }
    }

    /// The exit code: 1 at least one fail, 2 at least one inconclusive, else 0.
    #[must_use]
    pub fn exit_code(&self, allow_inconclusive: bool) -> u8 {
        match (self.totals.fail, self.totals.inconclusive) {
            (0, 0) => 0,
            (0, _) if allow_inconclusive => 0,
            (0, _) => 2,
            _ => 1,
        }
    }
}
