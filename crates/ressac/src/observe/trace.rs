//! Spans and events. The words are those of the engine: reason, blame, processed, because.

use tracing::{Level, Span, debug, debug_span, enabled, info, warn};

use super::Event;
use crate::attempt::Attempt;
use crate::policy::{Reason, Verdict};

#[inline]
pub(super) fn is_enabled() -> bool {
    enabled!(target: "ressac", Level::WARN)
}

/// What the closure logs stands in this span.
#[inline]
pub(crate) fn attempt_span(partner: &str, attempt: &Attempt) -> Span {
    debug_span!(
        target: "ressac",
        "attempt",
        partner,
        number = attempt.number(),
        kind = attempt.kind().as_str(),
    )
}

pub(super) fn emit(event: &Event<'_>) {
    match event {
        Event::Attempt { partner, attempt } => debug!(
            target: "ressac",
            partner,
            number = attempt.number(),
            kind = attempt.kind().as_str(),
            timeout_ms = attempt.timeout().as_millis() as u64,
            "attempt begins"
        ),
        Event::Outcome {
            partner,
            number,
            outcome,
            judgement,
        } => {
            let blame = judgement.blame.map_or("none", |blame| blame.as_str());
            let took_ms = outcome.took.as_millis() as u64;
            let processed = judgement.processed.as_str();
            match judgement.verdict {
                Verdict::Success | Verdict::AlreadyDone => debug!(
                    target: "ressac", partner, number, outcome = %outcome.kind, took_ms,
                    "attempt succeeded"
                ),
                Verdict::Retry | Verdict::Permanent => info!(
                    target: "ressac", partner, number, outcome = %outcome.kind, processed, blame,
                    took_ms, "attempt failed"
                ),
            }
        }
        Event::Wait {
            partner,
            wait,
            left,
        } => debug!(
            target: "ressac",
            partner,
            because = wait.because.as_str(),
            left_ms = left.as_millis() as u64,
            "{wait}"
        ),
        Event::End {
            partner,
            end,
            elapsed,
        } => {
            let elapsed_ms = elapsed.as_millis() as u64;
            let (reason, processed) = (end.reason.as_str(), end.processed.as_str());
            match end.reason {
                Reason::Delivered => debug!(
                    target: "ressac", partner, reason, attempts = end.attempts, elapsed_ms, "{end}"
                ),
                Reason::Cancelled => info!(
                    target: "ressac", partner, reason, processed, attempts = end.attempts,
                    elapsed_ms, "{end}"
                ),
                _ => warn!(
                    target: "ressac", partner, reason, processed, attempts = end.attempts,
                    elapsed_ms, "{end}"
                ),
            }
        }
    }
}
