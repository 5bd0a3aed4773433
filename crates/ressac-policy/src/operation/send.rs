//! What stands before an attempt, and what it costs.

use core::time::Duration;

use super::{Operation, Phase};
use crate::decision::{Attempt, AttemptKind, Because, Decision, Reason, Wait};
use crate::partner::{Partner, Readiness, Ticket};
use crate::policy::Mode;
use crate::time::Timestamp;

/// A caller who waits is promised a number of attempts, of whatever kind.
pub(super) fn uses_retry(kind: AttemptKind, mode: Mode) -> bool {
    match kind {
        AttemptKind::First => false,
        AttemptKind::Retry => true,
        AttemptKind::Probe | AttemptKind::Free => mode == Mode::Synchronous,
    }
}

enum Obstacle {
    Wait(Readiness),
    End(Reason),
}

impl Operation {
    /// Apart from `poll`, so that it is compiled once, for every kind of generator.
    #[inline(never)]
    pub(super) fn poll_in_full(&mut self, now: Timestamp, partner: &mut Partner) -> Decision {
        let Phase::Waiting {
            not_before,
            because,
            free,
        } = self.phase
        else {
            return self.poll_unsent();
        };
        if now >= self.deadline {
            return self.end(Reason::WindowClosed);
        }
        if now < not_before {
            return Decision::Wait(Wait::new(not_before, because));
        }
        // The partner may have forgotten the key while this waited.
        if self.forgotten_by(now) {
            return self.end(Reason::Ambiguous);
        }
        if partner.is_clear()
            && let Some(kind) = self.pay(now, partner, free)
        {
            let ticket = partner.admit_clear();
            return Decision::Send(self.send(now, partner, kind, ticket));
        }
        self.poll_obstructed(now, partner, free)
    }

    /// What stands between this operation and its next attempt.
    #[inline]
    fn obstacle(&self, now: Timestamp, partner: &Partner, free: bool) -> Option<Obstacle> {
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

    /// Where the partner is clear: the kind of the next attempt, paid for. `None`, and nothing of
    /// this operation changed, where it cannot pay.
    #[inline]
    fn pay(&mut self, now: Timestamp, partner: &mut Partner, free: bool) -> Option<AttemptKind> {
        if self.attempts_in_series == 0 {
            self.deposit(now, partner);
            return Some(AttemptKind::First);
        }
        if free {
            return Some(AttemptKind::Free);
        }
        let pays = self.retries < partner.policy().retries && partner.withdraw(now);
        pays.then_some(AttemptKind::Retry)
    }

    /// The whole look: what the partner's state in detail, or an empty budget, has to say.
    #[inline(never)]
    fn poll_obstructed(&mut self, now: Timestamp, partner: &mut Partner, free: bool) -> Decision {
        match self.obstacle(now, partner, free) {
            Some(Obstacle::Wait(readiness)) => Decision::Wait(Wait {
                retry: (self.attempts_in_series > 0).then_some(self.retries),
                hint: self.hint,
                ..Wait::new(readiness.at.min(self.deadline), readiness.because)
            }),
            Some(Obstacle::End(reason)) => self.end(reason),
            None => {
                let limit = self.limit(now, partner);
                let ticket = partner.admit(now, limit);
                let kind = self.kind(free, ticket);
                match kind {
                    AttemptKind::First => self.deposit(now, partner),
                    AttemptKind::Retry => {
                        // `obstacle` saw the token under the same `&mut`.
                        partner.withdraw(now);
                    }
                    AttemptKind::Probe | AttemptKind::Free => {}
                }
                Decision::Send(self.send(now, partner, kind, ticket))
            }
        }
    }

    const fn kind(&self, free: bool, ticket: Ticket) -> AttemptKind {
        if self.attempts_in_series == 0 {
            AttemptKind::First
        } else if free {
            AttemptKind::Free
        } else if ticket.is_probe() {
            AttemptKind::Probe
        } else {
            AttemptKind::Retry
        }
    }

    #[inline]
    fn deposit(&mut self, now: Timestamp, partner: &mut Partner) {
        if !self.deposited {
            self.deposited = true;
            partner.deposit_first(now);
        }
    }

    /// The longest an attempt that begins now may take, in nanoseconds.
    #[inline]
    fn limit(&self, now: Timestamp, partner: &Partner) -> u64 {
        partner
            .terms()
            .attempt_timeout
            .min(self.deadline.nanos_since(now))
    }

    /// The attempt goes: its place is taken, and it is paid for.
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Timestamp,
        partner: &Partner,
        kind: AttemptKind,
        ticket: Ticket,
    ) -> Attempt {
        let limit = self.limit(now, partner);
        let left = self.deadline.nanos_since(now);
        let timeout = if limit < left {
            partner.policy().attempt_timeout
        } else {
            Duration::from_nanos(limit)
        };
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
