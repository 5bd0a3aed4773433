//! A lane: the one owner of a partner, and of everything on its way there.
//!
//! One task, one loop: look what became of attempts, write it, begin what may go, sleep until the
//! next moment that matters. Its state needs no lock, since nobody else has it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use ressac_policy::{Attempt, Because, Decision, GateState, Operation, Partner, Timestamp};
use ressac_store::{Begin, Lease, PutBack, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::attempt::{self, Done};
use super::queue::{Candidate, HELD, Queue};
use super::record::{class_of, describe, encode};
use super::settle::Unwritten;
use super::shares::{CLASSES, Shares};
use super::{Context, LaneHandle};
use crate::settings::PartnerSettings;
use crate::transport::HttpTransport;

/// No sleep is longer: the clock is read again, and rows are looked for that no nudge told of.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// What a lease lasts beyond the longest attempt.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// The most attempts in flight where the policy sets no limit: memory must be bounded.
const MOST_IN_FLIGHT: usize = 1_024;
/// The pause after the store refused to begin or to answer.
const STORE_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Lane {
    pub(super) context: Context,
    pub(super) settings: Arc<PartnerSettings>,
    transport: Arc<HttpTransport>,
    pub(super) handle: Arc<LaneHandle>,
    stop: watch::Receiver<Option<Duration>>,
    pub(super) partner: Partner,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) lease: Lease,
    queues: [Queue; 3],
    shares: Shares,
    pub(super) in_flight: HashMap<Uuid, InFlight>,
    pub(super) unwritten: Unwritten,
    pub(super) saved_gate: Option<GateState>,
    /// The store asked for a pause.
    store_pause: Option<Instant>,
    /// Another instance has the partner.
    pub(super) lost: bool,
    done_in: mpsc::UnboundedSender<Done>,
    done: mpsc::UnboundedReceiver<Done>,
}

/// An attempt on the wire.
pub(super) struct InFlight {
    pub(super) operation: Operation,
    pub(super) number: u32,
    pub(super) kind: &'static str,
    pub(super) started_at: u64,
    pub(super) seq: u64,
    pub(super) lane: bool,
    task: AbortOnDrop,
}

/// An attempt ends with the lane that began it. For one that has ended this is nothing.
pub(super) struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a lane left when it was stopped.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) cut: usize,
}

impl Lane {
    /// Works for the partner from now on, by this lease, with what its last owner left.
    pub(super) async fn take_over(
        context: Context,
        settings: Arc<PartnerSettings>,
        transport: Arc<HttpTransport>,
        handle: Arc<LaneHandle>,
        stop: watch::Receiver<Option<Duration>>,
        lease: Lease,
    ) -> Result<Lane, StoreError> {
        let (done_in, done) = mpsc::unbounded_channel();
        let partner = Partner::new(settings.policy.clone(), context.clock.timestamp());
        let mut seed = <Xoshiro256PlusPlus as SeedableRng>::Seed::default();
        getrandom::fill(&mut seed).map_err(|error| StoreError::Internal {
            detail: error.to_string(),
        })?;
        let mut lane = Lane {
            context,
            settings,
            transport,
            handle,
            stop,
            partner,
            rng: Xoshiro256PlusPlus::from_seed(seed),
            lease,
            queues: CLASSES.map(Queue::new),
            shares: Shares::default(),
            in_flight: HashMap::new(),
            unwritten: Unwritten::default(),
            saved_gate: None,
            store_pause: None,
            lost: false,
            done_in,
            done,
        };
        lane.restore_partner().await?;
        lane.settle_open_attempts().await?;
        lane.remember_gate();
        lane.publish();
        Ok(lane)
    }

    /// Delivers until it is stopped.
    pub(super) async fn run(self) -> Stopped {
        let handle = Arc::clone(&self.handle);
        let stopped = self.deliver().await;
        // Nobody owns the partner here any more: not ready.
        handle.view.send_replace(None);
        stopped
    }

    async fn deliver(mut self) -> Stopped {
        loop {
            while let Ok(done) = self.done.try_recv() {
                self.on_done(done);
            }
            self.write().await;
            if self.lost {
                return Stopped {
                    cut: self.abort_all(),
                };
            }
            let stop = *self.stop.borrow_and_update();
            if let Some(limit) = stop {
                return self.wind_down(limit).await;
            }
            self.keep_lease().await;
            self.refill().await;
            let wake = self.dispatch().await;
            self.publish();
            self.sleep(wake).await;
        }
    }

    /// Until something happens, or `wake`.
    async fn sleep(&mut self, wake: Timestamp) {
        let now = self.context.clock.timestamp();
        let mut until = Instant::now() + wake.since(now).min(LONGEST_SLEEP);
        if let Some(pause) = self.store_pause {
            until = until.min(pause);
        }
        if !self.unwritten.is_empty() {
            until = self.unwritten.not_before.unwrap_or_else(Instant::now);
        }
        let swept = Instant::now() + LONGEST_SLEEP <= until;
        tokio::select! {
            Some(done) = self.done.recv() => self.on_done(done),
            () = self.handle.notify.notified() => {}
            _ = self.stop.changed() => {}
            // A quiet while: look for what nobody told of (LA-6).
            () = tokio::time::sleep_until(until) => if swept {
                self.mark_all_more();
            },
        }
        match self.handle.take_news() {
            0 => {}
            super::NEW_FIRST => self.queues[0].mark_more(),
            _ => self.mark_all_more(),
        }
        if self.handle.take_resume() && self.partner.is_suspended() {
            self.partner.resume(self.context.clock.timestamp());
        }
    }

    /// Prolongs the lease once a third of it is gone.
    async fn keep_lease(&mut self) {
        let ttl = lease_ttl(self.settings.policy.attempt_timeout);
        let left = self.lease.until.saturating_sub(self.context.store.now());
        if Duration::from_nanos(left) > renewed_at(self.settings.policy.attempt_timeout) {
            return;
        }
        let leases = [self.lease.clone()];
        match self.context.store.renew(&leases, ttl).await {
            Ok(mut renewed) => match renewed.pop() {
                Some(lease) => self.lease = lease,
                None => {
                    tracing::error!(partner = self.settings.name, "the lease is lost");
                    self.lost = true;
                }
            },
            Err(error) => {
                tracing::warn!(partner = self.settings.name, %error, "the lease is not renewed");
                self.store_pause = Some(Instant::now() + STORE_PAUSE);
            }
        }
    }

    /// Fetches the nearest messages of the classes that run low.
    async fn refill(&mut self) {
        if self.is_paused() {
            return;
        }
        for index in 0..self.queues.len() {
            if !self.queues[index].is_low() {
                continue;
            }
            let class = self.queues[index].class();
            let store = &self.context.store;
            // All times: what is due later is held for its timer.
            match store
                .due(&self.settings.name, class, u64::MAX, HELD, None)
                .await
            {
                Ok(found) => {
                    let candidates: Vec<_> = found.iter().filter_map(Candidate::from_due).collect();
                    if candidates.len() < found.len() {
                        tracing::error!(
                            partner = self.settings.name,
                            unreadable = found.len() - candidates.len(),
                            "messages of a newer version are left alone"
                        );
                    }
                    let busy = self.busy();
                    self.queues[index].refill(candidates, HELD, &busy);
                }
                Err(error) => {
                    tracing::warn!(partner = self.settings.name, %error, "cannot read the store");
                    self.store_pause = Some(Instant::now() + STORE_PAUSE);
                }
            }
        }
    }

    /// The store asked for a pause, and it is not over.
    fn is_paused(&self) -> bool {
        self.store_pause.is_some_and(|until| Instant::now() < until)
    }

    fn busy(&self) -> HashSet<Uuid> {
        let unwritten = self.unwritten.settles.iter().map(|(settle, _)| settle.id);
        self.in_flight.keys().copied().chain(unwritten).collect()
    }

    /// Begins all that may go now. Answers when to look again.
    async fn dispatch(&mut self) -> Timestamp {
        let now = self.context.clock.timestamp();
        self.end_expired(now);
        if !self.unwritten.is_empty() {
            return now;
        }
        if self.is_paused() || self.lost {
            return Timestamp::MAX;
        }
        self.store_pause = None;
        let chosen = self.choose(now);
        if !chosen.is_empty() {
            self.begin(chosen, now).await;
        }
        self.next_moment(self.context.clock.timestamp())
    }

    /// Ends what can no longer be sent in time, without waiting for its turn.
    fn end_expired(&mut self, now: Timestamp) {
        let readiness = self.partner.readiness(now);
        let named = !matches!(readiness.because, Because::Concurrency | Because::Probe)
            && !readiness.at.is_never();
        let moment = if named { readiness.at.max(now) } else { now };
        for index in 0..self.queues.len() {
            for mut candidate in self.queues[index].remove_expired(moment) {
                match candidate
                    .operation
                    .poll(now, &mut self.partner, &mut self.rng)
                {
                    Decision::Send(_) => {
                        // The partner is ready after all: it goes by the ordinary way.
                        candidate
                            .operation
                            .take_back(now, &mut self.partner, &mut self.rng);
                        self.queues[index].put_back(candidate);
                    }
                    Decision::Wait(_) => self.queues[index].put_back(candidate),
                    decision @ Decision::End(_) => self.end_waiting(&candidate, &decision),
                }
            }
        }
    }

    /// Asks operations in the order of the shares, until the partner takes no more.
    fn choose(&mut self, now: Timestamp) -> Vec<(Candidate, Attempt)> {
        let mut chosen = Vec::new();
        let mut spent = [false; 3];
        let room = MOST_IN_FLIGHT.saturating_sub(self.in_flight.len());
        while chosen.len() < room && self.partner.readiness(now).at <= now && self.lease_outlasts()
        {
            let token = self.partner.budget_readiness(now).at <= now;
            let mut available = [false; 3];
            for (index, queue) in self.queues.iter().enumerate() {
                let head = queue.head(now);
                available[index] =
                    !spent[index] && head.is_some_and(|head| token || head.operation.is_fresh());
            }
            let Some(index) = self.shares.pick(available) else {
                break;
            };
            let Some(mut candidate) = self.queues[index].pop() else {
                break;
            };
            match candidate
                .operation
                .poll(now, &mut self.partner, &mut self.rng)
            {
                Decision::Send(attempt) => chosen.push((candidate, attempt)),
                Decision::Wait(wait) => {
                    candidate.due = wait.until.as_nanos();
                    spent[index] = true;
                    self.queues[index].put_back(candidate);
                }
                decision @ Decision::End(_) => self.end_waiting(&candidate, &decision),
            }
        }
        chosen
    }

    /// An owner sends only while its lease outlasts the attempt.
    fn lease_outlasts(&self) -> bool {
        let now = Timestamp::from_nanos(self.context.store.now());
        let longest = now + self.settings.policy.attempt_timeout;
        self.lease.until > longest.as_nanos()
    }

    /// Writes the attempts down, then sends them.
    async fn begin(&mut self, chosen: Vec<(Candidate, Attempt)>, now: Timestamp) {
        let items = chosen
            .iter()
            .map(|(candidate, attempt)| Begin {
                id: candidate.id,
                attempt: attempt.number,
                started_at: now.as_nanos(),
                operation: encode(&candidate.operation),
            })
            .collect();
        match self.context.store.begin(&self.lease, items).await {
            Ok(results) => {
                // A reply that came while this was written down may have named a time.
                while let Ok(done) = self.done.try_recv() {
                    self.on_done(done);
                }
                let gate = self.partner.view(self.context.clock.timestamp()).gate;
                let shut = matches!(gate, GateState::Open { .. });
                for ((candidate, attempt), result) in chosen.into_iter().zip(results) {
                    match result {
                        Ok(()) if shut => self.put_back(candidate),
                        Ok(()) => self.send(candidate, attempt, now),
                        Err(refusal) => {
                            // Discarded meanwhile, or no longer the head of its lane.
                            tracing::debug!(id = %candidate.id, %refusal, "not begun");
                            self.take_back(candidate);
                        }
                    }
                }
            }
            Err(error) => {
                tracing::warn!(partner = self.settings.name, %error, "nothing is begun");
                self.context.metrics.store_failures.inc();
                self.lost |= matches!(error, StoreError::LeaseLost { .. });
                self.store_pause = Some(Instant::now() + STORE_PAUSE);
                for (candidate, _) in chosen {
                    self.take_back(candidate);
                }
                self.mark_all_more();
            }
        }
    }

    /// Begun, and then not sent after all.
    fn put_back(&mut self, mut candidate: Candidate) {
        let now = self.context.clock.timestamp();
        candidate
            .operation
            .take_back(now, &mut self.partner, &mut self.rng);
        self.unwritten.put_backs.push(PutBack {
            id: candidate.id,
            due: now.as_nanos(),
            because: Because::Hold.as_str().to_owned(),
            class: class_of(&candidate.operation),
            operation: encode(&candidate.operation),
        });
    }

    fn take_back(&mut self, mut candidate: Candidate) {
        let now = self.context.clock.timestamp();
        candidate
            .operation
            .take_back(now, &mut self.partner, &mut self.rng);
    }

    fn send(&mut self, candidate: Candidate, attempt: Attempt, now: Timestamp) {
        tracing::debug!(
            partner = self.settings.name,
            id = %candidate.id,
            what = describe(&attempt),
            "sends"
        );
        let done = self.done_in.clone();
        let until = now + attempt.timeout;
        let abort = attempt::start(&self.context, &self.transport, candidate.id, until, done);
        let flight = InFlight {
            operation: candidate.operation,
            number: attempt.number,
            kind: attempt.kind.as_str(),
            started_at: now.as_nanos(),
            seq: candidate.seq,
            lane: candidate.lane,
            task: AbortOnDrop(abort),
        };
        self.in_flight.insert(candidate.id, flight);
    }

    /// The next moment at which anything can change by time alone.
    fn next_moment(&self, now: Timestamp) -> Timestamp {
        if self.in_flight.len() >= MOST_IN_FLIGHT || !self.lease_outlasts() {
            return Timestamp::MAX;
        }
        let ready = self.partner.readiness(now).at;
        let token = self.partner.budget_readiness(now).at;
        let mut next = Timestamp::MAX;
        for queue in &self.queues {
            if queue.len() == 0 {
                continue;
            }
            let needs_token = queue
                .head(now)
                .is_some_and(|head| !head.operation.is_fresh());
            let gates = if needs_token { ready.max(token) } else { ready };
            next = next.min(queue.due_at().max(gates).min(queue.nearest_deadline()));
        }
        next
    }

    /// A message that waits again: in memory at once, since it is known.
    pub(super) fn requeue(&mut self, candidate: Candidate) {
        let class = class_of(&candidate.operation);
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.class() == class) {
            queue.insert(candidate);
        }
    }

    pub(super) fn mark_all_more(&mut self) {
        self.queues.iter_mut().for_each(Queue::mark_more);
    }

    fn abort_all(&mut self) -> usize {
        self.in_flight
            .values()
            .for_each(|flight| flight.task.0.abort());
        self.in_flight.len()
    }

    /// Begins nothing more; what is in flight has `limit` to end, then it is cut off.
    async fn wind_down(mut self, limit: Duration) -> Stopped {
        let end = Instant::now() + limit;
        while !self.in_flight.is_empty() {
            match tokio::time::timeout_at(end, self.done.recv()).await {
                Ok(Some(done)) => self.on_done(done),
                Ok(None) | Err(_) => break,
            }
            self.write().await;
        }
        let cut = self.abort_all();
        // Each attempt that is cut off says so.
        while !self.in_flight.is_empty() {
            let Some(done) = self.done.recv().await else {
                break;
            };
            self.on_done(done);
        }
        self.unwritten.not_before = None;
        self.write().await;
        if !self.unwritten.is_empty() {
            // They are marked as being sent: the next owner takes them for crashes.
            tracing::error!(
                partner = self.settings.name,
                left = self.unwritten.settles.len(),
                "outcomes could not be written before the stop"
            );
        }
        self.save_partner().await;
        if let Err(error) = self.context.store.release(&[self.lease.clone()]).await {
            tracing::warn!(partner = self.settings.name, %error, "the lease is not released");
        }
        Stopped { cut }
    }
}

/// How long a partner is taken for.
pub(super) fn lease_ttl(attempt_timeout: Duration) -> Duration {
    attempt_timeout + LEASE_MARGIN
}

/// A lease with so much left is renewed: early enough that an attempt can begin at any time, since
/// it needs its whole limit of lease.
fn renewed_at(attempt_timeout: Duration) -> Duration {
    attempt_timeout + LEASE_MARGIN * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_renewed_before_it_is_too_short_to_send() {
        for secs in [1, 10, 30, 31, 120, 600, 3_600] {
            let limit = Duration::from_secs(secs);
            // Renewed with more left than an attempt needs, by more than the longest sleep.
            assert!(renewed_at(limit) > limit + LONGEST_SLEEP);
            assert!(renewed_at(limit) < limit + LEASE_MARGIN, "not all the time");
        }
    }
}
