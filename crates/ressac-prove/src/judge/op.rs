//! One operation as the judge sees it: its attempts, its gaps, its result.

use std::collections::BTreeSet;

use crate::case::OpSpec;
use crate::claims::Claims;
use crate::plan::{Pace, PlannedOp, Setup};
use crate::record::{Arrival, OpResult, PartRecord};

/// Nanoseconds to milliseconds.
pub(crate) fn to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The difference of two moments, ms; negative if `a` is earlier.
pub(crate) fn since(a: u64, b: u64) -> f64 {
    (a as f64 - b as f64) / 1e6
}

/// One operation of a record.
#[derive(Clone)]
pub(crate) struct OpView<'a> {
    pub(crate) record: &'a PartRecord,
    pub(crate) claims: &'a Claims,
    pub(crate) setup: &'a Setup,
    pub(crate) op: &'a PlannedOp,
    pub(crate) spec: &'a OpSpec,
    pub(crate) attempts: Vec<&'a Arrival>,
    pub(crate) result: Option<&'a OpResult>,
    pub(crate) start: Option<u64>,
}

impl<'a> OpView<'a> {
    pub(crate) fn new(
        record: &'a PartRecord,
        claims: &'a Claims,
        setup: &'a Setup,
        op: &'a PlannedOp,
        spec: &'a OpSpec,
    ) -> Self {
        let of_token = |a: &&Arrival| {
            let in_target = || a.target.trim_start_matches('/').starts_with(&op.token);
            a.is_request() && (a.token.as_deref() == Some(&op.token) || in_target())
        };
        let mut attempts: Vec<&Arrival> = record.arrivals.iter().filter(of_token).collect();
        attempts.sort_by_key(|a| a.seq);
        Self {
            attempts,
            result: record.result(&op.id),
            start: record.start(&op.id),
            record,
            claims,
            setup,
            op,
            spec,
        }
    }

    pub(crate) fn pace(&self) -> &'a Pace {
        &self.record.plan.pace
    }

    /// The gap before attempt `k + 1`, longest reading: for floors.
    pub(crate) fn gap_floor(&self, k: usize) -> Option<f64> {
        self.gap(k, Arrival::end_early)
    }

    /// The gap before attempt `k + 1`, shortest reading: for ceilings.
    pub(crate) fn gap_ceiling(&self, k: usize) -> Option<f64> {
        self.gap(k, Arrival::end_late)
    }

    fn gap(&self, k: usize, end: impl Fn(&Arrival) -> Option<u64>) -> Option<f64> {
        let before = self.attempts.get(k.checked_sub(1)?)?;
        let after = self.attempts.get(k)?;
        Some(since(after.t_first, end(before)?))
    }

    /// All gaps, for reports, ms.
    pub(crate) fn gaps(&self) -> Vec<f64> {
        (1..self.attempts.len())
            .filter_map(|k| self.gap_floor(k))
            .collect()
    }

    /// From the start to the result, less what the client needs to say it.
    pub(crate) fn end(&self) -> Option<f64> {
        Some(since(self.result?.t, self.start?) - self.setup.epsilon_ms)
    }

    /// From the last byte of the last reply to the result.
    pub(crate) fn tail(&self) -> Option<f64> {
        let last = self.attempts.last()?;
        Some((since(self.result?.t, last.end_late()?) - self.setup.epsilon_ms).max(0.0))
    }

    pub(crate) fn effects(&self) -> u64 {
        self.attempts
            .iter()
            .filter(|a| a.effect == "created")
            .count() as u64
    }

    /// The most attempts in any second, from attempt number `skip` on.
    pub(crate) fn most_per_second(&self, skip: usize) -> usize {
        let times: Vec<u64> = self.attempts.iter().skip(skip).map(|a| a.t_first).collect();
        most_within(&times, 1_000_000_000)
    }

    pub(crate) fn lag_ms(&self) -> f64 {
        self.record.lag_ms
    }
}

/// The most of these rising moments within any stretch so long.
pub(crate) fn most_within(times: &[u64], ns: u64) -> usize {
    let mut from = 0;
    let mut most = 0;
    for (to, t) in times.iter().enumerate() {
        while times[from] + ns < *t {
            from += 1;
        }
        most = most.max(to + 1 - from);
    }
    most
}

/// When each connection was accepted, rising.
pub(crate) fn connections(arrivals: &[Arrival]) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    let mut times: Vec<u64> = arrivals
        .iter()
        .filter(|a| seen.insert(a.conn))
        .map(|a| a.t_accept)
        .collect();
    times.sort_unstable();
    times
}
