//! Conditions on how waits are spread: growth, law, herds.

use super::check::LAG;
use super::finding::{Finding, Outcome, ms};
use super::group::{finding, mean};
use super::herd::largest_share;
use super::law::{Law, critical, kolmogorov_smirnov};
use super::op::OpView;
use crate::claims::{Jitter, Mode};
use crate::rule::Rule;

/// A machine that lags bunches and stretches the waits of others: then a miss proves nothing.
fn unless_lag(view: &OpView<'_>, holds: bool) -> Outcome {
    match (holds, view.lag_ms() > LAG) {
        (true, _) => Outcome::Pass,
        (false, true) => Outcome::Unknown,
        (false, false) => Outcome::Fail,
    }
}

fn lag(view: &OpView<'_>) -> String {
    match view.lag_ms() > LAG {
        true => format!(" (with {} of lag)", ms(view.lag_ms())),
        false => String::new(),
    }
}

fn gaps(views: &[OpView<'_>], k: usize) -> Vec<f64> {
    // The shortest reading: what the client waited, less what the wire took.
    views.iter().filter_map(|v| v.gap_ceiling(k)).collect()
}

/// Later waits are longer.
pub(super) fn growth(views: &[OpView<'_>], rule: &Rule) -> Finding {
    let Some(one) = views.first() else {
        return finding(rule, Outcome::Unknown, "operations", "none".into());
    };
    let least = match one.pace().jitter {
        Jitter::Decorrelated => 1.4,
        _ => 2.5,
    };
    let (first, last) = (gaps(views, 1), gaps(views, 4));
    let expected = format!("the fourth wait on average at least {least} times the first");
    if first.len() < 20.min(views.len()) || last.len() < 20.min(views.len()) {
        let seen = format!("{} first and {} fourth waits", first.len(), last.len());
        return finding(rule, Outcome::Unknown, &expected, seen);
    }
    let ratio = mean(&last) / mean(&first).max(0.1);
    let seen = format!("{ratio:.2} ({} to {})", ms(mean(&first)), ms(mean(&last)));
    // Lag adds the same to short waits and to long ones, so that they differ less.
    finding(
        rule,
        unless_lag(one, ratio >= least),
        &expected,
        seen + &lag(one),
    )
}

/// The first wait follows the claimed law.
pub(super) fn law(views: &[OpView<'_>], rule: &Rule) -> Finding {
    let Some(first) = views.first() else {
        return finding(rule, Outcome::Unknown, "operations", "none".into());
    };
    let pace = first.pace();
    let needed = if first.claims.client.mode == Mode::Exec {
        60
    } else {
        400
    };
    let sample = gaps(views, 1);
    match (Law::claimed(pace, false), pace.ceiling(0)) {
        (Some(law), Some(c)) if c <= 2000.0 => test(first, rule, law, c, &sample, needed),
        (_, Some(c)) if c > 2000.0 => {
            let seen = format!("the first ceiling is {}", ms(c));
            finding(rule, Outcome::Unknown, "a ceiling of at most 2 s", seen)
        }
        _ => finding(rule, Outcome::Unknown, "a claimed law", "none".into()),
    }
}

/// So do the waits at the cap.
pub(super) fn law_at_cap(views: &[OpView<'_>], rule: &Rule) -> Finding {
    let Some(first) = views.first() else {
        return finding(rule, Outcome::Unknown, "operations", "none".into());
    };
    let pace = first.pace();
    let sample: Vec<f64> = (2..=5).flat_map(|k| gaps(views, k)).collect();
    match Law::claimed(pace, true) {
        Some(law) => test(first, rule, law, pace.cap, &sample, 4 * views.len()),
        None => finding(
            rule,
            Outcome::Unknown,
            "a claimed law at the cap",
            "none".into(),
        ),
    }
}

fn test(
    first: &OpView<'_>,
    rule: &Rule,
    law: Law,
    c: f64,
    sample: &[f64],
    needed: usize,
) -> Finding {
    let expected = format!("uniform from {} to {}", ms(law.lo), ms(law.hi));
    if sample.len() < needed {
        let seen = format!("{} waits of {needed}", sample.len());
        return finding(rule, Outcome::Unknown, &expected, seen);
    }
    let d = kolmogorov_smirnov(&law.shares(sample, c));
    let limit = critical(sample.len());
    let seen = format!(
        "D = {d:.4} of {limit:.4} allowed, n = {}, mean {}",
        sample.len(),
        ms(mean(sample))
    );
    finding(
        rule,
        unless_lag(first, d <= limit),
        &expected,
        seen + &lag(first),
    )
}

/// After an outage that hit all at once, no retry round comes back as a herd.
pub(super) fn herd(views: &[OpView<'_>], rule: &Rule, most: f64) -> Vec<Finding> {
    let Some(first) = views.first() else {
        return Vec::new();
    };
    let rounds = views.iter().map(|v| v.attempts.len()).max().unwrap_or(0);
    let mut out = Vec::new();
    for k in 1..rounds {
        let mut times: Vec<u64> = views
            .iter()
            .filter_map(|v| v.attempts.get(k))
            .map(|a| a.t_first)
            .collect();
        let Some(c) = first.pace().ceiling(k as u32 - 1) else {
            continue;
        };
        if (times.len() as f64) < 0.8 * views.len() as f64 {
            continue;
        }
        let share = largest_share(&mut times, 0.05 * c);
        let expected = format!(
            "at most {:.0} % of retry {k} within {}",
            most * 100.0,
            ms(0.05 * c)
        );
        let seen = format!("{:.0} % of {}", share * 100.0, times.len());
        out.push(finding(
            rule,
            unless_lag(first, share <= most),
            &expected,
            seen,
        ));
    }
    if out.is_empty() {
        let seen = format!("of {} clients too few retried", views.len());
        out.push(finding(rule, Outcome::Unknown, "a round of retries", seen));
    }
    let mut all: Vec<u64> = views
        .iter()
        .flat_map(|v| &v.attempts)
        .map(|a| a.t_first)
        .collect();
    let peak = largest_share(&mut all, 20.0) * all.len() as f64;
    let seen = format!("{peak:.0} arrivals within 20 ms");
    out.push(Finding {
        note: true,
        ..finding(rule, Outcome::Pass, "peak", seen)
    });
    out
}

/// Told the same hint, they do not come back together.
pub(super) fn herd_hint(views: &[OpView<'_>], rule: &Rule, most: f64) -> Finding {
    let Some(first) = views.first() else {
        return finding(rule, Outcome::Unknown, "operations", "none".into());
    };
    let mut times: Vec<u64> = views
        .iter()
        .filter_map(|v| v.attempts.get(1))
        .map(|a| a.t_first)
        .collect();
    let expected = format!("at most {:.0} % within 50 ms", most * 100.0);
    if (times.len() as f64) < 0.8 * views.len() as f64 {
        let seen = format!("{} of {} came back", times.len(), views.len());
        return finding(rule, Outcome::Unknown, &expected, seen);
    }
    let share = largest_share(&mut times, 50.0);
    let seen = format!("{:.0} % of {}", share * 100.0, times.len());
    finding(
        rule,
        unless_lag(first, share <= most),
        &expected,
        seen + &lag(first),
    )
}
