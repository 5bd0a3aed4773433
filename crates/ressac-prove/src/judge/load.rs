//! Conditions on load: budgets and breakers.

use super::finding::{Finding, Outcome, ms};
use super::group::{by, finding};
use super::late::held_up;
use super::op::{OpView, since, to_ms};
use crate::rule::Rule;

/// Attempts are bounded by the claimed budget; without a claim the factor is told.
pub(super) fn amplification(views: &[OpView<'_>], rule: &Rule) -> Vec<Finding> {
    let firsts = views.iter().filter(|v| !v.attempts.is_empty()).count() as f64;
    let attempts = views.iter().map(|v| v.attempts.len()).sum::<usize>() as f64;
    let all = || views.iter().flat_map(|v| &v.attempts).map(|a| a.t_first);
    let (Some(from), Some(to)) = (all().min(), all().max()) else {
        return vec![finding(rule, Outcome::Unknown, "arrivals", "none".into())];
    };
    let seconds = since(to, from) / 1000.0;
    let factor = attempts / firsts.max(1.0);
    let told = format!("{attempts} attempts for {firsts} operations: {factor:.2} times");
    let note = Finding {
        note: true,
        ..finding(rule, Outcome::Pass, "", told.clone())
    };
    let claimed = views.first().and_then(|v| v.claims.claims.budget.clone());
    let verdict = match claimed {
        Some(b) => {
            let bound = match b.tokens {
                Some(tokens) => firsts + tokens / b.cost.unwrap_or(1.0).max(0.001),
                None => {
                    let saved = b.reserve + b.trickle_per_second() * seconds;
                    firsts * (1.0 + b.ratio.unwrap_or(0.0)) + saved + 1.0
                }
            };
            let expected = format!("at most {bound:.0} attempts by the claimed budget");
            finding(rule, by(attempts <= bound), &expected, told)
        }
        None => {
            let outcome = if factor <= 1.2 {
                Outcome::Pass
            } else {
                Outcome::Warn
            };
            finding(
                rule,
                outcome,
                "no budget is claimed; above 1.2 is worth a warning",
                told,
            )
        }
    };
    vec![verdict, note]
}

/// All arrivals of the part, in order, ns.
fn arrivals(views: &[OpView<'_>]) -> Vec<u64> {
    let mut times: Vec<u64> = views
        .iter()
        .flat_map(|v| &v.attempts)
        .map(|a| a.t_first)
        .collect();
    times.sort_unstable();
    times
}

/// How long the breaker is told to stay open, ms.
const OPEN: f64 = 2000.0;
/// The shortest silence that shows it: the open time is drawn by the client.
const SILENCE: f64 = 0.45 * OPEN;
/// So long without an arrival, at a hundred offers a second, something holds them back, ms.
const HUSH: f64 = 100.0;
/// What is refused at once has ended by then, ms.
const AT_ONCE: f64 = 50.0;
/// More than one in so many that end late are not the work of a machine that held the client up.
const HELD_UP: usize = 20;
/// How many are let through half-open.
const PROBES: usize = 3;

/// The first silence that begins at one of these moments: index before it, and its length, ms.
fn silence(times: &[u64], until: u64) -> Option<(usize, f64)> {
    let ends = times.iter().skip(1).copied().chain([until]);
    times
        .iter()
        .zip(ends)
        .map(|(from, to)| since(to, *from))
        .enumerate()
        .find(|(_, gap)| *gap >= SILENCE)
}

/// A first burst, then silence in which operations end at once.
pub(super) fn breaker_opens(views: &[OpView<'_>], rule: &Rule) -> Vec<Finding> {
    let times = arrivals(views);
    let Some(record) = views.first().map(|v| v.record) else {
        return Vec::new();
    };
    let last_start = record.starts.iter().map(|s| s.t).max().unwrap_or(0);
    let in_flight = in_flight_at_reply(views, 20).max(let_in_at_result(views, 20));
    let most = 20 + in_flight;
    let Some((index, gap)) = silence(&times, last_start) else {
        let seen = format!("{} arrivals, no silence of {}", times.len(), ms(SILENCE));
        // Quiet at last, and the offers ended before it had lasted long enough to be believed.
        let rest = times.last().map_or(0.0, |t| since(last_start, *t));
        let cut = rest >= HUSH && times.len() <= most;
        let outcome = if cut { Outcome::Unknown } else { Outcome::Fail };
        let seen = match cut {
            true => format!("{seen}; the offers ended {} after the last", ms(rest)),
            false => seen,
        };
        return vec![finding(rule, outcome, "the breaker opens", seen)];
    };
    let burst = index + 1;
    let expected = format!("at most {most} attempts before it opens ({in_flight} in flight)");
    let mut out = vec![finding(
        rule,
        by(burst <= most),
        &expected,
        burst.to_string(),
    )];
    let (from, to) = (times[index], times[index] + (gap * 1e6) as u64);
    let inside: Vec<&OpView<'_>> = views
        .iter()
        .filter(|v| v.start.is_some_and(|t| t > from + 100_000_000 && t < to))
        .collect();
    let slow: Vec<_> = inside
        .iter()
        .filter(|v| v.end().is_none_or(|end| end > AT_ONCE))
        .collect();
    let wrong = inside
        .iter()
        .filter(|v| v.result.is_some_and(|r| r.ok))
        .count();
    let few = slow.len() * HELD_UP <= inside.len();
    let doubtful =
        record.lag_ms > super::check::LAG || few && slow.iter().all(|v| held_up(v, views));
    let outcome = match (inside.len() >= 50, wrong, slow.is_empty()) {
        (false, ..) => Outcome::Unknown,
        (true, 0, true) => Outcome::Pass,
        (true, 0, false) if doubtful => Outcome::Unknown,
        _ => Outcome::Fail,
    };
    let slow = slow.len();
    let seen = format!(
        "{} offered in a silence of {}: {slow} took over {}, {wrong} said ok",
        inside.len(),
        ms(gap),
        ms(AT_ONCE),
    );
    out.push(finding(
        rule,
        outcome,
        "operations in the silence end within 50 ms, ko",
        seen,
    ));
    out
}

/// Requests that were under way when reply number `n` left.
fn in_flight_at_reply(views: &[OpView<'_>], n: usize) -> usize {
    let mut replies: Vec<u64> = views
        .iter()
        .flat_map(|v| &v.attempts)
        .filter_map(|a| a.t_reply_after)
        .collect();
    replies.sort_unstable();
    let Some(at) = replies.get(n - 1) else {
        return 0;
    };
    // What was sent within 10 ms of it had been let through before the client read it.
    let under_way = |a: &&&crate::record::Arrival| {
        a.t_first <= at + 10_000_000 && a.t_reply_after.is_none_or(|t| t > *at)
    };
    views
        .iter()
        .flat_map(|v| &v.attempts)
        .filter(under_way)
        .count()
}

/// Operations beyond `n` that were started before the client told of its result number `n`: until
/// then its breaker may not have counted so many.
fn let_in_at_result(views: &[OpView<'_>], n: usize) -> usize {
    let mut told: Vec<u64> = views.iter().filter_map(|v| Some(v.result?.t)).collect();
    told.sort_unstable();
    let Some(at) = told.get(n - 1) else {
        return 0;
    };
    let started = views.iter().filter(|v| v.start.is_some_and(|t| t <= *at));
    started.count().saturating_sub(n)
}

/// Half-open lets a few through, and when they fail it is silent again.
pub(super) fn breaker_probes(views: &[OpView<'_>], rule: &Rule) -> Vec<Finding> {
    let times = arrivals(views);
    let Some(record) = views.first().map(|v| v.record) else {
        return Vec::new();
    };
    let last_start = record.starts.iter().map(|s| s.t).max().unwrap_or(0);
    let probe = silence(&times, last_start).and_then(|(i, _)| Some((i + 1, *times.get(i + 1)?)));
    let Some((index, first)) = probe else {
        let seen = "no silence followed by a probe".to_owned();
        return vec![finding(rule, Outcome::Unknown, "a probe", seen)];
    };
    let window = first + 300_000_000;
    let through = times[index..].iter().filter(|t| **t <= window).count();
    let offered = record
        .starts
        .iter()
        .filter(|s| s.t >= first && s.t <= window)
        .count();
    let expected = format!("at most {PROBES} in the 300 ms after the first probe");
    let outcome = if offered < 40 {
        Outcome::Unknown
    } else {
        by(through <= PROBES)
    };
    let seen = format!("{through} of {offered} offered");
    let mut out = vec![finding(rule, outcome, &expected, seen)];
    let rest = &times[index + through - 1..];
    let again = silence(rest, last_start);
    let expected = format!("silent again for at least {}", ms(SILENCE));
    let seen = again.map_or("no silence".to_owned(), |(_, gap)| ms(gap));
    out.push(finding(
        rule,
        by(again.is_some_and(|(i, _)| i == 0)),
        &expected,
        seen,
    ));
    out
}

/// Operations succeed again so soon after this moment (ms after the first start).
pub(super) fn recovers(views: &[OpView<'_>], rule: &Rule, from_ms: f64, within_ms: f64) -> Finding {
    let Some(begun) = views.iter().filter_map(|v| v.start).min() else {
        return finding(rule, Outcome::Unknown, "starts", "none".into());
    };
    let end = begun as f64 + from_ms * 1e6;
    let good = views
        .iter()
        .filter_map(|v| v.result.filter(|r| r.ok))
        .map(|r| r.t as f64)
        .filter(|t| *t >= end)
        .fold(f64::INFINITY, f64::min);
    let seen = match good.is_finite() {
        true => format!("after {}", ms((good - end) / 1e6)),
        false => format!(
            "never, in {}",
            ms(to_ms(views[0].record.watched_until) - end / 1e6)
        ),
    };
    finding(
        rule,
        by(good <= end + within_ms * 1e6),
        &format!("success within {} of the end of the outage", ms(within_ms)),
        seen,
    )
}
