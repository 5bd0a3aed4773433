//! What a run is remembered by: totals, figures over time, completion times.

use std::collections::BTreeMap;

use ressac_policy::{AttemptKind, GateState, PartnerView, Reason};

use super::Histogram;
use crate::model::{World, nanos};

/// Points of the raster that are kept.
const RASTER: usize = 20_000;
const SECOND: u64 = 1_000_000_000;

/// When an operation was born, against the first fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before it, or there is none.
    Before = 0,
    /// In it.
    During = 1,
    /// After it.
    After = 2,
}

/// Sums over a run, after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Events processed, of the warm-up too.
    pub events: u64,
    /// Operations born.
    pub born: u64,
    /// Operations delivered.
    pub delivered: u64,
    /// Operations that ended in any other way.
    pub lost: u64,
    /// Of them, in the first fault.
    pub lost_during: u64,
    /// Of them, after it.
    pub lost_after: u64,
    /// The lost by reason.
    pub by_reason: BTreeMap<&'static str, u64>,
    /// Operations under way at the end.
    pub in_flight: u64,
    /// Attempts sent to the server.
    pub attempts: u64,
    /// Of them, the first of their operation.
    pub firsts: u64,
    /// Retries that cost a token.
    pub retries: u64,
    /// Attempts sent before the time that a `Retry-After` had named.
    pub early: u64,
    /// Requests that reached the server.
    pub offered: u64,
    /// Refused by it.
    pub rejected: u64,
    /// Served by it, in time or not.
    pub served: u64,
    /// Dropped by it, too late to be of use.
    pub dropped: u64,
    /// In it at the end.
    pub left_in_server: u64,
    /// Attempts given up by their time limit.
    pub timed_out: u64,
    /// Answers that nobody waited for any more.
    pub late: u64,
    /// Nanoseconds times requests in the server.
    pub server_area: u128,
    /// Nanoseconds that those who left the server had spent in it.
    pub server_sojourn: u128,
    /// Tokens in all budgets at the end.
    pub tokens_left: f64,
    /// Operations born in the first fault.
    pub born_during: u64,
    /// Requests that reached the server in the first fault.
    pub offered_during: u64,
    /// The first and the last retry, in nanoseconds.
    pub retry_span: Option<(u64, u64)>,
}

/// Figures of one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Operations born.
    pub born: u32,
    /// Requests that reached the server.
    pub offered: u32,
    /// Of them, retries.
    pub retries: u32,
    /// Of them, first retries.
    pub first_retries: u32,
    /// Refused.
    pub rejected: u32,
    /// Served, in time or not.
    pub served: u32,
    /// Operations delivered.
    pub delivered: u32,
    /// Operations lost.
    pub lost: u32,
    /// Requests in the server at the end of the bin.
    pub in_system: u32,
}

/// The state of the clients at the end of a bin; only of a detailed run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Watch {
    /// The share whose breaker is not closed.
    pub(crate) open: f32,
    /// The mean of their tokens.
    pub(crate) tokens: f32,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Sums.
    pub totals: Totals,
    /// Over time, from the beginning.
    pub bins: Vec<Bin>,
    /// The width of a bin, in nanoseconds.
    pub bin: u64,
    /// Completion times of the delivered, by the phase they were born in.
    pub delivered: [Histogram; 3],
    /// Times from birth to giving up.
    pub given_up: Histogram,
    /// Time, operation and attempt number of arrivals at the server; only of a detailed run.
    pub raster: Vec<(u64, u32, u32)>,
    pub(crate) watched: Vec<Watch>,
    pub(super) detailed: bool,
    pub(super) next_bin: u64,
    /// Arrivals so far, and which of them are dots of the raster; only of a detailed run.
    arrivals: u64,
    every: u64,
    warm_up: u64,
    warm: bool,
    outage: (u64, u64),
    last: u64,
}

impl Record {
    pub(super) fn new(world: &World, detailed: bool) -> Self {
        let bin = nanos(world.bin).max(1);
        let expected = nanos(world.horizon) / bin + 1;
        let mut bins = Vec::with_capacity(expected.min(1 << 20) as usize);
        bins.push(Bin::default());
        Record {
            totals: Totals::default(),
            bins,
            bin,
            delivered: Default::default(),
            given_up: Histogram::default(),
            raster: Vec::new(),
            watched: Vec::new(),
            detailed,
            next_bin: bin,
            arrivals: 0,
            every: 1,
            warm_up: nanos(world.warm_up),
            warm: world.warm_up.is_zero(),
            outage: world.server.outage().unwrap_or((u64::MAX, u64::MAX)),
            last: 0,
        }
    }

    /// Closes the bins before now.
    pub(super) fn turn(&mut self, now: u64, in_system: u32) {
        while self.next_bin <= now {
            self.here().in_system = in_system;
            self.bins.push(Bin::default());
            self.next_bin += self.bin;
        }
    }

    pub(super) fn watch(&mut self, views: impl Iterator<Item = PartnerView>) {
        let (mut count, mut open, mut tokens) = (0u32, 0u32, 0.0);
        for view in views {
            count += 1;
            open += u32::from(view.gate != GateState::Closed);
            tokens += view.tokens.unwrap_or(0.0);
        }
        let watch = Watch {
            open: open as f32 / count.max(1) as f32,
            tokens: tokens as f32 / count.max(1) as f32,
        };
        self.watched.resize(self.bins.len() - 1, watch);
    }

    /// True once: when the warm-up has just ended.
    pub(super) fn warm_up_is_over(&mut self, now: u64) -> bool {
        let over = !self.warm && self.counts(now);
        self.warm |= over;
        over
    }

    fn here(&mut self) -> &mut Bin {
        let last = self.bins.len() - 1;
        &mut self.bins[last]
    }

    fn counts(&self, now: u64) -> bool {
        now >= self.warm_up
    }

    fn during(&self, now: u64) -> bool {
        (self.outage.0..self.outage.1).contains(&now)
    }

    pub(super) fn born(&mut self, now: u64) {
        self.here().born += 1;
        if self.counts(now) {
            self.totals.born += 1;
            self.totals.born_during += u64::from(self.during(now));
        }
    }

    pub(super) fn attempt(&mut self, now: u64, number: u32, kind: AttemptKind, early: bool) {
        if self.counts(now) {
            self.totals.attempts += 1;
            self.totals.firsts += u64::from(number == 1);
            self.totals.retries += u64::from(kind == AttemptKind::Retry);
            self.totals.early += u64::from(early);
        }
    }

    pub(super) fn offered(&mut self, now: u64, op: u32, attempt: u32) {
        let bin = self.here();
        bin.offered += 1;
        bin.retries += u32::from(attempt > 1);
        bin.first_retries += u32::from(attempt == 2);
        self.last = now;
        if self.counts(now) {
            self.totals.offered += 1;
            self.totals.offered_during += u64::from(self.during(now));
            if attempt > 1 {
                let first = self.totals.retry_span.map_or(now, |(first, _)| first);
                self.totals.retry_span = Some((first, now));
            }
        }
        if self.detailed {
            self.dot(now, op, attempt);
        }
    }

    /// Keeps every n-th arrival, ever fewer, so that the raster spans the whole run.
    fn dot(&mut self, now: u64, op: u32, attempt: u32) {
        self.arrivals += 1;
        if !self.arrivals.is_multiple_of(self.every) {
            return;
        }
        self.raster.push((now, op, attempt));
        if self.raster.len() >= RASTER {
            let mut index = 0;
            self.raster.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.every *= 2;
        }
    }

    pub(super) fn rejected(&mut self, now: u64) {
        self.here().rejected += 1;
        self.totals.rejected += u64::from(self.counts(now));
    }

    pub(super) fn served(&mut self, now: u64) {
        self.here().served += 1;
        self.totals.served += u64::from(self.counts(now));
    }

    pub(super) fn dropped(&mut self, now: u64) {
        self.totals.dropped += u64::from(self.counts(now));
    }

    pub(super) fn timed_out(&mut self, now: u64) {
        self.totals.timed_out += u64::from(self.counts(now));
    }

    pub(super) fn late(&mut self, now: u64) {
        self.totals.late += u64::from(self.counts(now));
    }

    pub(super) fn ended(&mut self, now: u64, born: u64, reason: Reason) {
        self.last = now;
        let counts = self.counts(born);
        if reason == Reason::Delivered {
            self.here().delivered += 1;
            if counts {
                self.totals.delivered += 1;
                self.delivered[self.phase(born) as usize].add(now - born);
            }
            return;
        }
        self.here().lost += 1;
        if counts {
            self.totals.lost += 1;
            self.totals.lost_during += u64::from(self.during(now));
            self.totals.lost_after += u64::from(now >= self.outage.1);
            *self.totals.by_reason.entry(reason.as_str()).or_default() += 1;
            self.given_up.add(now - born);
        }
    }

    fn phase(&self, born: u64) -> Phase {
        if born < self.outage.0 {
            Phase::Before
        } else if born < self.outage.1 {
            Phase::During
        } else {
            Phase::After
        }
    }

    pub(super) fn last_counted(&self) -> u64 {
        self.last
    }

    /// When the last request reached the server or the last operation ended, in seconds.
    #[must_use]
    pub fn last_seconds(&self) -> f64 {
        self.last as f64 / 1e9
    }

    /// A figure of the bins, added up over spans of so many nanoseconds from time zero.
    #[must_use]
    pub fn over(&self, span: u64, figure: impl Fn(&Bin) -> u32) -> Vec<u64> {
        let per_span = (span / self.bin).max(1) as usize;
        let spans = self.bins.chunks(per_span);
        spans
            .map(|bins| bins.iter().map(|bin| u64::from(figure(bin))).sum())
            .collect()
    }

    /// The same for each clock second.
    #[must_use]
    pub fn per_second(&self, figure: impl Fn(&Bin) -> u32) -> Vec<u64> {
        self.over(SECOND, figure)
    }

    /// Completion times of all that were delivered.
    #[must_use]
    pub fn completion(&self) -> Histogram {
        let mut all = Histogram::default();
        for phase in &self.delivered {
            all.merge(phase);
        }
        all
    }
}
