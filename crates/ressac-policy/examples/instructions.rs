//! One kind of call, so often: for counting the instructions of a decision, which a busy machine
//! does not change. See `docs/benchmarks.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{
    Backoff, BreakerConfig, BudgetConfig, Decision, Hint, HintSource, Operation, OperationSpec,
    Outcome, Partner, Policy, Ratio, Timestamp,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let calls: u32 = arguments.next().unwrap().parse().unwrap();
    match kind.as_str() {
        "happy" => happy(calls),
        "failing" => failing(calls),
        other => panic!("happy or failing, not `{other}`"),
    }
}

fn happy(calls: u32) {
    let (mut partner, policy) = partner();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for call in 0..calls {
        let now = Timestamp::from_nanos(1_000_000_000_000 + u64::from(call) * 1_000);
        let mut operation = Operation::new(&OperationSpec::new("GET"), &policy, now);
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(200));
        black_box(&operation.on_outcome(now, &outcome, &mut partner, &mut rng));
    }
}

fn failing(calls: u32) {
    let (mut partner, policy) = partner();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let hint = Some(Hint {
        wait: Duration::from_micros(1),
        source: HintSource::RetryAfter,
    });
    let mut now = Timestamp::from_secs(1_000);
    for _ in 0..calls {
        let mut operation = Operation::new(&OperationSpec::new("GET"), &policy, now);
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(503)).with_hint(hint);
        let waits = operation.on_outcome(now, &outcome, &mut partner, &mut rng);
        let Decision::Wait(wait) = waits else {
            panic!("{waits:?}");
        };
        now = wait.until;
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(200));
        black_box(&operation.on_outcome(now, &outcome, &mut partner, &mut rng));
    }
}

/// As in `benches/decision.rs`.
fn partner() -> (Partner, Arc<Policy>) {
    let policy = Arc::new(Policy {
        backoff: Backoff {
            base: Duration::from_micros(1),
            ..Backoff::default()
        },
        budget: Some(BudgetConfig {
            ratio: Ratio::ONE,
            ..BudgetConfig::default()
        }),
        breaker: Some(BreakerConfig {
            failure_rate: Ratio::from_f64(0.9),
            ..BreakerConfig::default()
        }),
        ..Policy::sync()
    });
    let partner = Partner::new(Arc::clone(&policy), Timestamp::from_secs(1_000));
    (partner, policy)
}
