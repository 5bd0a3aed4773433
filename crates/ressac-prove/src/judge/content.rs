//! Conditions on what the attempts carried: keys, bodies, headers, hints.

use super::body::{hex, pattern, pattern_sha256};
use super::finding::{Finding, Outcome, ms};
use super::op::{OpView, since};
use crate::record::Arrival;
use sha2::{Digest, Sha256};

fn found(outcome: Outcome, rule: &str, expected: &str, seen: impl Into<String>) -> Vec<Finding> {
    vec![Finding {
        outcome,
        rule: rule.to_owned(),
        expected: expected.to_owned(),
        seen: seen.into(),
        note: false,
    }]
}

fn by(holds: bool) -> Outcome {
    if holds { Outcome::Pass } else { Outcome::Fail }
}

/// The keys of all attempts, shortened.
pub(super) fn keys(view: &OpView<'_>) -> String {
    let short = |a: &&Arrival| match &a.key {
        Some(key) => key.chars().take(12).collect(),
        None => "none".to_owned(),
    };
    let list: Vec<String> = view.attempts.iter().map(short).collect();
    list.join(", ")
}

/// Identical on all attempts.
pub(super) fn same(view: &OpView<'_>, what: &str, rule: &str) -> Vec<Finding> {
    let values: Vec<String> = view.attempts.iter().map(|a| facet(view, a, what)).collect();
    let alike = values.windows(2).all(|w| w[0] == w[1]);
    let seen = match values.windows(2).find(|w| w[0] != w[1]) {
        None => format!("alike on {} attempts", values.len()),
        Some(pair) => format!("`{}`, then `{}`", clip(&pair[0]), clip(&pair[1])),
    };
    found(
        by(alike && !values.is_empty()),
        rule,
        &format!("the same {what} on every attempt"),
        seen,
    )
}

fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

fn facet(view: &OpView<'_>, a: &Arrival, what: &str) -> String {
    match what {
        // As it came: bare once and quoted once is not the same.
        "key" => match &a.key {
            None => "none".to_owned(),
            Some(key) => format!("{key}{}", if a.key_quoted { " (quoted)" } else { "" }),
        },
        "body" => format!(
            "{} bytes {}",
            a.body_len,
            a.body_sha256.as_deref().unwrap_or("unread")
        ),
        "target" => a.target.clone(),
        "id" => a.header("webhook-id").unwrap_or("none").to_owned(),
        "headers" => {
            let claimed = &view.claims.claims.headers;
            let varies = |name: &str| {
                name.eq_ignore_ascii_case("connection")
                    || name.eq_ignore_ascii_case(&claimed.attempt)
                    || claimed
                        .per_attempt
                        .iter()
                        .any(|h| h.eq_ignore_ascii_case(name))
            };
            let mut lines: Vec<String> = a
                .headers
                .iter()
                .filter(|(name, _)| !varies(name))
                .map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
                .collect();
            lines.sort();
            lines.join("; ")
        }
        _ => String::new(),
    }
}

/// Ok only with the exact bytes of one complete reply.
pub(super) fn whole(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    const WANTED: &str = "ok only with the exact bytes of one complete reply";
    let Some(result) = view.result else {
        return found(Outcome::Unknown, rule, WANTED, "no result");
    };
    if !result.ok {
        return found(Outcome::Pass, rule, WANTED, "not ok");
    }
    let want = view.spec.whole.unwrap_or(100);
    let last = view.attempts.last().map_or("", |a| a.wire());
    if last != "complete" {
        let seen = format!("ok, and its last reply ended by {last}");
        return found(Outcome::Fail, rule, WANTED, seen);
    }
    match (result.body_len, &result.body_sha256) {
        (Some(len), _) if len != want => {
            let seen = format!("ok with {len} bytes of {want}");
            found(Outcome::Fail, rule, WANTED, seen)
        }
        (_, Some(hash)) => {
            let right = hash.eq_ignore_ascii_case(&pattern_sha256(want));
            let seen = if right {
                "ok, whole"
            } else {
                "ok with other bytes"
            };
            found(by(right), rule, WANTED, seen)
        }
        (Some(_), None) => found(Outcome::Pass, rule, WANTED, "ok, the right length"),
        (None, None) => found(
            Outcome::Unknown,
            rule,
            WANTED,
            "ok, and the client does not say with what",
        ),
    }
}

/// Every attempt carried the caller's body, whole.
pub(super) fn body_sent(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let Some(len) = view.op.body else {
        return found(Outcome::Unknown, rule, "a body", "the case has none");
    };
    let hash = hex(&Sha256::digest(pattern(len)));
    let expected = format!("{len} bytes of the caller's body on every attempt");
    for (i, a) in view.attempts.iter().enumerate() {
        if a.body_len != len || a.body_sha256.as_deref() != Some(&hash) {
            let seen = format!("attempt {}: {} bytes", i + 1, a.body_len);
            return found(Outcome::Fail, rule, &expected, seen);
        }
    }
    found(
        by(!view.attempts.is_empty()),
        rule,
        &expected,
        "whole and equal",
    )
}

/// Attempt k+1 not before the instant that reply k named.
pub(super) fn after_hint(view: &OpView<'_>, k: usize, rule: &str) -> Vec<Finding> {
    let expected = format!(
        "attempt {} not before the instant that reply {k} named",
        k + 1
    );
    let (Some(before), Some(after)) =
        (view.attempts.get(k.saturating_sub(1)), view.attempts.get(k))
    else {
        return found(
            Outcome::Fail,
            rule,
            &expected,
            format!("no attempt {}", k + 1),
        );
    };
    let Some(at) = before.retry_at else {
        return found(
            Outcome::Unknown,
            rule,
            &expected,
            "the reply named no instant",
        );
    };
    let early = since(at, after.t_first);
    let seen = match early > 0.0 {
        true => format!("{} before it", ms(early)),
        false => format!("{} after it", ms(-early)),
    };
    found(by(early <= 50.0), rule, &expected, seen)
}

/// No attempt before the instant that the reply before it named.
pub(super) fn kept_hints(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let early = view.attempts.windows(2).filter_map(|w| {
        let early = since(w[0].retry_at?, w[1].t_first);
        (early > 50.0).then_some(early)
    });
    let worst = early.fold(0.0, f64::max);
    let seen = match worst > 0.0 {
        true => format!("{} early", ms(worst)),
        false => "none early".to_owned(),
    };
    found(by(worst <= 0.0), rule, "no attempt before its hint", seen)
}

/// The caller's key, bare or quoted.
pub(super) fn key_given(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let Some(key) = &view.op.key else {
        return found(Outcome::Unknown, rule, "a key", "the case gives none");
    };
    let right = view.attempts.iter().all(|a| a.key.as_ref() == Some(key));
    let form = match view.attempts.first().map(|a| a.key_quoted) {
        Some(true) => "quoted",
        _ => "bare",
    };
    let seen = if right {
        format!("as given, {form}")
    } else {
        keys(view)
    };
    found(
        by(right && !view.attempts.is_empty()),
        rule,
        "the caller's key",
        seen,
    )
}

/// No later attempt with the credentials that were refused.
pub(super) fn other_auth(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let auth = |a: &&Arrival| a.header("authorization").map(str::to_owned);
    let first = view.attempts.first().and_then(auth);
    let again = view
        .attempts
        .iter()
        .skip(1)
        .filter(|a| auth(a) == first)
        .count();
    let seen = format!("{again} later attempts with the same Authorization");
    found(
        by(again == 0),
        rule,
        "not the refused credentials again",
        seen,
    )
}

/// The claimed attempt header rises by one.
pub(super) fn rising(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let name = &view.claims.claims.headers.attempt;
    if name.is_empty() {
        return Vec::new();
    }
    let numbers: Vec<Option<i64>> = view
        .attempts
        .iter()
        .map(|a| a.header(name)?.trim().parse().ok())
        .collect();
    let right = numbers
        .windows(2)
        .all(|w| matches!((w[0], w[1]), (Some(a), Some(b)) if b == a + 1));
    found(
        by(right),
        rule,
        &format!("{name} rises by 1"),
        format!("{numbers:?}"),
    )
}

/// The client closed the connection, or the stream, so long after the start at the latest.
pub(super) fn shut_by(view: &OpView<'_>, limit: f64, rule: &str) -> Vec<Finding> {
    let expected = format!(
        "the client closes the connection within {} of the start",
        ms(limit)
    );
    let Some(start) = view.start else {
        return found(Outcome::Unknown, rule, &expected, "not started");
    };
    let Some(last) = view.attempts.last() else {
        return found(Outcome::Unknown, rule, &expected, "no attempt");
    };
    match last.t_peer_close {
        Some(t) => {
            let at = since(t, start);
            found(
                by(at <= limit),
                rule,
                &expected,
                format!("closed after {}", ms(at)),
            )
        }
        None => {
            let watched = since(view.record.watched_until, start);
            let outcome = if watched >= limit + 2000.0 {
                Outcome::Fail
            } else {
                Outcome::Unknown
            };
            found(
                outcome,
                rule,
                &expected,
                format!("still open after {}", ms(watched)),
            )
        }
    }
}

/// No second attempt before the hint, or its claimed maximum, as far as was watched.
pub(super) fn quiet_hint(view: &OpView<'_>, rule: &str) -> Vec<Finding> {
    let Some(first) = view.attempts.first() else {
        return found(Outcome::Unknown, rule, "an attempt", "none");
    };
    let (Some(end), most) = (first.end_early(), view.pace().retry_after_max) else {
        return found(Outcome::Unknown, rule, "a reply", "none");
    };
    let hint = match first.retry_at {
        Some(at) => since(at, end).max(0.0),
        None => f64::INFINITY,
    };
    let least = hint.min(most.unwrap_or(f64::INFINITY));
    let expected = match least.is_finite() {
        true => format!("no second attempt before {}", ms(least)),
        false => "no second attempt".to_owned(),
    };
    match view.attempts.get(1) {
        None => {
            let watched = since(view.record.watched_until, end);
            found(
                Outcome::Pass,
                rule,
                &expected,
                format!("none in {}", ms(watched)),
            )
        }
        Some(second) => {
            let gap = since(second.t_first, end);
            found(
                by(gap >= least - 50.0),
                rule,
                &expected,
                format!("after {}", ms(gap)),
            )
        }
    }
}
