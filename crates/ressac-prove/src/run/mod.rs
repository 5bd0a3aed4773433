//! The runner: mocks and clients are started, what happens is recorded, judged and kept.

mod case;
mod client;
mod courier;
mod exec;
mod ground;
mod keep;
mod lag;
mod lines;
mod part;
mod process;
mod proxy;
mod schedule;
mod setup;
mod tell;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use keep::rejudge;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::case::Case;
use crate::claims::Claims;
use crate::judge::{CaseVerdict, Verdict};
use crate::known::KnownFailing;
use crate::plan::{Setup, Tempo};
use crate::report::Report;

/// What is run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The client's command.
    pub command: Vec<OsString>,
    /// What it promises.
    pub claims: Claims,
    /// The cases.
    pub cases: Vec<&'static Case>,
    /// Fast or real.
    pub tempo: Tempo,
    /// The profile, one of [`crate::PROFILES`].
    pub profile: String,
    /// A broken should is a failure.
    pub strict: bool,
    /// Cases at a time, of groups A to G.
    pub jobs: usize,
    /// Of the mock's chance.
    pub seed: u64,
    /// The longest a case may take.
    pub case_limit: Duration,
    /// How often each case is run; the worst verdict counts.
    pub repeat: u32,
    /// Stop at the first failure.
    pub fail_fast: bool,
    /// Where evidence is kept; `None`: nowhere.
    pub out: Option<PathBuf>,
    /// Cases known to fail.
    pub known: KnownFailing,
}

/// What is told while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The set-up was measured.
    Measured(&'a Setup),
    /// A case has ended.
    Ended(&'a CaseVerdict),
}

/// Why nothing could be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The client could not be driven at all: exit code 3.
    #[error("set-up failed: {0}")]
    Setup(String),
    /// Evidence could not be written or read.
    #[error("cannot write or read {path}: {error}")]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A part of the machine failed.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Everything that a case needs to run.
pub(crate) struct Bench {
    pub(crate) options: Options,
    pub(crate) setup: Setup,
    /// Where evidence is written while it runs; removed afterwards unless it is to be kept.
    pub(crate) folder: PathBuf,
}

/// Runs the suite. The set-up case comes first; groups A to G run side by side, H alone.
///
/// # Errors
///
/// [`RunError::Setup`] if the client cannot be driven; other errors are this machine's.
pub async fn run(
    options: Options,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report, RunError> {
    let begun = Instant::now();
    let scratch = tempfile::tempdir().map_err(|error| RunError::Keep {
        path: std::env::temp_dir(),
        error,
    })?;
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| scratch.path().to_owned());
    let setup = Setup {
        tempo: options.tempo,
        seed: options.seed,
        ..Setup::default()
    };
    let mut bench = Bench {
        options,
        setup,
        folder,
    };
    bench.setup = setup::measure(&bench).await?;
    progress(Progress::Measured(&bench.setup));
    keep::begin(&bench)?;
    let bench = Arc::new(bench);
    let mut verdicts = Vec::new();
    let (side_by_side, alone): (Vec<_>, Vec<_>) = bench
        .options
        .cases
        .iter()
        .copied()
        .partition(|c| c.group() != 'H' && bench.options.claims.client.fixed_url.is_none());
    let go_on = together(&bench, side_by_side, &mut verdicts, progress).await?;
    if go_on {
        for case in alone {
            let verdict = case::run_case(&bench, case).await?;
            progress(Progress::Ended(&verdict));
            let stop = bench.options.fail_fast && verdict.verdict == Verdict::Fail;
            verdicts.push(verdict);
            if stop {
                break;
            }
        }
    }
    verdicts.sort_by(|a, b| a.id.cmp(&b.id));
    let report = Report::new(&bench.options, &bench.setup, verdicts, begun.elapsed());
    keep::end(&bench, &report)?;
    Ok(report)
}

/// Runs cases side by side; `false` if a failure ended it.
async fn together(
    bench: &Arc<Bench>,
    cases: Vec<&'static Case>,
    verdicts: &mut Vec<CaseVerdict>,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<bool, RunError> {
    let places = Arc::new(Semaphore::new(bench.options.jobs.max(1)));
    let mut tasks = JoinSet::new();
    for case in cases {
        let (bench, places) = (Arc::clone(bench), Arc::clone(&places));
        tasks.spawn(async move {
            let _place = places.acquire_owned().await;
            case::run_case(&bench, case).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        let verdict = done.map_err(|e| RunError::Internal(e.to_string()))??;
        progress(Progress::Ended(&verdict));
        let stop = bench.options.fail_fast && verdict.verdict == Verdict::Fail;
        verdicts.push(verdict);
        if stop {
            tasks.shutdown().await;
            return Ok(false);
        }
    }
    Ok(true)
}
