//! The run-time state that all operations to one partner share.

mod plain;
mod terms;
mod view;

use alloc::sync::Arc;
use core::time::Duration;

use rand_core::Rng;

pub(crate) use self::terms::Terms;
pub(crate) use self::view::{Ended, Ticket};
pub use self::view::{PartnerView, Readiness};
use crate::backoff::Jitter;
use crate::budget::Budget;
use crate::decision::{AttemptKind, Because};
use crate::gate::{Call, Gate, GateState, Word};
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
    terms: Terms,
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
            terms: Terms::of(&policy),
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
        let (policy, state) = (&partner.policy, &mut partner.state);
        let longest_hold = longest_hold(policy);
        let spread = policy.retry_after.spread.of(longest_hold);
        let gate_longest = longest_hold.saturating_add(spread);
        state.gate.take_up(&partner.gate_config, gate_longest, now);
        state.limiter.take_up(&policy.limit, now);
        state.budget = policy.budget.map(|config| match state.budget.take() {
            Some(mut kept) => {
                kept.take_up(&config, now);
                kept
            }
            None => Budget::new(&config, now),
        });
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

    #[inline]
    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Puts another policy in force. Run-time state outlives it: no bucket is filled, no breaker
    /// closed by a reload.
    pub fn set_policy(&mut self, policy: impl Into<Arc<Policy>>, now: Timestamp) {
        let (old_window, old_budget) = (self.gate_config.window, self.policy.budget);
        self.policy = policy.into();
        self.gate_config = self.policy.breaker.unwrap_or_default();
        self.terms = Terms::of(&self.policy);
        if old_window != self.gate_config.window {
            self.state.gate.count_over(self.gate_config.window, now);
        }
        match (self.policy.budget, &mut self.state.budget) {
            (Some(config), None) => self.state.budget = Some(Budget::new(&config, now)),
            (Some(config), Some(budget)) => {
                if let Some(old) = old_budget {
                    budget.reload(&old, &config, now);
                }
            }
            (None, budget) => *budget = None,
        }
    }

    /// When the next attempt may go: gate, rate and concurrency together. Changes nothing.
    #[must_use]
    #[inline]
    pub fn readiness(&self, now: Timestamp) -> Readiness {
        let (gate, why_gate) = self.state.gate.ready_at(now);
        let (limit, why_limit) = self.state.limiter.ready_at(&self.policy.limit);
        // A gate that is shut explains more than a rate that is not up yet. A place that comes free
        // at no known time says nothing about when the gate opens.
        if gate > now {
            let at = if limit.is_never() {
                gate
            } else {
                gate.max(limit)
            };
            return Readiness {
                at,
                because: why_gate,
            };
        }
        Readiness {
            at: limit,
            because: why_limit,
        }
    }

    /// When a retry may go, as far as the budget is concerned. A deposit can make it earlier.
    /// A probe needs no token: where one may go now, so may a retry.
    #[must_use]
    #[inline]
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

    /// An operator has mended what suspended, held or opened the partner: a probe may go now. A
    /// closed partner stays as it is.
    pub fn resume(&mut self, now: Timestamp) {
        self.state.suspects = 0;
        self.state.gate.resume(now);
    }

    /// Takes the place of an attempt that takes `limit` nanoseconds at most. `readiness` must have
    /// said that it may go.
    #[inline]
    pub(crate) fn admit(&mut self, now: Timestamp, limit: u64) -> Ticket {
        let interval = if self.state.gate.is_paced() {
            self.state.limiter.interval_nanos(&self.policy.limit)
        } else {
            0
        };
        let epoch = self.state.limiter.admit(&self.policy.limit, now);
        let pass = self
            .state
            .gate
            .admit(&self.gate_config, now, limit, interval);
        Ticket { pass, epoch }
    }

    #[inline]
    pub(crate) fn deposit_first(&mut self, now: Timestamp) {
        if let (Some(budget), Some(config)) = (&mut self.state.budget, &self.policy.budget) {
            budget.on_first_attempt(config, now);
        }
    }

    /// Takes a retry's token; true where the budget is off.
    #[inline]
    pub(crate) fn withdraw(&mut self, now: Timestamp) -> bool {
        match (&mut self.state.budget, &self.policy.budget) {
            (Some(budget), Some(config)) => budget.withdraw(config, now),
            _ => true,
        }
    }

    pub(crate) fn give_back_token(&mut self, now: Timestamp, ticket: Ticket) {
        if ticket.is_lost() {
            return;
        }
        if let (Some(budget), Some(config)) = (&mut self.state.budget, &self.policy.budget) {
            budget.give_back(config, now);
        }
    }

    /// What became of an attempt. A lost ticket, of before a restart, changes nothing here.
    #[inline]
    pub(crate) fn settle<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        ended: &Ended<'_>,
        rng: &mut R,
    ) {
        let Ended {
            ticket,
            kind,
            outcome,
            judgement,
            deadline,
        } = *ended;
        if ticket.is_lost() {
            return;
        }
        self.state.limiter.release(ticket.epoch);
        let hold = self.hold_of(outcome);
        let call = Call {
            took: outcome.took,
            word: Word {
                health: judgement.health,
                hinted: hold.is_some(),
                suspect: judgement.concerns_partner,
            },
        };
        let enabled = self.policy.breaker.is_some();
        self.state
            .gate
            .settle(&self.gate_config, enabled, now, ticket.pass, call, rng);
        if let Verdict::Success | Verdict::AlreadyDone = judgement.verdict {
            self.on_success(now, kind);
        } else if matches!(outcome.kind, OutcomeKind::Status(429)) {
            self.state.limiter.on_throttled(&self.policy.limit, now);
        }
        if let Some(floor) = hold {
            self.hold(now, floor, deadline, rng);
        }
        self.watch_suspects(now, judgement, rng);
    }

    #[cold]
    #[inline(never)]
    fn hold<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        floor: Duration,
        deadline: Timestamp,
        rng: &mut R,
    ) {
        let spread = match self.policy.backoff.jitter {
            Jitter::None => 0,
            _ => self.policy.retry_after.spread.of(nanos(floor)),
        };
        // What the window allows without the jitter, the jitter must not forbid.
        let left = nanos(deadline.since(now + floor));
        let spread = if left == 0 {
            spread
        } else {
            spread.min(left - 1)
        };
        self.state.gate.hold(now, floor, spread, rng);
    }

    /// Gives an attempt's place back without a word about the partner.
    pub(crate) fn release<R: Rng + ?Sized>(&mut self, now: Timestamp, ticket: Ticket, rng: &mut R) {
        self.state.limiter.release(ticket.epoch);
        let call = Call {
            took: Duration::ZERO,
            word: Word {
                health: Health::Neutral,
                hinted: false,
                suspect: false,
            },
        };
        let enabled = self.policy.breaker.is_some();
        self.state
            .gate
            .settle(&self.gate_config, enabled, now, ticket.pass, call, rng);
    }

    #[inline(never)]
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
            .map(|hint| Duration::from_nanos(nanos(hint.wait).min(longest_hold(&self.policy))))
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
    #[inline(never)]
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

/// No hold is longer, in nanoseconds: the window, or what the policy obeys beyond it. A partner
/// that says `1796040000` and means a date is not left alone for 57 years.
fn longest_hold(policy: &Policy) -> u64 {
    /// Where the policy has no end at all: the window of the built-in one.
    const DAY: Duration = Duration::from_secs(86_400);
    let window = policy.window.unwrap_or(DAY);
    nanos(window.max(policy.retry_after.max.unwrap_or_default()))
}
