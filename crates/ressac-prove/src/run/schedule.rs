//! When each operation starts, and when a part is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::plan::PartPlan;
use crate::record::OpResult;

/// The starts that are still to come.
pub(super) struct Schedule<'a> {
    plan: &'a PartPlan,
    begun: Instant,
    /// Index into the plan, by the moment of its start.
    due: BTreeMap<(Instant, usize), ()>,
    /// Indices that wait for a result.
    after: Vec<usize>,
    /// Operations started and not answered, with the end of their watch.
    open: BTreeMap<String, Option<Instant>>,
    ended: BTreeSet<String>,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(plan: &'a PartPlan, begun: Instant) -> Self {
        let mut schedule = Self {
            plan,
            begun,
            due: BTreeMap::new(),
            after: Vec::new(),
            open: BTreeMap::new(),
            ended: BTreeSet::new(),
        };
        for (index, op) in plan.ops.iter().enumerate() {
            match &op.after {
                Some(_) => schedule.after.push(index),
                None => schedule.put(index, begun + millis(op.at_ms)),
            }
        }
        schedule
    }

    fn put(&mut self, index: usize, at: Instant) {
        self.due.insert((at, index), ());
    }

    /// The next moment at which something is to be done.
    pub(super) fn next(&self) -> Option<Instant> {
        let start = self.due.keys().next().map(|k| k.0);
        let watch = self.open.values().filter_map(|w| *w).min();
        match (start, watch) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// An operation whose time has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<usize> {
        let (at, index) = *self.due.keys().next()?;
        if at > now {
            return None;
        }
        self.due.remove(&(at, index));
        let op = &self.plan.ops[index];
        let watch = (op.watch_ms > 0).then(|| now + Duration::from_millis(op.watch_ms));
        self.open.insert(op.id.clone(), watch);
        Some(index)
    }

    /// An operation has ended: others may wait for it.
    pub(super) fn answered(&mut self, result: &OpResult, now: Instant) {
        self.finish(&result.op, now);
    }

    fn finish(&mut self, id: &str, now: Instant) {
        self.open.remove(id);
        if !self.ended.insert(id.to_owned()) {
            return;
        }
        let plan = self.plan;
        let waits = |index: &usize| plan.ops[*index].after.as_deref() == Some(id);
        let free: Vec<usize> = self.after.iter().copied().filter(waits).collect();
        self.after.retain(|index| !waits(index));
        for index in free {
            let later = Duration::from_millis(plan.ops[index].delay_ms);
            // Its own place in a series counts from the first it waits for.
            let place = millis(plan.ops[index].at_ms);
            self.put(index, now + later + place);
        }
    }

    /// Watches that are over.
    pub(super) fn expire(&mut self, now: Instant) {
        let over: Vec<String> = self
            .open
            .iter()
            .filter(|(_, watch)| watch.is_some_and(|w| w <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.finish(&id, now);
        }
    }

    /// Nothing more will start, and nothing is open.
    pub(super) fn is_over(&self) -> bool {
        self.due.is_empty() && self.after.is_empty() && self.open.is_empty()
    }

    /// Nothing is due, and what waits, waits for operations that will never end.
    pub(super) fn give_up(&mut self) {
        self.due.clear();
        self.after.clear();
        self.open.clear();
    }

    /// Operations that were started and not answered.
    pub(super) fn open(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64((ms / 1000.0).clamp(0.0, 86_400.0))
}
