//! What follows a failed attempt: the order of decision, and the next wait.

use rand_core::Rng;

use super::{Operation, Phase};
use crate::backoff::Jitter;
use crate::decision::{AttemptKind, Because, Decision, Reason, Wait};
use crate::hint::by_parts;
use crate::outcome::{Outcome, OutcomeKind, Processed};
use crate::partner::{Ended, Partner, Terms};
use crate::policy::{Mode, OverMax, Policy};
use crate::random;
use crate::time::{Timestamp, duration, nanos};
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
    /// Apart from `on_outcome`, whose success goes all inline.
    #[inline(never)]
    pub(super) fn on_outcome_in_full<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        partner: &mut Partner,
        rng: &mut R,
    ) -> Decision {
        let Phase::Sending { kind, ticket, .. } = self.phase else {
            return self.poll_unsent();
        };
        let before = if self.may_be_done {
            Processed::Maybe
        } else {
            Processed::No
        };
        let mut judgement = Judgement::SUCCESS;
        let rules = &partner.policy().rules;
        match rules.success(outcome, before) {
            Some(verdict) => judgement.verdict = verdict,
            None => rules.judge_failure(outcome, self.keyed, &mut judgement),
        }
        let ended = Ended {
            ticket,
            kind,
            outcome,
            judgement: &judgement,
            deadline: self.deadline,
        };
        partner.settle(now, &ended, rng);
        self.last = Some(outcome.kind);
        self.last_blame = judgement.blame;
        match judgement.verdict {
            Verdict::Success | Verdict::AlreadyDone => {
                self.worst = Processed::Yes;
                let already_done = judgement.verdict == Verdict::AlreadyDone;
                self.end_with(Reason::Delivered, already_done)
            }
            Verdict::Retry | Verdict::Permanent => {
                self.worst = self.worst.max(judgement.processed);
                // A refusal was processed, certainly, but it has done nothing.
                if judgement.verdict == Verdict::Retry || judgement.processed == Processed::Maybe {
                    self.worst_in_series = self.worst_in_series.max(judgement.processed);
                    self.may_be_done |= judgement.processed > Processed::No;
                }
                self.hint = by_parts(&outcome.hint);
                self.after_failure(now, outcome, &judgement, kind, partner, rng)
            }
        }
    }

    /// The order of decision: the first that applies.
    #[inline]
    fn after_failure<R: Rng + ?Sized>(
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
            return self.after_permanent(now, outcome, judgement.concerns_partner, partner);
        }
        if synchronous && outcome.gave_up {
            return self.end(Reason::UpstreamGaveUp);
        }
        if self.forgotten_by(now) {
            return self.end(Reason::Ambiguous);
        }
        if !self.repeatable_body && outcome.body_begun() {
            return self.end(Reason::BodyNotReplayable);
        }
        let free = matches!(outcome.kind, OutcomeKind::RefusedStream) && !self.free_used;
        let costs_no_retry = (free || kind == AttemptKind::Probe) && !synchronous;
        if self.retries >= policy.retries && !costs_no_retry {
            return self.end(Reason::Exhausted);
        }
        if free {
            self.free_used = true;
            return self.wait(Wait::new(now, Because::Turn), true);
        }
        match self.next_wait(now, policy, partner.terms()) {
            Ok(range) => self.draw(now, range, partner, rng),
            Err(reason) => self.end(reason),
        }
    }

    /// A wrong password must not empty a queue into dead letters: once the partner is suspended,
    /// what concerns it is no longer this operation's end. Nor is it `ambiguous`: a refusal is a
    /// plain answer.
    #[inline(never)]
    fn after_permanent(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        concerns_partner: bool,
        partner: &Partner,
    ) -> Decision {
        let can_go_again = self.repeatable_body || !outcome.body_begun();
        if concerns_partner && partner.is_suspended() && can_go_again {
            return self.wait(Wait::new(now, Because::Suspension), false);
        }
        self.end(Reason::Permanent)
    }

    /// Floor and span of the next wait, before partner and window have their say.
    #[inline]
    fn next_wait(&self, now: Timestamp, policy: &Policy, terms: &Terms) -> Result<Range, Reason> {
        let ceiling = policy
            .backoff
            .ceiling_of(terms.base, terms.cap, self.retries);
        let Some(hint) = self.hint else {
            let (floor, span) = policy.backoff.range(self.retries, self.previous_wait);
            return Ok(Range {
                floor,
                span,
                cap: terms.cap,
                ceiling,
                because: Because::Backoff,
            });
        };
        let longest = terms
            .longest_hint
            .unwrap_or_else(|| self.deadline.nanos_since(now));
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
        let floor_ends = now.plus_nanos(range.floor);
        // Seen at a glance most often: nothing but the window bounds it.
        let refused = if partner.is_clear() && partner.has_token() && floor_ends < self.deadline {
            self.forgotten_by(floor_ends).then_some(Reason::Ambiguous)
        } else {
            self.refused(now, floor_ends, partner)
        };
        if let Some(reason) = refused {
            return self.end(reason);
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
        let until = now.plus_nanos(wait);
        self.phase = Phase::Waiting {
            not_before: until,
            because: range.because,
            free: false,
        };
        Decision::Wait(Wait {
            until,
            because: range.because,
            retry: Some(self.retries),
            ceiling: duration(range.ceiling),
            floor: duration(range.floor),
            jitter: duration(wait - range.floor),
            hint: by_parts(&self.hint),
        })
    }

    /// What the partner's state and the window say to a wait that ends at `floor_ends`, in full.
    #[inline(never)]
    fn refused(&self, now: Timestamp, floor_ends: Timestamp, partner: &Partner) -> Option<Reason> {
        let synchronous = partner.policy().mode == Mode::Synchronous;
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
            return Some(Reason::WindowClosed);
        }
        if self.forgotten_by(earliest) {
            return Some(Reason::Ambiguous);
        }
        if synchronous && shut {
            return Some(Reason::CircuitOpen);
        }
        let spent = synchronous && partner.budget_readiness(now).at > now;
        spent.then_some(Reason::BudgetSpent)
    }

    /// May an earlier attempt have arrived, and can it not be repeated at that moment?
    #[inline]
    pub(super) fn forgotten_by(&self, at: Timestamp) -> bool {
        self.worst_in_series > Processed::No && !self.replayable(at)
    }
}
