//! The one line on failure: why it ended, and what to do.

use ressac_policy::{OutcomeKind, Processed, Reason};

use super::drive::Finished;
use super::request::Prepared;
use super::story::{attempts, came_to, seconds};

/// What happened, whose failure it was, and what to do about it.
pub(super) fn line(prepared: &Prepared, finished: &Finished) -> String {
    let end = &finished.end;
    let last = finished.history.last();
    let what = last.map_or_else(String::new, |record| format!(": last {}", came_to(record)));
    let blame = end
        .blame
        .map_or_else(String::new, |blame| format!("blame {blame}, "));
    format!(
        "error: {} after {} in {}{what} ({blame}processed {}); {}",
        end.reason,
        attempts(end.attempts),
        seconds(finished.elapsed),
        end.processed,
        advice(prepared, finished)
    )
}

fn advice(prepared: &Prepared, finished: &Finished) -> String {
    let end = &finished.end;
    let doubt = doubt(prepared, end.processed);
    match end.reason {
        Reason::Permanent => permanent(end.last).to_owned(),
        Reason::Ambiguous => "it may have been processed; repeat with the same --key only if the \
                              partner honours keys, else ask the partner first"
            .to_owned(),
        Reason::Exhausted => doubt,
        Reason::WindowClosed if end.attempts == 0 => {
            "the time was over before the first attempt".to_owned()
        }
        Reason::WindowClosed => format!("no time is left for another attempt; {doubt}"),
        Reason::CircuitOpen => format!("the partner keeps failing, leave it alone; {doubt}"),
        Reason::BudgetSpent => format!("the retry budget is spent; {doubt}"),
        Reason::BodyNotReplayable => "the body cannot be sent again".to_owned(),
        Reason::HintOverMax => {
            let hint = end.hint.map_or_else(String::new, |hint| seconds(hint.wait));
            format!("the partner asks for {hint}, longer than retry_after.max; {doubt}")
        }
        Reason::UpstreamGaveUp => {
            format!("a layer in between has retried already, look at its Ressac-Reason; {doubt}")
        }
        Reason::Cancelled => {
            let by = finished.signal.unwrap_or("a signal");
            format!("ended by {by}; {doubt}")
        }
        Reason::Delivered | Reason::Disputed | Reason::Discarded => doubt,
    }
}

fn permanent(last: Option<OutcomeKind>) -> &'static str {
    match last {
        Some(OutcomeKind::Certificate) => {
            "check the host name, the partner's certificate and --cacert"
        }
        Some(OutcomeKind::Invalid) => "mend the request; nothing was sent",
        Some(OutcomeKind::Status(300..=399)) => {
            "redirects are not followed; send to the new URL (--include shows it)"
        }
        Some(OutcomeKind::Status(401 | 403 | 407)) => {
            "check the credentials; the same ones would be refused again"
        }
        Some(OutcomeKind::Status(500..)) => "the partner says that another attempt cannot help",
        _ => "mend the request; the same one would be refused again",
    }
}

/// May it be sent again?
fn doubt(prepared: &Prepared, processed: Processed) -> String {
    match (processed, &prepared.key) {
        (Processed::No, _) => "it was not processed, and can be sent again later".to_owned(),
        (_, Some(key)) => format!("it may have been processed; send it again with --key {key}"),
        (_, None) if prepared.spec.idempotent => {
            "it may have been processed; it can be sent again later".to_owned()
        }
        (_, None) => "it may have been processed; ask the partner before sending again".to_owned(),
    }
}
