//! The wire trace: per attempt its time, connection, line, key, body and what came back.

use std::fmt::Write as _;

use crate::plan::Pace;
use crate::record::{Arrival, PartRecord};

/// The most attempts told.
const MOST: usize = 400;

/// All operations of a part, one attempt a line.
pub(crate) fn trace(record: &PartRecord) -> String {
    let mut out = String::new();
    if let Some(trouble) = &record.trouble {
        let _ = writeln!(out, "trouble: {trouble}");
    }
    let zero = record.starts.iter().map(|s| s.t).min().unwrap_or(0);
    let mut told = 0;
    for op in &record.plan.ops {
        let Some(start) = record.start(&op.id) else {
            let _ = writeln!(out, "operation {}: not started", op.id);
            continue;
        };
        let _ = writeln!(
            out,
            "operation {} {} started at {}",
            op.id,
            op.method,
            at(start, zero)
        );
        let mut last: Option<&Arrival> = None;
        let mut retry = 0;
        for a in record
            .arrivals
            .iter()
            .filter(|a| a.is_request() && a.target == op.target)
        {
            told += 1;
            if told > MOST {
                let _ = writeln!(out, "(more in journal.ndjson)");
                return out;
            }
            if let Some(before) = last {
                gap(&mut out, before, a, &record.plan.pace, retry);
                retry += 1;
            }
            attempt(&mut out, a, zero);
            last = Some(a);
        }
        match record.result(&op.id) {
            Some(r) => {
                let word = if r.ok { "ok" } else { "not ok" };
                let _ = write!(out, "  {:>9}  result: {word}", at(r.t, zero));
                if let Some(status) = r.status {
                    let _ = write!(out, ", status {status}");
                }
                if let Some(error) = &r.error {
                    let short: String = error.chars().take(120).collect();
                    let _ = write!(out, ", {short}");
                }
                out.push('\n');
            }
            None => {
                let _ = writeln!(out, "  {:>9}  no result", at(record.watched_until, zero));
            }
        }
    }
    let foreign = record
        .arrivals
        .iter()
        .filter(|a| a.is_request() && record.plan.ops.iter().all(|op| op.target != a.target));
    for a in foreign.take(20) {
        let _ = writeln!(
            out,
            "foreign: {} {} at {}",
            a.method,
            a.target,
            at(a.t_first, zero)
        );
    }
    raw(&mut out, record);
    out
}

/// What was on the wire, the beginning of each connection; a line of it on a line of its own.
fn raw(out: &mut String, record: &PartRecord) {
    for c in &record.arrivals {
        let Some(raw) = &c.raw else { continue };
        let _ = writeln!(out, "connection {}, its first bytes:", c.conn);
        for (mark, text) in [('>', &raw.received), ('<', &raw.sent)] {
            for line in text.split_inclusive("\\n").filter(|l| !l.is_empty()) {
                let _ = writeln!(out, "  {mark} {line}");
            }
        }
    }
}

fn at(t: u64, zero: u64) -> String {
    format!("{:.1} ms", (t as f64 - zero as f64) / 1e6)
}

/// The gap before an attempt, and what was allowed: the hint's floor, or the client's own band.
fn gap(out: &mut String, before: &Arrival, a: &Arrival, pace: &Pace, retry: u32) {
    let Some(end) = before.end_early() else {
        return;
    };
    let _ = write!(out, "             gap {}", at(a.t_first, end));
    match (before.retry_at, pace.hi(retry)) {
        (Some(named), _) => {
            let _ = write!(out, " (the hint: not before {})", at(named, end));
        }
        (None, Some(hi)) => {
            let _ = write!(out, " (allowed: {:.0} to {hi:.0} ms)", pace.lo(retry));
        }
        (None, None) => {}
    }
    out.push('\n');
}

fn attempt(out: &mut String, a: &Arrival, zero: u64) {
    let _ = write!(
        out,
        "  {:>9}  conn {} {}",
        at(a.t_first, zero),
        a.conn,
        a.method
    );
    if let Some(key) = &a.key {
        let short: String = key.chars().take(36).collect();
        let _ = write!(out, " key={short}");
    }
    if a.body_len > 0 {
        let hash: String = a
            .body_sha256
            .as_deref()
            .unwrap_or("cut")
            .chars()
            .take(8)
            .collect();
        let _ = write!(out, " body={} {hash}", a.body_len);
    }
    let _ = write!(out, " \u{2190} ");
    match a.status() {
        Some(status) => {
            let _ = write!(out, "{status}");
        }
        None => out.push_str("no reply"),
    }
    let sent = a.sent.as_ref();
    let hint = sent.and_then(|s| {
        s.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case("retry-after"))
            .map(|(_, v)| v)
    });
    if let Some(hint) = hint {
        let _ = write!(out, " Retry-After: {hint}");
    }
    if !matches!(a.wire(), "complete" | "") {
        let _ = write!(out, " ({})", a.wire());
    }
    if a.effect != "none" && !a.effect.is_empty() {
        let _ = write!(out, " [{}]", a.effect);
    }
    for flag in &a.flags {
        let _ = write!(out, " {flag}");
    }
    out.push('\n');
}
