//! Was the fault met at all? Without that nothing is judged.

use super::op::{OpView, since};
use crate::rule::Rule;

/// The standard evidence of one operation; `Some` says what is missing.
pub(super) fn missing(view: &OpView<'_>, rule: Option<&Rule>, must_end: bool) -> Option<String> {
    let record = view.record;
    if let Some(trouble) = &record.trouble {
        return Some(trouble.clone());
    }
    if record.dropped > 0 {
        return Some(format!("the journal lost {} entries", record.dropped));
    }
    let Some(start) = view.start else {
        return Some("the operation was not started".to_owned());
    };
    if let Some(why) = refusal(view, start) {
        return Some(why);
    }
    let wire = !view.spec.is_load() && view.attempts.is_empty();
    if wire && !met_connection(view) {
        return Some("the scripted fault was not met: nothing arrived".to_owned());
    }
    if let Some(first) = view.attempts.first() {
        if first.t_first < start {
            return Some("the first request came before the operation was started".to_owned());
        }
        if let Some(result) = view.result
            && result.t < first.t_first
            // Of a series offered as load, a deadline may run out while the request is on its way.
            && !view.spec.is_load()
        {
            return Some("the result came before anything was sent".to_owned());
        }
        let met = first.step.is_some() || first.outage.is_some();
        if !(met || first.raced() || first.has("over-quota")) {
            return Some("the first step was not consumed".to_owned());
        }
    }
    if view.attempts.iter().any(|a| a.wire() == "uncertain") {
        return Some("a reset was uncertain: the peer had not acknowledged every byte".to_owned());
    }
    if view.result.is_none() && view.spec.watch_ms == 0 {
        let bounded = rule.is_some_and(|r| r.mentions("end") || r.mentions("tail"));
        if !(record.limit_hit && (must_end || bounded)) {
            return Some("no result".to_owned());
        }
    }
    None
}

/// Where the listener refuses at first: was the operation there in time, and would the client's own
/// waits have lasted until it listened?
fn refusal(view: &OpView<'_>, start: u64) -> Option<String> {
    let (down, armed) = (view.record.plan.down_ms?, view.record.armed?);
    let late = since(start, armed);
    if late > down / 10.0 {
        return Some(format!(
            "the operation was started {late:.0} ms after the refusal began"
        ));
    }
    let pace = view.pace();
    let waits = (0..pace.attempts.saturating_sub(1).min(1000))
        .filter_map(|r| Some((pace.lo(r) + pace.hi(r)?) / 2.0));
    // An empty sum of floats is -0.
    let total = waits.sum::<f64>() + 0.0;
    let failed = view.result.is_some_and(|r| !r.ok);
    if failed && total < 2.0 * down {
        let why = match pace.base {
            Some(_) => "its own waits are too short to find the listener open",
            None => "it claims no waits that would find the listener open",
        };
        return Some(format!(
            "{why}: {total:.0} ms on average, {down:.0} ms of refusal"
        ));
    }
    None
}

/// A connection fault was met after the start.
fn met_connection(view: &OpView<'_>) -> bool {
    let Some(start) = view.start else {
        return false;
    };
    // Refused connections leave no trace; a client that gave up was there while it refused.
    if view.record.plan.down_ms.is_some() {
        return view.result.is_some_and(|r| !r.ok);
    }
    let plan = &view.record.plan;
    let scripted = plan.tls || plan.scenario.contains("accept = ");
    scripted
        && view
            .record
            .arrivals
            .iter()
            .any(|a| since(a.t_accept, start) >= 0.0)
}

/// A finite step that was left over, where the rule wants all of them.
pub(super) fn left_over(view: &OpView<'_>, rule: Option<&Rule>) -> Option<String> {
    let allowed = view.spec.fewer || rule.is_some_and(|r| r.mentions("n") && bounded(r));
    let met = view.attempts.iter().filter(|a| a.step.is_some()).count() as u64;
    if allowed || met >= view.op.finite {
        return None;
    }
    Some(format!("{met} of {} steps were met", view.op.finite))
}

/// Does the rule allow fewer attempts than there are steps?
fn bounded(rule: &Rule) -> bool {
    let text = rule.to_string();
    text.contains("n<=") || text.contains("n=1")
}
