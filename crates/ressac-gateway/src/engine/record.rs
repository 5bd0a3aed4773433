//! Between the engine's types and what the store keeps.

use ressac_policy::{Attempt, Because, End, Operation, Outcome, OutcomeKind, Reason, Wait};
use ressac_store::{AttemptRecord, Class, NewState};

use crate::transport::Sent;

/// The operation as the store keeps it. The store takes it for an opaque blob.
pub(crate) fn encode(operation: &Operation) -> Vec<u8> {
    // Plain data with string keys: serialising it to memory cannot fail.
    serde_json::to_vec(operation).unwrap_or_default()
}

/// `None` for a blob that is no operation (written by a version this one does not know).
pub(crate) fn decode(blob: &[u8]) -> Option<Operation> {
    serde_json::from_slice(blob).ok()
}

/// The class a message waits in.
pub(super) fn class_of(operation: &Operation) -> Class {
    if operation.series() > 1 {
        Class::Replay
    } else if operation.is_fresh() {
        Class::First
    } else {
        Class::Retry
    }
}

pub(super) fn waiting(wait: &Wait, operation: &Operation) -> NewState {
    NewState::Waiting {
        due: wait.until.as_nanos(),
        because: because(wait.because).to_owned(),
        class: class_of(operation),
    }
}

pub(super) fn because(because: Because) -> &'static str {
    because.as_str()
}

pub(super) fn ended(end: &End) -> NewState {
    if end.reason == Reason::Delivered {
        let reason = if end.already_done {
            "already_done"
        } else {
            "delivered"
        };
        return NewState::Delivered {
            reason: reason.to_owned(),
        };
    }
    NewState::Dead {
        reason: end.reason.as_str().to_owned(),
        blame: end.blame.map_or("", |blame| blame.as_str()).to_owned(),
        processed: end.processed.as_str().to_owned(),
    }
}

/// The record of an attempt that came to this.
pub(super) fn attempt(number: u32, started_at: u64, ended_at: u64, sent: &Sent) -> AttemptRecord {
    let outcome = &sent.outcome;
    AttemptRecord {
        number,
        started_at,
        ended_at: Some(ended_at),
        kind: kind(outcome).to_owned(),
        status: status(outcome),
        processed: String::new(),
        blame: String::new(),
        hint_ms: outcome
            .hint
            .map(|hint| u64::try_from(hint.wait.as_millis()).unwrap_or(u64::MAX)),
        note: sent.note.clone(),
        reply_head: sent.reply_head.clone(),
        reply_body: sent.reply_body.clone(),
    }
}

/// The outcome as a metric's label: a closed set, in which a 429 is told from a 503.
pub(super) fn label(outcome: &Outcome) -> &'static str {
    match outcome.kind {
        OutcomeKind::Status(status) => match status {
            200..=299 => "success",
            300..=399 => "3xx",
            408 => "408",
            409 => "409",
            425 => "425",
            429 => "429",
            400..=499 => "4xx",
            500 => "500",
            502 => "502",
            503 => "503",
            504 => "504",
            _ => "5xx",
        },
        other => other.as_str(),
    }
}

/// The word for metrics and records: `success`, a class of statuses, or the kind of failure.
pub(super) fn kind(outcome: &Outcome) -> &'static str {
    match outcome.kind {
        OutcomeKind::Status(200..=299) => "success",
        other => other.as_str(),
    }
}

fn status(outcome: &Outcome) -> Option<u16> {
    match outcome.kind {
        OutcomeKind::Status(status) => Some(status),
        _ => None,
    }
}

/// For logs: what is sent.
pub(super) fn describe(attempt: &Attempt) -> String {
    format!("attempt {} ({})", attempt.number, attempt.kind.as_str())
}
