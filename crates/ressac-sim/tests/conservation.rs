//! What must hold exactly on every trace, whatever the policy: nothing appears, nothing vanishes.
//! And the closed forms of retries.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ressac_policy::{BudgetConfig, LimitConfig, Policy, amplification_bound};
use ressac_sim::{
    Arrivals, Clients, Fault, FaultKind, Order, Sample, ServerConfig, World, built_in, simulate,
};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn world() -> World {
    World {
        horizon: secs(40),
        warm_up: Duration::ZERO,
        bin: Duration::from_millis(100),
        round_trip: Duration::from_millis(10),
        server: ServerConfig {
            queue: Some(100),
            faults: vec![Fault {
                from: secs(5),
                to: secs(8),
                kind: FaultKind::Refuse,
            }],
            ..ServerConfig::single(250.0)
        },
        clients: Clients {
            instances: 5,
            ..Clients::default()
        },
        arrivals: Arrivals::Poisson {
            rate: 200.0,
            until: Some(secs(20)),
        },
    }
}

fn faults() -> impl Strategy<Value = FaultKind> {
    prop_oneof![
        Just(FaultKind::Refuse),
        Just(FaultKind::Stop),
        (2.0f64..10.0).prop_map(FaultKind::Slow),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    (
        any::<bool>(),
        0u32..6,
        100u64..3_000,
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(None), (1u32..10).prop_map(Some)],
    )
        .prop_map(|(durable, retries, limit, budget, breaker, concurrency)| {
            let policy = if durable {
                Policy::durable()
            } else {
                Policy::sync()
            };
            Policy {
                retries,
                window: Some(secs(30)),
                attempt_timeout: Duration::from_millis(limit),
                budget: policy.budget.filter(|_| budget),
                breaker: policy.breaker.filter(|_| breaker),
                limit: LimitConfig {
                    concurrency,
                    ..policy.limit
                },
                ..policy
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_appears_and_nothing_vanishes(
        policy in policies(),
        kind in faults(),
        lifo in any::<bool>(),
        margin in prop_oneof![Just(None), Just(Some(Duration::from_millis(50)))],
        seed in any::<u64>(),
    ) {
        let mut world = world();
        world.server.faults[0].kind = kind;
        world.server.order = if lifo { Order::Lifo } else { Order::Fifo };
        world.server.drop_margin = margin;
        let policy = Arc::new(policy);
        let record = simulate(&world, &policy, seed, true);
        let totals = &record.totals;
        // Operations.
        prop_assert_eq!(totals.born, totals.delivered + totals.lost + totals.in_flight);
        let by_reason: u64 = totals.by_reason.values().sum();
        prop_assert_eq!(by_reason, totals.lost);
        // Attempts: firsts and what followed them; at most so many as the policy allows.
        prop_assert!(totals.firsts <= totals.born);
        prop_assert!(totals.attempts <= totals.born * u64::from(policy.retries + 1)
            || policy.mode == ressac_policy::Mode::Durable);
        prop_assert!(totals.offered <= totals.attempts);
        // Requests at the server.
        prop_assert_eq!(
            totals.offered,
            totals.rejected + totals.served + totals.dropped + totals.left_in_server
        );
        if totals.left_in_server == 0 {
            prop_assert_eq!(totals.server_area, totals.server_sojourn);
        }
        // Over time and in sum.
        let sum: u64 = record.per_second(|bin| bin.offered).iter().sum();
        prop_assert_eq!(sum, totals.offered);
        prop_assert_eq!(totals.early, 0);
        // And bit for bit again.
        prop_assert_eq!(&record, &simulate(&world, &policy, seed, true));
    }

    #[test]
    fn tokens_in_are_tokens_out_and_what_is_left(seed in any::<u64>(), ratio in 20_000u32..900_000) {
        let mut world = world();
        world.server.faults[0].to = secs(30);
        let config = BudgetConfig {
            // A bucket that can hold all that is ever paid in.
            reserve: 0,
            window: secs(36_000),
            ratio: ressac_policy::Ratio::from_millionths(ratio),
            trickle: None,
            ..BudgetConfig::default()
        };
        let policy = Policy { budget: Some(config), breaker: None, ..Policy::sync() };
        let totals = simulate(&world, &policy.into(), seed, false).totals;
        let paid_in = totals.firsts as f64 * f64::from(ratio) / 1e6;
        let left = paid_in - totals.retries as f64;
        prop_assert!((left - totals.tokens_left).abs() < 1e-6, "{left} {}", totals.tokens_left);
        prop_assert!(totals.retries > 0);
    }

    #[test]
    fn a_total_outage_stays_within_the_bound_of_the_budget(
        seed in any::<u64>(),
        ratio in 0u32..300_000,
        reserve in 1u32..60,
    ) {
        let mut world = world();
        world.server.faults[0] = Fault { from: Duration::ZERO, to: secs(20), kind: FaultKind::Refuse };
        world.horizon = secs(20);
        let config = BudgetConfig {
            reserve,
            ratio: ressac_policy::Ratio::from_millionths(ratio),
            ..BudgetConfig::default()
        };
        let policy = Policy { budget: Some(config), breaker: None, ..Policy::sync() };
        let totals = simulate(&world, &policy.into(), seed, false).totals;
        // All five clients have their own reserve; nothing is saved before an outage from zero on.
        let rate = totals.firsts as f64 / 20.0;
        let bound = amplification_bound(&config, rate / 5.0, secs(20), f64::from(reserve));
        let found = totals.attempts as f64 / totals.firsts as f64;
        prop_assert!(found <= bound + 1e-9, "{found} over {bound}");
    }
}

#[test]
fn more_budget_never_lowers_the_load_of_a_total_outage() {
    let mut world = world();
    world.server.faults[0].to = secs(30);
    let attempts = |ratio: u32| {
        let config = BudgetConfig {
            ratio: ressac_policy::Ratio::from_millionths(ratio * 1_000),
            ..BudgetConfig::default()
        };
        let policy = Policy {
            budget: Some(config),
            breaker: None,
            ..Policy::sync()
        };
        simulate(&world, &policy.into(), 5, false).totals.attempts
    };
    let found: Vec<u64> = [0, 50, 100, 200, 400].map(attempts).to_vec();
    assert!(found.is_sorted(), "{found:?}");
}

/// Calls (1 - p^a)/(1 - p) and success 1 - p^a where the server fails with probability p.
#[test]
fn calls_and_success_are_those_of_the_geometric_law() {
    let points = built_in("layers").unwrap().points(&[]).unwrap();
    let plain = Arc::clone(&points[0].policy);
    for retries in [1u32, 2, 3, 5] {
        for p in [0.01, 0.1, 0.5, 1.0] {
            let mut world = points[0].world.clone();
            world.clients.instances = 20_000;
            world.server.fail = p;
            let policy = Arc::new(Policy {
                retries,
                ..(*plain).clone()
            });
            let a = f64::from(retries + 1);
            let expected = if p < 1.0 {
                (1.0 - f64::powf(p, a)) / (1.0 - p)
            } else {
                a
            };
            let runs: Vec<_> = (0..4)
                .map(|seed| simulate(&world, &policy, seed, false).totals)
                .collect();
            let born = 20_000.0;
            let calls = Sample::of(runs.iter().map(|run| run.attempts as f64 / born));
            let success = Sample::of(runs.iter().map(|run| run.delivered as f64 / born));
            let error = 5.0 / (4.0 * born).sqrt();
            assert!(
                (calls.mean() - expected).abs() <= error * a,
                "r={retries} p={p}"
            );
            let expected = 1.0 - f64::powf(p, a);
            assert!(
                (success.mean() - expected).abs() <= error,
                "r={retries} p={p}"
            );
        }
    }
}

/// Amplification of a total outage of length D: 1 + sum over k of P(S_k <= U), U uniform on (0, D).
#[test]
fn amplification_of_an_outage_is_that_of_the_closed_form() {
    let scenario = built_in("outage").unwrap();
    for (label, expected) in [
        ("5 x exponential", 2.90),
        ("3 x full jitter", 3.450),
        ("5 x full jitter", 3.763),
    ] {
        let mut point = scenario
            .points(&[])
            .unwrap()
            .into_iter()
            .find(|point| point.label == label)
            .unwrap();
        point.world.round_trip = Duration::ZERO;
        point.world.horizon = secs(16);
        let found = Sample::of((0..8).map(|seed| {
            let totals = simulate(&point.world, &point.policy, seed, false).totals;
            totals.offered_during as f64 / totals.born_during as f64
        }));
        let off = (found.mean() - expected).abs();
        assert!(
            off < 0.03,
            "{label}: {:.3}, expected {expected}",
            found.mean()
        );
    }
}

/// A rejection that costs s service-seconds: no goodput is left at an offered load of 1/s.
#[test]
fn costly_rejection_takes_the_goodput_at_one_over_its_cost() {
    let share = |offered: f64| {
        let mut server = ServerConfig {
            queue: Some(50),
            ..ServerConfig::single(1_000.0)
        };
        server.rejection.cost = Duration::from_micros(250);
        let world = World {
            horizon: secs(40),
            server,
            arrivals: Arrivals::Poisson {
                rate: offered,
                until: None,
            },
            ..world()
        };
        let policy = Policy {
            retries: 0,
            breaker: None,
            attempt_timeout: secs(1_000),
            limit: LimitConfig {
                concurrency: None,
                ..LimitConfig::default()
            },
            ..Policy::sync()
        };
        let totals = simulate(&world, &policy.into(), 1, false).totals;
        totals.served as f64 / 40.0
    };
    for offered in [1_500.0, 2_500.0, 3_500.0] {
        let (s, mu) = (0.000_25, 1_000.0);
        let expected = (1.0 - s * offered) / (1.0 / mu - s);
        let found = share(offered);
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{offered}: {found} of {expected}"
        );
    }
    assert!(share(4_400.0) < 60.0, "{}", share(4_400.0));
}
