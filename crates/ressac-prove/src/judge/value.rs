//! Values of expressions.

use super::op::{OpView, connections, since};
use crate::rule::Expr;

/// How a measurement is read: so that a floor, or a ceiling, never fails wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    Floor,
    Ceiling,
}

/// A number, and whether it is a time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) n: f64,
    pub(crate) time: bool,
}

pub(crate) fn count(n: f64) -> Option<Value> {
    Some(Value { n, time: false })
}

pub(crate) fn time(n: f64) -> Option<Value> {
    Some(Value { n, time: true })
}

/// What an expression is, or `None` where something it needs was not seen or not claimed.
pub(crate) fn value(view: &OpView<'_>, expr: &Expr, sense: Sense) -> Option<Value> {
    match expr {
        Expr::Number(n) => count(*n),
        Expr::Millis(n) => time(*n),
        Expr::Name(name) => named(view, name, sense),
        Expr::Call(name, args) => call(view, name, args, sense),
        Expr::Calc(a, sign, b) => {
            let (a, b) = (value(view, a, sense)?, value(view, b, sense)?);
            let n = match sign {
                '+' => a.n + b.n,
                '-' => a.n - b.n,
                '*' => a.n * b.n,
                _ => a.n / b.n,
            };
            Some(Value {
                n,
                time: a.time || b.time,
            })
        }
    }
}

fn named(view: &OpView<'_>, name: &str, sense: Sense) -> Option<Value> {
    if let Some(k) = name.strip_prefix('g').and_then(|k| k.parse().ok()) {
        return time(gap(view, k, sense)?);
    }
    setting(view, name).or_else(|| measured(view, name, sense))
}

fn gap(view: &OpView<'_>, k: usize, sense: Sense) -> Option<f64> {
    match sense {
        Sense::Floor => view.gap_floor(k),
        Sense::Ceiling => view.gap_ceiling(k),
    }
}

fn setting(view: &OpView<'_>, name: &str) -> Option<Value> {
    let pace = view.pace();
    match name {
        "A" => count(f64::from(pace.attempts)),
        "base" => time(pace.base?),
        "cap" => time(pace.cap),
        "deadline" => time(pace.deadline?),
        "timeout" => time(pace.attempt_timeout?),
        "ramax" => time(pace.retry_after_max.unwrap_or(f64::INFINITY)),
        "sumhi" => time(pace.sum_hi().unwrap_or(60_000.0)),
        "lambda" => time(view.setup.lambda_ms),
        "slack" => time(100.0 + 2.0 * view.setup.lambda_ms),
        "T" => time(view.record.plan.down_ms?),
        _ => None,
    }
}

fn measured(view: &OpView<'_>, name: &str, sense: Sense) -> Option<Value> {
    let gaps = || (1..view.attempts.len()).filter_map(|k| gap(view, k, sense));
    let start = view.start?;
    match name {
        "n" => count(view.attempts.len() as f64),
        "conns" => count(connections(&view.record.arrivals).len() as f64),
        "raced" => count(view.attempts.iter().filter(|a| a.raced()).count() as f64),
        "eff" => count(view.effects() as f64),
        "st" => count(f64::from(view.result?.status?)),
        "sent" => count(f64::from(view.attempts.last()?.status()?)),
        "burst" => count(view.most_per_second(0) as f64),
        "burst_late" => count(view.most_per_second(5) as f64),
        "gmax" => time(gaps().fold(0.0, f64::max)),
        "gmin" => time(gaps().fold(f64::INFINITY, f64::min)),
        "sent1" => count(f64::from(view.attempts.first()?.status()?)),
        // Where the listener refuses at first, its time counts from then.
        "first" => {
            let from = view.record.armed.unwrap_or(start);
            time(since(view.attempts.first()?.t_first, from))
        }
        "last" => time(since(view.attempts.last()?.t_first, start)),
        "end" => time(view.end()?),
        "tail" => time(view.tail()?),
        "shut" => time(since(view.attempts.last()?.t_peer_close?, start)),
        "body1" => count(view.attempts.first()?.body_len as f64),
        "body2" => count(view.attempts.get(1)?.body_len as f64),
        "reply_body" => count(view.result?.body_len? as f64),
        "hint_told" => time(view.result?.hint_ms?),
        "after_signal" => {
            let at = view.record.interrupted?;
            let late = |a: &&&crate::record::Arrival| a.t_first > at + 50_000_000;
            count(view.attempts.iter().filter(late).count() as f64)
        }
        "exit" => {
            let end = view
                .record
                .ends
                .iter()
                .find(|e| e.op.as_ref().is_none_or(|op| *op == view.op.id))?;
            time(since(end.t, view.record.interrupted?))
        }
        "answer" => time(since(view.result?.t, view.record.interrupted?)),
        // The client's clock runs from before its first byte: from the start at the earliest.
        "second" => {
            let began = match sense {
                Sense::Floor => start,
                Sense::Ceiling => view.attempts.first()?.t_first,
            };
            time(since(view.attempts.get(1)?.t_first, began))
        }
        "body_in" => {
            let first = view.attempts.first()?;
            time(since(first.t_req_end?, first.t_head))
        }
        _ => None,
    }
}

fn call(view: &OpView<'_>, name: &str, args: &[Expr], sense: Sense) -> Option<Value> {
    let arg = |i: usize| value(view, args.get(i)?, sense);
    let retry = || Some(arg(0)?.n as u32);
    match name {
        "hi" => time(view.pace().hi(retry()?)?),
        "lo" => time(view.pace().lo(retry()?)),
        "c" => time(view.pace().ceiling(retry()?)?),
        "max" | "min" => {
            let (a, b) = (arg(0)?, arg(1)?);
            let n = if name == "max" {
                a.n.max(b.n)
            } else {
                a.n.min(b.n)
            };
            Some(Value {
                n,
                time: a.time || b.time,
            })
        }
        // The time at which that retry's arrival came, from the start.
        "arrival" => {
            let a = view.attempts.get((arg(0)?.n as usize).checked_sub(1)?)?;
            time(since(a.t_first, view.start?))
        }
        // The moment a hint named, from the start.
        "hint" => {
            let a = view.attempts.get((arg(0)?.n as usize).checked_sub(1)?)?;
            time(since(a.retry_at?, view.start?))
        }
        _ => None,
    }
}
