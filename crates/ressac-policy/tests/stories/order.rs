//! The order of decision: where two reasons apply, the first of the list is given.

use ressac_policy::{
    BudgetConfig, OperationSpec, OutcomeKind, OverMax, Policy, Ratio, Reason, RetryAfter, RetryOn,
    Rules,
};

use crate::common::*;

/// A synchronous policy under which everything that can end an operation ends it.
fn hopeless() -> Policy {
    let policy = Policy::sync();
    Policy {
        retries: 0,
        retry_after: RetryAfter {
            max: Some(secs(1)),
            over_max: OverMax::GiveUp,
            ..policy.retry_after
        },
        budget: Some(BudgetConfig {
            reserve: 0,
            ratio: Ratio::ZERO,
            ..BudgetConfig::default()
        }),
        window: Some(secs(20)),
        ..policy
    }
}

/// An operation that may not be repeated, with a body that cannot be.
fn unrepeatable() -> OperationSpec {
    OperationSpec {
        repeatable_body: false,
        ..OperationSpec::new("POST")
    }
}

fn end_under(policy: Policy, spec: &OperationSpec, outcome: ressac_policy::Outcome) -> Reason {
    let mut world = World::new(policy);
    let mut late = world.operation(spec);
    world.send(&mut late);
    // Open the breaker meanwhile.
    for _ in 0..5 {
        world.one(kind(OutcomeKind::Refused));
    }
    end_of(world.told(&mut late, outcome)).reason
}

#[test]
fn the_first_that_applies_step_by_step() {
    let gave_up = told(503, 3_600).gave_up(true);
    let plain = told(503, 3_600);
    let get = OperationSpec::new("GET");
    let stream = OperationSpec {
        repeatable_body: false,
        ..get
    };
    let permanent = Rules {
        retry_on: Some(RetryOn::EMPTY),
        ..Rules::default()
    };
    // 1
    let policy = Policy {
        rules: permanent,
        ..hopeless()
    };
    assert_eq!(
        end_under(policy, &unrepeatable(), gave_up),
        Reason::Permanent
    );
    // 2
    let policy = hopeless();
    assert_eq!(
        end_under(policy.clone(), &unrepeatable(), gave_up),
        Reason::UpstreamGaveUp
    );
    // 3
    assert_eq!(
        end_under(policy.clone(), &unrepeatable(), plain),
        Reason::Ambiguous
    );
    // 4
    assert_eq!(
        end_under(policy.clone(), &stream, plain),
        Reason::BodyNotReplayable
    );
    // 5
    assert_eq!(end_under(policy.clone(), &get, plain), Reason::Exhausted);
    // 6
    let policy = Policy {
        retries: 1,
        ..policy
    };
    assert_eq!(end_under(policy.clone(), &get, plain), Reason::HintOverMax);
    // 7
    let mut policy = policy;
    policy.retry_after.over_max = OverMax::Clamp;
    policy.retry_after.max = Some(secs(3_600));
    assert_eq!(end_under(policy.clone(), &get, plain), Reason::WindowClosed);
    // 8
    policy.window = Some(secs(3_601));
    assert_eq!(
        end_under(policy.clone(), &get, status(503)),
        Reason::CircuitOpen
    );
    policy.breaker = None;
    assert_eq!(end_under(policy, &get, plain), Reason::BudgetSpent);
}

#[test]
fn a_breaker_that_closes_before_the_earliest_moment_is_no_reason() {
    let mut world = World::new(Policy::sync());
    let mut late = world.get();
    world.send(&mut late);
    for _ in 0..5 {
        world.one(status(503));
    }
    let wait = wait_of(world.told(&mut late, told(503, 60)));
    world.now = wait.until;
    world.send(&mut late);
}

#[test]
fn a_durable_operation_waits_for_the_breaker_and_uses_no_retry_on_its_probes() {
    let mut world = World::new(Policy {
        retries: 2,
        ..Policy::durable()
    });
    for _ in 0..5 {
        world.one(status(503));
    }
    let mut operation = world.get();
    // The first attempt and twenty probes, none of them a retry.
    let (end, sent) = world.drive(&mut operation, |attempt| {
        if attempt.number <= 20 {
            kind(OutcomeKind::Refused)
        } else {
            status(200)
        }
    });
    assert_eq!((end.reason, sent.len()), (Reason::Delivered, 21));
    assert_eq!(operation.retries(), 0);
}

#[test]
fn nothing_is_waited_after_the_last_attempt() {
    let mut world = World::new(bare(Policy::sync()));
    let mut operation = world.get();
    let (end, sent) = world.drive(&mut operation, |_| status(503));
    assert_eq!((end.reason, sent.len()), (Reason::Exhausted, 6));
    assert_eq!(sent[5], world.now);
}

#[test]
fn fewer_retries_after_a_reload_hold_for_operations_under_way() {
    let mut world = World::new(bare(Policy::durable()));
    let mut operation = world.get();
    for _ in 0..4 {
        world.send(&mut operation);
        world.now = wait_of(world.told(&mut operation, status(503))).until;
    }
    let now = world.now;
    let fewer = Policy {
        retries: 2,
        ..bare(Policy::durable())
    };
    world.partner.set_policy(fewer, now);
    ended(world.poll(&mut operation), Reason::Exhausted);
}
