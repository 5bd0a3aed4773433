//! An explanation for people: aligned columns, plain text.

use std::fmt;

use super::promises::time;
use super::{Breaker, Explanation, Outage};
use crate::named::Origin;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retries = match self.retries {
            1 => "1 retry".to_owned(),
            number => format!("{number} retries"),
        };
        let most = attempts(u64::from(self.retries) + 1);
        writeln!(
            f,
            "Policy {} ({}): {retries}, so at most {most}",
            self.policy, self.mode
        )?;
        self.waits(f)?;
        self.totals(f)?;
        outage(f, &self.outage)?;
        if let Some(open) = &self.breaker {
            breaker(f, open)?;
        } else {
            writeln!(f, "\nBreaker: off")?;
        }
        writeln!(f, "\nPromises")?;
        let rows = self
            .promises
            .iter()
            .map(|promise| vec![promise.what.to_owned(), promise.words.clone()]);
        table(f, &rows.collect::<Vec<_>>(), 2)?;
        writeln!(f, "\nSettings, and whose value won")?;
        let rows = self.fields.iter().map(|field| {
            vec![
                field.name.to_owned(),
                field.value.clone(),
                origin(&field.origin),
            ]
        });
        table(f, &rows.collect::<Vec<_>>(), 3)
    }
}

fn attempts(number: u64) -> String {
    match number {
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    }
}

impl Explanation {
    fn waits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.waits.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nWait before each retry ({} jitter)", self.jitter)?;
        let mut rows = vec![
            ["retry", "ceiling", "floor", "mean", "p5", "p95"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(self.waits.iter().map(|wait| {
            let times = [wait.ceiling, wait.floor, wait.mean, wait.p5, wait.p95].map(time);
            [wait.retry.to_string()].into_iter().chain(times).collect()
        }));
        table(f, &rows, 0)?;
        let listed = u32::try_from(self.waits.len()).unwrap_or(u32::MAX);
        match self.retries.saturating_sub(listed) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
    }

    fn totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        let which = if total.retries < self.retries {
            format!("the first {} waits", total.retries)
        } else {
            "all waits".to_owned()
        };
        writeln!(
            f,
            "\nTotal of {which} ({} operations drawn, seed {})",
            self.draws, self.seed
        )?;
        let head = ["mean", "sd", "p5", "p50", "p95"]
            .map(str::to_owned)
            .to_vec();
        let values = [total.mean, total.sd, total.p5, total.p50, total.p95]
            .map(time)
            .to_vec();
        table(f, &[head, values], 0)?;
        let most = match self.worst.seconds {
            Some(seconds) => format!("within {}", time(seconds)),
            None => "without an end".to_owned(),
        };
        writeln!(
            f,
            "  at most {}, {most}",
            attempts(self.worst.attempts.into())
        )
    }
}

fn outage(f: &mut fmt::Formatter<'_>, outage: &Outage) -> fmt::Result {
    writeln!(
        f,
        "\nTotal outage of {} at {} first attempts per second",
        time(outage.seconds),
        short(outage.rate)
    )?;
    let mut rows = vec![vec![
        "amplification at most".to_owned(),
        format!("{:.3}", outage.amplification),
        format!(
            "{:.0} attempts for {:.0} operations",
            outage.attempts.floor(),
            outage.first_attempts
        ),
    ]];
    let plain = format!("{:.0}", outage.amplification_without_budget);
    match &outage.budget {
        Some(terms) => {
            let formula = format!(
                "1 + {} + ({} saved + {}/s × {}) / {:.0}",
                short(terms.ratio),
                short(terms.capacity),
                short(terms.trickle),
                time(outage.seconds),
                outage.first_attempts
            );
            rows.push(vec!["by the budget".to_owned(), String::new(), formula]);
            rows.push(vec![
                "without the budget".to_owned(),
                plain,
                "1 + retries".to_owned(),
            ]);
        }
        None => rows.push(vec![
            "budget off".to_owned(),
            plain,
            "1 + retries".to_owned(),
        ]),
    }
    table(f, &rows, 3)
}

fn short(number: f64) -> String {
    ((number * 1e6).round() / 1e6).to_string()
}

fn breaker(f: &mut fmt::Formatter<'_>, breaker: &Breaker) -> fmt::Result {
    let opens = if breaker.opens.is_empty() {
        "never".to_owned()
    } else {
        breaker.opens.join("; or ")
    };
    writeln!(f, "\nBreaker: opens at {opens}")?;
    let times = breaker.open_times.iter().map(|open| {
        if open.shortest == open.longest {
            return time(open.middle);
        }
        format!("{} to {}", time(open.shortest), time(open.longest))
    });
    let rows = [
        vec![
            "open for".to_owned(),
            times.collect::<Vec<_>>().join(", then "),
        ],
        vec![
            "looks in an outage of 1h".to_owned(),
            breaker.probes_per_hour.to_string(),
        ],
        vec![
            "notices the end after".to_owned(),
            format!("{} at most", time(breaker.longest_blind)),
        ],
    ];
    table(f, &rows, 2)
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::BuiltIn { policy } => format!("built-in {policy}"),
        Origin::Policy { policy, file, line } => format!("policy {policy}, {file}:{line}"),
    }
}

/// Columns two spaces apart: the first `left` to the left, the others to the right.
fn table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>], left: usize) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line.push_str("  ");
            if column < left {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("{cell:>width$}"));
            }
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
