//! What can be promised: how long an operation can stay undecided.

use ressac_policy::Policy;
use serde::Serialize;

use super::{Total, Worst, is_durable};
use crate::units::format_duration;

/// One line of the sheet to hand to whoever asks "when will we know?".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// A stable word for it.
    pub name: &'static str,
    /// What is promised.
    pub what: &'static str,
    /// The seconds, where it is a time that has an end.
    pub seconds: Option<f64>,
    /// In words.
    pub words: String,
}

fn promise(name: &'static str, what: &'static str, seconds: Option<f64>, words: String) -> Promise {
    Promise {
        name,
        what,
        seconds,
        words,
    }
}

pub(super) fn of(policy: &Policy, total: &Total, worst: &Worst) -> Vec<Promise> {
    let mut sheet = vec![undecided(policy, worst), last_attempt(policy, worst)];
    sheet.push(promise(
        "typical",
        "where every attempt fails at once, it is over after",
        Some(capped(policy, total.p50)),
        format!(
            "{} in half of all cases, {} in 95 %",
            time(capped(policy, total.p50)),
            time(capped(policy, total.p95))
        ),
    ));
    sheet.push(promise(
        "undisturbed",
        "where every attempt takes its whole time and every wait is the longest, after",
        Some(worst.undisturbed_seconds),
        format!(
            "{}, hints, breaker and budget apart",
            time(worst.undisturbed_seconds)
        ),
    ));
    sheet.push(after(policy));
    sheet
}

fn capped(policy: &Policy, seconds: f64) -> f64 {
    policy
        .window
        .map_or(seconds, |window| seconds.min(window.as_secs_f64()))
}

fn undecided(policy: &Policy, worst: &Worst) -> Promise {
    let what = "longest an operation can stay undecided";
    match policy.window {
        // An attempt's time limit is the smaller of its own and what the window leaves.
        Some(window) => promise(
            "undecided",
            what,
            worst.seconds,
            format!(
                "{}: the window, and nothing after it",
                format_duration(window)
            ),
        ),
        None => promise(
            "undecided",
            what,
            None,
            "no end: window = \"off\", and hints, breaker and budget may hold it for ever".into(),
        ),
    }
}

fn last_attempt(policy: &Policy, worst: &Worst) -> Promise {
    let what = "the last attempt is over by";
    match policy.window {
        Some(window) => promise(
            "last_attempt",
            what,
            worst.seconds,
            format!(
                "{}: begun within the window, it is cut at its end",
                format_duration(window)
            ),
        ),
        None => promise(
            "last_attempt",
            what,
            None,
            format!(
                "{} after it begins, whenever that is",
                format_duration(policy.attempt_timeout)
            ),
        ),
    }
}

fn after(policy: &Policy) -> Promise {
    let words = if is_durable(policy) {
        "accepted at once (202); then delivered, or a dead letter with its reason, never silence"
    } else {
        "the caller has the reply, or an error with its reason; earlier if the breaker is open \
         or the budget spent"
    };
    promise("after", "and then", None, words.into())
}

/// Seconds as people write them.
pub(crate) fn time(seconds: f64) -> String {
    if seconds.is_nan() || seconds < 0.0005 {
        return "0s".into();
    }
    // Two digits behind the point up to ten, one up to a minute, then whole seconds.
    let rounded = match seconds {
        s if s < 10.0 => return format!("{}s", trimmed(s, 2)),
        s if s < 60.0 => return format!("{}s", trimmed(s, 1)),
        s => s.round(),
    };
    const YEAR: f64 = 366.0 * 86_400.0;
    if rounded > YEAR {
        return format!("{} years", (rounded / YEAR).round());
    }
    format_duration(std::time::Duration::from_secs(rounded as u64))
}

fn trimmed(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_short() {
        for (seconds, text) in [
            (0.0, "0s"),
            (0.025, "0.03s"),
            (7.75, "7.75s"),
            (12.04, "12s"),
            (15.5, "15.5s"),
            (90.4, "1m 30s"),
            (86_400.0, "1d"),
            (1e12, "31623 years"),
            (f64::NAN, "0s"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
