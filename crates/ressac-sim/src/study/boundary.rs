//! The load above which a failed state sustains itself, found by bisection.

use std::sync::Arc;
use std::time::Duration;

use ressac_policy::Policy;

use super::figures::figures;
use crate::model::{Arrivals, World};
use crate::run::simulate;
use crate::scenario::{Scenario, ScenarioError};

/// The bracket that the boundary lies in, as shares of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    /// The highest load found that recovers.
    pub holds: f64,
    /// The lowest load found that does not.
    pub fails: f64,
    /// What theory says: 1/(1 + retries).
    pub predicted: f64,
}

/// The halvings of the bracket: from 40 % of the prediction to 1 %.
const HALVINGS: u32 = 6;

/// Searches the load at which the scenario's partner no longer recovers from its outage, with so
/// many retries and full jitter, within `patience` after it.
///
/// # Errors
///
/// If the scenario has no open loop, or no capacity to take a share of.
pub fn boundary(
    scenario: &Scenario,
    retries: u32,
    seed: u64,
    patience: Duration,
) -> Result<Boundary, ScenarioError> {
    let point = scenario.points(&[])?.into_iter().next();
    let capacity = scenario.world.server.capacity();
    let Some(point) = point.filter(|point| point.load.is_some() && capacity.is_finite()) else {
        return Err(scenario.no_boundary());
    };
    let policy = Arc::new(Policy {
        retries,
        ..(*point.policy).clone()
    });
    let predicted = 1.0 / f64::from(1 + retries);
    let (mut holds, mut fails) = (0.8 * predicted, 1.2 * predicted);
    for _ in 0..HALVINGS {
        let middle = (holds + fails) / 2.0;
        let mut world = scenario.world.clone();
        world.arrivals = Arrivals::Poisson {
            rate: middle * capacity,
            until: None,
        };
        if let Some(fault) = world.server.faults.last() {
            world.horizon = fault.to + patience;
        }
        // Nearer to the boundary more time is needed: the surplus is what drains the queue.
        if recovers(&world, &policy, seed) {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    Ok(Boundary {
        holds,
        fails,
        predicted,
    })
}

/// Has the queue, at the end, become shorter than it was when the failed state was full-blown?
fn recovers(world: &World, policy: &Arc<Policy>, seed: u64) -> bool {
    let record = simulate(world, policy, seed, false);
    let all = figures(world, crate::scenario::Report::Metastable, &record);
    if all["recovered_share"] == 1.0 {
        return true;
    }
    // Still draining counts as well: below the boundary the queue shrinks, above it it grows.
    let end = world.server.outage().map_or(0, |(_, end)| end / record.bin) as usize;
    let queue = |at: usize| record.bins.get(at).map_or(0, |bin| bin.in_system);
    let settled = end + (record.bins.len() - end) / 4;
    queue(record.bins.len().saturating_sub(2)) < queue(settled)
}
