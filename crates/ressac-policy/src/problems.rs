//! What a policy can get wrong, in one table.

use core::time::Duration;

use crate::policy::{BreakerConfig, BudgetConfig, CallWindow, LimitConfig, Policy, Problem};
use crate::ratio::Ratio;

/// The most probes a half-open breaker can have out; a state of fixed size keeps their places.
pub(crate) const MAX_PROBES: u8 = 16;
/// The longest count window; its ring is allocated with the partner.
pub(crate) const MAX_COUNT_WINDOW: u32 = 10_000;

pub(crate) fn of(policy: &Policy) -> impl Iterator<Item = Problem> {
    let own = own(policy).into_iter();
    let budget = policy.budget.map(|b| budget(&b)).into_iter().flatten();
    let breaker = policy.breaker.map(|b| breaker(&b)).into_iter().flatten();
    own.chain(budget)
        .chain(breaker)
        .chain(limit(&policy.limit))
        .flatten()
}

fn when(bad: bool, field: &'static str, what: &'static str, fix: &'static str) -> Option<Problem> {
    bad.then_some(Problem { field, what, fix })
}

fn own(policy: &Policy) -> [Option<Problem>; 6] {
    let backoff = &policy.backoff;
    [
        when(
            backoff.base.is_zero(),
            "base",
            "a base of zero never waits",
            "write e.g. \"500ms\"",
        ),
        when(
            !(backoff.factor >= 1.0 && backoff.factor.is_finite()),
            "factor",
            "the ceiling must not shrink",
            "write a number of at least 1, e.g. 2",
        ),
        when(
            backoff.cap < backoff.base,
            "cap",
            "the cap is below the base",
            "raise the cap to at least the base",
        ),
        when(
            policy.attempt_timeout.is_zero(),
            "attempt_timeout",
            "an attempt of no time cannot succeed",
            "write e.g. \"10s\"",
        ),
        when(
            policy.window == Some(Duration::ZERO),
            "window",
            "a window of zero closes before the first attempt",
            "write e.g. \"5m\", or \"off\"",
        ),
        when(
            policy.suspend_after == Some(0),
            "suspend_after",
            "a partner cannot be suspended after no failure",
            "write at least 1, or \"off\"",
        ),
    ]
}

fn budget(budget: &BudgetConfig) -> [Option<Problem>; 2] {
    [
        when(
            budget.window.is_zero(),
            "budget.window",
            "a window of zero sees no first attempts",
            "write e.g. \"10s\"",
        ),
        when(
            budget.reserve == 0 && budget.ratio == Ratio::ZERO && budget.trickle.is_none(),
            "budget",
            "no reserve, no ratio and no trickle: there is never a token",
            "give one of them, or write budget = \"off\"",
        ),
    ]
}

fn breaker(breaker: &BreakerConfig) -> [Option<Problem>; 13] {
    let rate_bad = |rate: Option<Ratio>| rate.is_some_and(|r| r == Ratio::ZERO || r > Ratio::ONE);
    let count = match breaker.window {
        CallWindow::Count(calls) => Some(calls),
        CallWindow::Time(_) => None,
    };
    let share = "write a share above 0 and up to 1, or \"off\"";
    let positive = "write a duration above zero";
    [
        when(
            rate_bad(breaker.failure_rate),
            "breaker.failure_rate",
            "not a share",
            share,
        ),
        when(
            rate_bad(breaker.slow_rate),
            "breaker.slow_rate",
            "not a share",
            share,
        ),
        when(
            breaker.min_calls == 0,
            "breaker.min_calls",
            "a rate over no calls is not a rate",
            "write at least 1",
        ),
        when(
            breaker.consecutive == Some(0),
            "breaker.consecutive",
            "no failure in a row opens at once, for ever",
            "write at least 1, or \"off\"",
        ),
        when(
            breaker.window == CallWindow::Time(Duration::ZERO),
            "breaker.window",
            "a window of zero sees no calls",
            "write e.g. \"10s\", or a number of calls",
        ),
        when(
            count.is_some_and(|calls| calls == 0 || calls > MAX_COUNT_WINDOW),
            "breaker.window",
            "a count window holds 1 to 10000 calls",
            "write a number in that range, or a duration",
        ),
        when(
            count.is_some_and(|calls| calls < breaker.min_calls),
            "breaker.min_calls",
            "more than the window holds: no rate would ever count",
            "lower min_calls to the window, or widen the window",
        ),
        when(
            breaker.open.is_zero(),
            "breaker.open",
            "an open time of zero protects nobody",
            positive,
        ),
        when(
            breaker.open_jitter > Ratio::ONE,
            "breaker.open_jitter",
            "a jitter above 1 would make the open time negative",
            "write a share from 0 to 1",
        ),
        when(
            breaker.open_max < breaker.open,
            "breaker.open_max",
            "below the first open time",
            "raise open_max to at least open",
        ),
        when(
            breaker.probes == 0 || breaker.probes > MAX_PROBES,
            "breaker.probes",
            "half-open needs 1 to 16 probes",
            "write a number in that range",
        ),
        when(
            breaker.probe_timeout.is_zero(),
            "breaker.probe_timeout",
            "a probe of no time cannot answer",
            positive,
        ),
        when(
            breaker.ramp_step.is_zero(),
            "breaker.ramp_step",
            "a ramp of no time is a jump",
            positive,
        ),
    ]
}

fn limit(limit: &LimitConfig) -> [Option<Problem>; 4] {
    [
        when(
            limit.burst == 0,
            "limit.burst",
            "a burst of none sends nothing",
            "write at least 1",
        ),
        when(
            limit.concurrency == Some(0),
            "limit.concurrency",
            "none in flight sends nothing",
            "write at least 1, or \"off\"",
        ),
        when(
            limit.decrease == Ratio::ZERO || limit.decrease > Ratio::ONE,
            "limit.decrease",
            "a 429 must lower the limit, not stop or raise it",
            "write a share above 0 and up to 1",
        ),
        when(
            limit.increase > Ratio::ONE,
            "limit.increase",
            "more than the whole limit per second",
            "write a share from 0 to 1",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_policies_are_sound() {
        assert_eq!(Policy::sync().problems().next(), None);
        assert_eq!(Policy::durable().problems().next(), None);
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let mut policy = Policy::sync();
        policy.backoff.factor = f64::NAN;
        policy.backoff.cap = Duration::from_millis(1);
        policy.breaker = Some(BreakerConfig {
            probes: 17,
            ..BreakerConfig::default()
        });
        policy.limit.burst = 0;
        let fields: Vec<_> = policy.problems().map(|p| p.field).collect();
        assert_eq!(fields, ["factor", "cap", "breaker.probes", "limit.burst"]);
    }
}
