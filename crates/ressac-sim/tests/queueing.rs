//! The server against queueing theory: closed forms where there are, conservation laws exactly.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use ressac_policy::Policy;
use ressac_sim::{Arrivals, Clients, Record, Sample, ServerConfig, Service, World, simulate};

/// Nobody retries, and nothing stands between the clients and the server.
fn once() -> Arc<Policy> {
    let policy = Policy {
        retries: 0,
        window: None,
        attempt_timeout: Duration::from_secs(1_000_000),
        budget: None,
        breaker: None,
        ..Policy::sync()
    };
    Arc::new(Policy {
        limit: ressac_policy::LimitConfig {
            concurrency: None,
            ..policy.limit
        },
        ..policy
    })
}

fn world(rate: f64, server: ServerConfig, seconds: u64) -> World {
    World {
        horizon: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(seconds / 20),
        bin: Duration::from_secs(1),
        round_trip: Duration::ZERO,
        server,
        clients: Clients::default(),
        arrivals: Arrivals::Poisson { rate, until: None },
    }
}

/// Mean and deviation of a figure over replications.
fn replicate(world: &World, figure: impl Fn(&Record) -> f64) -> Sample {
    let policy = once();
    Sample::of((0..12).map(|seed| figure(&simulate(world, &policy, seed, false))))
}

/// The mean of independent runs lies within four standard errors, of which the runs tell.
fn assert_near(what: &str, sample: &Sample, expected: f64) {
    let error = sample.sd() / (sample.count() as f64).sqrt();
    let off = (sample.mean() - expected).abs();
    assert!(
        off <= 4.5 * error && error < 0.1 * expected.max(0.02),
        "{what}: {:.5} ± {error:.5}, expected {expected:.5}",
        sample.mean()
    );
}

fn sojourn(record: &Record) -> f64 {
    record.completion().mean_seconds()
}

fn loss(record: &Record) -> f64 {
    record.totals.rejected as f64 / record.totals.offered as f64
}

/// The probability of waiting, from Erlang's recursion for loss.
fn erlang_c(places: u32, load: f64) -> f64 {
    let a = load * f64::from(places);
    let b = (1..=places).fold(1.0, |b, k| a * b / (f64::from(k) + a * b));
    b / (1.0 - load * (1.0 - b))
}

#[test]
fn m_m_1_waits_as_it_should_at_three_loads() {
    for load in [0.5, 0.8, 0.9] {
        let world = world(1_000.0 * load, ServerConfig::single(1_000.0), 400);
        let expected = 1.0 / (1_000.0 * (1.0 - load));
        let sample = replicate(&world, sojourn);
        assert_near(&format!("M/M/1 at {load}"), &sample, expected);
    }
}

#[test]
fn m_m_c_waits_as_erlang_says_at_three_loads() {
    for (load, places) in [(0.5, 2), (0.8, 4), (0.9, 10)] {
        let service = 0.01;
        let server = ServerConfig {
            places,
            service: Service::Exponential(Duration::from_secs_f64(service)),
            ..ServerConfig::single(1.0)
        };
        let capacity = f64::from(places) / service;
        let rate = load * capacity;
        let expected = service + erlang_c(places, load) / (capacity - rate);
        let sample = replicate(&world(rate, server, 1_500), sojourn);
        assert_near(&format!("M/M/{places} at {load}"), &sample, expected);
    }
    for (places, known) in [(1, 0.8), (2, 0.71111), (4, 0.59643), (10, 0.40918)] {
        assert!((erlang_c(places, 0.8) - known).abs() < 1e-5);
    }
}

#[test]
fn m_m_c_k_loses_and_waits_as_it_should_at_three_loads() {
    for (rate, one, places, k, lost, wait) in [
        (800.0, 1_000.0, 1, 6, 0.066_342, 0.002_868_3),
        (1_200.0, 1_000.0, 1, 11, 0.187_721, 0.007_710_7),
        (950.0, 100.0, 10, 20, 0.046_597, 0.013_327),
    ] {
        let server = ServerConfig {
            places,
            queue: Some(k - places),
            ..ServerConfig::single(one)
        };
        let world = world(rate, server, 200);
        let what = format!("M/M/{places}/{k}");
        assert_near(&what, &replicate(&world, loss), lost);
        assert_near(&what, &replicate(&world, sojourn), wait);
    }
}

#[test]
fn m_d_1_waits_half_as_long_as_m_m_1() {
    for load in [0.5, 0.8, 0.9] {
        let server = ServerConfig {
            service: Service::Fixed(Duration::from_millis(1)),
            ..ServerConfig::single(1.0)
        };
        let expected = 0.001 + 0.001 * load / (2.0 * (1.0 - load));
        let sample = replicate(&world(1_000.0 * load, server, 400), sojourn);
        assert_near(&format!("M/D/1 at {load}"), &sample, expected);
    }
}

#[test]
fn little_s_law_holds_exactly_on_the_trace() {
    let mut world = world(900.0, ServerConfig::single(1_000.0), 60);
    world.warm_up = Duration::ZERO;
    world.arrivals = Arrivals::Poisson {
        rate: 900.0,
        until: Some(Duration::from_secs(30)),
    };
    for seed in 0..5 {
        let totals = simulate(&world, &once(), seed, false).totals;
        assert_eq!(totals.left_in_server, 0, "it ran empty");
        assert!(totals.server_area > 0);
        assert_eq!(totals.server_area, totals.server_sojourn);
    }
}
