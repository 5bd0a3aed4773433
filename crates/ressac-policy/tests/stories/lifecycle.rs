//! Cancel, take back, crash, replay, store.

use ressac_policy::{
    AttemptKind, Decision, Operation, OperationSpec, OutcomeKind, Policy, Processed, Reason,
};

use crate::common::*;

#[test]
fn ca_1_a_cancel_in_a_wait_ends_it_at_once_and_nothing_more_is_sent() {
    let mut world = World::new(Policy::sync());
    let (mut operation, _) = world.one(told(503, 60));
    let end = end_of(world.cancel(&mut operation));
    assert_eq!((end.reason, end.attempts), (Reason::Cancelled, 1));
    world.later(secs(100));
    ended(world.poll(&mut operation), Reason::Cancelled);
}

#[test]
fn ca_2_a_cancel_in_flight_says_that_it_may_have_arrived_and_blames_nobody() {
    let mut world = World::new(Policy::sync());
    let mut operation = world.get();
    world.send(&mut operation);
    let end = end_of(world.cancel(&mut operation));
    assert_eq!(end.processed, Processed::Maybe);
    assert_eq!(end.blame, None);
    assert_eq!(world.partner.view(world.now).failures, 0);
    // A word that comes after it changes nothing.
    ended(world.told(&mut operation, status(200)), Reason::Cancelled);
}

#[test]
fn a_second_word_about_one_attempt_changes_nothing() {
    let mut world = World::new(Policy::sync());
    let (mut operation, _) = world.one(status(503));
    let (state, copy) = (world.partner.state().clone(), operation.clone());
    world.told(&mut operation, status(200));
    assert_eq!((world.partner.state(), &operation), (&state, &copy));
}

#[test]
fn an_attempt_taken_back_was_never_made() {
    for policy in [Policy::sync(), Policy::durable()] {
        let mut world = World::new(policy);
        let (mut operation, decision) = world.one(status(503));
        world.now = wait_of(decision).until;
        let tokens = world.partner.view(world.now).tokens;
        for _ in 0..100 {
            assert_eq!(world.send(&mut operation).kind, AttemptKind::Retry);
            let (now, partner, rng) = (world.now, &mut world.partner, &mut world.rng);
            operation.take_back(now, partner, rng);
        }
        assert_eq!((operation.attempts(), operation.retries()), (1, 0));
        assert_eq!(world.partner.view(world.now).tokens, tokens);
        assert_eq!(world.partner.view(world.now).in_flight, 0);
    }
}

#[test]
fn a_first_attempt_taken_back_feeds_the_budget_once() {
    let mut world = World::new(Policy::sync());
    for _ in 0..100 {
        world.one(status(200));
    }
    let (mut one, mut other) = (world.get(), world.get());
    world.send(&mut one);
    let fed = world.partner.view(world.now).tokens;
    let (now, partner, rng) = (world.now, &mut world.partner, &mut world.rng);
    one.take_back(now, partner, rng);
    assert!(one.is_fresh());
    assert_eq!(world.send(&mut one).kind, AttemptKind::First);
    assert_eq!(world.partner.view(world.now).tokens, fed);
    world.send(&mut other);
}

#[test]
fn a_probe_taken_back_gives_back_its_place_and_the_retry_of_who_waits() {
    let mut world = World::new(Policy::sync());
    let (mut operation, decision) = world.one(status(503));
    for _ in 0..4 {
        world.one(status(503));
    }
    world.now = wait_of(decision).until;
    world.later(secs(60));
    for _ in 0..10 {
        assert_eq!(world.send(&mut operation).kind, AttemptKind::Probe);
        let (now, partner, rng) = (world.now, &mut world.partner, &mut world.rng);
        operation.take_back(now, partner, rng);
    }
    assert_eq!((operation.attempts(), operation.retries()), (1, 0));
}

#[test]
fn a_replay_is_a_new_series_of_the_same_operation() {
    let mut world = World::new(bare(Policy::sync()));
    let mut operation = world.get();
    world.drive(&mut operation, |_| status(503));
    let mut replay = operation.replay(world.partner.policy(), None, world.now);
    assert_eq!((replay.series(), replay.retries()), (2, 0));
    assert_eq!(replay.deadline(), world.now + secs(300));
    let attempt = world.send(&mut replay);
    assert_eq!((attempt.number, attempt.kind), (7, AttemptKind::First));
    let end = end_of(world.told(&mut replay, status(422)));
    assert_eq!(end.processed, Processed::Yes);
}

#[test]
fn a_replays_key_is_as_old_as_its_first_sending() {
    let mut world = World::new(Policy::durable());
    let spec = OperationSpec::new("POST").with_honoured_key(Some(secs(3_600)));
    let mut operation = world.operation(&spec);
    world.send(&mut operation);
    ended(world.told(&mut operation, status(422)), Reason::Permanent);
    world.later(secs(3_600));
    let mut replay = operation.replay(world.partner.policy(), None, world.now);
    world.send(&mut replay);
    ended(world.told(&mut replay, status(503)), Reason::Ambiguous);
}

#[cfg(feature = "serde")]
mod stored {
    use super::*;
    use ressac_policy::{Partner, PartnerState, Rate};

    fn stored(operation: &Operation) -> Operation {
        serde_json::from_str(&serde_json::to_string(operation).unwrap()).unwrap()
    }

    #[test]
    fn st_an_operation_stored_while_sending_reports_a_crash_and_its_ticket_is_lost() {
        let mut world = World::new(Policy::durable());
        // Half-open, so that there is a place a stale ticket could give back or close with.
        for _ in 0..5 {
            world.one(status(503));
        }
        world.later(secs(60));
        let mut operation = world.get();
        world.send(&mut operation);
        let mut restored = stored(&operation);
        let before = world.partner.state().clone();
        let decision = world.told(&mut restored, kind(OutcomeKind::Crash));
        assert_eq!(wait_of(decision).because, ressac_policy::Because::Backoff);
        assert_eq!(*world.partner.state(), before);
        assert_eq!(restored.processed(), Processed::Maybe);
        // Not even a reply, should a shell find one after all, moves the partner.
        let mut restored = stored(&operation);
        let end = end_of(world.told(&mut restored, status(200)));
        assert_eq!(end.reason, Reason::Delivered);
        assert_eq!(*world.partner.state(), before);
        let mut restored = stored(&operation);
        let (now, rng) = (world.now, &mut world.rng);
        restored.take_back(now, &mut world.partner, rng);
        assert_eq!(*world.partner.state(), before);
    }

    #[test]
    fn st_a_post_without_a_key_that_crashed_in_flight_is_ambiguous() {
        let mut world = World::new(Policy::durable());
        let mut operation = world.operation(&OperationSpec::new("POST"));
        world.send(&mut operation);
        let mut restored = stored(&operation);
        ended(
            world.told(&mut restored, kind(OutcomeKind::Crash)),
            Reason::Ambiguous,
        );
    }

    #[test]
    fn st_nothing_is_in_flight_after_a_restart() {
        let mut world = World::new(Policy::durable());
        for _ in 0..8 {
            let mut operation = world.get();
            world.send(&mut operation);
        }
        let text = serde_json::to_string(world.partner.state()).unwrap();
        let state: PartnerState = serde_json::from_str(&text).unwrap();
        world.partner = Partner::restore(Policy::durable(), state, world.now);
        let mut operation = world.get();
        assert!(matches!(world.poll(&mut operation), Decision::Send(_)));
    }

    #[test]
    fn a_stored_window_of_another_length_is_not_taken_for_the_new_one() {
        let mut world = World::new(Policy::sync());
        world.one(status(503));
        let state = world.partner.state().clone();
        let mut policy = Policy::sync();
        if let Some(breaker) = &mut policy.breaker {
            breaker.window = ressac_policy::CallWindow::Count(4);
        }
        let partner = Partner::restore(policy, state, world.now);
        assert_eq!(partner.view(world.now).calls, 0);
    }

    #[test]
    fn a_stored_rate_of_nothing_is_refused() {
        for text in [
            r#"{"millionths":0,"period_nanos":1}"#,
            r#"{"millionths":1,"period_nanos":0}"#,
        ] {
            assert!(serde_json::from_str::<Rate>(text).is_err(), "{text}");
        }
        let rate = Rate::per_second(50);
        let text = serde_json::to_string(&rate).unwrap();
        assert_eq!(serde_json::from_str::<Rate>(&text).unwrap(), rate);
    }
}
