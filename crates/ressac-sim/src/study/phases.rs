//! Phase diagrams: who recovers, over load and length of a trigger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rayon::prelude::*;

use super::figures::figures;
use crate::model::Arrivals;
use crate::run::simulate;
use crate::scenario::{Point, Report, Scenario, ScenarioError};
use ressac_config::NamedPolicy;

/// Loads, as shares of the capacity.
const LOADS: [f64; 12] = [
    0.15, 0.20, 0.24, 0.28, 0.32, 0.36, 0.45, 0.55, 0.65, 0.75, 0.85, 0.92,
];
/// Lengths of the trigger, in seconds.
const OUTAGES: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 15.0];
/// What has not recovered so long after the trigger never does.
const PATIENCE: Duration = Duration::from_secs(90);
/// Policies with a diagram of their own.
const DIAGRAMS: usize = 4;

/// One policy's phase diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    /// The policy.
    pub label: String,
    /// Shares of the capacity.
    pub loads: Vec<f64>,
    /// Seconds.
    pub outages: Vec<f64>,
    /// For each length, for each load: seconds to recover, `None` for never.
    pub recover_seconds: Vec<Vec<Option<f64>>>,
    /// 1/(1 + retries), where nothing but their number limits the retries.
    pub predicted: Option<f64>,
}

/// The phase diagrams of a scenario's first policies, or of those given.
///
/// # Errors
///
/// As [`super::study`].
pub fn phases(
    scenario: &Scenario,
    policies: &[NamedPolicy],
    seed: u64,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Vec<Phases>, ScenarioError> {
    let mut chosen: Vec<Point> = Vec::new();
    let capacity = scenario.world.server.capacity();
    for point in scenario.points(policies)? {
        let known = chosen.iter().any(|other| other.label == point.label);
        let asked = point.plot || !policies.is_empty();
        if !known && asked && point.load.is_some() && capacity.is_finite() {
            chosen.push(point);
        }
    }
    // What differs most is what a reader wants beside one another.
    chosen.truncate(DIAGRAMS);
    let cells = (LOADS.len() * OUTAGES.len()) as u64;
    let total = chosen.len() as u64 * cells;
    let done = std::sync::atomic::AtomicU64::new(0);
    let diagrams = chosen.into_iter().map(|point| {
        let recover_seconds = OUTAGES
            .par_iter()
            .map(|outage| {
                let row = LOADS.par_iter().map(|load| {
                    if stop.load(Ordering::Relaxed) {
                        return None;
                    }
                    let found = recover(&point, load * capacity, *outage, seed);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                    found
                });
                row.collect()
            })
            .collect();
        let policy = &point.policy;
        let bare = policy.budget.is_none()
            && policy.breaker.is_none()
            && point.world.server.queue.is_none();
        Phases {
            label: point.label.clone(),
            loads: LOADS.to_vec(),
            outages: OUTAGES.to_vec(),
            recover_seconds,
            predicted: (bare && policy.retries > 0).then(|| 1.0 / f64::from(1 + policy.retries)),
        }
    });
    Ok(diagrams.collect())
}

fn recover(point: &Point, rate: f64, outage: f64, seed: u64) -> Option<f64> {
    let mut world = point.world.clone();
    world.arrivals = Arrivals::Poisson { rate, until: None };
    if let Some(fault) = world.server.faults.first_mut() {
        fault.to = fault.from + Duration::from_secs_f64(outage);
        world.horizon = fault.to + PATIENCE;
    }
    let record = simulate(&world, &Arc::clone(&point.policy), seed, false);
    let all = figures(&world, Report::Metastable, &record);
    Some(all["recover_seconds"]).filter(|seconds| seconds.is_finite())
}
