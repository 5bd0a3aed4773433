//! Suspension: a wrong password never empties a queue into dead letters.

use ressac_policy::{Because, Decision, Operation, OperationSpec, OutcomeKind, Policy, Reason};

use crate::common::*;

fn post(world: &World) -> Operation {
    world.operation(&OperationSpec::new("POST"))
}

/// Two end as permanent, the third suspends the partner and waits.
fn suspended() -> (World, Operation) {
    let mut world = World::new(Policy::durable());
    for _ in 0..2 {
        let mut operation = post(&world);
        world.send(&mut operation);
        ended(world.told(&mut operation, status(401)), Reason::Permanent);
    }
    let mut third = post(&world);
    world.send(&mut third);
    because(world.told(&mut third, status(401)), Because::Suspension);
    assert!(world.partner.is_suspended());
    (world, third)
}

#[test]
fn three_refusals_in_a_row_suspend_and_messages_wait() {
    let (mut world, _) = suspended();
    for _ in 0..100 {
        let mut operation = post(&world);
        assert_eq!(world.waits(&mut operation).because, Because::Suspension);
    }
}

#[test]
fn a_day_of_wrong_password_costs_no_more_messages() {
    let (mut world, mut third) = suspended();
    let mut probes = 0;
    while world.now < START + secs(80_000) {
        match world.poll(&mut third) {
            Decision::Send(_) => {
                probes += 1;
                // Now and then it is not even reached: that is no news of the password.
                let outcome = if probes % 5 == 0 {
                    kind(OutcomeKind::Refused)
                } else {
                    status(403)
                };
                world.told(&mut third, outcome);
            }
            Decision::Wait(wait) => world.now = wait.until,
            Decision::End(end) => panic!("probe {probes}: {end}"),
        }
        assert!(world.partner.is_suspended(), "probe {probes}");
    }
    assert!(probes > 1_000 && probes < 3_000, "{probes}");
    let now = world.now;
    world.partner.resume(now);
    world.send(&mut third);
    ended(world.told(&mut third, status(200)), Reason::Delivered);
    assert!(!world.partner.is_suspended());
}

#[test]
fn what_was_in_flight_when_it_was_suspended_waits_too() {
    let mut world = World::new(Policy::durable());
    let mut flying: Vec<_> = (0..8).map(|_| post(&world)).collect();
    for operation in &mut flying {
        world.send(operation);
    }
    let mut ends = 0;
    for operation in &mut flying {
        if let Decision::End(end) = world.told(operation, status(403)) {
            assert_eq!(end.reason, Reason::Permanent);
            ends += 1;
        }
    }
    assert_eq!(ends, 2);
}

#[test]
fn a_message_whose_body_is_gone_does_not_wait_for_nothing() {
    let (mut world, _) = suspended();
    let now = world.now;
    world.partner.resume(now);
    let mut spec = OperationSpec::new("POST");
    spec.repeatable_body = false;
    let mut operation = world.operation(&spec);
    world.send(&mut operation);
    ended(world.told(&mut operation, status(401)), Reason::Permanent);
    assert!(world.partner.is_suspended());
}

#[test]
fn after_the_suspension_a_message_is_a_retry_like_another() {
    let (mut world, third) = suspended();
    let now = world.now;
    world.partner.resume(now);
    let mut probe = post(&world);
    world.send(&mut probe);
    world.told(&mut probe, status(200));
    world.later(secs(60));
    let mut third = third;
    let attempt = world.send(&mut third);
    assert_eq!(attempt.kind, ressac_policy::AttemptKind::Retry);
    assert_eq!(third.retries(), 1);
}

#[test]
fn a_bad_message_among_good_ones_suspends_nobody() {
    let mut world = World::new(Policy::durable());
    for _ in 0..50 {
        world.one(status(404));
        world.one(status(404));
        world.one(status(200));
    }
    assert!(!world.partner.is_suspended());
}

#[test]
fn a_refused_certificate_suspends_as_well() {
    let mut world = World::new(Policy::durable());
    for _ in 0..3 {
        world.one(kind(OutcomeKind::Certificate));
    }
    assert!(world.partner.is_suspended());
}

#[test]
fn who_waits_is_told_at_once_and_nobody_is_suspended() {
    let mut world = World::new(Policy::sync());
    for _ in 0..10 {
        ended(world.one(status(401)).1, Reason::Permanent);
    }
    assert!(!world.partner.is_suspended());
}
