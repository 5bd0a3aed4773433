//! What a partner shows of itself, and what an attempt in flight holds of it.

use crate::decision::{AttemptKind, Because};
use crate::gate::{GateState, Pass};
use crate::limiter::NO_EPOCH;
use crate::outcome::Outcome;
use crate::time::Timestamp;
use crate::verdict::Judgement;

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
    pub(super) pass: Pass,
    /// Of the limiter's place.
    pub(super) epoch: u32,
}

impl Ticket {
    /// Of an attempt whose partner no longer knows it (a crash lies between).
    pub(crate) const LOST: Ticket = Ticket {
        pass: Pass::LOST,
        epoch: NO_EPOCH,
    };

    pub(super) const fn is_lost(self) -> bool {
        self.epoch == NO_EPOCH
    }

    pub(crate) const fn is_probe(self) -> bool {
        self.pass.is_probe()
    }
}

impl Default for Ticket {
    fn default() -> Self {
        Ticket::LOST
    }
}

/// An attempt that has ended, as its partner needs to know it.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) ticket: Ticket,
    pub(crate) kind: AttemptKind,
    pub(crate) outcome: &'a Outcome,
    pub(crate) judgement: &'a Judgement,
    /// Of its operation.
    pub(crate) deadline: Timestamp,
}
