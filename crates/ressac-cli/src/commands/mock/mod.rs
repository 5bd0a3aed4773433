//! `ressac mock`: a partner that fails on purpose.

mod scenario;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ressac_mock::{Mock, MockError, Options};

use super::runtime;
use crate::draft;
use crate::exit::{Exit, Stop};
use crate::output::{Output, count};
use crate::signal::Signals;

/// How long open connections are given at the end.
const GRACE: Duration = Duration::from_secs(2);

/// The arguments of `ressac mock`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac mock --bind 127.0.0.1:8080
  ressac mock --script '503 ra=2 x2, 201 create' --path /pay
  ressac mock -s partner.toml --check
  ressac mock -s partner.toml --ports-file ports.json --seed 7
  ressac mock --upstream http://127.0.0.1:8080

Without a file or script every path answers 200.")]
pub(crate) struct Args {
    /// Scenario files; the routes of the first come first.
    #[arg(short, long = "scenario", value_name = "FILE")]
    scenarios: Vec<PathBuf>,

    /// A route without a file: what its arrivals meet, in the short notation.
    #[arg(long, value_name = "STEPS")]
    script: Option<String>,

    /// The path of --script. Default: every path.
    #[arg(long, requires = "script", value_name = "PATH")]
    path: Option<String>,

    /// Where the first listener binds; others take its address and a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    bind: SocketAddr,

    /// Seeds all chance; over that of the file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write the ports to this file, as JSON, once all are open.
    #[arg(long, value_name = "FILE")]
    ports_file: Option<PathBuf>,

    /// Pass on what no route takes: an http:// URL.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Where the control API listens, or `off`; beyond loopback it needs a token.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = control)]
    control: Control,

    /// What callers of the control API must show, as `Authorization: Bearer`.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "RESSAC_MOCK_TOKEN",
        hide_env_values = true
    )]
    control_token: Option<String>,

    /// Answer `/__ressac/` on the listeners without TLS too, never faulted.
    #[arg(long)]
    control_on_plain: bool,

    /// Only read the files; exit with 64 where one is wrong.
    #[arg(long)]
    check: bool,

    /// The most entries that the journal keeps.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    journal: u32,
}

/// Where the control API listens, if it does.
#[derive(Clone, Copy, Debug)]
struct Control(Option<SocketAddr>);

/// An address and a port; an address alone takes a free port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)))
        .map_err(|_| "write an address and a port, e.g. 127.0.0.1:8080 or [::1]:0".to_owned())
}

fn control(text: &str) -> Result<Control, String> {
    match text {
        "off" => Ok(Control(None)),
        text => address(text).map(|address| Control(Some(address))),
    }
}

/// Runs until SIGINT, SIGTERM or `POST stop` of the control API.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let mut scenario = scenario::load(&args.scenarios)?;
    if let Some(script) = &args.script {
        let route = scenario::route(script, args.path.as_deref())?;
        // Before those of the files: what stands on the command line wins.
        scenario.routes.insert(0, route);
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if args.check {
        let routes = scenario.routes.len();
        output.text(&format!("sound: {}", count(routes, "route")))?;
        return Ok(Exit::DONE);
    }
    if let Some(file) = &args.ports_file {
        forget(file)?;
    }
    let secure = scenario.listeners.iter().any(|l| l.certificate.is_some());
    let ca = Ca(secure.then(|| ca_file(args.ports_file.as_deref())));
    let options = Options {
        bind: args.bind,
        control: args.control.0,
        control_token: args.control_token.clone(),
        control_on_plain: args.control_on_plain,
        journal_entries: args.journal as usize,
        upstream: args.upstream.clone(),
        ca_file: ca.0.clone(),
        ..Options::default()
    };
    runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let mock = match Mock::start_with(scenario, options).await {
            Ok(mock) => mock,
            Err(error) => return Err(refused(error, args.ports_file.as_deref())),
        };
        if let Some(file) = &args.ports_file {
            announce(file, &mock.ports_json())?;
        }
        output.note(&addresses(&mock));
        tokio::select! {
            _ = signals.next() => {}
            () = mock.stopped() => {}
        }
        // Whoever still hangs on a stalled connection is cut off.
        let _ = tokio::time::timeout(GRACE, mock.shutdown()).await;
        Ok(Exit::DONE)
    })
}

/// The file with the certificate of the mock's authority, which goes when the mock does.
struct Ca(Option<PathBuf>);

impl Drop for Ca {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // A certificate without its mock is of no use; nor is a complaint about it.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Beside the ports file, or in the folder for temporary files.
fn ca_file(ports: Option<&Path>) -> PathBuf {
    match ports {
        Some(ports) => ports.with_extension("ca.pem"),
        None => std::env::temp_dir().join(format!("ressac-mock-{}.ca.pem", std::process::id())),
    }
}

fn refused(error: MockError, ports: Option<&Path>) -> Stop {
    match (error, ports) {
        // Nobody has asked for a certificate, but for the file it lies beside.
        (MockError::CaFile { source, .. }, Some(ports)) => unwritable(ports, &source),
        (error, _) => refusal(error),
    }
}

fn refusal(error: MockError) -> Stop {
    match error {
        MockError::ControlNotLoopback(_) => {
            Stop::usage(format_args!("{error}; give --control-token"))
        }
        MockError::Upstream(_) | MockError::CaFile { .. } => Stop::usage(error),
        MockError::NoUpstream(_) => Stop::usage(format_args!("{error} with --upstream")),
        MockError::Bind { .. } => Stop::usage(format_args!(
            "{error}; give --bind or --control another address, or stop what listens there"
        )),
        _ => Stop::fault(error),
    }
}

fn addresses(mock: &Mock) -> String {
    let mut parts: Vec<String> = mock
        .listeners()
        .iter()
        .filter_map(|(name, _)| Some(format!("{name} {}", mock.listener_url(name)?)))
        .collect();
    if let Some(control) = mock.control_url() {
        parts.push(format!("control {control}/__ressac/v1/"));
    }
    format!("ressac mock: {}", parts.join(", "))
}

/// A ports file of an earlier run would say "ready" too early.
fn forget(file: &Path) -> Result<(), Stop> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unwritable(file, &error)),
        _ => Ok(()),
    }
}

/// Writes the ports file beside its place and renames it: whoever sees it sees all of it.
fn announce(file: &Path, ports: &str) -> Result<(), Stop> {
    let write = || {
        let mut draft = draft::beside(file)?;
        // Past the draft itself: its errors show its own name, which nobody has given.
        writeln!(draft.as_file_mut(), "{ports}")?;
        draft.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Stop {
    Stop::usage(format_args!(
        "the ports file {} cannot be written: {error}",
        file.display()
    ))
}
