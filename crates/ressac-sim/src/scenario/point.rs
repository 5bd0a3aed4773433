//! The points of a scenario: each a world and a policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ressac_config::NamedPolicy;
use ressac_policy::Policy;

use super::file::RunFile;
use super::{Scenario, ScenarioError};
use crate::model::{Arrivals, World};

/// A world and a policy: what is replicated.
#[derive(Clone, Debug)]
pub struct Point {
    /// What the row is called.
    pub label: String,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The world.
    pub world: World,
    /// Fresh operations a second, in an open loop.
    pub load: Option<f64>,
    /// The length of the first fault.
    pub outage: Option<Duration>,
    /// Shown in the plots from the beginning.
    pub plot: bool,
    /// Published figures: mean, and deviation of one run where it is known.
    pub reference: BTreeMap<String, Vec<f64>>,
}

impl Scenario {
    /// The points: of these policies, or of the scenario's own where none is given.
    ///
    /// # Errors
    ///
    /// If a run names an unknown policy or makes a world that cannot be run.
    pub fn points(&self, policies: &[NamedPolicy]) -> Result<Vec<Point>, ScenarioError> {
        let mut points = Vec::new();
        if policies.is_empty() {
            for run in &self.runs {
                let Some(named) = self.policies.policy(&run.policy) else {
                    let what = format!("there is no policy `{}`", run.policy);
                    return Err(self.refuse("run.policy", what));
                };
                self.expand(run, named.policy(), &mut points)?;
            }
            return Ok(points);
        }
        for named in policies {
            // Where the scenario sweeps, a policy of the user's is swept the same way.
            let first = self.runs.first().cloned().unwrap_or_default();
            let run = RunFile {
                policy: named.name().to_owned(),
                loads: first.loads,
                outages: first.outages,
                layers: first.layers,
                ..RunFile::default()
            };
            self.expand(&run, named.policy(), &mut points)?;
        }
        Ok(points)
    }

    fn expand(
        &self,
        run: &RunFile,
        policy: &Policy,
        points: &mut Vec<Point>,
    ) -> Result<(), ScenarioError> {
        let policy = Arc::new(policy.clone());
        let world = self.world_of(run);
        let loads: Vec<Option<f64>> = optional(run.loads.iter().map(|rate| rate.0));
        let outages: Vec<Option<Duration>> = optional(run.outages.iter().map(|time| time.0));
        for load in &loads {
            for outage in &outages {
                let mut world = world.clone();
                if let (Some(load), Arrivals::Poisson { rate, .. }) = (load, &mut world.arrivals) {
                    *rate = *load;
                }
                if let (Some(length), Some(fault)) = (outage, world.server.faults.first_mut()) {
                    fault.to = fault.from + *length;
                }
                if let (Some(after), Some(fault)) = (self.after, world.server.faults.last()) {
                    world.horizon = fault.to + after;
                }
                self.check(&world)?;
                points.push(Point {
                    label: run.label.clone().unwrap_or_else(|| run.policy.clone()),
                    policy: Arc::clone(&policy),
                    load: match world.arrivals {
                        Arrivals::Poisson { rate, .. } => Some(rate),
                        _ => None,
                    },
                    outage: world.server.faults.first().map(|f| f.to - f.from),
                    world,
                    plot: run.plot,
                    reference: run.reference.clone(),
                });
            }
        }
        Ok(())
    }

    fn world_of(&self, run: &RunFile) -> World {
        let mut world = self.world.clone();
        world.horizon = run.horizon.map_or(world.horizon, |time| time.0);
        let clients = &mut world.clients;
        clients.instances = run.instances.unwrap_or(clients.instances);
        clients.layers = run.layers.unwrap_or(clients.layers);
        clients.marks = run.marks.unwrap_or(clients.marks);
        clients.hears_hints = run.hears_hints.unwrap_or(clients.hears_hints);
        clients.gives_back = run.gives_back.unwrap_or(clients.gives_back);
        let server = &mut world.server;
        server.fail = run.fail.unwrap_or(server.fail);
        server.queue = run.queue.or(server.queue);
        server.order = run.order.map_or(server.order, Into::into);
        server.drop_margin = run.drop_margin.map(|time| time.0).or(server.drop_margin);
        world
    }
}

/// One for each, or a single nothing.
fn optional<T>(values: impl ExactSizeIterator<Item = T>) -> Vec<Option<T>> {
    if values.len() == 0 {
        vec![None]
    } else {
        values.map(Some).collect()
    }
}
