//! Policies to draw from: sound ones, and any at all.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use ressac_policy::{
    Backoff, BreakerConfig, BudgetConfig, CallWindow, Deposit, Jitter, LimitConfig, Mode, OverMax,
    Policy, Rate, Ratio, RetryAfter, RetryOn, Rules, StatusSet, VendorHints,
};

fn millis(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn jitter() -> impl Strategy<Value = Jitter> {
    select(vec![
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
    ])
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![Mode::Synchronous, Mode::Durable])
}

pub(crate) fn sound_backoff() -> impl Strategy<Value = Backoff> {
    (1u64..10_000, 0u64..3_600_000, 1.0f64..10.0, jitter()).prop_map(
        |(base, more, factor, jitter)| Backoff {
            base: Duration::from_millis(base),
            factor,
            cap: Duration::from_millis(base + more),
            jitter,
        },
    )
}

pub(crate) fn sound_budget() -> impl Strategy<Value = BudgetConfig> {
    (
        0u32..2_000_000,
        millis(1..60_000),
        0u32..20,
        option::of((1u64..5_000_000).prop_map(|m| Rate::new(m, Duration::from_secs(1)).unwrap())),
        select(vec![Deposit::Request, Deposit::Success]),
    )
        .prop_map(|(ratio, window, reserve, trickle, deposit)| BudgetConfig {
            ratio: Ratio::from_millionths(ratio),
            window,
            reserve,
            trickle,
            deposit,
        })
}

pub(crate) fn sound_breaker() -> impl Strategy<Value = BreakerConfig> {
    let rate = || option::of((1u32..=1_000_000).prop_map(Ratio::from_millionths));
    let window = prop_oneof![
        millis(1..60_000).prop_map(CallWindow::Time),
        (10u32..100).prop_map(CallWindow::Count)
    ];
    let open = (1u64..30_000, 0u64..120_000, 0u32..=1_000_000);
    let counts = (1u32..10, option::of(1u32..10), 1u8..=16);
    let times = (millis(1..20_000), millis(1..10_000), 1u64..100_000_000);
    (rate(), rate(), window, open, counts, times).prop_map(
        |(failure_rate, slow_rate, window, open, counts, times)| BreakerConfig {
            failure_rate,
            slow_rate,
            slow_call: Duration::from_secs(1),
            min_calls: counts.0,
            window,
            consecutive: counts.1,
            open: Duration::from_millis(open.0),
            open_jitter: Ratio::from_millionths(open.2),
            open_max: Duration::from_millis(open.0 + open.1),
            probes: counts.2,
            probe_timeout: times.0,
            ramp_start: Rate::new(times.2, Duration::from_secs(1)).unwrap(),
            ramp_step: times.1,
        },
    )
}

fn sound_limit() -> impl Strategy<Value = LimitConfig> {
    let rate =
        (100_000u64..100_000_000).prop_map(|m| Rate::new(m, Duration::from_secs(1)).unwrap());
    (
        option::of(rate),
        1u32..5,
        1u32..=1_000_000,
        0u32..=1_000_000,
    )
        .prop_map(|(rate, burst, decrease, increase)| LimitConfig {
            rate,
            burst,
            // Lost attempts keep their places: the stories have concurrency, the storms have none.
            concurrency: None,
            decrease: Ratio::from_millionths(decrease),
            increase: Ratio::from_millionths(increase),
        })
}

fn retry_after() -> impl Strategy<Value = RetryAfter> {
    (
        option::of(millis(0..600_000)),
        0u32..3_000_000,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(max, spread, give_up, hold)| RetryAfter {
            max,
            spread: Ratio::from_millionths(spread),
            over_max: if give_up {
                OverMax::GiveUp
            } else {
                OverMax::Clamp
            },
            vendors: VendorHints::NONE,
            hold,
        })
}

pub(crate) fn sound() -> impl Strategy<Value = Policy> {
    (
        (
            mode(),
            sound_backoff(),
            select(vec![0u32, 1, 1, 2, 3, 7]),
            option::of(1u32..5),
        ),
        (option::of(millis(1_000..7_200_000)), millis(1..60_000)),
        retry_after(),
        option::of(sound_budget()),
        option::of(sound_breaker()),
        sound_limit(),
    )
        .prop_map(
            |(
                (mode, backoff, retries, suspend_after),
                times,
                retry_after,
                budget,
                breaker,
                limit,
            )| {
                Policy {
                    mode,
                    backoff,
                    retries,
                    window: times.0,
                    attempt_timeout: times.1,
                    retry_after,
                    budget,
                    breaker,
                    limit,
                    rules: Rules {
                        already_done: StatusSet::of(&[208, 409]),
                        ..Rules::default()
                    },
                    suspend_after,
                }
            },
        )
}

/// The edges of a duration, and what lies between.
fn any_duration() -> impl Strategy<Value = Duration> {
    select(vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_nanos(9),
        Duration::from_millis(1),
        Duration::from_secs(1),
        Duration::from_secs(86_400 * 400),
        Duration::from_nanos(u64::MAX),
        Duration::MAX,
    ])
}

fn any_u32() -> impl Strategy<Value = u32> {
    select(vec![0, 1, 2, 3, 17, 1_000_000, u32::MAX - 1, u32::MAX])
}

fn any_ratio() -> impl Strategy<Value = Ratio> {
    any_u32().prop_map(Ratio::from_millionths)
}

fn any_rate() -> impl Strategy<Value = Rate> {
    select(vec![
        Rate::per_second(0),
        Rate::per_second(1),
        Rate::per_second(u32::MAX),
        Rate::new(1_000_000, Duration::from_secs(366 * 86_400)).unwrap(),
        Rate::new(1_000_000, Duration::from_nanos(1)).unwrap(),
    ])
}

fn any_breaker() -> impl Strategy<Value = BreakerConfig> {
    let window = prop_oneof![
        any_duration().prop_map(CallWindow::Time),
        any_u32().prop_map(CallWindow::Count)
    ];
    let rates = (
        option::of(any_ratio()),
        option::of(any_ratio()),
        any_ratio(),
        any_rate(),
    );
    let counts = (any_u32(), option::of(any_u32()), any::<u8>());
    let times = (
        any_duration(),
        any_duration(),
        any_duration(),
        any_duration(),
    );
    (window, rates, counts, times, any_duration()).prop_map(
        |(window, rates, counts, times, ramp_step)| BreakerConfig {
            failure_rate: rates.0,
            slow_rate: rates.1,
            slow_call: times.0,
            min_calls: counts.0,
            window,
            consecutive: counts.1,
            open: times.1,
            open_jitter: rates.2,
            open_max: times.2,
            probes: counts.2,
            probe_timeout: times.3,
            ramp_start: rates.3,
            ramp_step,
        },
    )
}

/// Any policy at all, sound or not.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let factor = select(vec![
        f64::NAN,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        0.5,
        1.0,
        2.0,
        1e300,
        f64::INFINITY,
    ]);
    let backoff = (any_duration(), factor, any_duration(), jitter()).prop_map(
        |(base, factor, cap, jitter)| Backoff {
            base,
            factor,
            cap,
            jitter,
        },
    );
    let budget = (
        any_ratio(),
        any_duration(),
        any_u32(),
        option::of(any_rate()),
        any::<bool>(),
    )
        .prop_map(|(ratio, window, reserve, trickle, success)| BudgetConfig {
            ratio,
            window,
            reserve,
            trickle,
            deposit: if success {
                Deposit::Success
            } else {
                Deposit::Request
            },
        });
    let limit = (
        option::of(any_rate()),
        any_u32(),
        option::of(any_u32()),
        any_ratio(),
        any_ratio(),
    )
        .prop_map(
            |(rate, burst, concurrency, decrease, increase)| LimitConfig {
                rate,
                burst,
                concurrency,
                decrease,
                increase,
            },
        );
    let rules = option::of(Just(
        RetryOn::EMPTY.with_status(500).with_word("reset").unwrap(),
    ));
    (
        (mode(), backoff, any_u32(), option::of(any_u32())),
        (option::of(any_duration()), any_duration(), rules),
        (option::of(any_duration()), any_ratio(), any::<bool>()),
        option::of(budget),
        option::of(any_breaker()),
        limit,
    )
        .prop_map(
            |((mode, backoff, retries, suspend_after), times, hints, budget, breaker, limit)| {
                Policy {
                    mode,
                    backoff,
                    retries,
                    window: times.0,
                    attempt_timeout: times.1,
                    retry_after: RetryAfter {
                        max: hints.0,
                        spread: hints.1,
                        over_max: if hints.2 {
                            OverMax::GiveUp
                        } else {
                            OverMax::Clamp
                        },
                        vendors: VendorHints::NONE,
                        hold: true,
                    },
                    budget,
                    breaker,
                    limit,
                    rules: Rules {
                        retry_on: times.2,
                        already_done: StatusSet::of(&[208]),
                        ..Rules::default()
                    },
                    suspend_after,
                }
            },
        )
}
