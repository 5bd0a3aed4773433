//! What stands before an attempt, and what it costs.

use core::time::Duration;

use rand_core::Rng;

use super::{Operation, Phase};
use crate::decision::{Attempt, AttemptKind, Because, Reason};
use crate::partner::{Partner, Readiness};
use crate::policy::Mode;
use crate::time::{Timestamp, nanos};

/// A caller who waits is promised a number of attempts, of whatever kind.
pub(super) fn uses_retry(kind: AttemptKind, mode: Mode) -> bool {
    match kind {
        AttemptKind::First => false,
        AttemptKind::Retry => true,
        AttemptKind::Probe | AttemptKind::Free => mode == Mode::Synchronous,
    }
}

pub(super) enum Obstacle {
    Wait(Readiness),
    End(Reason),
}

impl Operation {
    /// What stands between this operation and its next attempt.
    #[inline]
    pub(super) fn obstacle(
        &self,
        now: Timestamp,
        partner: &Partner,
        free: bool,
    ) -> Option<Obstacle> {
        let synchronous = partner.policy().mode == Mode::Synchronous;
        let ready = partner.readiness(now);
        if ready.at > now {
            let shut = matches!(
                ready.because,
                Because::Breaker | Because::Probe | Because::Hold | Because::Suspension
            );
            if synchronous && shut {
                return Some(Obstacle::End(Reason::CircuitOpen));
            }
            if ready.because.is_by_time_alone() && ready.at >= self.deadline {
                return Some(Obstacle::End(Reason::WindowClosed));
            }
            return Some(Obstacle::Wait(ready));
        }
        if self.attempts_in_series > 0 && !free {
            // Only where the policy has changed, or after a suspension: what was allowed as a probe
            // is not allowed as a retry.
            if self.retries >= partner.policy().retries && !partner.next_is_probe() {
                return Some(Obstacle::End(Reason::Exhausted));
            }
            let token = partner.budget_readiness(now);
            if token.at > now {
                return Some(if synchronous {
                    Obstacle::End(Reason::BudgetSpent)
                } else {
                    Obstacle::Wait(token)
                });
            }
        }
        None
    }

    #[inline]
    pub(super) fn send<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        partner: &mut Partner,
        free: bool,
        _rng: &mut R,
    ) -> Attempt {
        let (own, left) = (
            partner.policy().attempt_timeout,
            self.deadline.nanos_since(now),
        );
        let limit = nanos(own).min(left);
        let timeout = if limit < left {
            own
        } else {
            Duration::from_nanos(limit)
        };
        let ticket = partner.admit(now, limit);
        let kind = if self.attempts_in_series == 0 {
            AttemptKind::First
        } else if free {
            AttemptKind::Free
        } else if ticket.is_probe() {
            AttemptKind::Probe
        } else {
            AttemptKind::Retry
        };
        match kind {
            AttemptKind::First if !self.deposited => {
                self.deposited = true;
                partner.deposit_first(now);
            }
            AttemptKind::Retry => {
                // `obstacle` saw the token under the same `&mut`.
                partner.withdraw(now);
            }
            AttemptKind::First | AttemptKind::Probe | AttemptKind::Free => {}
        }
        if uses_retry(kind, partner.policy().mode) {
            self.retries = self.retries.saturating_add(1);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.attempts_in_series = self.attempts_in_series.saturating_add(1);
        self.first_sent.get_or_insert(now);
        self.phase = Phase::Sending {
            kind,
            limit: now.plus_nanos(limit),
            ticket,
        };
        Attempt {
            number: self.attempts,
            kind,
            timeout,
        }
    }
}
