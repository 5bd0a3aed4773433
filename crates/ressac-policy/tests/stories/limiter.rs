//! Rate and concurrency.

use ressac_policy::{Because, Decision, LimitConfig, Policy, Rate};

use crate::common::*;

fn limited(rate: Option<Rate>, concurrency: Option<u32>) -> Policy {
    let policy = Policy::durable();
    Policy {
        limit: LimitConfig {
            rate,
            concurrency,
            ..policy.limit
        },
        ..bare(policy)
    }
}

#[test]
fn li_3_every_429_lowers_the_limit_with_no_retries_at_all() {
    let policy = Policy {
        retries: 0,
        ..limited(None, Some(10))
    };
    let mut world = World::new(policy);
    world.one(status(429));
    let share = world.partner.view(world.now).limit_share;
    assert!((share - 0.7).abs() < 1e-9, "{share}");
}

#[test]
fn li_4_a_reload_fills_no_bucket_and_closes_no_breaker() {
    let mut world = World::new(Policy::sync());
    for _ in 0..5 {
        let (mut operation, _) = world.one(status(503));
        world.cancel(&mut operation);
    }
    for _ in 0..3 {
        world.later(secs(1));
    }
    let before = world.partner.view(world.now);
    assert_eq!(before.gate.as_str(), "open");
    let now = world.now;
    for retries in 0..10 {
        let policy = Policy {
            retries,
            ..Policy::sync()
        };
        world.partner.set_policy(policy, now);
    }
    assert_eq!(world.partner.view(world.now), before);
}

#[test]
fn li_4_a_reload_with_another_trickle_makes_no_tokens() {
    let budget = |trickle| ressac_policy::BudgetConfig {
        trickle,
        ratio: ressac_policy::Ratio::ZERO,
        reserve: 1_000,
        ..ressac_policy::BudgetConfig::default()
    };
    let policy = |trickle| Policy {
        budget: Some(budget(trickle)),
        retries: 2_000,
        ..bare(Policy::sync())
    };
    for old in [None, Rate::new(1, secs(7))] {
        let mut world = World::new(policy(old));
        let (mut operation, decision) = world.one(status(503));
        world.now = wait_of(decision).until;
        world.send(&mut operation);
        world.later(secs(3_600));
        let before = world.partner.view(world.now).tokens.unwrap();
        let now = world.now;
        let fast = Some(Rate::per_second(1_000));
        world.partner.set_policy(policy(fast), now);
        let after = world.partner.view(world.now).tokens.unwrap();
        assert!((before - after).abs() < 1e-9, "{before} {after}");
    }
}

#[test]
fn a_place_taken_back_by_a_reply_is_free_at_once() {
    let mut world = World::new(limited(None, Some(1)));
    let (mut first, mut second) = (world.get(), world.get());
    world.send(&mut first);
    let wait = world.waits(&mut second);
    assert_eq!(wait.because, Because::Concurrency);
    assert_eq!(wait.until, second.deadline(), "no time is promised");
    world.told(&mut first, status(200));
    world.send(&mut second);
}

#[test]
fn the_rate_is_kept_over_a_minute() {
    let mut world = World::new(limited(Some(Rate::per_second(5)), None));
    let mut sent = 0;
    let end = world.now + secs(60);
    while world.now < end {
        let mut operation = world.get();
        match world.poll(&mut operation) {
            Decision::Send(_) => {
                sent += 1;
                world.told(&mut operation, status(200));
            }
            Decision::Wait(wait) => world.now = wait.until,
            Decision::End(end) => panic!("{end}"),
        }
    }
    assert_eq!(sent, 300);
}

#[test]
fn waiting_for_a_limit_uses_up_no_retry() {
    let mut world = World::new(limited(Some(Rate::per_second(1)), Some(1)));
    let (mut operation, _) = world.one(status(503));
    for _ in 0..50 {
        world.later(secs(5));
        world.one(status(200));
        let wait = world.waits(&mut operation);
        assert!(matches!(wait.because, Because::Rate | Because::Backoff));
    }
    assert_eq!(operation.retries(), 0);
}
