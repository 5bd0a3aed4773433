//! The window: nothing is sent after it, and nobody sleeps for nothing.

use ressac_policy::{Because, Decision, OperationSpec, OutcomeKind, Policy, Reason};

use crate::common::*;

#[test]
fn wd_1_what_the_window_cuts_short_is_followed_by_nothing() {
    let mut world = World::new(Policy {
        window: Some(secs(20)),
        ..bare(Policy::sync())
    });
    let mut operation = world.get();
    let deadline = operation.deadline();
    let (end, sent) = world.drive(&mut operation, |_| kind(OutcomeKind::Reset));
    assert!(matches!(
        end.reason,
        Reason::Exhausted | Reason::WindowClosed
    ));
    assert!(sent.iter().all(|moment| *moment < deadline));
    world.now = deadline;
    ended(world.poll(&mut operation), end.reason);
}

#[test]
fn wd_3_a_wait_past_the_window_ends_at_once_without_sleeping() {
    for policy in [Policy::sync(), Policy::durable()] {
        let policy = Policy {
            window: Some(secs(60)),
            ..policy
        };
        let mut world = World::new(policy.clone());
        ended(world.one(told(503, 60)).1, Reason::WindowClosed);
        let mut world = World::new(policy);
        wait_of(world.one(told(503, 59)).1);
    }
}

#[test]
fn the_jitter_is_drawn_inside_what_the_window_leaves() {
    for seed in 0..200 {
        let mut world = World::seeded(
            Policy {
                window: Some(secs(61)),
                ..Policy::sync()
            },
            seed,
        );
        let (operation, decision) = world.one(told(503, 60));
        assert!(wait_of(decision).until < operation.deadline());
    }
}

#[test]
fn nothing_is_sent_at_the_deadline_itself_and_the_last_moment_before_is_fine() {
    let mut world = World::new(Policy::sync());
    let (mut early, mut late) = (world.get(), world.get());
    world.now = START + (secs(300) - std::time::Duration::from_nanos(1));
    let attempt = world.send(&mut early);
    assert_eq!(attempt.timeout.as_nanos(), 1, "what the window leaves");
    world.now = START + secs(300);
    ended(world.poll(&mut late), Reason::WindowClosed);
}

#[test]
fn deliver_by_beats_a_longer_window_and_not_a_shorter_one() {
    let world = World::new(Policy::sync());
    let by = |seconds| {
        let spec = OperationSpec::new("GET").deliver_by(START + secs(seconds));
        world.operation(&spec).deadline()
    };
    assert_eq!(by(10), START + secs(10));
    assert_eq!(by(10_000), START + secs(300));
}

#[test]
fn wd_4_the_attempt_timeout_is_its_own_setting() {
    let mut world = World::new(Policy::sync());
    let mut operation = world.get();
    assert_eq!(world.send(&mut operation).timeout, secs(10));
    world.told(&mut operation, kind(OutcomeKind::Timeout));
    world.later(secs(2));
    assert_eq!(world.send(&mut operation).timeout, secs(10));
}

#[test]
fn a_hold_past_the_window_closes_it_at_once_even_before_a_first_attempt() {
    let mut world = World::new(Policy::durable());
    world.one(told(503, 3_600));
    let spec = OperationSpec::new("GET").deliver_by(world.now + secs(600));
    let mut operation = world.operation(&spec);
    let end = end_of(world.poll(&mut operation));
    assert_eq!((end.reason, end.attempts), (Reason::WindowClosed, 0));
}

#[test]
fn waiting_for_a_token_ends_with_the_window() {
    let config = ressac_policy::BudgetConfig {
        reserve: 0,
        ..ressac_policy::BudgetConfig::default()
    };
    let mut world = World::new(Policy {
        budget: Some(config),
        ..bare(Policy::durable())
    });
    let (mut operation, decision) = world.one(status(503));
    world.now = wait_of(decision).until;
    let wait = world.waits(&mut operation);
    assert_eq!(wait.because, Because::Budget);
    assert!(wait.until <= operation.deadline());
    world.now = operation.deadline();
    ended(world.poll(&mut operation), Reason::WindowClosed);
}

#[test]
fn a_window_that_is_off_never_closes() {
    let mut world = World::new(Policy {
        window: None,
        retries: 100,
        ..bare(Policy::sync())
    });
    let (mut operation, decision) = world.one(told(503, 60));
    wait_of(decision);
    world.later(secs(10 * 365 * 86_400));
    assert!(matches!(world.poll(&mut operation), Decision::Send(_)));
}
