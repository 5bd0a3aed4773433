//! What is simulated is what ships: the demo's real gateway, over real sockets and in real time,
//! against the simulation of the same scenario.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::ressac;
use ressac_config::{Config, Environment};
use ressac_policy::Policy;
use ressac_sim::{
    Arrivals, Clients, Fault, FaultKind, Record, Rejection, ServerConfig, World, simulate,
};

const MESSAGES: u32 = 50;
const OUTAGE: Duration = Duration::from_secs(3);
const RETRY_AFTER: Duration = Duration::from_secs(2);
const SECOND: u64 = 1_000_000_000;
/// Runs of the simulation: the band of 99.9 % is what all but one of them on each side reach.
const RUNS: u64 = 2_000;

/// The policy that the demo writes down for its gateway.
fn policy() -> Arc<Policy> {
    let text = "[policy.edi]\nextends = \"durable\"\nwindow = \"1h\"\n\
                breaker = { consecutive = \"off\", ramp_step = \"4s\" }\n";
    let config = Config::parse("demo.toml", text, &Environment::ignored()).unwrap();
    Arc::new(config.policy("edi").unwrap().policy().clone())
}

fn world() -> World {
    let server = ServerConfig::instant();
    World {
        horizon: Duration::from_secs(600),
        warm_up: Duration::ZERO,
        bin: Duration::from_millis(100),
        // The demo's partner takes this long for every answer.
        round_trip: Duration::from_millis(150),
        server: ServerConfig {
            rejection: Rejection {
                retry_after: Some(RETRY_AFTER),
                ..server.rejection
            },
            faults: vec![Fault {
                from: Duration::ZERO,
                to: OUTAGE,
                kind: FaultKind::Refuse,
            }],
            ..server
        },
        // One gateway: messages come in bursts of one to the one client.
        clients: Clients::default(),
        arrivals: Arrivals::Bursts {
            every: Duration::from_secs(1_000),
            size: MESSAGES,
        },
    }
}

/// The most arrivals in any second from the recovery on, wherever it begins.
fn peak_after(record: &Record) -> u64 {
    let from = OUTAGE.as_nanos() as u64;
    let times: Vec<u64> = record
        .raster
        .iter()
        .map(|(time, _, _)| *time)
        .filter(|time| *time >= from)
        .collect();
    let (mut first, mut most) = (0, 0);
    for (index, time) in times.iter().enumerate() {
        while time - times[first] >= SECOND {
            first += 1;
        }
        most = most.max(index + 1 - first);
    }
    most as u64
}

#[test]
fn the_demo_does_what_the_simulation_says() {
    let (world, policy) = (world(), policy());
    let (mut attempts, mut peaks) = (Vec::new(), Vec::new());
    for seed in 0..RUNS {
        let record = simulate(&world, &policy, seed, true);
        assert_eq!(record.totals.delivered, u64::from(MESSAGES));
        assert_eq!((record.totals.lost, record.totals.early), (0, 0));
        attempts.push(record.totals.attempts);
        peaks.push(peak_after(&record));
    }
    attempts.sort_unstable();
    peaks.sort_unstable();
    let band = |sorted: &[u64]| (sorted[1], sorted[sorted.len() - 2]);
    let (attempts, peaks) = (band(&attempts), band(&peaks));
    println!("simulated: attempts {attempts:?}, peak after recovery {peaks:?}");
    // One rerun: a busy machine can stretch a second.
    let agrees = (0..2).any(|_| {
        let ran = ressac(&[
            "demo",
            "--json",
            "--messages",
            "50",
            "--outage",
            "3s",
            "--retry-after",
            "2",
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let report = ran.json();
        println!("measured: {report}");
        let measured = |pointer: &str| report.pointer(pointer).unwrap().as_u64().unwrap();
        let (sent, peak) = (measured("/attempts"), measured("/peak_per_second/after"));
        (attempts.0..=attempts.1).contains(&sent) && (peaks.0..=peaks.1).contains(&peak)
    });
    assert!(
        agrees,
        "twice outside of {attempts:?} attempts and {peaks:?} a second"
    );
}
