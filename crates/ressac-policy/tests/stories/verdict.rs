//! What may be repeated.

use ressac_policy::{
    AttemptKind, Blame, Decision, OperationSpec, OutcomeKind, Policy, Processed, Reason, Rules,
    StatusSet,
};

use crate::common::*;

fn keyed(ttl: Option<u64>) -> OperationSpec {
    OperationSpec::new("POST").with_honoured_key(ttl.map(secs))
}

#[test]
fn vr_1_to_vr_4_a_post_without_a_key_that_may_have_arrived_is_ambiguous() {
    for outcome in [
        kind(OutcomeKind::Timeout),
        kind(OutcomeKind::Reset),
        kind(OutcomeKind::Eof),
        kind(OutcomeKind::Truncated),
        status(502),
        status(503),
        status(504),
    ] {
        let mut world = World::new(Policy::sync());
        let mut operation = world.operation(&OperationSpec::new("POST"));
        world.send(&mut operation);
        let end = end_of(world.told(&mut operation, outcome));
        assert_eq!((end.reason, end.attempts), (Reason::Ambiguous, 1));
        assert!(end.processed > Processed::No);
    }
}

#[test]
fn vr_6_a_post_that_was_provably_not_processed_goes_again() {
    for outcome in [
        kind(OutcomeKind::Refused),
        kind(OutcomeKind::Tls),
        status(429),
        status(408),
        kind(OutcomeKind::Reset).proving(Processed::No),
    ] {
        let mut world = World::new(Policy::sync());
        let mut operation = world.operation(&OperationSpec::new("POST"));
        world.send(&mut operation);
        wait_of(world.told(&mut operation, outcome));
    }
}

#[test]
fn a_keyed_post_goes_again_until_the_partner_has_forgotten_the_key() {
    let mut world = World::new(Policy::durable());
    let mut operation = world.operation(&keyed(Some(3_600)));
    world.send(&mut operation);
    let wait = wait_of(world.told(&mut operation, kind(OutcomeKind::Timeout)));
    // Held up until past the time to live: by a pause, say.
    world.now = wait.until.max(START + secs(3_600));
    ended(world.poll(&mut operation), Reason::Ambiguous);

    let mut operation = world.operation(&keyed(None));
    world.send(&mut operation);
    world.told(&mut operation, kind(OutcomeKind::Timeout));
    world.later(secs(80_000));
    world.send(&mut operation);
}

#[test]
fn a_wait_that_outlasts_the_key_is_not_begun() {
    let mut world = World::new(Policy::durable());
    let mut operation = world.operation(&keyed(Some(60)));
    world.send(&mut operation);
    ended(world.told(&mut operation, told(503, 60)), Reason::Ambiguous);
}

#[test]
fn vr_5_three_layers_of_three_make_three() {
    // Each layer is synchronous; the innermost meets a dead partner and says that it gave up.
    let policy = || Policy {
        retries: 2,
        ..bare(Policy::sync())
    };
    let mut on_the_wire = 0;
    let mut inner = || {
        let mut world = World::new(policy());
        let mut operation = world.get();
        let (end, sent) = world.drive(&mut operation, |_| status(503));
        on_the_wire += sent.len();
        status(503).gave_up(end.reason == Reason::Exhausted)
    };
    let mut middle = || {
        let mut world = World::new(policy());
        let mut operation = world.get();
        let (end, _) = world.drive(&mut operation, |_| inner());
        assert_eq!(end.reason, Reason::UpstreamGaveUp);
        status(503).gave_up(true)
    };
    let mut world = World::new(policy());
    let mut operation = world.get();
    let (end, sent) = world.drive(&mut operation, |_| middle());
    assert_eq!((end.reason, sent.len()), (Reason::UpstreamGaveUp, 1));
    assert_eq!(on_the_wire, 3);
}

#[test]
fn vr_5_a_durable_operation_counts_a_layer_that_gave_up_as_one_attempt() {
    let mut world = World::new(Policy::durable());
    wait_of(world.one(status(503).gave_up(true)).1);
}

#[test]
fn vr_8_a_refused_stream_goes_again_at_once_without_a_token_any_method() {
    for (policy, retries) in [(Policy::sync(), 1), (Policy::durable(), 0)] {
        let mut world = World::new(policy);
        let mut operation = world.operation(&OperationSpec::new("POST"));
        world.send(&mut operation);
        let tokens = world.partner.view(world.now).tokens;
        let wait = wait_of(world.told(&mut operation, kind(OutcomeKind::RefusedStream)));
        assert_eq!(wait.until, world.now);
        assert_eq!(world.send(&mut operation).kind, AttemptKind::Free);
        assert_eq!(world.partner.view(world.now).tokens, tokens);
        assert_eq!(operation.retries(), retries, "who waits has a fixed number");
        // The second time it is a failure like another, and waits like one.
        let wait = wait_of(world.told(&mut operation, kind(OutcomeKind::RefusedStream)));
        assert_eq!(wait.retry, Some(retries));
        assert_eq!(wait.because, ressac_policy::Because::Backoff);
    }
}

#[test]
fn vr_8_a_caller_who_waits_gets_no_attempt_more_than_promised() {
    let mut world = World::new(Policy {
        retries: 3,
        ..bare(Policy::sync())
    });
    let mut operation = world.get();
    let (end, sent) = world.drive(&mut operation, |_| kind(OutcomeKind::RefusedStream));
    assert_eq!((end.reason, sent.len()), (Reason::Exhausted, 4));
}

#[test]
fn wd_2_no_retries_is_one_attempt() {
    let mut world = World::new(Policy {
        retries: 0,
        ..Policy::sync()
    });
    for outcome in [status(503), kind(OutcomeKind::RefusedStream)] {
        let mut operation = world.get();
        let (end, sent) = world.drive(&mut operation, |_| outcome);
        assert_eq!((end.reason, sent.len()), (Reason::Exhausted, 1));
    }
}

#[test]
fn a_body_that_cannot_be_repeated_ends_it_only_once_it_had_begun() {
    let spec = OperationSpec {
        repeatable_body: false,
        ..keyed(None)
    };
    let mut world = World::new(Policy::sync());
    let mut operation = world.operation(&spec);
    world.send(&mut operation);
    wait_of(world.told(&mut operation, kind(OutcomeKind::Refused)));
    world.later(secs(1));
    world.send(&mut operation);
    ended(
        world.told(&mut operation, status(503)),
        Reason::BodyNotReplayable,
    );
}

fn with_already_done() -> Policy {
    Policy {
        rules: Rules {
            already_done: StatusSet::of(&[409]),
            ..Rules::default()
        },
        ..Policy::durable()
    }
}

#[test]
fn ik_5_a_duplicate_after_a_maybe_is_success_and_says_so() {
    let mut world = World::new(with_already_done());
    let mut operation = world.operation(&keyed(None));
    world.send(&mut operation);
    let wait = wait_of(world.told(&mut operation, kind(OutcomeKind::Timeout)));
    world.now = wait.until;
    world.send(&mut operation);
    let end = end_of(world.told(&mut operation, status(409)));
    assert_eq!((end.reason, end.already_done), (Reason::Delivered, true));
}

#[test]
fn ik_5_a_duplicate_after_a_maybe_of_an_earlier_series_is_success_too() {
    let mut world = World::new(with_already_done());
    let mut operation = world.operation(&OperationSpec::new("POST"));
    world.send(&mut operation);
    ended(
        world.told(&mut operation, kind(OutcomeKind::Timeout)),
        Reason::Ambiguous,
    );
    let mut replay = operation.replay(world.partner.policy(), None, world.now);
    world.send(&mut replay);
    let end = end_of(world.told(&mut replay, status(409)));
    assert_eq!((end.reason, end.already_done), (Reason::Delivered, true));
}

#[test]
fn a_duplicate_after_a_plain_refusal_is_no_success() {
    let mut world = World::new(with_already_done());
    let mut operation = world.operation(&keyed(None));
    world.send(&mut operation);
    ended(world.told(&mut operation, status(422)), Reason::Permanent);
    let mut replay = operation.replay(world.partner.policy(), None, world.now);
    world.send(&mut replay);
    ended(world.told(&mut replay, status(409)), Reason::Permanent);
}

#[test]
fn an_exhausted_operation_that_may_have_arrived_says_so() {
    let mut world = World::new(bare(Policy::sync()));
    let mut operation = world.get();
    let (end, _) = world.drive(&mut operation, |attempt| {
        if attempt.number == 2 {
            kind(OutcomeKind::Timeout)
        } else {
            kind(OutcomeKind::Refused)
        }
    });
    assert_eq!(end.reason, Reason::Exhausted);
    assert_eq!(end.processed, Processed::Maybe);
    assert_eq!(end.blame, Some(Blame::Network));
}

#[test]
fn a_409_while_the_key_is_busy_goes_again_under_the_same_key() {
    let mut world = World::new(Policy::sync());
    let mut operation = world.operation(&keyed(None));
    world.send(&mut operation);
    assert!(matches!(
        world.told(&mut operation, told(409, 1)),
        Decision::Wait(_)
    ));
}
