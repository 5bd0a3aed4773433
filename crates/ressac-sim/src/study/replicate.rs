//! Replications, in parallel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::figures::figures;
use crate::model::World;
use crate::occ::{self, OccPolicy};
use crate::run::{Histogram, Record, simulate};
use crate::scenario::{Point, Report, Scenario, ScenarioError};
use crate::stats::{Reference, Sample};
use ressac_config::NamedPolicy;

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// Replications of each point; `None` is what the scenario says.
    pub seeds: Option<u32>,
    /// The seed of the first replication; the others follow.
    pub seed: u64,
    /// Clients, instead of what the scenario says.
    pub clients: Option<u32>,
    /// Policies, instead of the scenario's own.
    pub policies: Vec<NamedPolicy>,
}

impl Default for StudyOptions {
    fn default() -> Self {
        StudyOptions {
            seeds: None,
            seed: 1,
            clients: None,
            policies: Vec::new(),
        }
    }
}

/// Every point of a scenario, replicated.
#[derive(Debug)]
pub struct Study {
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// Which figures it is about.
    pub report: Report,
    /// The seed of the first replication.
    pub seed: u64,
    /// Replications of each point.
    pub seeds: u32,
    /// The points, in order.
    pub cells: Vec<Cell>,
    /// Those of the optimistic-concurrency model.
    pub occ: Vec<OccCell>,
}

/// One point, replicated.
#[derive(Debug)]
pub struct Cell {
    /// The point.
    pub point: Point,
    /// Each figure over the replications.
    pub figures: BTreeMap<&'static str, Sample>,
    /// The first replication over time.
    pub trace: Trace,
    /// Events processed, over all replications.
    pub events: u64,
}

/// One run, for plots.
#[derive(Debug)]
pub struct Trace {
    /// The run.
    pub record: Record,
    /// Completion times of all replications, by the phase of birth.
    pub completion: [Histogram; 3],
}

/// One point of the optimistic-concurrency model, replicated.
#[derive(Debug)]
pub struct OccCell {
    /// The policy.
    pub policy: OccPolicy,
    /// The number of clients.
    pub clients: u32,
    /// Writes.
    pub calls: Sample,
    /// The time of the last success.
    pub time_ms: Sample,
}

impl Cell {
    /// The published figure, and how many standard errors this one lies from it.
    #[must_use]
    pub fn against_reference(&self, figure: &str) -> Option<(f64, f64)> {
        let published = self.point.reference.get(figure)?;
        let mean = *published.first()?;
        let own = self.figures.get(figure)?;
        let rounding = if mean.fract() == 0.0 { 0.5 } else { 0.005 };
        let sd = published.get(1).copied().unwrap_or_else(|| own.sd());
        let reference = Reference { mean, sd, runs: 20 };
        let off = own.mean() - mean;
        // What is published is rounded: that much is no deviation.
        let beyond = off.signum() * (off.abs() - rounding).max(0.0);
        if beyond == 0.0 {
            return Some((mean, 0.0));
        }
        Some((mean, reference.z(mean + beyond, own.count())))
    }
}

/// Runs every point of the scenario. `progress` is told of every replication that has ended;
/// `stop` ends the study early: `None` is returned then.
///
/// The same scenario, options and program give the same study, bit for bit, on any number of
/// cores.
///
/// # Errors
///
/// If the scenario makes no point that can be run.
pub fn study(
    scenario: &Scenario,
    options: &StudyOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Study>, ScenarioError> {
    let seeds = options.seeds.unwrap_or(scenario.seeds).max(1);
    let mut study = Study {
        scenario: scenario.name.clone(),
        about: scenario.about.clone(),
        report: scenario.report,
        seed: options.seed,
        seeds,
        cells: Vec::new(),
        occ: Vec::new(),
    };
    if scenario.report == Report::Occ {
        let clients = options.clients.map(|n| vec![n]);
        let clients = clients.unwrap_or_else(|| scenario.points_of_clients.clone());
        let Some(cells) = occ_cells(&clients, options.seed, seeds, progress, stop) else {
            return Ok(None);
        };
        study.occ = cells;
        return Ok(Some(study));
    }
    let mut points = scenario.points(&options.policies)?;
    if let Some(clients) = options.clients {
        for point in &mut points {
            point.world.clients.instances = clients;
            scenario.check_point(&point.world)?;
        }
    }
    let total = points.len() as u64 * u64::from(seeds);
    let done = std::sync::atomic::AtomicU64::new(0);
    let tell = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let cells: Option<Vec<Cell>> = points
        .into_iter()
        .map(|point| cell(point, scenario.report, options.seed, seeds, &tell, stop))
        .collect();
    Ok(cells.map(|cells| Study { cells, ..study }))
}

fn cell(
    point: Point,
    report: Report,
    seed: u64,
    seeds: u32,
    tell: &(dyn Fn() + Sync),
    stop: &AtomicBool,
) -> Option<Cell> {
    let runs: Option<Vec<(BTreeMap<&'static str, f64>, Record)>> = (0..seeds)
        .into_par_iter()
        .map(|index| {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let seed = seed.wrapping_add(u64::from(index));
            let record = simulate(&point.world, &point.policy, seed, index == 0);
            let figures = figures(&point.world, report, &record);
            tell();
            Some((figures, lighter(record, index == 0, &point.world)))
        })
        .collect();
    let runs = runs?;
    let mut figures = BTreeMap::new();
    for name in runs.first()?.0.keys() {
        figures.insert(*name, Sample::of(runs.iter().map(|(run, _)| run[name])));
    }
    let mut completion: [Histogram; 3] = Default::default();
    for (_, record) in &runs {
        for (all, one) in completion.iter_mut().zip(&record.delivered) {
            all.merge(one);
        }
    }
    let events = runs.iter().map(|(_, record)| record.totals.events).sum();
    let (_, record) = runs.into_iter().next()?;
    Some(Cell {
        point,
        figures,
        trace: Trace { record, completion },
        events,
    })
}

/// Only the first replication is shown over time.
fn lighter(mut record: Record, keep: bool, _world: &World) -> Record {
    if !keep {
        record.bins = Vec::new();
    }
    record
}

fn occ_cells(
    clients: &[u32],
    seed: u64,
    seeds: u32,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Option<Vec<OccCell>> {
    let points: Vec<(u32, OccPolicy)> = clients
        .iter()
        .flat_map(|n| OccPolicy::ALL.map(|policy| (*n, policy)))
        .collect();
    let total = points.len() as u64;
    let done = std::sync::atomic::AtomicU64::new(0);
    points
        .into_par_iter()
        .map(|(clients, policy)| {
            let mut runs = Vec::with_capacity(seeds as usize);
            for index in 0..seeds {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
                let seed = seed.wrapping_add(u64::from(index));
                runs.push(occ::run(policy, clients, seed));
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            Some(OccCell {
                policy,
                clients,
                calls: Sample::of(runs.iter().map(|run| run.calls as f64)),
                time_ms: Sample::of(runs.iter().map(|run| run.time_ms)),
            })
        })
        .collect()
}
