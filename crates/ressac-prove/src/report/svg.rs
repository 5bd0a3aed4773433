//! The timeline of a part: one lane for each operation.

use std::fmt::Write as _;

use super::junit::escape;
use crate::plan::Pace;
use crate::record::{Arrival, PartRecord};

/// The most lanes drawn.
const MOST: usize = 16;
const LEFT: f64 = 70.0;
const WIDTH: f64 = 860.0;
const LANE: f64 = 34.0;

/// Inline SVG; empty where nothing arrived.
pub(crate) fn timeline(record: &PartRecord) -> String {
    let ops: Vec<_> = record
        .plan
        .ops
        .iter()
        .filter(|op| record.start(&op.id).is_some())
        .collect();
    let ops = &ops[..ops.len().min(MOST)];
    let Some(zero) = ops.iter().filter_map(|op| record.start(&op.id)).min() else {
        return String::new();
    };
    let of = |target: &str| -> Vec<&Arrival> {
        record
            .arrivals
            .iter()
            .filter(|a| a.is_request() && a.target == target)
            .collect()
    };
    let ends = ops.iter().flat_map(|op| {
        let result = record.result(&op.id).map(|r| r.t);
        let last = of(&op.target)
            .iter()
            .filter_map(|a| a.t_reply_after.or(Some(a.t_first)))
            .max();
        [result, last]
    });
    let span = ends
        .flatten()
        .max()
        .unwrap_or(zero)
        .saturating_sub(zero)
        .max(1_000_000) as f64;
    let scale = Scale { zero, span };
    let height = LANE * ops.len() as f64 + 30.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 960 {height}\" width=\"100%\" role=\"img\" \
         aria-label=\"timeline\">\n"
    );
    for (lane, op) in ops.iter().enumerate() {
        let y = LANE * lane as f64 + 8.0;
        let _ = writeln!(
            out,
            "<text x=\"4\" y=\"{}\" class=\"t\">op {}</text>",
            y + 13.0,
            op.id
        );
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{mid}\" y2=\"{mid}\" class=\"l\"/>",
            LEFT + WIDTH,
            mid = y + 9.0
        );
        let attempts = of(&op.target);
        for (k, pair) in attempts.windows(2).enumerate() {
            band(&mut out, &scale, &record.plan.pace, k, pair[0], y);
        }
        for a in &attempts {
            bar(&mut out, &scale, a, y);
        }
        let start = record.start(&op.id).unwrap_or(zero);
        if let Some(ms) = record.plan.pace.deadline {
            let x = scale.x(start + (ms * 1e6) as u64);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" \
                class=\"d\"><title>deadline</title></line>",
                y + 18.0
            );
        }
        if let Some(r) = record.result(&op.id) {
            let x = scale.x(r.t);
            let (mark, class) = if r.ok { ("ok", "ok") } else { ("ko", "ko") };
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" class=\"r {class}\">{mark}</text>",
                (x + 2.0).min(LEFT + WIDTH + 8.0),
                y + 25.0
            );
        }
    }
    axis(&mut out, span, height);
    out.push_str("</svg>\n");
    out
}

struct Scale {
    zero: u64,
    span: f64,
}

impl Scale {
    fn x(&self, t: u64) -> f64 {
        let share = (t as f64 - self.zero as f64) / self.span;
        LEFT + share.clamp(0.0, 1.0) * WIDTH
    }
}

/// The allowed wait, shaded; the floor of a hint as a tick.
fn band(out: &mut String, scale: &Scale, pace: &Pace, k: usize, before: &Arrival, y: f64) {
    let Some(end) = before.end_early() else {
        return;
    };
    let retry = u32::try_from(k).unwrap_or(u32::MAX);
    if let Some(hi) = pace.hi(retry) {
        let from = scale.x(end + (pace.lo(retry) * 1e6) as u64);
        let to = scale.x(end + (hi * 1e6) as u64);
        let _ = writeln!(
            out,
            "<rect x=\"{from:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"18\" \
            class=\"b\"><title>allowed wait</title></rect>",
            (to - from).max(1.0)
        );
    }
    if let Some(hint) = before.retry_at {
        let x = scale.x(hint);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\" \
            class=\"h\"><title>Retry-After</title></line>",
            y - 2.0,
            y + 20.0
        );
    }
}

fn bar(out: &mut String, scale: &Scale, a: &Arrival, y: f64) {
    let from = scale.x(a.t_first);
    let to = scale.x(a.end_late().unwrap_or(a.t_first));
    let label = match (a.status(), a.wire()) {
        (Some(status), "complete") => status.to_string(),
        (Some(status), wire) => format!("{status} {wire}"),
        (None, wire) => wire.to_owned(),
    };
    let class = match a.status() {
        _ if !matches!(a.wire(), "complete" | "") => "cut",
        Some(200..=299) => "good",
        Some(400..=499) => "caller",
        Some(_) => "bad",
        None => "cut",
    };
    let text = escape(&label);
    let _ = writeln!(
        out,
        "<rect x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"12\" \
        class=\"a {class}\"><title>{text}</title></rect><text x=\"{from:.1}\" y=\"{}\" \
        class=\"s\">{text}</text>",
        y + 3.0,
        (to - from).max(3.0),
        y + 25.0
    );
    if a.effect == "created" {
        let _ = writeln!(
            out,
            "<circle cx=\"{from:.1}\" cy=\"{}\" r=\"3\" class=\"e\">\
            <title>effect</title></circle>",
            y + 1.0
        );
    }
}

fn axis(out: &mut String, span_ns: f64, height: f64) {
    for i in 0..=4 {
        let share = f64::from(i) / 4.0;
        let x = LEFT + share * WIDTH;
        let ms = share * span_ns / 1e6;
        let text = if ms >= 1000.0 {
            format!("{:.1} s", ms / 1000.0)
        } else {
            format!("{ms:.0} ms")
        };
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" class=\"t\" \
            text-anchor=\"middle\">{text}</text>",
            height - 6.0
        );
    }
}
