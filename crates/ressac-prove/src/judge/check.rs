//! Conditions on one operation.

use super::content::{
    after_hint, body_sent, kept_hints, key_given, keys, other_auth, quiet_hint, rising, same,
    shut_by, whole,
};
use super::downstream;
use super::finding::{Answer, Finding, Outcome, ms, plain};
use super::late;
use super::op::OpView;
use super::sign;
use super::value::{Sense, Value, value};
use crate::rule::{Expr, Op, Rule};

/// A lag above this makes close calls doubtful, ms.
pub(crate) const LAG: f64 = 25.0;

/// Evaluates a rule on one operation.
pub(crate) fn check(view: &OpView<'_>, rule: &Rule) -> Answer {
    match rule {
        Rule::All(rules) => Answer::all(rules.iter().map(|r| check(view, r))),
        Rule::Any(rules) => Answer::any(rules.iter().map(|r| check(view, r)).collect()),
        Rule::If(needs, then, otherwise) => {
            let met = needs.iter().all(|need| view.claims.has(need));
            check(view, if met { then } else { otherwise })
        }
        Rule::Warn(inner) => softened(check(view, inner)),
        Rule::Note(expr) => Answer::one(note(view, expr)),
        Rule::Compare(a, op, b, hard) => Answer::one(compare(view, a, *op, b, *hard)),
        Rule::Holds(name, args) => {
            Answer::all(holds(view, name, args).into_iter().map(Answer::one))
        }
    }
}

/// A failure becomes a warning; what cannot be told is no warning.
pub(crate) fn softened(answer: Answer) -> Answer {
    let soft = |o: Outcome| if o == Outcome::Fail { Outcome::Warn } else { o };
    Answer {
        outcome: answer.outcome.map(soft),
        findings: answer
            .findings
            .into_iter()
            .map(|f| Finding {
                outcome: soft(f.outcome),
                ..f
            })
            .collect(),
    }
}

fn note(view: &OpView<'_>, expr: &Expr) -> Finding {
    let seen = value(view, expr, Sense::Floor).map_or("not seen".to_owned(), shown);
    Finding {
        outcome: Outcome::Pass,
        rule: expr.to_string(),
        expected: String::new(),
        seen,
        note: true,
    }
}

fn shown(v: Value) -> String {
    if v.time { ms(v.n) } else { plain(v.n) }
}

fn compare(view: &OpView<'_>, a: &Expr, op: Op, b: &Expr, hard: bool) -> Finding {
    let sense = match op {
        Op::Ge | Op::Gt => Sense::Floor,
        _ => Sense::Ceiling,
    };
    let (left, right) = (value(view, a, sense), value(view, b, sense));
    let rule = format!("{a}{op}{b}");
    let expected = right.map_or_else(|| b.to_string(), shown);
    let finding = |outcome, seen: String| Finding {
        outcome,
        rule: rule.clone(),
        expected: format!("{a} {op} {expected}"),
        seen,
        note: false,
    };
    if right.is_none() && sense == Sense::Ceiling && needs_backoff(b) && view.pace().base.is_none()
    {
        let seen = left.map_or("not seen".to_owned(), shown);
        return finding(Outcome::Pass, format!("{seen}; no backoff is claimed"));
    }
    let (Some(x), Some(y)) = (left, right) else {
        let which = if left.is_none() { a } else { b };
        return finding(unseen(view, which), format!("{which} was not seen"));
    };
    let outcome = decide(view, x, op, y, hard);
    // Fewer attempts than promised, where a budget or breaker that cannot be off explains it.
    let stuck = &view.pace().stuck;
    let fewer = matches!(a, Expr::Name(n) if n == "n") && op == Op::Eq && x.n < y.n;
    if outcome == Outcome::Fail && fewer && !stuck.is_empty() && view.attempts.len() > 1 {
        let why = format!(
            "{}; its {} cannot be switched off",
            shown(x),
            stuck.join(" and ")
        );
        return finding(Outcome::Unknown, why);
    }
    let seen = match outcome {
        Outcome::Unknown => format!("{} (with {} of lag)", shown(x), ms(view.lag_ms())),
        _ => shown(x),
    };
    finding(outcome, seen)
}

/// Does the bound come from the client's own backoff? Who promises none is held to none.
fn needs_backoff(expr: &Expr) -> bool {
    match expr {
        Expr::Call(name, args) => {
            matches!(name.as_str(), "hi" | "c") || args.iter().any(needs_backoff)
        }
        Expr::Calc(a, _, b) => needs_backoff(a) || needs_backoff(b),
        Expr::Name(name) => name == "base",
        Expr::Number(_) | Expr::Millis(_) => false,
    }
}

/// What was not measured: a gap that is missing because there was no further attempt is a failure
/// told elsewhere by `n=`; a field that the client does not give is unproven.
fn unseen(view: &OpView<'_>, expr: &Expr) -> Outcome {
    let text = expr.to_string();
    let is_gap = text
        .strip_prefix('g')
        .is_some_and(|k| k.parse::<usize>().is_ok());
    match is_gap && (view.result.is_some() || view.spec.watch_ms > 0) {
        true => Outcome::Fail,
        false => Outcome::Unknown,
    }
}

fn decide(view: &OpView<'_>, x: Value, op: Op, y: Value, hard: bool) -> Outcome {
    let by = |holds: bool| if holds { Outcome::Pass } else { Outcome::Fail };
    if !(x.time || y.time) {
        return by(match op {
            Op::Eq => x.n == y.n,
            Op::Ne => x.n != y.n,
            Op::Lt => x.n < y.n,
            Op::Le => x.n <= y.n,
            Op::Gt => x.n > y.n,
            Op::Ge => x.n >= y.n,
        });
    }
    match op {
        Op::Ge | Op::Gt => floor(view, x.n, y.n),
        Op::Le | Op::Lt => ceiling(view, x.n, y.n, hard),
        Op::Eq => by((x.n - y.n).abs() < 1.0),
        Op::Ne => by((x.n - y.n).abs() >= 1.0),
    }
}

/// Hard: 2 % of the floor, at least 5 ms, at most 50 ms. One that is passed by less than the lag
/// could have been missed.
pub(crate) fn floor(view: &OpView<'_>, x: f64, y: f64) -> Outcome {
    let tolerance = if y > 0.0 {
        (0.02 * y).clamp(5.0, 50.0)
    } else {
        0.0
    };
    if x < y - tolerance {
        return Outcome::Fail;
    }
    let lag = view.lag_ms();
    match lag > LAG && y > 0.0 && x < y && x > y - tolerance {
        true => Outcome::Unknown,
        false => Outcome::Pass,
    }
}

/// A miss by more than so many times the lag was not made by the lag.
const EXCUSED: f64 = 10.0;

/// Soft, unless a deadline was declared; a miss that lag may have made proves nothing.
pub(crate) fn ceiling(view: &OpView<'_>, x: f64, y: f64, hard: bool) -> Outcome {
    let lag = view.lag_ms();
    match (x <= y, lag > LAG && x - y <= EXCUSED * lag, hard) {
        (true, _, _) => Outcome::Pass,
        (false, true, _) => Outcome::Unknown,
        (false, false, true) => Outcome::Fail,
        (false, false, false) => Outcome::Warn,
    }
}

fn holds(view: &OpView<'_>, name: &str, args: &[Expr]) -> Vec<Finding> {
    let rule = Rule::Holds(name.to_owned(), args.to_vec()).to_string();
    let one = |outcome, expected: &str, seen: String| {
        let (rule, expected) = (rule.clone(), expected.to_owned());
        vec![Finding {
            outcome,
            rule,
            expected,
            seen,
            note: false,
        }]
    };
    let by = |holds: bool| if holds { Outcome::Pass } else { Outcome::Fail };
    let number = |i: usize| {
        args.get(i)
            .and_then(|e| value(view, e, Sense::Floor))
            .map(|v| v.n)
    };
    let word = |i: usize| args.get(i).map(ToString::to_string).unwrap_or_default();
    match name {
        "ok" | "ko" => {
            let Some(result) = view.result else {
                return one(Outcome::Unknown, name, "no result".into());
            };
            let seen = describe(result);
            let wanted = if name == "ok" {
                "the client says ok"
            } else {
                "the client says not ok"
            };
            one(by(result.ok == (name == "ok")), wanted, seen)
        }
        "own" => args
            .iter()
            .filter_map(gap_number)
            .flat_map(|k| own(view, k))
            .collect(),
        "new" => {
            let k = number(0).unwrap_or(2.0) as usize;
            let pair = (
                view.attempts.get(k.saturating_sub(2)),
                view.attempts.get(k - 1),
            );
            match pair {
                (Some(a), Some(b)) => {
                    let seen = format!("connections {} and {}", a.conn, b.conn);
                    one(by(a.conn != b.conn), "a new connection", seen)
                }
                _ => one(Outcome::Fail, "a new connection", format!("no attempt {k}")),
            }
        }
        "same" => same(view, &word(0), &rule),
        "whole" => whole(view, &rule),
        "body_sent" => body_sent(view, &rule),
        "as_sent" => {
            let sent = view.attempts.last().and_then(|a| a.status());
            let said = view.result.and_then(|r| r.status);
            let Some(said) = said else {
                return one(Outcome::Unknown, "the status as sent", "not told".into());
            };
            one(
                by(Some(said) == sent),
                "the status as sent",
                said.to_string(),
            )
        }
        "kept_hints" => kept_hints(view, &rule),
        "after_hint" => after_hint(view, number(0).unwrap_or(1.0) as usize, &rule),
        "replayed" => {
            let k = number(0).unwrap_or(2.0) as usize;
            let effect = view.attempts.get(k - 1).map(|a| a.effect.clone());
            let seen = effect.clone().unwrap_or_else(|| "nothing".into());
            one(
                by(effect.as_deref() == Some("replayed")),
                "the stored reply",
                seen,
            )
        }
        "key_given" => key_given(view, &rule),
        "key_known" => {
            let all = view.attempts.iter().all(|a| a.key.is_some());
            one(
                by(all && !view.attempts.is_empty()),
                "a key on every attempt",
                keys(view),
            )
        }
        "no_expect" => {
            let k = number(0).unwrap_or(2.0) as usize;
            let expect = view.attempts.get(k - 1).and_then(|a| a.header("expect"));
            one(
                by(expect.is_none()),
                "no Expect",
                expect.unwrap_or("none").to_owned(),
            )
        }
        "other_auth" => other_auth(view, &rule),
        "rising" => rising(view, &rule),
        "signed" => vec![sign::signed(view, &rule)],
        "reason" => reason(view, &word(0), &rule),
        "shut_by" => shut_by(view, number(0).unwrap_or(0.0), &rule),
        "quiet_hint" => quiet_hint(view, &rule),
        "no_replay" => downstream::no_replay(view, &rule),
        "began_late" => vec![late::began_late(view, &rule)],
        "winner_only" => downstream::winner_only(view, &rule),
        "paced" | "law" => Vec::new(),
        _ => one(
            Outcome::Unknown,
            "a condition this version knows",
            name.to_owned(),
        ),
    }
}

fn describe(result: &crate::record::OpResult) -> String {
    let mut text = if result.ok {
        "ok".to_owned()
    } else {
        "not ok".to_owned()
    };
    if let Some(status) = result.status {
        text.push_str(&format!(", status {status}"));
    }
    if let Some(reason) = &result.reason {
        text.push_str(&format!(", {reason}"));
    }
    if let Some(error) = &result.error {
        let short: String = error.chars().take(120).collect();
        text.push_str(&format!(", \"{short}\""));
    }
    text
}

/// The word of the reason, where the client says that it gives reasons.
fn reason(view: &OpView<'_>, word: &str, rule: &str) -> Vec<Finding> {
    if !view.claims.has("reasons") {
        return Vec::new();
    }
    let said = view.result.and_then(|r| r.reason.clone());
    let outcome = match &said {
        Some(said) if said == word => Outcome::Pass,
        Some(_) => Outcome::Fail,
        None => Outcome::Unknown,
    };
    vec![Finding {
        outcome,
        rule: rule.to_owned(),
        expected: format!("reason {word}"),
        seen: said.unwrap_or_else(|| "no reason".into()),
        note: false,
    }]
}

fn gap_number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Name(name) => name.strip_prefix('g')?.parse().ok(),
        _ => None,
    }
}

/// Inside the client's own band: floor hard, ceiling soft.
fn own(view: &OpView<'_>, k: usize) -> Vec<Finding> {
    let retry = u32::try_from(k).unwrap_or(1) - 1;
    let (lo, hi) = (view.pace().lo(retry), view.pace().hi(retry));
    let finding = |outcome, rule: String, expected: String, seen: String| Finding {
        outcome,
        rule,
        expected,
        seen,
        note: false,
    };
    let (Some(long), Some(short)) = (view.gap_floor(k), view.gap_ceiling(k)) else {
        let rule = format!("own(g{k})");
        return vec![finding(
            Outcome::Fail,
            rule,
            "a gap".into(),
            format!("no attempt {}", k + 1),
        )];
    };
    let mut out = vec![finding(
        floor(view, long, lo),
        format!("g{k}>=lo({retry})"),
        format!("g{k} at least {}", ms(lo)),
        ms(long),
    )];
    if let Some(hi) = hi {
        let most = hi + 100.0 + 2.0 * view.setup.lambda_ms;
        let outcome = ceiling(view, short, most, false);
        let lag = match outcome {
            Outcome::Unknown => format!(" (with {} of lag)", ms(view.lag_ms())),
            _ => String::new(),
        };
        out.push(finding(
            outcome,
            format!("g{k}<=hi({retry})"),
            format!("g{k} at most {} (ceiling {})", ms(most), ms(hi)),
            ms(short) + &lag,
        ));
    }
    out
}
