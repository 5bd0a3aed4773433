//! The bound of the budget, for any interleaving of many operations in a total outage.

use std::time::Duration;

use proptest::prelude::*;
use ressac_policy::{
    AttemptKind, Backoff, BudgetConfig, Decision, Deposit, Mode, Outcome, OutcomeKind, Policy,
};

use crate::machine::{Machine, Step, step};
use crate::policies::sound_budget;

/// Nothing but the budget stands between the partner and the storm.
fn unbridled(mode: Mode, budget: BudgetConfig) -> Policy {
    let policy = match mode {
        Mode::Synchronous => Policy::sync(),
        Mode::Durable => Policy::durable(),
    };
    Policy {
        retries: 1_000,
        window: None,
        backoff: Backoff {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(10),
            ..Backoff::default()
        },
        budget: Some(budget),
        breaker: None,
        suspend_after: None,
        limit: ressac_policy::LimitConfig {
            concurrency: None,
            ..policy.limit
        },
        ..policy
    }
}

/// Retries that tokens can have paid for, in millionths: the reserve, the deposits, the trickle.
fn bound(budget: &BudgetConfig, firsts: u64, elapsed: Duration) -> f64 {
    let deposits = match budget.deposit {
        Deposit::Request => firsts as f64 * budget.ratio.as_f64(),
        Deposit::Success => 0.0,
    };
    let trickle = budget.trickle.map_or(0.0, |rate| rate.per_second_f64());
    f64::from(budget.reserve) + deposits + trickle * elapsed.as_secs_f64() + 1e-3
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bu_1_retries_in_a_total_outage_stay_within_the_bound(
        budget in sound_budget(),
        durable: bool,
        steps in proptest::collection::vec(step(), 1..400),
        seed: u64,
    ) {
        let mode = if durable { Mode::Durable } else { Mode::Synchronous };
        let mut machine = Machine::new(unbridled(mode, budget), seed);
        let start = machine.now;
        let down = Outcome::new(OutcomeKind::Refused);
        let (mut firsts, mut retries) = (0u64, 0u64);
        for step in &steps {
            // Every attempt fails; nothing is cancelled, taken back or replayed.
            let step = match step {
                Step::Later(time) => Step::Later(*time / 50),
                Step::Outcome(which, _) => Step::Outcome(*which, down),
                Step::Cancel(_) | Step::TakeBack(_) | Step::Replay(_) => Step::PollAll,
                other => other.clone(),
            };
            for (_, decision) in machine.step(&step) {
                if let Decision::Send(attempt) = decision {
                    match attempt.kind {
                        AttemptKind::First => firsts += 1,
                        AttemptKind::Retry => retries += 1,
                        other => prop_assert!(false, "{other:?} without a gate"),
                    }
                }
            }
            let bound = bound(&budget, firsts, machine.now.since(start));
            prop_assert!(retries as f64 <= bound, "{retries} retries, bound {bound}");
        }
    }
}
