//! `ressac sim`: the storm before it happens.

mod architect;
mod files;
mod progress;
mod table;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ressac_config::{Config, NamedPolicy};
use ressac_sim::{
    Phases, Report, Scenario, ScenarioError, Study, StudyOptions, boundary, phases, study,
};

use self::progress::Progress;
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac sim`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  ressac sim outage
  ressac sim outage --policy ressac.toml:payments --policy durable --html storm.html
  ressac sim compare --policy sync --policy durable --capacity 1200 --rate 1000 --outage 5m
  ressac sim suggest --policy durable --capacity 1200 --rate 1000 --outage 5m

Built-in scenarios:
  edi-50        50 partners told Retry-After: 60, who comes back when
  outage        5 s of outage at 1,000 a second, by policy
  herd-5000     5,000 clients that fail at one instant, by jitter
  layers        retries above retries
  metastable    who recovers from a trigger, and up to which load
  breaker-sync  breakers that close together
  aws-occ       the model of the 2015 AWS article, against published numbers")]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Option<Ask>,

    /// A built-in scenario, or the file of one.
    #[arg(required = true, value_name = "NAME|FILE")]
    scenario: Option<String>,

    /// A policy of a ressac.toml, or `sync` or `durable`, instead of the scenario's own. May be
    /// given several times.
    #[arg(long = "policy", value_name = "FILE:NAME")]
    policies: Vec<String>,

    /// So many clients instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clients: Option<u32>,

    /// So many replications of each row instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,

    /// The seed of the first replication: the same seed, the same numbers.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Write one JSON object to stdout, and no table.
    #[arg(long)]
    json: bool,

    /// Write the rows, and each row over time, as CSV files into this folder.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,

    /// Write one page with all plots, readable without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the plots as SVG files into this folder.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// What an architect asks.
#[derive(Debug, clap::Subcommand)]
enum Ask {
    /// Which of these policies loses nothing, keeps the peak low and drains fastest.
    Compare(architect::CompareArgs),
    /// Search base, cap, retries, ratio and spread for one outage.
    Suggest(architect::SuggestArgs),
}

/// Runs what was asked for.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    match args.question {
        Some(Ask::Compare(args)) => architect::compare(&args, output),
        Some(Ask::Suggest(args)) => architect::suggest(&args, output),
        None => simulate(&args, output),
    }
}

fn simulate(args: &Args, output: Output) -> Result<Exit, Stop> {
    let name = args.scenario.as_deref().unwrap_or_default();
    let scenario = Scenario::load(name).map_err(|error| refused(error, output))?;
    let options = StudyOptions {
        seeds: args.seeds,
        seed: args.seed,
        clients: args.clients,
        policies: named(&args.policies, output)?,
    };
    if scenario.report == Report::Occ && !options.policies.is_empty() {
        return Err(Stop::usage(
            "aws-occ runs the article's own five rules; give --policy to another scenario",
        ));
    }
    let progress = Progress::start("replications");
    let stop = AtomicBool::new(false);
    let told = |done, total| progress.set(done, total);
    let studied = study(&scenario, &options, &told, &stop);
    progress.end();
    let studied = studied
        .map_err(|error| refused(error, output))?
        .ok_or_else(|| Stop::no("stopped"))?;
    let phases = phase_diagrams(args, &scenario, &options, output)?;
    files::write(args, &studied, &phases)?;
    if args.json {
        output.json(&studied.json())?;
        return Ok(verdict(&studied));
    }
    let mut text = table::text(&studied);
    if studied.report == Report::Metastable {
        text.push_str(&table::phases(&phases));
        text.push_str(&boundaries(&scenario, args.seed, output)?);
    }
    output.text(&text)?;
    Ok(verdict(&studied))
}

/// Drawn where they are shown: a figure of JSON needs none.
fn phase_diagrams(
    args: &Args,
    scenario: &Scenario,
    options: &StudyOptions,
    output: Output,
) -> Result<Vec<Phases>, Stop> {
    let shown = !args.json || args.html.is_some() || args.svg.is_some();
    if scenario.report != Report::Metastable || !shown {
        return Ok(Vec::new());
    }
    let progress = Progress::start("phase diagrams");
    let told = |done, total| progress.set(done, total);
    let stop = AtomicBool::new(false);
    let found = phases(scenario, &options.policies, options.seed, &told, &stop);
    progress.end();
    found.map_err(|error| refused(error, output))
}

/// How far a run after the trigger must go to tell a queue that shrinks from one that grows.
const PATIENCE: Duration = Duration::from_secs(300);

/// The load at which the failed state begins to sustain itself, by the number of retries.
fn boundaries(scenario: &Scenario, seed: u64, output: Output) -> Result<String, Stop> {
    let mut text = "\nThe boundary of the failed state, as a share of the capacity:\n".to_owned();
    for retries in 1..=3 {
        let found =
            boundary(scenario, retries, seed, PATIENCE).map_err(|error| refused(error, output))?;
        let middle = (found.holds + found.fails) / 2.0;
        text.push_str(&format!(
            "  {retries} retries: recovers at {:.3}, not at {:.3}; 1/(1+r) = {:.3}, off by {:+.1} %\n",
            found.holds,
            found.fails,
            found.predicted,
            100.0 * (middle / found.predicted - 1.0),
        ));
    }
    Ok(text)
}

/// The optimistic-concurrency model must meet its reference; the others only show theirs.
fn verdict(study: &Study) -> Exit {
    match table::worst(study) {
        Some((z, _)) if study.report == Report::Occ && z > 4.0 => Exit::NO,
        _ => Exit::DONE,
    }
}

fn refused(error: ScenarioError, output: Output) -> Stop {
    match error {
        ScenarioError::Policy { error, .. } => output.refused(&error),
        error => Stop::usage(error),
    }
}

/// The policies of a command line.
fn named(specs: &[String], output: Output) -> Result<Vec<NamedPolicy>, Stop> {
    specs
        .iter()
        .map(|spec| Config::policy_from(spec).map_err(|error| output.refused(&error)))
        .collect()
}
