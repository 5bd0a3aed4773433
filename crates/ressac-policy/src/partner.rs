//! The run-time state that all operations to one partner share.

use alloc::sync::Arc;
use core::time::Duration;

use rand_core::Rng;

use crate::budget::Budget;
use crate::decision::{AttemptKind, Because};
use crate::gate::{Call, Gate, GateState, Pass};
use crate::limiter::Limiter;
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::{BreakerConfig, Mode, Policy};
use crate::time::{Timestamp, nanos};
use crate::verdict::{Health, Judgement, Verdict};

/// One partner's budget, breaker, holds, limiter and suspension, under one [`Policy`].
///
/// Plain state behind `&mut`: a shell puts a lock round it, or gives it to one owner. It reads no
/// clock; each call is given `now`. Operations use it through [`crate::Operation::poll`] and
/// [`crate::Operation::on_outcome`]; a shell with many of them asks [`Partner::readiness`] first
/// and polls only as many as may go.
///
/// ```
/// use ressac_policy::{Partner, Policy, Timestamp};
///
/// let now = Timestamp::from_secs(1);
/// let partner = Partner::new(Policy::durable(), now);
/// assert!(partner.readiness(now).at <= now);
/// assert_eq!(partner.view(now).gate.as_str(), "closed");
/// ```
#[derive(Clone, Debug)]
pub struct Partner {
    policy: Arc<Policy>,
    /// What the gate goes by; the defaults where the breaker is off, for probes after a hold.
    gate_config: BreakerConfig,
    state: PartnerState,
}

/// What of a [`Partner`] is worth keeping over a restart: holds, breaker, budget, limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PartnerState {
    gate: Gate,
    limiter: Limiter,
    budget: Option<Budget>,
    /// Permanent failures in a row that concern the partner.
    suspects: u32,
}

/// When the next attempt may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Not before; a moment that has passed means now. [`Timestamp::MAX`]: not by time alone.
    pub at: Timestamp,
    /// What is waited for until then.
    pub because: Because,
}

/// A partner's state in numbers, for logs, metrics and the dashboard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartnerView {
    /// Breaker, hold or suspension.
    pub gate: GateState,
    /// Failures in the breaker's window.
    pub failures: u32,
    /// Calls in the breaker's window.
    pub calls: u32,
    /// Tokens of the retry budget; `None` where it is off.
    pub tokens: Option<f64>,
    /// Attempts in flight.
    pub in_flight: u32,
    /// The share of the configured rate and concurrency in force, 0 to 1.
    pub limit_share: f64,
}

/// The place that an attempt in flight holds at its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pass: Pass,
    holds_place: bool,
}

impl Ticket {
    /// Of an attempt whose partner no longer knows it (a crash lies between).
    pub(crate) const LOST: Ticket = Ticket {
        pass: Pass::LOST,
        holds_place: false,
    };

    pub(crate) const fn is_probe(self) -> bool {
        self.pass.is_probe()
    }
}

impl Default for Ticket {
    fn default() -> Self {
        Ticket::LOST
    }
}

impl Partner {
    /// A partner nothing is known of yet: closed breaker, full reserve.
    #[must_use]
    pub fn new(policy: impl Into<Arc<Policy>>, now: Timestamp) -> Self {
        let policy = policy.into();
        let gate_config = policy.breaker.unwrap_or_default();
        let state = PartnerState {
            gate: Gate::new(&gate_config, now),
            limiter: Limiter::new(now),
            budget: policy.budget.map(|config| Budget::new(&config, now)),
            suspects: 0,
        };
        Partner {
            policy,
            gate_config,
            state,
        }
    }

    /// A partner as it was before a restart. Attempts that were in flight are forgotten here;
    /// report each as a crash to its own operation.
    #[must_use]
    pub fn restore(policy: impl Into<Arc<Policy>>, state: PartnerState, now: Timestamp) -> Self {
        let mut partner = Partner {
            state,
            ..Partner::new(policy, now)
        };
        partner.state.gate.forget_calls(now);
        let fresh = partner
            .policy
            .budget
            .map(|config| Budget::new(&config, now));
        partner.state.budget = match (partner.state.budget.take(), fresh) {
            (Some(kept), Some(_)) => Some(kept),
            (_, fresh) => fresh,
        };
        partner
    }

    /// The state to keep.
    #[must_use]
    pub fn state(&self) -> &PartnerState {
        &self.state
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Puts another policy in force. Run-time state outlives it: no bucket is filled, no breaker
    /// closed by a reload.
    pub fn set_policy(&mut self, policy: impl Into<Arc<Policy>>, now: Timestamp) {
        let (old_window, old_budget) = (self.gate_config.window, self.policy.budget);
        self.policy = policy.into();
        self.gate_config = self.policy.breaker.unwrap_or_default();
        if old_window != self.gate_config.window {
            self.state.gate.count_over(self.gate_config.window, now);
        }
        let old_window = old_budget.map(|budget| budget.window);
        match (self.policy.budget, &mut self.state.budget) {
            (Some(config), None) => self.state.budget = Some(Budget::new(&config, now)),
            (Some(config), Some(budget)) if old_window != Some(config.window) => {
                budget.save_over(config.window, now);
            }
            (Some(_), Some(_)) => {}
            (None, budget) => *budget = None,
        }
    }

    /// When the next attempt may go: gate, rate and concurrency together. Changes nothing.
    #[must_use]
    #[inline]
    pub fn readiness(&self, now: Timestamp) -> Readiness {
        let (gate, why_gate) = self.state.gate.ready_at(now);
        let (limit, why_limit) = self.state.limiter.ready_at(&self.policy.limit);
        let later = if limit > gate {
            Readiness {
                at: limit,
                because: why_limit,
            }
        } else {
            Readiness {
                at: gate,
                because: why_gate,
            }
        };
        // A gate that is shut explains more than a rate that is not up yet.
        if gate > now {
            Readiness {
                because: why_gate,
                ..later
            }
        } else {
            later
        }
    }

    /// When a retry may go, as far as the budget is concerned. A deposit can make it earlier.
    /// A probe needs no token: where one may go now, so may a retry.
    #[must_use]
    pub fn budget_readiness(&self, now: Timestamp) -> Readiness {
        let at = match (&self.state.budget, &self.policy.budget) {
            (Some(budget), Some(config)) if !self.next_is_probe() => budget.ready_at(config, now),
            _ => now,
        };
        Readiness {
            at,
            because: Because::Budget,
        }
    }

    /// Would the next attempt let through be a probe?
    #[must_use]
    pub fn next_is_probe(&self) -> bool {
        self.state.gate.state() != GateState::Closed
    }

    /// The state in numbers.
    #[must_use]
    pub fn view(&self, now: Timestamp) -> PartnerView {
        let (failures, calls) = self.state.gate.failures(now);
        let tokens = self.state.budget.as_ref().zip(self.policy.budget.as_ref());
        PartnerView {
            gate: self.state.gate.state(),
            failures,
            calls,
            tokens: tokens.map(|(budget, config)| budget.tokens(config, now) as f64 / 1e6),
            in_flight: self.state.limiter.in_flight(),
            limit_share: self.state.limiter.share() as f64 / 1e6,
        }
    }

    /// Is the partner suspended: does it wait for a probe, or an operator?
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        matches!(
            self.state.gate.state(),
            GateState::Open {
                cause: crate::gate::Cause::Suspension,
                ..
            } | GateState::HalfOpen {
                cause: crate::gate::Cause::Suspension
            }
        )
    }

    /// An operator has mended what suspended the partner: a probe goes now.
    pub fn resume(&mut self, now: Timestamp) {
        self.state.suspects = 0;
        self.state.gate.resume(now);
    }

    /// Takes the place of an attempt. `readiness` must have said that it may go.
    #[inline]
    pub(crate) fn admit(&mut self, now: Timestamp, limit: Duration) -> Ticket {
        let interval = self.state.limiter.interval_nanos(&self.policy.limit);
        self.state.limiter.admit(&self.policy.limit, now);
        let pass = self
            .state
            .gate
            .admit(&self.gate_config, now, limit, interval);
        Ticket {
            pass,
            holds_place: true,
        }
    }

    #[inline]
    pub(crate) fn deposit_first(&mut self, now: Timestamp) {
        if let (Some(budget), Some(config)) = (&mut self.state.budget, &self.policy.budget) {
            budget.on_first_attempt(config, now);
        }
    }

    /// Takes a retry's token; true where the budget is off.
    pub(crate) fn withdraw(&mut self, now: Timestamp) -> bool {
        match (&mut self.state.budget, &self.policy.budget) {
            (Some(budget), Some(config)) => budget.withdraw(config, now),
            _ => true,
        }
    }

    pub(crate) fn give_back_token(&mut self, now: Timestamp) {
        if let (Some(budget), Some(config)) = (&mut self.state.budget, &self.policy.budget) {
            budget.give_back(config, now);
        }
    }

    /// What became of an attempt.
    #[inline]
    pub(crate) fn settle<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        kind: AttemptKind,
        outcome: &Outcome,
        judgement: &Judgement,
        rng: &mut R,
    ) {
        if ticket.holds_place {
            self.state.limiter.release();
        }
        let hold = self.hold_of(outcome);
        let call = Call {
            health: judgement.health,
            took: outcome.took,
            hinted: hold.is_some(),
            suspect: judgement.concerns_partner,
        };
        let enabled = self.policy.breaker.is_some();
        self.state
            .gate
            .settle(&self.gate_config, enabled, now, ticket.pass, call, rng);
        if let Verdict::Success | Verdict::AlreadyDone = judgement.verdict {
            self.on_success(now, kind);
        } else if outcome.kind == OutcomeKind::Status(429) {
            self.state.limiter.on_throttled(&self.policy.limit, now);
        }
        if let Some(floor) = hold {
            let spread = self.policy.retry_after.spread.of(nanos(floor));
            self.state.gate.hold(now, floor, spread, rng);
        }
        self.watch_suspects(now, judgement, rng);
    }

    /// Gives an attempt's place back without a word about the partner.
    pub(crate) fn release<R: Rng + ?Sized>(&mut self, now: Timestamp, ticket: Ticket, rng: &mut R) {
        if ticket.holds_place {
            self.state.limiter.release();
        }
        let call = Call {
            health: Health::Neutral,
            took: Duration::ZERO,
            hinted: false,
            suspect: false,
        };
        let enabled = self.policy.breaker.is_some();
        self.state
            .gate
            .settle(&self.gate_config, enabled, now, ticket.pass, call, rng);
    }

    #[inline]
    fn on_success(&mut self, now: Timestamp, kind: AttemptKind) {
        self.state.limiter.on_success(&self.policy.limit, now);
        if let (Some(budget), Some(config)) = (&mut self.state.budget, &self.policy.budget) {
            budget.on_success(config, now);
            if kind == AttemptKind::Retry && self.policy.mode == Mode::Durable {
                budget.give_back(config, now);
            }
        }
    }

    /// Durable: a hint on 429 or 503 is for all who call this partner.
    #[inline]
    fn hold_of(&self, outcome: &Outcome) -> Option<Duration> {
        let holds = self.policy.mode == Mode::Durable
            && self.policy.retry_after.hold
            && matches!(outcome.kind, OutcomeKind::Status(429 | 503));
        outcome
            .hint
            .filter(|hint| holds && !hint.wait.is_zero())
            .map(|hint| hint.wait)
    }

    #[inline]
    fn watch_suspects<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        judgement: &Judgement,
        rng: &mut R,
    ) {
        if judgement.concerns_partner {
            self.suspect(now, rng);
        } else if judgement.health != Health::Neutral {
            self.state.suspects = 0;
        }
    }

    #[cold]
    fn suspect<R: Rng + ?Sized>(&mut self, now: Timestamp, rng: &mut R) {
        self.state.suspects = self.state.suspects.saturating_add(1);
        let due = self
            .policy
            .suspend_after
            .is_some_and(|after| self.state.suspects >= after);
        if due && self.policy.mode == Mode::Durable && !self.is_suspended() {
            self.state.gate.suspend(&self.gate_config, now, rng);
        }
    }
}
