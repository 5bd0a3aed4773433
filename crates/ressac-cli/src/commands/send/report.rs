//! An operation as one JSON object, for `--json`.

use std::time::Duration;

use ressac_policy::{Hint, OutcomeKind, Reason, Wait};
use serde::Serialize;

use super::drive::{Finished, Record};
use super::request::Prepared;

/// Times are whole milliseconds, rounded up.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    ok: bool,
    reason: &'static str,
    blame: Option<&'static str>,
    processed: &'static str,
    attempts: u32,
    status: Option<u16>,
    already_done: bool,
    hint_ms: Option<u64>,
    key: Option<&'a str>,
    /// Of the reply; `null` where there is no whole one.
    body_len: Option<usize>,
    elapsed_ms: u64,
    history: Vec<AttemptLine<'a>>,
}

#[derive(Debug, Serialize)]
struct AttemptLine<'a> {
    number: u32,
    kind: &'static str,
    began_ms: u64,
    took_ms: u64,
    outcome: &'static str,
    status: Option<u16>,
    processed: &'static str,
    blame: Option<&'static str>,
    hint_ms: Option<u64>,
    note: &'a str,
    waits: Vec<WaitLine>,
}

#[derive(Debug, Serialize)]
struct WaitLine {
    because: &'static str,
    ms: u64,
    floor_ms: u64,
    jitter_ms: u64,
    ceiling_ms: u64,
    hint_ms: Option<u64>,
}

impl<'a> Report<'a> {
    pub(super) fn of(prepared: &'a Prepared, finished: &'a Finished) -> Self {
        let end = &finished.end;
        Report {
            ok: end.reason == Reason::Delivered,
            reason: end.reason.as_str(),
            blame: end.blame.map(|blame| blame.as_str()),
            processed: end.processed.as_str(),
            attempts: end.attempts,
            status: end.last.and_then(status),
            already_done: end.already_done,
            hint_ms: hint(end.hint),
            key: prepared.key.as_deref(),
            body_len: finished.reply.as_ref().map(|reply| reply.body.len()),
            elapsed_ms: millis(finished.elapsed),
            history: finished.history.iter().map(attempt).collect(),
        }
    }
}

fn attempt(record: &Record) -> AttemptLine<'_> {
    AttemptLine {
        number: record.number,
        kind: record.kind.as_str(),
        began_ms: millis(record.began),
        took_ms: millis(record.took),
        outcome: record.outcome.map_or("cancelled", OutcomeKind::as_str),
        status: record.outcome.and_then(status),
        processed: record.processed.as_str(),
        blame: record.blame.map(|blame| blame.as_str()),
        hint_ms: hint(record.hint),
        note: &record.note,
        waits: record.waits.iter().map(wait).collect(),
    }
}

fn wait((wait, took): &(Wait, Duration)) -> WaitLine {
    WaitLine {
        because: wait.because.as_str(),
        ms: millis(*took),
        floor_ms: millis(wait.floor),
        jitter_ms: millis(wait.jitter),
        ceiling_ms: millis(wait.ceiling),
        hint_ms: hint(wait.hint),
    }
}

fn status(kind: OutcomeKind) -> Option<u16> {
    match kind {
        OutcomeKind::Status(status) => Some(status),
        _ => None,
    }
}

fn hint(hint: Option<Hint>) -> Option<u64> {
    hint.map(|hint| millis(hint.wait))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
