//! Full clients, each with an `Operation` and a `Partner` of the engine; and the AWS model.
//!
//! `cargo bench -p ressac-sim --bench clients`; each part on one core. `... -- million` runs only
//! the million clients in an outage.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ressac_policy::{LimitConfig, Policy};
use ressac_sim::occ::{OccPolicy, run};
use ressac_sim::{Arrivals, Clients, Fault, FaultKind, ServerConfig, World, simulate};

fn main() {
    if !std::env::args().any(|arg| arg == "million") {
        closed_loop(10_000, 1, 40);
        closed_loop(1_000_000, 10, 15);
        occ();
    }
    million();
}

fn world(clients: u32, horizon: u64, server: ServerConfig, arrivals: Arrivals) -> World {
    World {
        horizon: Duration::from_secs(horizon),
        warm_up: Duration::ZERO,
        bin: Duration::from_secs(1),
        round_trip: Duration::from_millis(10),
        server,
        clients: Clients {
            instances: clients,
            ..Clients::default()
        },
        arrivals,
    }
}

/// As many clients as events are pending, a tenth of the calls failing.
fn closed_loop(clients: u32, think: u64, horizon: u64) {
    let server = ServerConfig {
        fail: 0.1,
        ..ServerConfig::instant()
    };
    let arrivals = Arrivals::Closed {
        think: Duration::from_secs(think),
    };
    let policy = Arc::new(Policy::sync());
    let time = |horizon: u64| {
        let world = world(clients, horizon, server.clone(), arrivals);
        let begun = Instant::now();
        let events = simulate(&world, &policy, 1, false).totals.events;
        (events as f64, begun.elapsed().as_secs_f64())
    };
    // What it takes to make the clients is no event.
    let (_, set_up) = time(0);
    let (events, seconds) = time(horizon);
    println!(
        "full clients, {clients} pending: {:.2} M events/s ({events:.0} events)",
        events / (seconds - set_up) / 1e6
    );
}

fn occ() {
    let begun = Instant::now();
    let mut events = 0;
    for policy in OccPolicy::ALL {
        events += (0..20)
            .map(|seed| run(policy, 100, seed).events)
            .sum::<u64>();
    }
    let rate = events as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("the AWS model, 100 clients, 100 runs: {rate:.2} M events/s");
}

/// A million clients with a policy each, one operation each within a minute, ten seconds of outage.
fn million() {
    let server = ServerConfig {
        queue: Some(10_000),
        faults: vec![Fault {
            from: Duration::from_secs(20),
            to: Duration::from_secs(30),
            kind: FaultKind::Refuse,
        }],
        ..ServerConfig::single(25_000.0)
    };
    let arrivals = Arrivals::Once {
        at: Duration::ZERO,
        within: Duration::from_secs(60),
    };
    let policy = Policy {
        limit: LimitConfig {
            concurrency: None,
            ..LimitConfig::default()
        },
        ..Policy::sync()
    };
    let world = world(1_000_000, 300, server, arrivals);
    let begun = Instant::now();
    let totals = simulate(&world, &Arc::new(policy), 1, false).totals;
    println!(
        "1,000,000 clients in an outage: {:.2} s, {} attempts, {} delivered, {} lost, {} events, peak memory {} MB",
        begun.elapsed().as_secs_f64(),
        totals.attempts,
        totals.delivered,
        totals.lost,
        totals.events,
        peak_megabytes().map_or("unknown".to_owned(), |mb| mb.to_string()),
    );
}

/// The most memory this process has held, where the system says so.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1_024)
}
