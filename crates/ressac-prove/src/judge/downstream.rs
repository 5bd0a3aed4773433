//! Conditions on what a proxy passed down, as the suite's own client saw it.

use super::finding::{Finding, Outcome, ms};
use super::op::{OpView, since};

fn found(outcome: Outcome, rule: &str, expected: &str, seen: String) -> Vec<Finding> {
    vec![Finding {
        outcome,
        rule: rule.to_owned(),
        expected: expected.to_owned(),
        seen,
        note: false,
    }]
}

/// No attempt after the reply had begun downstream.
pub(super) fn no_replay(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    const WANTED: &str = "no attempt once a byte of the reply has gone downstream";
    let Some(result) = view.result else {
        return found(Outcome::Unknown, rule, WANTED, "no result".to_owned());
    };
    let Some(head) = result.t_head else {
        let seen = "no reply began downstream".to_owned();
        return found(Outcome::Pass, rule, WANTED, seen);
    };
    let late = view.attempts.iter().enumerate().skip(1);
    match late.into_iter().find(|(_, a)| a.t_first > head) {
        Some((i, a)) => {
            let seen = format!(
                "attempt {} came {} later",
                i + 1,
                ms(since(a.t_first, head))
            );
            found(Outcome::Fail, rule, WANTED, seen)
        }
        None => found(Outcome::Pass, rule, WANTED, "none".to_owned()),
    }
}

/// Of the upstream's header lines only those of the last attempt reach downstream. `Date` is the
/// proxy's to write, and two replies may name the same second.
pub(super) fn winner_only(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    const WANTED: &str = "only the last reply's header lines go downstream";
    let (Some(result), Some((last, lost))) = (view.result, view.attempts.split_last()) else {
        return found(Outcome::Unknown, rule, WANTED, "no result".to_owned());
    };
    if result.headers.is_empty() {
        let seen = "no header lines were told".to_owned();
        return found(Outcome::Unknown, rule, WANTED, seen);
    }
    let has = |lines: &[(String, String)], line: &(String, String)| {
        lines
            .iter()
            .any(|(n, v)| n.eq_ignore_ascii_case(&line.0) && *v == line.1)
    };
    let lines = |a: &crate::record::Arrival| a.sent.as_ref().map(|s| s.headers.clone());
    let won = lines(last).unwrap_or_default();
    let strange = lost.iter().filter_map(|a| lines(a)).flatten().find(|line| {
        !line.0.eq_ignore_ascii_case("date") && !has(&won, line) && has(&result.headers, line)
    });
    // The mock marks every reply with its number.
    let mark = won
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("ressac-mock"));
    match (strange, mark) {
        (Some((name, value)), _) => {
            let seen = format!("`{name}: {value}` of an attempt that failed");
            found(Outcome::Fail, rule, WANTED, seen)
        }
        (None, Some(mark)) if !has(&result.headers, mark) => {
            let seen = format!("`{}: {}` of the last reply is missing", mark.0, mark.1);
            found(Outcome::Fail, rule, WANTED, seen)
        }
        _ => found(Outcome::Pass, rule, WANTED, "the last reply's".to_owned()),
    }
}
