//! The settings of `[policy.NAME]`.

use ressac_policy::{BreakerConfig, BudgetConfig, Deposit, OverMax, Policy};

use super::show::{
    OFF, of_breaker, of_budget, or_off, rate, share, show_retry_on, show_statuses,
    show_unprocessed, show_vendors, show_window, time,
};
use super::{Apply, By, PolicySetting, Setting};

/// The longest that any count can be; more is a slip of the hand.
const MANY: u32 = 1_000_000;

/// The gateway's own bound for one partner; above it a setting would be capped in silence (CF-4).
const MOST_IN_FLIGHT: u32 = 1_024;

/// Sub-tables: their name, whether `"off"` may stand for them, and what they are.
pub(crate) const GROUPS: &[(&str, bool, &str)] = &[
    (
        "retry_after",
        false,
        "What `Retry-After` and its relatives do.",
    ),
    (
        "budget",
        true,
        "The retry budget of a partner: how many retries there may be, however many operations \
         fail.",
    ),
    (
        "breaker",
        true,
        "The circuit breaker of a partner, and the paced drain after it closes.",
    ),
    ("limit", false, "Rate and concurrency of a partner."),
];

/// The setting of this dotted name.
pub(crate) fn policy_setting(name: &str) -> Option<&'static PolicySetting> {
    POLICY.iter().find(|known| known.setting.name == name)
}

const fn all(
    name: &'static str,
    apply: Apply,
    show: fn(&Policy) -> String,
    range: &'static str,
    doc: &'static str,
) -> PolicySetting {
    let (shape, word) = apply.shape();
    let setting = Setting {
        name,
        shape,
        word,
        range,
        default: "",
        doc,
        by: By::All,
    };
    PolicySetting {
        setting,
        apply,
        show,
    }
}

const fn only(by: By, mut setting: PolicySetting) -> PolicySetting {
    setting.setting.by = by;
    setting
}

fn budget(policy: &mut Policy) -> &mut BudgetConfig {
    policy.budget.get_or_insert_default()
}

fn breaker(policy: &mut Policy) -> &mut BreakerConfig {
    policy.breaker.get_or_insert_default()
}

/// All of them, in the order of the reference page. A group's settings stand together.
pub(crate) static POLICY: &[PolicySetting] = &[
    all(
        "retries",
        Apply::Count(0, MANY, |p, n| p.retries = n),
        |p| p.retries.to_string(),
        "0 to 1000000",
        "Attempts after the first: 5 means 6 attempts, 0 means one.",
    ),
    all(
        "base",
        Apply::Duration(|p, d| p.backoff.base = d),
        |p| time(p.backoff.base),
        "above 0, at most the cap",
        "The ceiling of the wait before the first retry.",
    ),
    all(
        "factor",
        Apply::Number(|p, n| p.backoff.factor = n),
        |p| p.backoff.factor.to_string(),
        "1 or more",
        "What the ceiling grows by with each retry.",
    ),
    all(
        "cap",
        Apply::Duration(|p, d| p.backoff.cap = d),
        |p| time(p.backoff.cap),
        "at least the base",
        "No ceiling is above it. It comes before the jitter, so that no backoff passes it.",
    ),
    all(
        "jitter",
        Apply::Jitter(|p, j| p.backoff.jitter = j),
        |p| p.backoff.jitter.as_str().to_owned(),
        "",
        "How the wait is drawn below the ceiling: `full` anywhere below it, `equal` in its upper \
         half, `decorrelated` from the base to three times the last wait, `none` exactly the \
         ceiling (the bad example: `check` warns).",
    ),
    all(
        "window",
        Apply::DurationOr(OFF, |p, d| p.window = d),
        |p| or_off(p.window, time),
        "above 0",
        "The time an operation may take in all. Nothing is sent after it.",
    ),
    all(
        "attempt_timeout",
        Apply::Duration(|p, d| p.attempt_timeout = d),
        |p| time(p.attempt_timeout),
        "above 0",
        "The time one attempt may take; less where the window leaves less.",
    ),
    all(
        "retry_on",
        Apply::RetryOn(|p, list| p.rules.retry_on = Some(list)),
        show_retry_on,
        "words `dns refused connect_timeout tls reset eof timeout truncated`, statuses 300 to 999",
        "Replaces the set of failures that are retried at all. What is not replayable stays so.",
    ),
    all(
        "unprocessed",
        Apply::Unprocessed(|p, plain, hinted| {
            p.rules.unprocessed = plain;
            p.rules.unprocessed_with_hint = hinted;
        }),
        show_unprocessed,
        "statuses 300 to 999, alone or as `\"503+retry-after\"`",
        "Answers of this partner that certainly mean that it did not process the request. With \
         `+retry-after` only where a hint came along.",
    ),
    all(
        "already_done",
        Apply::AlreadyDone(|p, statuses| p.rules.already_done = statuses),
        |p| show_statuses(&p.rules.already_done),
        "statuses 200 to 999",
        "Answers that mean that an earlier attempt, which may have arrived, did arrive: a success.",
    ),
    only(
        By::Gateway,
        all(
            "suspend_after",
            Apply::CountOrOff(1, MANY, |p, n| p.suspend_after = n),
            |p| or_off(p.suspend_after, |n| n.to_string()),
            "1 or more",
            "After so many permanent failures in a row that concern the partner, not the \
             message, its \
             messages wait for a person.",
        ),
    ),
    all(
        "retry_after.max",
        Apply::DurationOr("window", |p, d| p.retry_after.max = d),
        |p| p.retry_after.max.map_or_else(|| "window".to_owned(), time),
        "",
        "The longest hint that is obeyed by somebody who waits; `\"window\"` is no limit but the \
         window. \
         A durable operation waits the whole hint if the window allows.",
    ),
    all(
        "retry_after.spread",
        Apply::Share(|p, s| p.retry_after.spread = s),
        |p| share(p.retry_after.spread),
        "0 or more",
        "Jitter on top of a hint, as a share of it: at 1, clients told `60` come back within 60 \
         to 120 s.",
    ),
    only(
        By::Synchronous,
        all(
            "retry_after.over_max",
            Apply::OverMax(|p, over| p.retry_after.over_max = over),
            |p| match p.retry_after.over_max {
                OverMax::Clamp => "clamp".to_owned(),
                OverMax::GiveUp => "give_up".to_owned(),
            },
            "",
            "What is done with a longer hint: wait the maximum, or end as `hint_over_max`.",
        ),
    ),
    all(
        "retry_after.vendor",
        Apply::Vendors(|p, set| p.retry_after.vendors = set),
        |p| show_vendors(p.retry_after.vendors),
        "`retry-after-ms x-ms-retry-after-ms RateLimit RateLimit-Reset X-RateLimit-Reset`",
        "Which relatives of `Retry-After` are believed too. `Retry-After` wins.",
    ),
    only(
        By::Gateway,
        all(
            "retry_after.hold",
            Apply::Flag(|p, flag| p.retry_after.hold = flag),
            |p| p.retry_after.hold.to_string(),
            "",
            "A hint on 429 or 503 holds the whole partner, not only the message that met it.",
        ),
    ),
    all(
        "budget.ratio",
        Apply::Share(|p, s| budget(p).ratio = s),
        |p| of_budget(p, |b| share(b.ratio)),
        "0 or more",
        "Tokens for each deposit; a retry costs one.",
    ),
    all(
        "budget.window",
        Apply::Duration(|p, d| budget(p).window = d),
        |p| of_budget(p, |b| time(b.window)),
        "above 0",
        "Bounds the savings: the ratio of the first attempts of this time.",
    ),
    all(
        "budget.reserve",
        Apply::Count(0, MANY, |p, n| budget(p).reserve = n),
        |p| of_budget(p, |b| b.reserve.to_string()),
        "0 to 1000000",
        "Tokens to start with, and the least that can be saved.",
    ),
    all(
        "budget.trickle",
        Apply::RateOrOff(|p, r| budget(p).trickle = r),
        |p| of_budget(p, |b| or_off(b.trickle, rate)),
        "above 0",
        "Tokens that come by themselves, so that a quiet client recovers.",
    ),
    all(
        "budget.deposit",
        Apply::Deposit(|p, d| budget(p).deposit = d),
        |p| {
            of_budget(p, |b| match b.deposit {
                Deposit::Request => "request".to_owned(),
                Deposit::Success => "success".to_owned(),
            })
        },
        "",
        "What makes a deposit: each first attempt, or each success (then retries cease in a \
         total outage).",
    ),
    all(
        "breaker.failure_rate",
        Apply::ShareOrOff(|p, s| breaker(p).failure_rate = s),
        |p| of_breaker(p, |b| or_off(b.failure_rate, share)),
        "above 0, at most 1",
        "Opens at this share of failures over the window.",
    ),
    all(
        "breaker.slow_rate",
        Apply::ShareOrOff(|p, s| breaker(p).slow_rate = s),
        |p| of_breaker(p, |b| or_off(b.slow_rate, share)),
        "above 0, at most 1",
        "Opens at this share of slow calls over the window.",
    ),
    all(
        "breaker.slow_call",
        Apply::Duration(|p, d| breaker(p).slow_call = d),
        |p| of_breaker(p, |b| time(b.slow_call)),
        "",
        "A call is slow from here on.",
    ),
    all(
        "breaker.min_calls",
        Apply::Count(1, MANY, |p, n| breaker(p).min_calls = n),
        |p| of_breaker(p, |b| b.min_calls.to_string()),
        "1 or more; at most the window, if that is a number of calls",
        "Neither rate counts below so many calls.",
    ),
    all(
        "breaker.window",
        Apply::CallWindow(|p, w| breaker(p).window = w),
        |p| of_breaker(p, |b| show_window(b.window)),
        "a duration above 0, or 1 to 10000 calls",
        "What the rates are taken over: the calls of the last while, or the last so many.",
    ),
    all(
        "breaker.consecutive",
        Apply::CountOrOff(1, MANY, |p, n| breaker(p).consecutive = n),
        |p| of_breaker(p, |b| or_off(b.consecutive, |n| n.to_string())),
        "1 or more",
        "Opens after so many failures in a row.",
    ),
    all(
        "breaker.open",
        Apply::Duration(|p, d| breaker(p).open = d),
        |p| of_breaker(p, |b| time(b.open)),
        "above 0, at most open_max",
        "The first open time. It doubles while probes fail.",
    ),
    all(
        "breaker.open_jitter",
        Apply::Share(|p, s| breaker(p).open_jitter = s),
        |p| of_breaker(p, |b| share(b.open_jitter)),
        "0 to 1",
        "The open time is drawn within this share to either side.",
    ),
    all(
        "breaker.open_max",
        Apply::Duration(|p, d| breaker(p).open_max = d),
        |p| of_breaker(p, |b| time(b.open_max)),
        "at least open",
        "The longest open time, jitter included.",
    ),
    all(
        "breaker.probes",
        Apply::Count(1, 16, |p, n| {
            breaker(p).probes = u8::try_from(n).unwrap_or(u8::MAX)
        }),
        |p| of_breaker(p, |b| b.probes.to_string()),
        "1 to 16",
        "Attempts let through half-open. All must succeed.",
    ),
    all(
        "breaker.probe_timeout",
        Apply::Duration(|p, d| breaker(p).probe_timeout = d),
        |p| of_breaker(p, |b| time(b.probe_timeout)),
        "above 0",
        "A probe that says nothing for so long gives its place back; never shorter than \
         attempt_timeout.",
    ),
    all(
        "breaker.ramp_start",
        Apply::Rate(|p, r| breaker(p).ramp_start = r),
        |p| of_breaker(p, |b| rate(b.ramp_start)),
        "above 0",
        "The rate of sending just after the breaker closed.",
    ),
    all(
        "breaker.ramp_step",
        Apply::Duration(|p, d| breaker(p).ramp_step = d),
        |p| of_breaker(p, |b| time(b.ramp_step)),
        "above 0",
        "That rate doubles each step, up to the limit.",
    ),
    all(
        "limit.rate",
        Apply::RateOrOff(|p, r| p.limit.rate = r),
        |p| or_off(p.limit.rate, rate),
        "above 0",
        "Attempts per time.",
    ),
    all(
        "limit.burst",
        Apply::Count(1, MANY, |p, n| p.limit.burst = n),
        |p| p.limit.burst.to_string(),
        "1 or more",
        "Attempts that may come at once before the rate binds.",
    ),
    all(
        "limit.concurrency",
        Apply::CountOrOff(1, MOST_IN_FLIGHT, |p, n| p.limit.concurrency = n),
        |p| or_off(p.limit.concurrency, |n| n.to_string()),
        "1 to 1024",
        "Attempts in flight. In the gateway `\"off\"` means 1024: it has no more of one partner in \
         memory.",
    ),
    all(
        "limit.decrease",
        Apply::Share(|p, s| p.limit.decrease = s),
        |p| share(p.limit.decrease),
        "above 0, at most 1",
        "A 429 multiplies rate and concurrency by this; 1 is not adaptive.",
    ),
    all(
        "limit.increase",
        Apply::Share(|p, s| p.limit.increase = s),
        |p| share(p.limit.increase),
        "0 to 1",
        "Success gives back this share of the limit per second.",
    ),
];
