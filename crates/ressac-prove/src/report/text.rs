//! For a terminal.

use std::fmt::Write as _;

use super::{REMARKS, Report};
use crate::judge::{CaseVerdict, Outcome, Verdict};

impl Report {
    /// One line for a case: verdict, id, and the measurement that tells most.
    #[must_use]
    pub fn line(case: &CaseVerdict, color: bool) -> String {
        let word = format!("{:<13}", case.verdict.word());
        let word = match color {
            true => format!("{}{word}\u{1b}[0m", paint(case.verdict)),
            false => word,
        };
        let told = match case.verdict {
            Verdict::Pass => &case.measured,
            _ => &case.reason,
        };
        let short: String = told.chars().take(110).collect();
        format!("{word} {:<38} {short}", case.id)
            .trim_end()
            .to_owned()
    }

    /// What went wrong, in full; totals; the standing remarks.
    #[must_use]
    pub fn summary(&self, traces: impl Fn(&str) -> String) -> String {
        let mut out = String::new();
        let bad = |v: Verdict| matches!(v, Verdict::Fail | Verdict::Warn | Verdict::Inconclusive);
        for case in self.cases.iter().filter(|c| bad(c.verdict)) {
            let _ = writeln!(out, "\n{} {}: {}", case.verdict.word(), case.id, case.title);
            out.push_str(&findings(case));
            let _ = writeln!(out, "  source: {}", case.source);
            if case.verdict == Verdict::Fail {
                for line in traces(&case.id).lines().take(24) {
                    let _ = writeln!(out, "  | {line}");
                }
            }
        }
        let _ = writeln!(
            out,
            "\n{} {}: {} cases: {} ({:.0} s, {} claims, profile {})",
            self.client.name,
            self.client.version,
            self.cases.len(),
            self.totals,
            self.took_ms as f64 / 1000.0,
            self.claims_count,
            self.profile,
        );
        for remark in REMARKS {
            let _ = writeln!(out, "note: {remark}");
        }
        out
    }
}

fn paint(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "\u{1b}[32m",
        Verdict::Fail => "\u{1b}[1;31m",
        Verdict::Warn => "\u{1b}[33m",
        Verdict::Inconclusive => "\u{1b}[35m",
        Verdict::NotClaimed | Verdict::KnownFailing => "\u{1b}[2m",
    }
}

/// The conditions that did not hold, and the notes.
pub(crate) fn findings(case: &CaseVerdict) -> String {
    let mut out = String::new();
    if !case.reason.is_empty() {
        let _ = writeln!(out, "  {}", case.reason);
    }
    for f in &case.findings {
        if f.note {
            let _ = writeln!(out, "  noted: {} {}", f.rule, f.seen);
        } else if f.outcome != Outcome::Pass {
            let _ = writeln!(
                out,
                "  rule {}: expected {}, seen {}",
                f.rule, f.expected, f.seen
            );
        }
    }
    out
}
