//! `ressac prove`: is a client right? Judged by what reaches the wire of a faulty partner.

mod live;
mod options;
mod other;

use std::ffi::OsString;
use std::path::PathBuf;

use ressac_prove::{Report, RunError};

use self::live::Live;
use super::runtime;
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac prove`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  ressac prove --claims examples/prove/client.toml --run 'B*' --out proof \
    -- python3 examples/prove/client.py
  ressac prove list
  ressac prove explain C07
  ressac prove judge proof
  ressac prove compare proof/report.json --html grid.html")]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Option<Ask>,

    /// What the client promises, a TOML file.
    #[arg(long, required = true, value_name = "FILE")]
    claims: Option<PathBuf>,

    /// The command that is the client, behind `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    select: Select,

    /// `fast` gives clients that can be set a short backoff; `real` runs them as claimed.
    #[arg(long, value_enum, default_value_t, value_name = "TEMPO")]
    tempo: Tempo,

    /// A broken should is a failure.
    #[arg(long)]
    strict: bool,

    /// Cases at a time. Default twice the cores, at most 8. Group H runs alone.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,

    /// The seed of the partner's chance.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// The longest a case may take.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = options::time)]
    case_limit: std::time::Duration,

    /// Run each case so often; the worst verdict counts.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Stop at the first failure.
    #[arg(long)]
    fail_fast: bool,

    /// Keep the evidence and the reports in this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Cases that are known to fail, lines `CASE-ID  # reason`: each must keep failing.
    #[arg(long, value_name = "FILE")]
    known_failing: Option<PathBuf>,

    /// Exit with 0 where nothing failed, though something is inconclusive.
    #[arg(long)]
    allow_inconclusive: bool,

    /// Write report.json to stdout, and no text.
    #[arg(long)]
    json: bool,
}

/// Which cases.
#[derive(Debug, clap::Args)]
pub(crate) struct Select {
    /// Only these: a pattern on the full id, or a number. May be given several times.
    #[arg(long, value_name = "GLOB")]
    run: Vec<String>,

    /// Not these.
    #[arg(long, value_name = "GLOB")]
    skip: Vec<String>,

    /// Only these groups, as `A,C`.
    #[arg(long, value_name = "LETTERS", value_delimiter = ',')]
    group: Vec<char>,

    /// Nothing below this level.
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<Level>,

    /// Whose rule book. Default `proxy` where the claims say mode = "proxy", else `ressac`.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// How fast.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Tempo {
    /// A short backoff where it can be set.
    #[default]
    Fast,
    /// As claimed.
    Real,
}

/// How binding.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Level {
    /// Must.
    Must,
    /// Must and should.
    Should,
    /// All.
    Check,
}

/// What can be asked without a client.
#[derive(Debug, clap::Subcommand)]
enum Ask {
    /// List the cases.
    List(other::List),
    /// Tell all about one case: its rule in words, why, and the usual mistake.
    Explain(other::Explain),
    /// Judge a kept run again.
    Judge(other::Judge),
    /// Put several reports side by side.
    Compare(other::Compare),
}

/// Runs the suite, or answers a question.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    match args.question {
        Some(Ask::List(list)) => other::list(&list, output),
        Some(Ask::Explain(explain)) => other::explain(&explain, output),
        Some(Ask::Judge(judge)) => other::judge(&judge, output),
        Some(Ask::Compare(compare)) => other::compare(&compare, output),
        None => prove(args, output),
    }
}

fn prove(args: Args, output: Output) -> Result<Exit, Stop> {
    let options = options::of(&args, output)?;
    let listed = options.known.not_run(&options.cases);
    for id in listed {
        output.note(&format!("warning: {id} is known to fail, and is not run"));
    }
    let out = options.out.clone();
    let total = options.cases.len();
    let mut live = Live::new(total, args.json, output);
    let report = runtime()?
        .block_on(ressac_prove::run(options, &mut |progress| {
            live.tell(&progress)
        }))
        .map_err(stop)?;
    live.end();
    match args.json {
        true => output.json(&report)?,
        false => output.text(&report.summary(|id| trace(out.as_deref(), id)))?,
    }
    if let Some(out) = &out {
        output.note(&format!(
            "the evidence and report.html are in {}",
            out.display()
        ));
    }
    Ok(exit(&report, args.allow_inconclusive))
}

/// The wire trace of a case that is kept.
fn trace(out: Option<&std::path::Path>, id: &str) -> String {
    let number = id.split('/').next().unwrap_or_default();
    let file = out.map(|out| out.join("cases").join(number).join("wire.txt"));
    file.and_then(|file| std::fs::read_to_string(file).ok())
        .unwrap_or_default()
}

fn exit(report: &Report, allow_inconclusive: bool) -> Exit {
    match report.exit_code(allow_inconclusive) {
        0 => Exit::DONE,
        1 => Exit::NO,
        _ => Exit::INCONCLUSIVE,
    }
}

fn stop(error: RunError) -> Stop {
    match error {
        RunError::Setup(_) => Stop::coded(Exit::SETUP, error),
        RunError::Keep { .. } => Stop::usage(error),
        _ => Stop::fault(error),
    }
}
