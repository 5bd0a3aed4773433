//! What follows a failed attempt: the order of decision, and the next wait.

use core::time::Duration;

use rand_core::Rng;

use super::Operation;
use crate::backoff::Jitter;
use crate::decision::{AttemptKind, Because, Decision, Reason, Wait};
use crate::outcome::{Outcome, OutcomeKind, Processed};
use crate::partner::Partner;
use crate::policy::{Mode, OverMax, Policy};
use crate::random;
use crate::time::{Timestamp, nanos};
use crate::verdict::{Judgement, Verdict};

/// A wait before it is drawn, in nanoseconds.
struct Range {
    floor: u64,
    span: u64,
    cap: u64,
    ceiling: u64,
    because: Because,
}

impl Operation {
    /// The order of decision: the first that applies.
    #[inline(never)]
    pub(super) fn after_failure<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        judgement: &Judgement,
        kind: AttemptKind,
        partner: &Partner,
        rng: &mut R,
    ) -> Decision {
        let policy = partner.policy();
        let synchronous = policy.mode == Mode::Synchronous;
        if judgement.verdict == Verdict::Permanent {
            return self.after_permanent(now, outcome, judgement, partner);
        }
        if synchronous && outcome.gave_up {
            return self.end(Reason::UpstreamGaveUp);
        }
        if self.worst_in_series > Processed::No && !self.replayable(now) {
            return self.end(Reason::Ambiguous);
        }
        if !self.repeatable_body && outcome.body_begun() {
            return self.end(Reason::BodyNotReplayable);
        }
        let free = outcome.kind == OutcomeKind::RefusedStream && !self.free_used;
        let costs_no_retry = (free || kind == AttemptKind::Probe) && !synchronous;
        if self.retries >= policy.retries && !costs_no_retry {
            return self.end(Reason::Exhausted);
        }
        if free {
            self.free_used = true;
            return self.wait(Wait::new(now, Because::Turn), true);
        }
        match self.next_wait(now, policy) {
            Ok(range) => self.draw(now, range, partner, rng),
            Err(reason) => self.end(reason),
        }
    }

    /// A wrong password must not empty a queue into dead letters: once the partner is suspended,
    /// what concerns it is no longer this operation's end. Nor is it `ambiguous`: a refusal is a
    /// plain answer.
    fn after_permanent(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        judgement: &Judgement,
        partner: &Partner,
    ) -> Decision {
        let can_go_again = self.repeatable_body || !outcome.body_begun();
        if judgement.concerns_partner && partner.is_suspended() && can_go_again {
            return self.wait(Wait::new(now, Because::Suspension), false);
        }
        self.end(Reason::Permanent)
    }

    /// Floor and span of the next wait, before partner and window have their say.
    #[inline]
    fn next_wait(&self, now: Timestamp, policy: &Policy) -> Result<Range, Reason> {
        let ceiling = policy.backoff.ceiling_nanos(self.retries);
        let Some(hint) = self.hint else {
            let (floor, span) = policy.backoff.range(self.retries, self.previous_wait);
            let cap = nanos(policy.backoff.cap);
            return Ok(Range {
                floor,
                span,
                cap,
                ceiling,
                because: Because::Backoff,
            });
        };
        let window_left = nanos(self.deadline.since(now));
        let longest = policy.retry_after.max.map_or(window_left, nanos);
        let mut floor = nanos(hint.wait);
        if policy.mode == Mode::Synchronous && floor > longest {
            match policy.retry_after.over_max {
                OverMax::GiveUp => return Err(Reason::HintOverMax),
                OverMax::Clamp => floor = longest,
            }
        }
        let span = match policy.backoff.jitter {
            // A hint of zero asks for nothing: the ordinary wait, or it would be a hot loop.
            Jitter::None if floor == 0 => {
                floor = ceiling;
                0
            }
            Jitter::None => 0,
            _ => ceiling.max(policy.retry_after.spread.of(floor)),
        };
        Ok(Range {
            floor,
            span,
            cap: u64::MAX,
            ceiling,
            because: Because::RetryAfter,
        })
    }

    /// Window, breaker and budget look at the earliest moment; then the jitter is drawn inside
    /// what the window leaves.
    #[inline]
    fn draw<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        range: Range,
        partner: &Partner,
        rng: &mut R,
    ) -> Decision {
        let synchronous = partner.policy().mode == Mode::Synchronous;
        let floor_ends = now.plus_nanos(range.floor);
        let ready = partner.readiness(now);
        let shut = matches!(
            ready.because,
            Because::Breaker | Because::Hold | Because::Suspension
        ) && ready.at > floor_ends;
        let named = shut && !synchronous && ready.because.is_by_time_alone()
            || matches!(ready.because, Because::Rate | Because::Ramp);
        let earliest = if named {
            floor_ends.max(ready.at)
        } else {
            floor_ends
        };
        if earliest >= self.deadline {
            return self.end(Reason::WindowClosed);
        }
        if self.worst_in_series > Processed::No && !self.replayable(earliest) {
            return self.end(Reason::Ambiguous);
        }
        if synchronous && shut {
            return self.end(Reason::CircuitOpen);
        }
        if synchronous && partner.budget_readiness(now).at > now {
            return self.end(Reason::BudgetSpent);
        }
        let left = self.deadline.as_nanos() - 1 - floor_ends.as_nanos();
        let drawn = random::up_to(rng, range.span.min(left));
        let wait = range
            .floor
            .saturating_add(drawn)
            .min(range.cap.max(range.floor));
        if range.because == Because::Backoff {
            self.previous_wait = wait;
        }
        let wait = Wait {
            until: now.plus_nanos(wait),
            because: range.because,
            retry: Some(self.retries),
            ceiling: Duration::from_nanos(range.ceiling),
            floor: Duration::from_nanos(range.floor),
            jitter: Duration::from_nanos(wait - range.floor),
            hint: self.hint,
        };
        self.wait(wait, false)
    }
}
