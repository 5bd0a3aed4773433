//! Retry-After: floor, jitter, maximum, holds.

use ressac_policy::{
    AttemptKind, Backoff, Because, Decision, Hint, HintSource, Jitter, Operation, OutcomeKind,
    OverMax, Policy, Ratio, Reason, RetryAfter,
};

use crate::common::*;

fn retry_after(policy: Policy, change: impl FnOnce(RetryAfter) -> RetryAfter) -> Policy {
    Policy {
        retry_after: change(policy.retry_after),
        ..policy
    }
}

#[test]
fn ra_2_a_zero_on_every_reply_is_no_hot_loop() {
    for jitter in [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
    ] {
        let mut policy = bare(Policy::sync());
        policy.backoff.jitter = jitter;
        let mut total = secs(0);
        for seed in 0..50 {
            let mut world = World::seeded(policy.clone(), seed);
            let mut operation = world.get();
            let (end, sent) = world.drive(&mut operation, |_| told(503, 0));
            assert_eq!((end.reason, sent.len()), (Reason::Exhausted, 6));
            total += sent[5].since(sent[0]);
        }
        // The ceilings 0.5, 1, 2, 4, 8 s are drawn to their middle.
        let mean = total / 50;
        assert!(mean > secs(5) && mean < secs(17), "{jitter:?} {mean:?}");
    }
}

#[test]
fn ra_3_never_before_the_named_time_on_any_retryable_status() {
    for code in [408, 425, 429, 502, 503, 504] {
        for seed in 0..100 {
            let mut world = World::seeded(Policy::sync(), seed);
            let wait = wait_of(world.one(told(code, 120)).1);
            assert_eq!(wait.because, Because::RetryAfter);
            let waited = wait.until.since(world.now);
            assert!(
                waited >= secs(120) && waited <= secs(240),
                "{code}: {waited:?}"
            );
        }
    }
}

#[test]
fn fifty_clients_told_sixty_come_back_spread_over_a_minute() {
    let mut bins = [0; 60];
    for seed in 0..50 {
        let mut world = World::seeded(Policy::sync(), seed);
        let wait = wait_of(world.one(told(503, 60)).1);
        let late = wait.until.since(world.now) - secs(60);
        bins[(late.as_secs() as usize).min(59)] += 1;
    }
    assert!(bins.iter().max().unwrap() <= &9, "{bins:?}");
}

#[test]
fn no_jitter_means_exactly_the_floor() {
    let mut policy = Policy::durable();
    policy.backoff.jitter = Jitter::None;
    let mut world = World::new(policy);
    let wait = wait_of(world.one(told(503, 60)).1);
    assert_eq!(wait.until, world.now + secs(60));
    assert_eq!(world.partner.readiness(world.now).at, world.now + secs(60));
}

#[test]
fn a_backoff_longer_than_the_spread_stays_the_jitter() {
    let policy = Policy {
        backoff: Backoff {
            base: secs(600),
            cap: secs(600),
            ..Backoff::default()
        },
        window: None,
        ..bare(Policy::sync())
    };
    let longest = (0..100)
        .map(|seed| {
            let mut world = World::seeded(policy.clone(), seed);
            wait_of(world.one(told(503, 1)).1).until.since(world.now)
        })
        .max()
        .unwrap();
    assert!(longest > secs(500) && longest <= secs(601), "{longest:?}");
}

#[test]
fn ra_7_a_shell_that_wakes_early_is_sent_back_to_wait() {
    let mut world = World::new(Policy::sync());
    let (mut operation, decision) = world.one(told(429, 30));
    let until = wait_of(decision).until;
    world.now = START + (until.since(START) - ms(11));
    assert_eq!(world.waits(&mut operation).until, until);
    world.now = until;
    world.send(&mut operation);
}

#[test]
fn ra_8_a_unix_time_as_seconds_is_clamped_and_reported_whole() {
    let mut world = World::new(Policy::sync());
    let wait = wait_of(world.one(told(503, 1_796_040_000)).1);
    assert_eq!(wait.floor, secs(120));
    assert_eq!(wait.hint.unwrap().wait, secs(1_796_040_000));
}

#[test]
fn ra_8_give_up_ends_at_once_with_the_whole_hint() {
    let policy = retry_after(Policy::sync(), |r| RetryAfter {
        over_max: OverMax::GiveUp,
        ..r
    });
    let mut world = World::new(policy);
    let end = end_of(world.one(told(503, 121)).1);
    assert_eq!(end.reason, Reason::HintOverMax);
    assert_eq!(end.hint.unwrap().wait, secs(121));
    // The maximum itself is obeyed.
    assert_eq!(wait_of(world.one(told(503, 120)).1).floor, secs(120));
}

#[test]
fn ra_8_an_absurd_hint_does_not_close_a_durable_partner_for_decades() {
    let longest = Hint {
        wait: std::time::Duration::MAX,
        source: HintSource::RetryAfter,
    };
    for hint in [hint(1_796_040_000).unwrap(), longest] {
        let mut world = World::new(Policy::durable());
        ended(
            world.one(status(503).with_hint(Some(hint))).1,
            Reason::WindowClosed,
        );
        let ready = world.partner.readiness(world.now);
        // The window, and as much again of spread.
        assert!(ready.at <= world.now + secs(2 * 86_400), "{ready:?}");
        let now = world.now;
        world.partner.resume(now);
        let mut operation = world.get();
        world.send(&mut operation);
    }
}

#[test]
fn a_durable_operation_waits_the_whole_hint_whatever_the_maximum() {
    let policy = retry_after(Policy::durable(), |r| RetryAfter {
        max: Some(secs(60)),
        over_max: OverMax::GiveUp,
        ..r
    });
    let mut world = World::new(policy);
    let wait = wait_of(world.one(told(503, 3_600)).1);
    assert_eq!(wait.floor, secs(3_600));
    assert!(world.partner.readiness(world.now).at >= world.now + secs(3_600));
}

#[test]
fn a_hint_holds_the_durable_partner_for_all_then_one_probe_then_a_paced_drain() {
    let mut world = World::new(Policy::durable());
    world.one(told(429, 60));
    let mut others: Vec<Operation> = (0..20).map(|_| world.get()).collect();
    for operation in &mut others {
        let wait = world.waits(operation);
        assert_eq!(wait.because, Because::Hold);
        assert!(wait.until >= world.now + secs(60));
    }
    world.now = world.partner.readiness(world.now).at;
    let sent = |world: &mut World, others: &mut [Operation]| {
        others
            .iter_mut()
            .filter(|operation| operation.ended().is_none())
            .filter(|operation| operation.attempts() == 0)
            .filter_map(|operation| {
                matches!(world.poll(operation), Decision::Send(_)).then_some(())
            })
            .count()
    };
    assert_eq!(sent(&mut world, &mut others), 1, "one probe");
    world.told(&mut others[0], status(200));
    assert_eq!(sent(&mut world, &mut others), 0, "paced from the start");
    world.later(secs(1));
    assert_eq!(sent(&mut world, &mut others), 1);
}

#[test]
fn the_drain_after_a_hold_is_paced_without_a_breaker_too() {
    let mut world = World::new(bare(Policy::durable()));
    world.one(told(503, 60));
    world.now = world.partner.readiness(world.now).at;
    let mut probe = world.get();
    world.send(&mut probe);
    world.told(&mut probe, status(200));
    let mut next = world.get();
    assert_eq!(world.waits(&mut next).because, Because::Ramp);
}

#[test]
fn a_hints_retry_is_a_probe_that_uses_no_retry_and_no_token() {
    let mut world = World::new(Policy::durable());
    let (mut operation, decision) = world.one(told(503, 60));
    world.now = wait_of(decision)
        .until
        .max(world.partner.readiness(world.now).at);
    let before = world.partner.view(world.now).tokens;
    assert_eq!(world.send(&mut operation).kind, AttemptKind::Probe);
    assert_eq!(operation.retries(), 0);
    assert_eq!(world.partner.view(world.now).tokens, before);
}

#[test]
fn hold_and_breaker_together_the_later_moment_and_the_smaller_number() {
    let mut world = World::new(Policy::durable());
    let mut late = world.get();
    world.send(&mut late);
    for _ in 0..5 {
        world.one(status(503));
    }
    let breaker = world.partner.readiness(world.now);
    assert_eq!(breaker.because, Because::Breaker);
    // In flight since before it opened: its hint still counts.
    world.told(&mut late, told(503, 100));
    let both = world.partner.readiness(world.now);
    assert_eq!(both.because, Because::Hold);
    assert!(both.at >= world.now + secs(100));
    world.now = both.at;
    let (mut one, mut two) = (world.get(), world.get());
    world.send(&mut one);
    assert_eq!(world.waits(&mut two).because, Because::Probe);
}

#[test]
fn a_short_hold_does_not_shorten_an_open_breaker() {
    let mut world = World::new(Policy::durable());
    let mut late = world.get();
    world.send(&mut late);
    for _ in 0..5 {
        world.one(status(503));
    }
    let before = world.partner.readiness(world.now).at;
    let hint = Hint {
        wait: ms(1),
        source: HintSource::RetryAfter,
    };
    world.told(&mut late, status(429).with_hint(Some(hint)));
    assert_eq!(world.partner.readiness(world.now).at, before);
}

#[test]
fn a_hold_met_with_all_places_taken_is_waited_for_not_failed() {
    // Eight in flight, and a 429 lowers the concurrency to five at the very moment it holds: what
    // cannot be said of time must not be taken for the end of it.
    let mut world = World::new(Policy::durable());
    let mut flying: Vec<Operation> = (0..8).map(|_| world.get()).collect();
    for operation in &mut flying {
        world.send(operation);
    }
    let decision = world.told(&mut flying[0], told(429, 60));
    let wait = wait_of(decision);
    assert!(wait.until < world.now + secs(200));
    let mut fresh = world.get();
    let wait = world.waits(&mut fresh);
    assert_eq!(wait.because, Because::Hold);
    assert!(wait.until < world.now + secs(200), "{wait:?}");
}

#[test]
fn vr_10_a_timeout_is_backed_off_like_everything_else() {
    for outcome in [
        kind(OutcomeKind::Timeout),
        kind(OutcomeKind::Reset),
        kind(OutcomeKind::Dns),
        status(504),
    ] {
        let mut policy = bare(Policy::sync());
        policy.backoff.jitter = Jitter::None;
        let mut world = World::new(policy);
        let mut operation = world.get();
        let (_, sent) = world.drive(&mut operation, |_| outcome);
        let gaps: Vec<_> = sent.windows(2).map(|w| w[1].since(w[0])).collect();
        assert_eq!(gaps, [ms(500), secs(1), secs(2), secs(4), secs(8)]);
    }
}

#[test]
fn spread_is_a_share_of_the_floor() {
    let policy = retry_after(bare(Policy::sync()), |r| RetryAfter {
        spread: Ratio::from_f64(0.1).unwrap(),
        ..r
    });
    for seed in 0..100 {
        let mut world = World::seeded(policy.clone(), seed);
        let wait = wait_of(world.one(told(503, 100)).1);
        let waited = wait.until.since(world.now);
        assert!(waited >= secs(100) && waited <= secs(110), "{waited:?}");
    }
}
