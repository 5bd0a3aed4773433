//! From outcome to store: what became of attempts is decided, written, and kept until it is written.

use std::time::Duration;

use ressac_policy::{Cause, Decision, GateState, Operation, Outcome, Partner};
use ressac_store::{AttemptRecord, Class, PutBack, Settle, StoreError};
use tokio::time::Instant;

use super::attempt::Done;
use super::lane::{InFlight, Lane};
use super::queue::Candidate;
use super::record::{attempt, class_of, encode, label};
use super::recover::next_state;
use crate::metrics::{AttemptLabel, EndLabel, PartnerLabel, WaitLabel};

/// The first pause after a write that the store did not take, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// When a message that the store could not give is looked at again: a damaged page is no reason to do
/// nothing else.
const UNREAD_PAUSE: Duration = Duration::from_secs(2);

/// What must still be written. Until it is, the lane begins nothing.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    pub(super) settles: Vec<(Settle, Option<Candidate>)>,
    pub(super) put_backs: Vec<PutBack>,
    pub(super) not_before: Option<Instant>,
    pause: Duration,
}

impl Unwritten {
    pub(super) fn is_empty(&self) -> bool {
        self.settles.is_empty() && self.put_backs.is_empty()
    }
}

impl Lane {
    /// Takes what became of one attempt, and decides.
    pub(super) fn on_done(&mut self, done: Done) {
        let Some(flight) = self.in_flight.remove(&done.id) else {
            return;
        };
        let InFlight {
            mut operation,
            number,
            started_at,
            seq,
            lane,
            kind: sort,
            ..
        } = flight;
        let now = self.context.clock.timestamp();
        let Some(sent) = done.sent else {
            operation.take_back(now, &mut self.partner, &mut self.rng);
            self.unwritten.put_backs.push(PutBack {
                id: done.id,
                due: (now + UNREAD_PAUSE).as_nanos(),
                because: "store".to_owned(),
                // First attempts stand in the order of deadlines: there it would hold up those behind.
                class: match class_of(&operation) {
                    Class::First => Class::Retry,
                    other => other,
                },
                operation: encode(&operation),
            });
            return;
        };
        let mut record = attempt(number, started_at, done.ended_at, &sent);
        judge_into(&mut record, &sent.outcome, &operation, &self.partner);
        self.count_attempt(
            sort,
            &sent.outcome,
            done.ended_at.saturating_sub(started_at),
        );
        let decision = operation.on_outcome(now, &sent.outcome, &mut self.partner, &mut self.rng);
        self.tell(done.id, &record, &decision);
        let next = next_state(&decision, &operation, now.as_nanos());
        let candidate = match &decision {
            Decision::Wait(wait) => Some(Candidate {
                id: done.id,
                class: class_of(&operation),
                due: wait.until.as_nanos(),
                seq,
                lane,
                operation: operation.clone(),
            }),
            Decision::Send(_) | Decision::End(_) => None,
        };
        if lane {
            // Its end lets the next of its lane come forward.
            self.mark_all_more();
        }
        let settle = Settle {
            id: done.id,
            attempt: Some(record),
            next,
            operation: encode(&operation),
        };
        self.unwritten.settles.push((settle, candidate));
    }

    /// A message that ended while it waited.
    pub(super) fn end_waiting(&mut self, candidate: &Candidate, decision: &Decision) {
        if let Decision::End(end) = decision {
            self.count_end(end);
            tracing::info!(partner = self.settings.name, id = %candidate.id, %end, "ended unsent");
        }
        let now = self.context.clock.timestamp().as_nanos();
        let next = next_state(decision, &candidate.operation, now);
        let operation = encode(&candidate.operation);
        self.unwritten.settles.push((
            Settle {
                id: candidate.id,
                attempt: None,
                next,
                operation,
            },
            None,
        ));
    }

    /// Writes what is unwritten, if it is time to try.
    pub(super) async fn write(&mut self) {
        if self.unwritten.is_empty()
            || self
                .unwritten
                .not_before
                .is_some_and(|moment| Instant::now() < moment)
        {
            return;
        }
        match self.write_now().await {
            Ok(()) => self.unwritten = Unwritten::default(),
            Err(error) => self.on_write_failure(&error),
        }
    }

    async fn write_now(&mut self) -> Result<(), StoreError> {
        self.save_partner_if_changed().await?;
        if !self.unwritten.put_backs.is_empty() {
            let items = self.unwritten.put_backs.clone();
            self.context.store.put_back(&self.lease, items).await?;
            self.unwritten.put_backs.clear();
            self.mark_all_more();
        }
        if self.unwritten.settles.is_empty() {
            return Ok(());
        }
        let items = self
            .unwritten
            .settles
            .iter()
            .map(|(settle, _)| settle.clone())
            .collect();
        let results = self.context.store.settle(&self.lease, items).await?;
        let settled = std::mem::take(&mut self.unwritten.settles);
        for ((settle, candidate), result) in settled.into_iter().zip(results) {
            match (result, candidate) {
                (Ok(()), Some(candidate)) => self.requeue(candidate),
                (Ok(()), None) => {}
                (Err(refusal), _) => tracing::warn!(
                    partner = self.settings.name,
                    id = %settle.id,
                    %refusal,
                    "a settle was refused; it is kept as evidence"
                ),
            }
        }
        Ok(())
    }

    fn on_write_failure(&mut self, error: &StoreError) {
        self.context.metrics.store_failures.inc();
        if let StoreError::LeaseLost { .. } = error {
            // Another instance owns the partner: what is unwritten here is evidence there.
            tracing::error!(partner = self.settings.name, %error, "the lane stops");
            self.lost = true;
            self.unwritten = Unwritten::default();
            return;
        }
        let pause = (self.unwritten.pause * 2).clamp(PAUSE.0, PAUSE.1);
        self.unwritten.pause = pause;
        self.unwritten.not_before = Some(Instant::now() + pause);
        tracing::warn!(
            partner = self.settings.name,
            %error,
            waiting_to_be_written = self.unwritten.settles.len(),
            "the store does not take outcomes; nothing more is sent until it does"
        );
    }

    /// Holds and an open breaker must outlive a crash; counts need not.
    async fn save_partner_if_changed(&mut self) -> Result<(), StoreError> {
        let gate = self.partner.view(self.context.clock.timestamp()).gate;
        if self.saved_gate == Some(gate) {
            return Ok(());
        }
        if let Some(before) = self.saved_gate {
            self.tell_gate(before, gate);
        }
        let blob = serde_json::to_vec(self.partner.state()).unwrap_or_default();
        self.context.store.save_partner(&self.lease, blob).await?;
        self.saved_gate = Some(gate);
        Ok(())
    }

    /// How a partner was found: told where it needs an operator.
    pub(super) fn remember_gate(&mut self) {
        let gate = self.partner.view(self.context.clock.timestamp()).gate;
        self.tell_gate(GateState::Closed, gate);
        self.saved_gate = Some(gate);
    }

    /// A partner that changes state is what an operator wants to hear of; a suspended one calls for
    /// an operator.
    fn tell_gate(&self, before: GateState, gate: GateState) {
        let partner = self.settings.name.as_str();
        match gate {
            GateState::Open {
                cause: Cause::Suspension,
                ..
            } => tracing::error!(
                partner,
                "suspended: it refuses our credentials or address; messages wait, a slow probe looks"
            ),
            GateState::Open { until, cause } => tracing::warn!(
                partner,
                cause = cause_word(cause),
                until = crate::api::moment(until.as_nanos()),
                "nothing is sent for now"
            ),
            GateState::Closed if before != GateState::Closed => {
                tracing::info!(
                    partner,
                    "it answers again; what waits drains slowly at first"
                );
            }
            GateState::Closed | GateState::HalfOpen { .. } => {}
        }
    }

    /// What must be kept at a stop, whether it changed or not.
    pub(super) async fn save_partner(&mut self) {
        self.saved_gate = None;
        if let Err(error) = self.save_partner_if_changed().await {
            tracing::warn!(partner = self.settings.name, %error, "the partner's state is not saved");
        }
    }

    fn tell(&self, id: uuid::Uuid, record: &AttemptRecord, decision: &Decision) {
        let partner = self.settings.name.as_str();
        let (number, kind, status) = (record.number, record.kind.as_str(), record.status);
        match decision {
            Decision::End(end) => {
                self.count_end(end);
                tracing::info!(partner, %id, attempt = number, kind, status, %end, "ended");
            }
            Decision::Wait(wait) => {
                let because = wait.because.as_str();
                let label = WaitLabel {
                    partner: partner.to_owned(),
                    because,
                };
                self.context.metrics.waits.get_or_create(&label).inc();
                tracing::info!(partner, %id, attempt = number, kind, status, "{wait}");
            }
            Decision::Send(_) => {}
        }
    }

    fn count_end(&self, end: &ressac_policy::End) {
        let label = EndLabel {
            partner: self.settings.name.clone(),
            reason: end.reason.as_str(),
            blame: end.blame.map_or("", |blame| blame.as_str()),
        };
        self.context.metrics.ends.get_or_create(&label).inc();
    }

    fn count_attempt(&self, sort: &'static str, outcome: &Outcome, nanos: u64) {
        let partner = self.settings.name.clone();
        let label = AttemptLabel {
            partner: partner.clone(),
            kind: sort,
            outcome: label(outcome),
        };
        self.context.metrics.attempts.get_or_create(&label).inc();
        let seconds = Duration::from_nanos(nanos).as_secs_f64();
        self.context
            .metrics
            .attempt_seconds
            .get_or_create(&PartnerLabel { partner })
            .observe(seconds);
    }

    /// The gauges, and the view that the API shows.
    pub(super) fn publish(&self) {
        let now = self.context.clock.timestamp();
        let view = self.partner.view(now);
        let readiness = self.partner.readiness(now);
        let label = PartnerLabel {
            partner: self.settings.name.clone(),
        };
        let metrics = &self.context.metrics;
        let gate = match view.gate {
            GateState::Closed => 0,
            GateState::HalfOpen { .. } => 1,
            GateState::Open { .. } => 2,
        };
        metrics.gate.get_or_create(&label).set(gate);
        metrics
            .in_flight
            .get_or_create(&label)
            .set(i64::from(view.in_flight));
        if let Some(tokens) = view.tokens {
            metrics.tokens.get_or_create(&label).set(tokens);
        }
        self.handle.view.send_replace(Some(super::LaneView {
            partner: view,
            ready_at: readiness.at.as_nanos(),
            because: if readiness.at > now {
                readiness.because.as_str()
            } else {
                ""
            },
        }));
    }
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Breaker => "breaker",
        Cause::Hold => "hold",
        Cause::Suspension => "suspension",
    }
}

/// What the engine's table makes of the outcome, into its record.
pub(super) fn judge_into(
    record: &mut AttemptRecord,
    outcome: &Outcome,
    operation: &Operation,
    partner: &Partner,
) {
    let judged = operation.judge(outcome, partner.policy());
    record.processed = judged.processed.as_str().to_owned();
    record.blame = judged.blame.map_or("", |blame| blame.as_str()).to_owned();
}
