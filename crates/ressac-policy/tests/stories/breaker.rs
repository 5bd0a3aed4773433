//! Breaker, half-open and the paced drain.

use ressac_policy::{
    AttemptKind, Because, BreakerConfig, CallWindow, Decision, Operation, OutcomeKind, Partner,
    Policy, Reason,
};

use crate::common::*;

/// Opens the breaker: five failures in a row.
fn opened(policy: Policy) -> World {
    let mut world = World::new(policy);
    for _ in 0..5 {
        world.one(status(503));
    }
    assert_eq!(world.gate(), "open");
    world
}

fn half_open(policy: Policy) -> World {
    let mut world = opened(policy);
    world.later(secs(60));
    world
}

#[test]
fn br_1_a_hundred_callers_at_half_open_and_only_the_probes_pass() {
    let mut world = half_open(Policy::sync());
    let mut passed = 0;
    for _ in 0..100 {
        let mut operation = world.get();
        match world.poll(&mut operation) {
            Decision::Send(_) => passed += 1,
            other => ended(other, Reason::CircuitOpen),
        }
    }
    assert_eq!(passed, 3);
}

#[test]
fn br_2_a_probe_that_hangs_gives_its_place_back() {
    let mut world = half_open(Policy::sync());
    let mut hung: Vec<Operation> = (0..3).map(|_| world.get()).collect();
    for operation in &mut hung {
        world.send(operation);
    }
    let mut next = world.get();
    ended(world.poll(&mut next), Reason::CircuitOpen);

    world.later(secs(11));
    let mut fresh: Vec<Operation> = (0..3).map(|_| world.get()).collect();
    for operation in &mut fresh {
        world.send(operation);
    }
    // A word that comes too late says nothing about the probes that are out now.
    for operation in &mut hung {
        world.told(operation, status(503));
    }
    assert_eq!(world.gate(), "half_open");
    for operation in &mut fresh {
        world.told(operation, status(200));
    }
    assert_eq!(world.gate(), "closed");
}

#[test]
fn br_2_the_timeout_of_a_hanging_probe_is_heard_before_its_place_is_given_away() {
    let mut world = half_open(Policy::sync());
    let mut hung = world.get();
    let limit = world.send(&mut hung).timeout;
    for _ in 0..2 {
        let mut operation = world.get();
        world.send(&mut operation);
    }
    world.later(limit);
    let mut eager = world.get();
    ended(world.poll(&mut eager), Reason::CircuitOpen);
    world.told(&mut hung, kind(OutcomeKind::Timeout));
    assert_eq!(world.gate(), "open");
}

#[test]
fn br_3_cancelled_calls_are_no_failures_and_a_cancelled_probe_gives_its_place_back() {
    let mut world = World::new(Policy::sync());
    for _ in 0..100 {
        let mut operation = world.get();
        world.send(&mut operation);
        world.cancel(&mut operation);
    }
    assert_eq!(world.gate(), "closed");
    assert_eq!(world.partner.view(world.now).in_flight, 0);

    let mut world = half_open(Policy::sync());
    for _ in 0..20 {
        let mut operation = world.get();
        world.send(&mut operation);
        world.cancel(&mut operation);
    }
    assert_eq!(world.gate(), "half_open");
}

#[test]
fn br_4_asking_takes_no_place() {
    let mut world = half_open(Policy::sync());
    let before = world.partner.state().clone();
    for _ in 0..100 {
        let _ = world.partner.readiness(world.now);
        let _ = world.partner.budget_readiness(world.now);
        let _ = world.partner.view(world.now);
        let _ = world.partner.next_is_probe();
    }
    assert_eq!(*world.partner.state(), before);
    let mut operation = world.get();
    world.send(&mut operation);
}

#[test]
fn br_5_failures_that_come_after_it_opened_neither_prolong_nor_shorten_it() {
    let mut world = World::new(Policy::sync());
    let mut all: Vec<Operation> = (0..20).map(|_| world.get()).collect();
    for operation in &mut all {
        world.send(operation);
    }
    for operation in &mut all[..5] {
        world.told(operation, status(503));
    }
    let opened = world.partner.view(world.now).gate;
    world.later(secs(1));
    for operation in &mut all[5..] {
        world.told(operation, status(503));
    }
    assert_eq!(world.partner.view(world.now).gate, opened);
    world.later(secs(60));
    let mut operation = world.get();
    world.send(&mut operation);
}

#[test]
fn br_6_fewer_probes_than_min_calls_close_it_all_the_same() {
    let mut world = half_open(Policy::sync());
    for _ in 0..3 {
        world.one(status(200));
    }
    assert_eq!(world.gate(), "closed");
}

#[test]
fn br_7_a_probe_that_meets_a_404_does_not_open_it_again() {
    let mut world = half_open(Policy::sync());
    for _ in 0..3 {
        world.one(status(404));
    }
    assert_eq!(world.gate(), "closed");
}

#[test]
fn br_8_more_than_the_limit_at_once_opens_it_too() {
    // The limit is lowered under a run that is past it already.
    let policy = |consecutive| Policy {
        breaker: Some(BreakerConfig {
            consecutive,
            failure_rate: None,
            ..BreakerConfig::default()
        }),
        ..Policy::sync()
    };
    let mut world = World::new(policy(Some(50)));
    for _ in 0..19 {
        world.one(status(503));
    }
    let now = world.now;
    world.partner.set_policy(policy(Some(10)), now);
    world.one(status(503));
    assert_eq!(world.gate(), "open");
}

#[test]
fn br_9_an_open_breaker_resumes_by_itself_and_on_an_operators_word() {
    let mut world = opened(Policy::durable());
    let mut operation = world.get();
    let wait = world.waits(&mut operation);
    assert_eq!(wait.because, Because::Breaker);
    world.now = wait.until;
    world.send(&mut operation);

    let mut world = opened(Policy::durable());
    let now = world.now;
    world.partner.resume(now);
    let mut operation = world.get();
    world.send(&mut operation);
    assert_eq!(world.gate(), "half_open", "a probe, not a flood");
}

#[test]
fn br_10_an_open_breaker_answers_before_anything_is_sent() {
    let mut world = opened(Policy::sync());
    let mut operation = world.get();
    let end = end_of(world.poll(&mut operation));
    assert_eq!((end.reason, end.attempts), (Reason::CircuitOpen, 0));
}

#[test]
fn br_11_redirects_are_no_outage() {
    let mut world = World::new(Policy::sync());
    for _ in 0..50 {
        ended(world.one(status(302)).1, Reason::Permanent);
    }
    assert_eq!(world.gate(), "closed");
}

#[test]
fn br_12_every_attempt_counts_not_every_call() {
    let mut world = World::new(Policy::sync());
    let mut operation = world.get();
    let (end, sent) = world.drive(&mut operation, |_| status(503));
    assert_eq!((end.reason, sent.len()), (Reason::CircuitOpen, 5));
    assert_eq!(world.gate(), "open");
}

#[test]
fn a_failed_probe_opens_for_longer_up_to_the_maximum() {
    let mut world = opened(Policy::durable());
    let mut last = secs(0);
    for round in 0..12 {
        let readiness = world.partner.readiness(world.now);
        last = readiness.at.since(world.now);
        assert!(last <= secs(60), "round {round}: {last:?}");
        world.now = readiness.at;
        let mut operation = world.get();
        let attempt = world.send(&mut operation);
        assert_eq!(attempt.kind, AttemptKind::First);
        world.told(&mut operation, kind(OutcomeKind::Refused));
        assert_eq!(world.gate(), "open");
    }
    assert!(last >= secs(20), "{last:?}");
}

#[test]
fn open_times_of_many_instances_are_spread() {
    let mut times: Vec<_> = (0..200)
        .map(|seed| {
            let mut world = World::seeded(Policy::sync(), seed);
            for _ in 0..5 {
                world.one(status(503));
            }
            world.partner.readiness(world.now).at.since(world.now)
        })
        .collect();
    times.sort_unstable();
    assert!(times[0] >= ms(2_500) && times[199] <= ms(7_500));
    assert!(times[199] - times[0] > secs(4));
}

#[test]
fn the_rate_counts_only_from_min_calls_on() {
    let policy = Policy {
        breaker: Some(BreakerConfig {
            consecutive: None,
            window: CallWindow::Count(100),
            ..BreakerConfig::default()
        }),
        ..Policy::sync()
    };
    let mut world = World::new(policy);
    for call in 0..19 {
        world.one(status(if call % 2 == 0 { 503 } else { 200 }));
        assert_eq!(world.gate(), "closed", "call {call}");
    }
    world.one(status(503));
    assert_eq!(world.gate(), "open");
}

#[test]
fn slow_calls_open_it_where_a_rate_is_set() {
    let mut config = BreakerConfig {
        slow_rate: ressac_policy::Ratio::from_f64(0.5),
        ..BreakerConfig::default()
    };
    config.slow_call = secs(2);
    let mut world = World::new(Policy {
        breaker: Some(config),
        ..Policy::sync()
    });
    for _ in 0..20 {
        assert_eq!(world.gate(), "closed");
        world.one(status(200).took(secs(2)));
    }
    assert_eq!(world.gate(), "open");
}

#[test]
fn after_closing_the_drain_is_paced_and_grows() {
    let mut world = half_open(Policy::durable());
    for _ in 0..3 {
        world.one(status(200));
    }
    let closed = world.now;
    let mut sent = [0usize; 30];
    for _ in 0..2_000 {
        let mut operation = world.get();
        loop {
            match world.poll(&mut operation) {
                Decision::Send(_) => break,
                Decision::Wait(wait) => world.now = wait.until,
                Decision::End(end) => panic!("{end:?}"),
            }
        }
        world.told(&mut operation, status(200));
        sent[world.now.since(closed).as_secs() as usize] += 1;
    }
    assert!(sent[0] <= 1 && sent[1] <= 2, "{sent:?}");
    assert!(sent[6] >= 4 && sent[6] <= 16, "{sent:?}");
}

#[test]
fn breaker_off_never_opens() {
    let mut world = World::new(bare(Policy::sync()));
    for _ in 0..1_000 {
        world.one(kind(OutcomeKind::Refused));
    }
    assert_eq!(world.gate(), "closed");
}

#[test]
fn a_restart_while_half_open_leaves_no_place_taken() {
    let mut world = half_open(Policy::sync());
    let mut out: Vec<Operation> = (0..3).map(|_| world.get()).collect();
    for operation in &mut out {
        world.send(operation);
    }
    let state = world.partner.state().clone();
    world.partner = Partner::restore(Policy::sync(), state, world.now);
    assert_eq!(world.partner.view(world.now).in_flight, 0);
    let mut fresh = world.get();
    world.send(&mut fresh);
    // Those of before the restart count for nothing, and give back no place that is not theirs.
    for operation in &mut out {
        world.told(operation, status(503));
    }
    assert_eq!(world.gate(), "half_open");
    assert_eq!(world.partner.view(world.now).in_flight, 1);
}

#[test]
fn a_state_stored_by_a_clock_ten_years_ahead_does_not_keep_it_shut() {
    let mut world = World::new(Policy::durable());
    world.later(secs(10 * 365 * 86_400));
    world.one(told(503, 30));
    let state = world.partner.state().clone();
    world.now = START;
    world.partner = Partner::restore(Policy::durable(), state, world.now);
    let readiness = world.partner.readiness(world.now);
    assert!(
        readiness.at <= world.now + secs(2 * 86_400),
        "{readiness:?}"
    );
}
