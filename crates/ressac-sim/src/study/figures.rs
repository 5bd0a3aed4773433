//! One run in figures. Each has one name in tables, JSON, CSV and references.

use std::collections::BTreeMap;

use crate::model::World;
use crate::run::{Bin, Record};
use crate::scenario::Report;

const SECOND: u64 = 1_000_000_000;
const TENTH: u64 = SECOND / 10;
/// A run that is still in trouble so shortly before its end has not recovered.
const SETTLED: u64 = 10;

/// The figures that a report shows, in order.
#[must_use]
pub fn columns(report: Report) -> &'static [&'static str] {
    match report {
        Report::Outage => &[
            "peak_per_second",
            "peak_after",
            "amplification",
            "lost_in",
            "lost_after",
            "recover_seconds",
            "rejections_seconds",
            "latency_ms",
            "p50_seconds",
            "p95_seconds",
            "p99_seconds",
        ],
        Report::Edi => &["peak_per_second", "early", "spread_seconds"],
        Report::Herd => &[
            "first_peak_100ms",
            "first_peak_10ms",
            "peak_100ms",
            "late_peak_100ms",
            "last_seconds",
            "delay_seconds",
        ],
        Report::Layers => &["calls_per_click", "peak_per_second"],
        Report::Metastable => &[
            "recovered_share",
            "recover_seconds",
            "peak_per_second",
            "amplification",
            "lost_share",
            "lost_in",
            "lost_after",
        ],
        Report::Breaker => &[
            "peak_after_100ms",
            "peak_after",
            "amplification",
            "recover_seconds",
            "lost_after",
        ],
        Report::Occ => &["calls", "time_ms"],
    }
}

/// All figures of one run.
#[must_use]
pub fn figures(world: &World, report: Report, record: &Record) -> BTreeMap<&'static str, f64> {
    let mut all = BTreeMap::new();
    load(world, report, record, &mut all);
    losses(world, record, &mut all);
    recovery(world, report, record, &mut all);
    herd(record, &mut all);
    all
}

fn load(world: &World, report: Report, record: &Record, all: &mut BTreeMap<&'static str, f64>) {
    let totals = &record.totals;
    // Those who are told a time come back as retries; their first attempts are given.
    let counted = |bin: &Bin| match report {
        Report::Edi => bin.retries,
        _ => bin.offered,
    };
    let seconds = record.per_second(counted);
    let most = |values: &[u64]| values.iter().copied().max().unwrap_or(0) as f64;
    all.insert("peak_per_second", most(&seconds));
    let end = world.server.outage().map_or(0, |(_, end)| end);
    let after = usize::try_from(end / SECOND).unwrap_or(usize::MAX);
    all.insert("peak_after", most(&seconds[after.min(seconds.len())..]));
    let tenths = record.over(TENTH, counted);
    let after = usize::try_from(end / TENTH).unwrap_or(usize::MAX);
    let after = most(&tenths[after.min(tenths.len())..]);
    all.insert("peak_after_100ms", after * 10.0);
    let (attempts, born) = match world.server.outage() {
        Some(_) => (totals.offered_during, totals.born_during),
        None => (totals.offered, totals.born),
    };
    all.insert("amplification", attempts as f64 / born.max(1) as f64);
    all.insert(
        "calls_per_click",
        totals.offered as f64 / totals.born.max(1) as f64,
    );
    all.insert("attempts", totals.attempts as f64);
    all.insert("early", totals.early as f64);
}

fn losses(world: &World, record: &Record, all: &mut BTreeMap<&'static str, f64>) {
    let totals = &record.totals;
    all.insert("born", totals.born as f64);
    all.insert("born_during", totals.born_during as f64);
    all.insert("delivered", totals.delivered as f64);
    all.insert("lost", totals.lost as f64);
    all.insert("lost_in", totals.lost_during as f64);
    all.insert("lost_after", totals.lost_after as f64);
    let ended = totals.delivered + totals.lost;
    all.insert("lost_share", totals.lost as f64 / ended.max(1) as f64);
    all.insert("waiting", totals.in_flight as f64);
    let completion = record.completion();
    all.insert("latency_ms", completion.mean_seconds() * 1e3);
    for (name, share) in [
        ("p50_seconds", 0.5),
        ("p95_seconds", 0.95),
        ("p99_seconds", 0.99),
    ] {
        all.insert(name, completion.quantile_seconds(share));
    }
    let end = world.server.outage().map_or(0, |(_, end)| end) as f64 / 1e9;
    all.insert("drained_seconds", (record.last_seconds() - end).max(0.0));
}

fn recovery(world: &World, report: Report, record: &Record, all: &mut BTreeMap<&'static str, f64>) {
    let end = world.server.outage().map_or(0, |(_, end)| end / SECOND);
    let per = |figure: fn(&Bin) -> u32| record.per_second(figure);
    let (offered, retries, rejected) = (
        per(|bin| bin.offered),
        per(|bin| bin.retries),
        per(|bin| bin.rejected),
    );
    let (delivered, lost) = (per(|bin| bin.delivered), per(|bin| bin.lost));
    let last = |bad: &dyn Fn(usize) -> bool| {
        (0..offered.len())
            .rev()
            .find(|second| bad(*second))
            .map_or(0.0, |second| (second as u64 + 1).saturating_sub(end) as f64)
    };
    all.insert(
        "rejections_seconds",
        last(&|second| rejected[second] * 100 > offered[second]),
    );
    let failing = last(&|second| lost[second] * 100 > delivered[second] + lost[second]);
    let retrying = last(&|second| retries[second] * 20 > offered[second]);
    let recovered = failing + SETTLED as f64 <= (offered.len() as u64).saturating_sub(end) as f64
        && delivered.iter().rev().take(3).any(|n| *n > 0);
    all.insert("recovered_share", f64::from(u8::from(recovered)));
    let recover = match report {
        Report::Metastable if recovered => failing,
        Report::Metastable => f64::NAN,
        _ => retrying,
    };
    all.insert("recover_seconds", recover);
}

fn herd(record: &Record, all: &mut BTreeMap<&'static str, f64>) {
    let hundredth = TENTH / 10;
    let most = |values: Vec<u64>| values.into_iter().max().unwrap_or(0) as f64;
    let firsts = |bin: &Bin| bin.first_retries;
    let retries = |bin: &Bin| bin.retries;
    all.insert("first_peak_100ms", most(record.over(TENTH, firsts)));
    all.insert("first_peak_10ms", most(record.over(hundredth, firsts)));
    let tenths = record.over(TENTH, retries);
    let late = tenths[50.min(tenths.len())..].to_vec();
    all.insert("peak_100ms", most(tenths));
    all.insert("late_peak_100ms", most(late));
    all.insert("last_seconds", record.last_seconds());
    all.insert("delay_seconds", record.given_up.mean_seconds());
    let spread = record
        .totals
        .retry_span
        .map_or(0, |(first, last)| last - first);
    all.insert("spread_seconds", spread as f64 / 1e9);
}
