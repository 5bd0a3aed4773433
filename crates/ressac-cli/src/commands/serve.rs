//! `ressac serve`: the gateway, until a signal ends it.

use std::path::PathBuf;

use ressac_config::Config;
use ressac_gateway::{Gateway, GatewayError, StartError};
use tracing_subscriber::EnvFilter;

use crate::exit::{Exit, Stop};
use crate::output::{Output, count};
use crate::signal::Signals;

/// The arguments of `ressac serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac serve ressac.toml
  ressac serve base.toml partners.toml --log info --log-format json
  curl -X POST --data-binary @invoice.edi http://127.0.0.1:7070/v1/partners/acme/messages")]
pub(crate) struct Args {
    /// Configuration files, read together.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What is logged to stderr: error, warn, info, debug, or a filter such as
    /// `ressac_gateway=debug`.
    #[arg(
        long,
        env = "RESSAC_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    log: String,

    /// How it is logged.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: LogFormat,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Runs until SIGTERM or SIGINT. A second signal ends it at once, like a crash: nothing accepted is
/// lost, what is in flight is in doubt.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    log_to_stderr(&args, output)?;
    let config = Config::load(&args.files).map_err(|error| output.refused(&error))?;
    if config.partners().is_empty() {
        return Err(Stop::usage(
            "no partner is configured: add a [partner.NAME] with its url to the file",
        ));
    }
    super::runtime()?.block_on(serve(&config, output))
}

async fn serve(config: &Config, output: Output) -> Result<Exit, Stop> {
    let mut signals = Signals::listen()?;
    let gateway = Gateway::start_configured(config)
        .await
        .map_err(cannot_start)?;
    output.note(&format!("ressac listens on http://{}", gateway.address()));
    let signal = signals.next().await;
    output.note(&format!(
        "{signal}: accepts nothing more, lets attempts in flight end"
    ));
    let report = tokio::select! {
        report = gateway.stop() => report,
        signal = signals.next() => {
            return Err(Stop::fault(format_args!(
                "{signal} again: ended at once; what was in flight is in doubt"
            )));
        }
    };
    match report.cut {
        0 => output.note("stopped; everything is written down"),
        cut => output.note(&format!(
            "stopped; cut off and in doubt: {}",
            count(cut, "attempt")
        )),
    }
    Ok(Exit::DONE)
}

fn cannot_start(error: StartError) -> Stop {
    match error {
        StartError::Gateway(GatewayError::Listen { .. }) => Stop::usage(format_args!(
            "{error}; set gateway.listen, or stop what listens there"
        )),
        StartError::CaFile { .. } | StartError::Header { .. } => Stop::usage(error),
        other => Stop::fault(other),
    }
}

fn log_to_stderr(args: &Args, output: Output) -> Result<(), Stop> {
    let filter = EnvFilter::try_new(&args.log).map_err(|error| {
        Stop::usage(format_args!(
            "--log: {error}; write e.g. info or ressac_gateway=debug"
        ))
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output.color_of_notes());
    let set = match args.log_format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    set.map_err(|error| Stop::fault(format_args!("cannot log: {error}")))
}
