//! Conditions on several operations together.

use std::collections::BTreeSet;

use super::check::{check, floor, softened};
use super::finding::{Answer, Finding, Outcome, ms, plain};
use super::op::{OpView, connections, most_within};
use super::value::{Sense, value};
use super::{load, spread};
use crate::claims::Mode;
use crate::rule::{Expr, Op, Rule};

/// Evaluates a rule on operations that belong together.
pub(super) fn group(views: &[OpView<'_>], rule: &Rule) -> Answer {
    match rule {
        Rule::All(rules) => Answer::all(rules.iter().map(|r| group(views, r))),
        Rule::Any(rules) => Answer::any(rules.iter().map(|r| group(views, r)).collect()),
        Rule::Warn(inner) => softened(group(views, inner)),
        Rule::If(needs, then, otherwise) => {
            let met = needs
                .iter()
                .all(|need| views.iter().all(|v| v.claims.has(need)));
            group(views, if met { then } else { otherwise })
        }
        Rule::Compare(a, op, b, _) => Answer::one(compare(views, a, *op, b)),
        Rule::Note(expr) => {
            let seen = total(views, expr).map_or("not seen".to_owned(), plain);
            let note = Finding {
                note: true,
                ..finding(rule, Outcome::Pass, "", seen)
            };
            Answer::one(note)
        }
        Rule::Holds(name, args) => {
            let number = |i: usize| args.get(i).and_then(|e| total(views, e));
            Answer::all(
                holds(views, rule, name, &number)
                    .into_iter()
                    .map(Answer::one),
            )
        }
    }
}

pub(super) fn finding(rule: &Rule, outcome: Outcome, expected: &str, seen: String) -> Finding {
    Finding {
        outcome,
        rule: rule.to_string(),
        expected: expected.to_owned(),
        seen,
        note: false,
    }
}

pub(super) fn by(holds: bool) -> Outcome {
    if holds { Outcome::Pass } else { Outcome::Fail }
}

fn holds(
    views: &[OpView<'_>],
    rule: &Rule,
    name: &str,
    number: &dyn Fn(usize) -> Option<f64>,
) -> Vec<Finding> {
    let exec = views
        .first()
        .is_some_and(|v| v.claims.client.mode == Mode::Exec);
    // The second number is that of exec mode, which has fewer clients.
    let by_mode = |of_lines: f64| match (exec, number(1)) {
        (true, Some(n)) => n,
        _ => number(0).unwrap_or(of_lines),
    };
    match name {
        "paced" => vec![paced(views, rule)],
        "law" => vec![spread::law(views, rule)],
        "law_at_cap" => vec![spread::law_at_cap(views, rule)],
        "growth" => vec![spread::growth(views, rule)],
        "herd" => spread::herd(views, rule, by_mode(0.30)),
        "herd_hint" => vec![spread::herd_hint(views, rule, by_mode(0.30))],
        "amplification" => load::amplification(views, rule),
        "breaker_opens" => load::breaker_opens(views, rule),
        "breaker_probes" => load::breaker_probes(views, rule),
        "recovers" => vec![load::recovers(
            views,
            rule,
            number(0).unwrap_or(0.0),
            number(1).unwrap_or(10_000.0),
        )],
        "filled" => vec![filled(views, rule)],
        // On each of them.
        _ => {
            let each = views.iter().map(|v| check(v, rule));
            Answer::all(each).findings
        }
    }
}

fn compare(views: &[OpView<'_>], a: &Expr, op: Op, b: &Expr) -> Finding {
    let rule = format!("{a}{op}{b}");
    let (left, right) = (total(views, a), total(views, b));
    let (outcome, seen) = match (left, right) {
        (Some(x), Some(y)) => {
            let holds = match op {
                Op::Eq => x == y,
                Op::Ne => x != y,
                Op::Lt => x < y,
                Op::Le => x <= y,
                Op::Gt => x > y,
                Op::Ge => x >= y,
            };
            (by(holds), plain(x))
        }
        _ => (Outcome::Unknown, "not seen".to_owned()),
    };
    let expected = right.map_or_else(|| b.to_string(), plain);
    Finding {
        outcome,
        rule,
        expected: format!("{a} {op} {expected}"),
        seen,
        note: false,
    }
}

/// What an expression is over all of them.
fn total(views: &[OpView<'_>], expr: &Expr) -> Option<f64> {
    let record = views.first()?.record;
    let sum = |of: &dyn Fn(&OpView<'_>) -> usize| views.iter().map(of).sum::<usize>() as f64;
    match expr {
        Expr::Number(n) | Expr::Millis(n) => Some(*n),
        Expr::Calc(a, sign, b) => {
            let (a, b) = (total(views, a)?, total(views, b)?);
            Some(match sign {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ => a / b,
            })
        }
        Expr::Call(name, args) if name == "mean" => {
            let values: Vec<f64> = views
                .iter()
                .filter_map(|v| value(v, args.first()?, Sense::Floor))
                .map(|v| v.n)
                .collect();
            (!values.is_empty()).then(|| mean(&values))
        }
        Expr::Name(name) => match name.as_str() {
            "ops" => Some(views.len() as f64),
            "oks" => Some(sum(&|v| usize::from(v.result.is_some_and(|r| r.ok)))),
            "kos" => Some(sum(&|v| usize::from(v.result.is_some_and(|r| !r.ok)))),
            "attempts" => Some(sum(&|v| v.attempts.len())),
            "firsts" => Some(sum(&|v| usize::from(!v.attempts.is_empty()))),
            "retried" => Some(sum(&|v| usize::from(v.attempts.len() > 1))),
            "short" => Some(sum(&|v| {
                usize::from(v.attempts.len() < v.pace().attempts as usize)
            })),
            "retried_ok" => Some(sum(&|v| {
                usize::from(v.attempts.len() > 1 && v.result.is_some_and(|r| r.ok))
            })),
            "effects" => Some(sum(&|v| v.effects() as usize)),
            "raced" => Some(sum(&|v| v.attempts.iter().filter(|a| a.raced()).count())),
            "hints" => Some(sum(&|v| {
                v.attempts.iter().filter(|a| a.retry_at.is_some()).count()
            })),
            "keys" => {
                let all = views
                    .iter()
                    .flat_map(|v| &v.attempts)
                    .filter_map(|a| a.key.clone());
                Some(all.collect::<BTreeSet<_>>().len() as f64)
            }
            "own_tokens" => Some(sum(&|v| usize::from(own_reply(v)))),
            "conns" => Some(connections(&record.arrivals).len() as f64),
            "conns_burst" => {
                Some(most_within(&connections(&record.arrivals), 1_000_000_000) as f64)
            }
            "requests" => Some(record.arrivals.iter().filter(|a| a.is_request()).count() as f64),
            _ => value(views.first()?, expr, Sense::Floor).map(|v| v.n),
        },
        Expr::Call(..) => value(views.first()?, expr, Sense::Floor).map(|v| v.n),
    }
}

/// The result carries the body that this operation's own reply had.
fn own_reply(view: &OpView<'_>) -> bool {
    let sent = view
        .attempts
        .last()
        .and_then(|a| a.sent.as_ref())
        .map(|s| s.body_bytes);
    match (view.result.and_then(|r| r.body_len), sent) {
        (Some(len), Some(bytes)) => len == bytes,
        // A client that does not say what it got can only be taken at its ok.
        _ => view.result.is_some_and(|r| r.ok),
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// k clients whose first wait is drawn: their mean is no accident.
fn paced(views: &[OpView<'_>], rule: &Rule) -> Finding {
    let gaps: Vec<f64> = views.iter().filter_map(|v| v.gap_floor(1)).collect();
    let Some(first) = views.first() else {
        return finding(rule, Outcome::Unknown, "operations", "none".into());
    };
    let pace = first.pace();
    let Some(c) = pace.ceiling(0) else {
        let seen = "no backoff is claimed".to_owned();
        return finding(rule, Outcome::Pass, "the client's own backoff", seen);
    };
    if gaps.len() < views.len() {
        let seen = format!("{} of {} had a second attempt", gaps.len(), views.len());
        let outcome = if gaps.is_empty() {
            Outcome::Unknown
        } else {
            Outcome::Pass
        };
        if gaps.is_empty() {
            return finding(rule, outcome, "waits", seen);
        }
    }
    let lo = pace.lo(0);
    if lo > 0.0 {
        let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let expected = format!("every wait at least {}", ms(lo));
        return finding(
            rule,
            floor(first, least, lo),
            &expected,
            format!("least {}", ms(least)),
        );
    }
    let share = match views.len() {
        12.. => 0.2,
        8..=11 => 0.12,
        _ => 0.05,
    };
    let seen = mean(&gaps);
    let expected = format!("mean wait of {} at least {}", gaps.len(), ms(share * c));
    let outcome = by(seen >= share * c);
    finding(rule, outcome, &expected, format!("mean {}", ms(seen)))
}

/// The barrier was filled by number, not by time.
fn filled(views: &[OpView<'_>], rule: &Rule) -> Finding {
    let late = |v: &&OpView<'_>| v.attempts.iter().any(|a| a.has("barrier-timeout"));
    let late = views.iter().filter(late).count();
    let seen = format!("{late} of {} were released by time", views.len());
    finding(rule, by(late == 0), "the barrier is filled", seen)
}
