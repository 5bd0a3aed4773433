//! `ressac send`: one request, with the full policy.

mod advice;
mod drive;
mod report;
mod request;
mod sink;
mod story;

use std::path::PathBuf;
use std::time::SystemTime;

use ressac_config::{Config, parse_size};
use ressac_policy::{Reason, Timestamp, parse_http_date};

use self::drive::{Drive, Finished};
use self::report::Report;
use self::request::Prepared;
use self::sink::Sink;
use self::story::Story;
use super::small_runtime;
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac send`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac send https://api.acme.example/v1/orders/17
  ressac send -v https://api.acme.example/v1/orders -d @order.json \\
      -H 'Content-Type: application/json' --key order-17
  ressac send --policy ressac.toml:payments -X PUT -d @- https://api.acme.example/v1/x < x.json
  ressac send --json --deliver-by 2026-12-24T18:00:00Z https://api.acme.example/v1/report

The reply's body goes to stdout whatever its status; the exit code says what it means.
A POST is repeated only where that is safe: with --key or --idempotent, or if it certainly was
not processed.
A header 'Expect: 100-continue' holds the body back until the partner asks for it, for a second
at most.")]
pub(crate) struct Args {
    /// Where to: http or https, without user-info.
    #[arg(value_name = "URL")]
    url: String,

    /// The method. Default: GET, or POST with --data.
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = request::method)]
    method: Option<http::Method>,

    /// The body: the text itself, @FILE, or @- for stdin. At most 1 GB.
    #[arg(short, long, value_name = "DATA|@FILE", allow_hyphen_values = true)]
    data: Option<String>,

    /// A header of every attempt, e.g. 'Content-Type: application/json'.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// The policy: FILE:NAME, or `sync` or `durable`, the built-in ones.
    #[arg(long, value_name = "FILE:NAME", default_value = "sync")]
    policy: String,

    /// The idempotency key, and your word that the partner honours it: one key, one effect.
    #[arg(long, value_name = "KEY", value_parser = request::key)]
    key: Option<String>,

    /// Make a key (UUID v7), as if given by --key.
    #[arg(long, conflicts_with = "key")]
    make_key: bool,

    /// The header that carries the key.
    #[arg(long, value_name = "NAME", default_value = "Idempotency-Key")]
    key_header: String,

    /// Your word that repeating the request does no harm, whatever its method.
    #[arg(long)]
    idempotent: bool,

    /// Send nothing from this moment on: RFC 3339 or an HTTP-date.
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    deliver_by: Option<Timestamp>,

    /// Trust the certificate authorities of this PEM file too.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Speak HTTP/1.1 and nothing else. Default: over https what the partner chooses.
    #[arg(long = "http1.1")]
    http1: bool,

    /// Speak HTTP/2 and nothing else, over http without asking first.
    #[arg(long, conflicts_with = "http1")]
    http2_prior_knowledge: bool,

    /// Write the reply's body to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the reply's status line and headers before its body.
    #[arg(short, long)]
    include: bool,

    /// Keep at most so much of a reply's body; a longer one is an error. At most 1GB.
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = size)]
    max_body: u64,

    /// Tell every attempt and decision on stderr.
    #[arg(short, long)]
    verbose: bool,

    /// Write one JSON object about the operation to stdout; the reply goes to --output alone.
    #[arg(long)]
    json: bool,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        let nanos = u64::try_from(moment.as_nanosecond()).unwrap_or(0);
        return Ok(Timestamp::from_nanos(nanos));
    }
    let now = drive::wall(SystemTime::now());
    parse_http_date(text.as_bytes(), now)
        .map(|date| Timestamp::from_secs(u64::try_from(date.unix_seconds).unwrap_or(0)))
        .ok_or_else(|| "write RFC 3339, e.g. 2026-12-24T18:00:00Z, or an HTTP-date".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).map_err(|error| error.to_string())?;
    if size > request::MAX_BODY {
        return Err("at most 1GB".to_owned());
    }
    Ok(size)
}

/// Sends, and ends with the code of the reason.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let policy = Config::policy_from(&args.policy)
        .map_err(|error| output.refused(&error))?
        .into_policy();
    let client = request::client(&args)?;
    let prepared = Prepared::new(&args)?;
    // Before anything is sent: a reply that cannot be kept would be lost.
    let sink = match &args.output {
        Some(path) => Sink::file(path)?,
        None if args.json => Sink::Nowhere,
        None => Sink::Stdout(output),
    };
    let story = Story::new(args.verbose.then_some(output), &prepared);
    let finished = small_runtime()?
        .block_on(async { Drive::new(policy, client, &prepared, story)?.run().await })?;
    finish(&args, output, &prepared, &finished, sink)
}

fn finish(
    args: &Args,
    output: Output,
    prepared: &Prepared,
    finished: &Finished,
    sink: Sink,
) -> Result<Exit, Stop> {
    let end = &finished.end;
    let told = match args.json {
        true => output.json(&Report::of(prepared, finished)),
        false => Ok(()),
    };
    let kept = match &finished.reply {
        Some(reply) => sink.keep(reply, args.include),
        None => Ok(()),
    };
    if end.reason != Reason::Delivered {
        output.note(&advice::line(prepared, finished));
    }
    let outcome = match end.reason {
        Reason::Delivered => "delivered, but".to_owned(),
        reason => format!("ended as {reason}, and"),
    };
    kept.map_err(|error| {
        let place = args.output.as_ref().map(|path| path.display());
        let place = place.map_or_else(String::new, |path| format!(" to {path}"));
        Stop::fault(format_args!(
            "{outcome} the reply could not be written{place}: {error}"
        ))
    })?;
    told.map_err(|stop| Stop::fault(format_args!("{outcome} that could not be told: {stop}")))?;
    if finished
        .reply
        .as_ref()
        .is_some_and(|reply| reply.body_limit_hit)
    {
        return Err(Stop::fault(format_args!(
            "{outcome} the reply's body is longer than --max-body {}: only its beginning was kept",
            ressac_config::format_size(args.max_body)
        )));
    }
    Ok(Exit::of(end.reason))
}
