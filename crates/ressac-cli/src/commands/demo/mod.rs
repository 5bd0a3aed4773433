//! `ressac demo`: the main job in one command. Fifty EDI documents, a partner that is down and
//! comes back, the real gateway with a real SQLite file between them.

mod documents;
mod gateway;
mod live;
mod naive;
mod partner;
mod report;

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::exit::{Exit, Stop};
use crate::output::Output;
use crate::signal::Signals;

use live::Live;
use partner::FaultyPartner;
use report::{Report, Tally};

/// The arguments of `ressac demo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac demo
  ressac demo --naive            # the same with plain exponential backoff, for comparison
  ressac demo --without hold     # the same without one of the protections
  ressac demo --messages 20 --outage 3s --retry-after 1 --json")]
pub(crate) struct Args {
    /// How many documents are sent, 1 to 10000.
    #[arg(long, default_value_t = 50, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    messages: u32,

    /// How long the partner is down from the first document on.
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = outage)]
    outage: Duration,

    /// The Retry-After that the partner answers while it is down, in seconds; 1 to 60.
    #[arg(long, default_value_t = 3, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=60))]
    retry_after: u64,

    /// Plain exponential backoff instead: base 1 s, doubling, no jitter, no hint, no limit.
    #[arg(long, conflicts_with = "without")]
    naive: bool,

    /// Switches one protection off, to see what it is there for. May be given twice.
    #[arg(long, value_enum, value_name = "PROTECTION")]
    without: Vec<Protection>,

    /// Write the report as one JSON object, and no live view.
    #[arg(long)]
    json: bool,
}

/// A protection that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protection {
    /// Retry-After holds the whole partner, not only the message that met it.
    Hold,
    /// The circuit breaker, and with it the paced drain after an outage.
    Breaker,
}

fn outage(text: &str) -> Result<Duration, String> {
    let time = ressac_config::parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(600);
    allowed
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| "from 100ms to 10m".to_owned())
}

/// What the sender knows at a moment, for the live view and the report.
#[derive(Clone, Debug, Default)]
struct Progress {
    accepted: u64,
    waiting: u64,
    dead: Vec<(String, u64)>,
    breaker: String,
}

/// After the partner is back, everything must have ended within this time; what has not is
/// reported as it stands.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the outage and reports it.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let report = super::runtime()?.block_on(demonstrate(&args, output))?;
    if args.json {
        output.json(&report)?;
    } else {
        output.text(&report.text(&args))?;
    }
    let sound = report.is_complete();
    Ok(if sound { Exit::DONE } else { Exit::NO })
}

async fn demonstrate(args: &Args, output: Output) -> Result<Report, Stop> {
    let mut signals = Signals::listen()?;
    let partner = FaultyPartner::start(args).await?;
    let progress = watch::Sender::new(Progress::default());
    let live = Live::start(args, &partner, progress.subscribe(), output);
    let began = Instant::now();
    let limit = args.outage + PATIENCE;
    let sent = async {
        if args.naive {
            naive::send_all(args, &partner, &progress).await
        } else {
            gateway::send_all(args, &partner, &progress).await
        }
    };
    let ended = tokio::select! {
        ended = tokio::time::timeout(limit, sent) => ended,
        signal = signals.next() => return Err(Stop::no(format_args!("{signal}: demo cut off"))),
    };
    live.stop().await;
    match ended {
        Ok(result) => result?,
        Err(_) => output.note(&format!("not everything ended within {limit:?}")),
    }
    let last = progress.borrow().clone();
    let tally = Tally {
        accepted: last.accepted,
        dead: last.dead,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(Report::of(&partner, tally))
}
