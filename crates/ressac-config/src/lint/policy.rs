//! What a policy does wrong whoever uses it.

use std::time::Duration;

use ressac_policy::{BreakerConfig, Jitter, Policy};

use crate::diagnostic::Diagnostic;
use crate::explain::{mean_waits, open_middles, openings_in, time, worst};
use crate::named::NamedPolicy;
use crate::units::format_duration;

/// Failures that the same request meets again, however often it is sent.
const PERMANENT: [u16; 9] = [400, 401, 403, 404, 405, 410, 422, 501, 505];
/// The fleet that the numbers speak of.
const FLEET: f64 = 50.0;
/// A hint that partners send often.
const HINT: Duration = Duration::from_secs(60);
const HOUR: f64 = 3_600.0;

/// The habits that it has of its own, or those that it inherits.
pub(super) fn lint(named: &NamedPolicy, inherited: bool, found: &mut Vec<Diagnostic>) {
    let policy = named.policy();
    let all = [
        no_jitter(policy),
        small_spread(policy),
        small_open_jitter(policy),
        no_cap(policy),
        no_end(policy),
        permanent(policy),
        no_breaker(policy),
        short_window(policy),
    ];
    for habit in all.into_iter().flatten() {
        if named.inherits(habit.field) != inherited {
            continue;
        }
        // A built-in policy has no place, and no bad habit.
        if let Some(place) = named.place_of(habit.field) {
            let title = format!("policy `{}`: {}", named.name(), habit.title);
            found.push(
                Diagnostic::warning(habit.code, title)
                    .at(place, habit.harm)
                    .help(habit.fix),
            );
        }
    }
}

struct Habit {
    code: &'static str,
    field: &'static str,
    title: String,
    /// The number that shows it.
    harm: String,
    fix: &'static str,
}

fn no_jitter(policy: &Policy) -> Option<Habit> {
    const CLIENTS: f64 = 1_000.0;
    if policy.backoff.jitter != Jitter::None || policy.retries == 0 {
        return None;
    }
    // Uniform over the base, in bins of 10 ms.
    let bins = (policy.backoff.base.as_secs_f64() / 0.01).max(1.0);
    Some(Habit {
        code: "no-jitter",
        field: "jitter",
        title: "no jitter: clients that fail together come back together".into(),
        harm: format!(
            "of {CLIENTS} clients all {CLIENTS} retry within the same 10 ms; with \"full\" about \
             {:.0} would",
            (CLIENTS / bins).ceil()
        ),
        fix: "write jitter = \"full\"",
    })
}

fn small_spread(policy: &Policy) -> Option<Habit> {
    if policy.backoff.jitter == Jitter::None || policy.retries == 0 {
        return None;
    }
    let hint = HINT.as_secs_f64();
    let spread = policy.retry_after.spread.as_f64();
    let width = (spread * hint).max(policy.backoff.base.as_secs_f64());
    if width >= hint / 4.0 {
        return None;
    }
    let per_second = (FLEET / width.max(1.0)).ceil();
    Some(Habit {
        code: "small-jitter",
        field: "retry_after.spread",
        title: "jitter is much smaller than the wait a partner asks for".into(),
        harm: format!(
            "told to wait {}, {FLEET} clients come back within {} of each other: {per_second} \
             retries arrive in one second",
            time(hint),
            time(width)
        ),
        fix: "write spread = 1.0, and they come back over as long as they waited",
    })
}

fn small_open_jitter(policy: &Policy) -> Option<Habit> {
    let breaker = policy.breaker.as_ref()?;
    let jitter = breaker.open_jitter.as_f64();
    if jitter >= 0.1 {
        return None;
    }
    let longest = open_middles(breaker).nth(40)?;
    Some(Habit {
        code: "small-jitter",
        field: "breaker.open_jitter",
        title: "breakers that opened together close together".into(),
        harm: format!(
            "after {} open, {FLEET} instances probe, and start again, within {} of each other",
            time(longest),
            time(2.0 * jitter * longest)
        ),
        fix: "write open_jitter = 0.5",
    })
}

fn no_cap(policy: &Policy) -> Option<Habit> {
    let last = policy.retries.checked_sub(1)?;
    let ceiling = policy.backoff.ceiling(last).as_secs_f64();
    let bearable = policy
        .window
        .map_or(HOUR, |window| (window.as_secs_f64() / 8.0).max(HOUR));
    if ceiling <= bearable {
        return None;
    }
    Some(Habit {
        code: "no-cap",
        field: "cap",
        title: "the cap is too high to bound anything".into(),
        harm: format!(
            "the wait before retry {} may be {}; {}",
            policy.retries,
            time(ceiling),
            when(policy)
        ),
        fix: "write e.g. cap = \"10m\"",
    })
}

fn no_end(policy: &Policy) -> Option<Habit> {
    (policy.window.is_none() && policy.retries > 0).then(|| Habit {
        code: "no-end",
        field: "window",
        title: "no end: nothing says when an operation is too late".into(),
        harm: when(policy),
        fix: "write e.g. window = \"24h\"",
    })
}

/// When the tenth and the twentieth retry come, or the last if there are fewer.
fn when(policy: &Policy) -> String {
    let at = |retry: u32| {
        let waited: f64 = mean_waits(&policy.backoff).take(retry as usize).sum();
        format!("retry {retry} comes after {} on average", time(waited))
    };
    match policy.retries {
        0..=10 => at(policy.retries),
        11..=20 => format!("{}, {}", at(10), at(policy.retries)),
        _ => format!("{}, {}", at(10), at(20)),
    }
}

fn permanent(policy: &Policy) -> Option<Habit> {
    let listed = policy.rules.retry_on?.statuses;
    let useless: Vec<String> = listed
        .iter()
        .filter(|s| PERMANENT.contains(s))
        .map(|s| s.to_string())
        .collect();
    let attempts = worst(policy).attempts - 1;
    if useless.is_empty() || attempts == 0 {
        return None;
    }
    let which = useless.join(", ");
    Some(Habit {
        code: "permanent-retried",
        field: "retry_on",
        title: format!("retries failures that no retry can mend: {which}"),
        harm: format!("up to {attempts} useless attempts for each operation that ends this way"),
        fix: "take them out of the list",
    })
}

fn no_breaker(policy: &Policy) -> Option<Habit> {
    let deaf = |b: &BreakerConfig| {
        b.failure_rate.is_none() && b.slow_rate.is_none() && b.consecutive.is_none()
    };
    if policy
        .breaker
        .as_ref()
        .is_some_and(|breaker| !deaf(breaker))
        || policy.retries == 0
    {
        return None;
    }
    let attempts = attempts_within(policy, HOUR);
    let with = openings_in(&BreakerConfig::default(), HOUR);
    Some(Habit {
        code: "no-breaker",
        field: "breaker",
        title: "no breaker: nothing keeps attempts away from a dead partner".into(),
        harm: format!(
            "in an outage of 1h, {FLEET} waiting operations make {} attempts; a breaker lets \
             about {with} probes through",
            attempts * FLEET as u64
        ),
        fix: "leave the line out: the built-in breaker is on; or give failure_rate or \
         consecutive a value",
    })
}

/// Attempts of one operation in this many seconds if each fails at once, on average.
fn attempts_within(policy: &Policy, seconds: f64) -> u64 {
    let end = policy
        .window
        .map_or(seconds, |window| seconds.min(window.as_secs_f64()));
    let mut elapsed = 0.0;
    let retries = mean_waits(&policy.backoff)
        .take(policy.retries as usize)
        .take_while(|wait| {
            elapsed += wait;
            elapsed < end
        })
        .count();
    1 + retries as u64
}

fn short_window(policy: &Policy) -> Option<Habit> {
    let window = policy.window?;
    if window > policy.attempt_timeout || policy.retries == 0 {
        return None;
    }
    Some(Habit {
        code: "short-window",
        field: "window",
        title: "the window is no longer than one attempt may take".into(),
        harm: format!(
            "one slow attempt ({}) uses up all {}: 0 of the {} retries are left",
            format_duration(policy.attempt_timeout),
            format_duration(window),
            policy.retries
        ),
        fix: "lower attempt_timeout, or widen the window",
    })
}
