//! The budget: what a partner has to bear, whatever happens.

use ressac_policy::{
    AttemptKind, Because, BudgetConfig, Decision, Operation, OutcomeKind, Policy, Reason,
    amplification_bound,
};

use crate::common::*;

/// With the budget alone between the partner and the storm.
fn only_budget(policy: Policy, budget: Option<BudgetConfig>) -> Policy {
    Policy {
        budget,
        ..bare(policy)
    }
}

/// A total outage of `seconds` at 100 first attempts a second; attempts per first attempt.
fn storm(policy: Policy, seconds: u64) -> f64 {
    let mut world = World::new(policy);
    let (mut waiting, mut attempts, mut firsts): (Vec<Operation>, u64, u64) = (Vec::new(), 0, 0);
    for _ in 0..seconds * 100 {
        waiting.push(world.get());
        firsts += 1;
        waiting.retain_mut(|operation| match world.poll(operation) {
            Decision::Send(_) => {
                attempts += 1;
                !matches!(
                    world.told(operation, kind(OutcomeKind::Refused)),
                    Decision::End(_)
                )
            }
            Decision::Wait(_) => true,
            Decision::End(_) => false,
        });
        world.later(ms(10));
    }
    attempts as f64 / firsts as f64
}

#[test]
fn bu_1_a_total_outage_stays_within_the_bound_and_without_a_budget_it_does_not() {
    for policy in [Policy::sync(), Policy::durable()] {
        let config = BudgetConfig::default();
        let with = storm(only_budget(policy.clone(), Some(config)), 30);
        let bound = amplification_bound(&config, 100.0, secs(30), 10.0);
        assert!(with <= bound, "{with} > {bound}");
        assert!(with > 1.09, "the budget lets its share through: {with}");
        let without = storm(only_budget(policy, None), 30);
        assert!(without > 2.0, "{without}");
    }
}

#[test]
fn bu_2_a_token_is_spent_once() {
    let config = BudgetConfig {
        reserve: 1,
        ratio: ressac_policy::Ratio::ZERO,
        trickle: None,
        ..BudgetConfig::default()
    };
    let mut world = World::new(only_budget(Policy::sync(), Some(config)));
    // Both see the token when they fail; one gets it when it is sent.
    let (mut first, _) = world.one(status(503));
    let (mut second, _) = world.one(status(503));
    world.later(secs(1));
    assert_eq!(world.send(&mut first).kind, AttemptKind::Retry);
    ended(world.poll(&mut second), Reason::BudgetSpent);
    assert_eq!(world.partner.view(world.now).tokens, Some(0.0));
}

/// As many failing GETs as it takes to empty the bucket.
fn emptied(policy: Policy) -> World {
    let mut world = World::new(policy);
    for _ in 0..200 {
        let (mut operation, _) = world.one(kind(OutcomeKind::Refused));
        world.later(secs(1));
        if let Decision::Send(_) = world.poll(&mut operation) {
            world.told(&mut operation, kind(OutcomeKind::Refused));
        }
        if world.partner.budget_readiness(world.now).at > world.now {
            return world;
        }
    }
    panic!("never empty");
}

#[test]
fn bu_3_once_empty_it_comes_back_by_itself_and_by_first_attempts() {
    let policy = || only_budget(Policy::sync(), Some(BudgetConfig::default()));
    let mut world = emptied(policy());
    world.later(secs(10));
    assert!(world.partner.budget_readiness(world.now).at <= world.now);

    let mut world = emptied(policy());
    for _ in 0..10 {
        world.one(status(200));
    }
    assert!(world.partner.budget_readiness(world.now).at <= world.now);
}

#[test]
fn bu_4_first_attempts_whose_body_cannot_be_repeated_feed_it_too() {
    let mut world = emptied(only_budget(Policy::sync(), Some(BudgetConfig::default())));
    let before = world.partner.view(world.now).tokens.unwrap();
    let mut spec = ressac_policy::OperationSpec::new("POST");
    spec.repeatable_body = false;
    let mut operation = world.operation(&spec);
    world.send(&mut operation);
    world.told(&mut operation, status(503));
    let after = world.partner.view(world.now).tokens.unwrap();
    assert!((after - before - 0.1).abs() < 1e-6, "{before} {after}");
}

#[test]
fn bu_5_after_a_thousand_successes_one_failure_is_retried() {
    let mut world = World::new(Policy::sync());
    for _ in 0..1_000 {
        world.one(status(200));
        world.later(ms(1));
    }
    let (mut operation, decision) = world.one(status(503));
    world.now = wait_of(decision).until;
    assert_eq!(world.send(&mut operation).kind, AttemptKind::Retry);
}

#[test]
fn bu_6_a_refused_retry_says_that_the_budget_refused_it() {
    let mut world = emptied(only_budget(Policy::sync(), Some(BudgetConfig::default())));
    let (_, decision) = world.one(kind(OutcomeKind::Reset));
    ended(decision, Reason::BudgetSpent);

    let mut world = emptied(only_budget(
        Policy::durable(),
        Some(BudgetConfig::default()),
    ));
    let (mut operation, decision) = world.one(kind(OutcomeKind::Reset));
    world.now = wait_of(decision).until.min(world.now + ms(1));
    because(world.poll(&mut operation), Because::Backoff);
}

#[test]
fn bu_6_a_durable_operation_waits_for_its_token_and_gives_it_back_when_it_succeeds() {
    let config = BudgetConfig {
        reserve: 1,
        ratio: ressac_policy::Ratio::ZERO,
        ..BudgetConfig::default()
    };
    let mut world = World::new(only_budget(Policy::durable(), Some(config)));
    let (mut first, _) = world.one(status(503));
    let (mut second, _) = world.one(status(503));
    world.later(secs(2));
    world.send(&mut first);
    let wait = world.waits(&mut second);
    assert_eq!(wait.because, Because::Budget);
    assert_eq!(wait.until, world.now + secs(10), "the trickle's time");
    world.told(&mut first, status(200));
    world.send(&mut second);
}

#[test]
fn bu_7_a_quiet_day_saves_no_more_than_the_capacity() {
    let mut world = World::new(Policy::sync());
    for _ in 0..10_000 {
        world.one(status(200));
        world.later(ms(100));
    }
    world.later(secs(86_400));
    assert_eq!(world.partner.view(world.now).tokens, Some(10.0));
}
