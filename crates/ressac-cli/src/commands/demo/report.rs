//! The report: what the partner saw, and what became of every document.

use std::fmt::Write;

use serde::{Serialize, Serializer};

use super::Args;
use super::live::sparkline;
use super::partner::{Arrivals, FaultyPartner};

/// The sender's own account.
pub(super) struct Tally {
    pub(super) accepted: u64,
    pub(super) dead: Vec<(String, u64)>,
    pub(super) seconds: f64,
}

/// One run in figures. As JSON it has exactly these fields.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    accepted: u64,
    /// Documents that took effect at the partner.
    delivered: u64,
    /// Documents given up.
    dead: u64,
    /// Effects beyond one for each document.
    duplicates: u64,
    attempts: u64,
    /// Attempts for each document accepted.
    #[serde(serialize_with = "thousandths")]
    amplification: f64,
    /// Arrivals before a time that the partner had named to anybody.
    early: u64,
    /// The most arrivals in any one second.
    peak_per_second: Peak,
    /// From the partner's recovery to its last document.
    #[serde(serialize_with = "thousandths")]
    drain_seconds: f64,
    #[serde(skip)]
    dead_by_reason: Vec<(String, u64)>,
    #[serde(skip)]
    per_second: Vec<u64>,
    #[serde(skip)]
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Peak {
    before: u64,
    after: u64,
}

fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1_000.0).round() / 1_000.0)
}

impl Report {
    pub(super) fn of(partner: &FaultyPartner, tally: Tally) -> Report {
        let Arrivals {
            attempts,
            early,
            peak_before,
            peak_after,
            drain_seconds,
            per_second,
        } = partner.figures();
        let (delivered, duplicates) = partner.effects();
        Report {
            accepted: tally.accepted,
            delivered,
            dead: tally.dead.iter().map(|(_, count)| count).sum(),
            duplicates,
            attempts,
            amplification: attempts as f64 / tally.accepted.max(1) as f64,
            early,
            peak_per_second: Peak {
                before: peak_before,
                after: peak_after,
            },
            drain_seconds,
            dead_by_reason: tally.dead,
            per_second,
            seconds: tally.seconds,
        }
    }

    /// Is what became of every document known?
    pub(super) fn is_complete(&self) -> bool {
        self.delivered + self.dead >= self.accepted && self.accepted > 0
    }

    pub(super) fn text(&self, args: &Args) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String, remark: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:<26} {value:>8}  {remark}");
        };
        line("accepted", self.accepted.to_string(), "");
        line("delivered", self.delivered.to_string(), "");
        let reasons: Vec<_> = self
            .dead_by_reason
            .iter()
            .map(|(reason, n)| format!("{n} {reason}"))
            .collect();
        line("dead", self.dead.to_string(), &reasons.join(", "));
        line(
            "duplicates",
            self.duplicates.to_string(),
            "effects beyond one per document",
        );
        line("attempts", self.attempts.to_string(), "");
        line(
            "amplification",
            format!("{:.2}", self.amplification),
            "attempts per document",
        );
        line(
            "early",
            self.early.to_string(),
            "arrivals before a time the partner had named",
        );
        let Peak { before, after } = &self.peak_per_second;
        line("peak before recovery", format!("{before}/s"), "");
        line("peak after recovery", format!("{after}/s"), "");
        line(
            "drained",
            format!("{:.1} s", self.drain_seconds),
            "after the recovery",
        );
        let name = if args.naive {
            "plain exponential backoff, no jitter".to_owned()
        } else if args.without.is_empty() {
            "the gateway".to_owned()
        } else {
            let off: Vec<_> = args
                .without
                .iter()
                .map(|p| format!("{p:?}").to_lowercase())
                .collect();
            format!("the gateway without {}", off.join(" and "))
        };
        let more = match args.naive || !args.without.is_empty() {
            true => "",
            false => "\ncompare with: ressac demo --naive\n",
        };
        format!(
            "{name}, {:.1} s in all\n\n{text}\n  arrivals per second, the outage first:\n  \
             {}\n{more}",
            self.seconds,
            sparkline(&self.per_second),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn text(words: &[&str]) -> String {
        let words = [&["demo"], words].concat();
        let args = Line::try_parse_from(words).unwrap().args;
        let report = Report {
            accepted: 1,
            delivered: 1,
            dead: 0,
            duplicates: 0,
            attempts: 1,
            amplification: 1.0,
            early: 0,
            peak_per_second: Peak {
                before: 0,
                after: 1,
            },
            drain_seconds: 0.0,
            dead_by_reason: Vec::new(),
            per_second: vec![1],
            seconds: 1.0,
        };
        report.text(&args)
    }

    #[test]
    fn the_plain_run_ends_with_what_to_compare_it_with() {
        assert!(text(&[]).ends_with("\n\ncompare with: ressac demo --naive\n"));
        for words in [&["--naive"][..], &["--without", "hold"]] {
            assert!(!text(words).contains("compare with"), "{words:?}");
        }
    }
}
