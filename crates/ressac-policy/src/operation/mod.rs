//! One operation: what the caller wants done once. The state machine that decides its retries.

mod decide;
mod send;
mod spec;

use core::time::Duration;

use rand_core::Rng;

use self::send::uses_retry;
pub use self::spec::{OperationSpec, is_idempotent};
use crate::decision::{AttemptKind, Because, Decision, End, Reason, Wait};
use crate::hint::{Hint, by_parts};
use crate::outcome::{Blame, Outcome, OutcomeKind, Processed};
use crate::partner::{Partner, Ticket};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::verdict::{Judgement, Verdict};

/// The state machine of one operation. It can be stored and taken up again.
///
/// [`poll`](Operation::poll) answers what to do now; [`on_outcome`](Operation::on_outcome) takes
/// what became of an attempt. The shell's part, in full:
///
/// ```
/// use rand_xoshiro::Xoshiro256PlusPlus;
/// use rand_xoshiro::rand_core::SeedableRng;
/// use ressac_policy::{
///     Decision, Operation, OperationSpec, Outcome, Partner, Policy, Reason, Timestamp,
/// };
///
/// let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
/// let mut now = Timestamp::from_secs(0);
/// let mut partner = Partner::new(Policy::sync(), now);
/// let mut operation = Operation::new(&OperationSpec::new("GET"), partner.policy(), now);
///
/// let mut replies = [503, 503, 200].into_iter();
/// let end = loop {
///     match operation.poll(now, &mut partner, &mut rng) {
///         Decision::Send(_attempt) => {
///             let outcome = Outcome::status(replies.next().unwrap());
///             operation.on_outcome(now, &outcome, &mut partner, &mut rng);
///         }
///         // A real shell sleeps; virtual time jumps.
///         Decision::Wait(wait) => now = wait.until,
///         Decision::End(end) => break end,
///     }
/// };
/// assert_eq!((end.reason, end.attempts), (Reason::Delivered, 3));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Operation {
    idempotent: bool,
    keyed: bool,
    key_ttl: Option<Duration>,
    repeatable_body: bool,
    deadline: Timestamp,
    series: u32,
    attempts: u32,
    attempts_in_series: u32,
    retries: u32,
    deposited: bool,
    free_used: bool,
    /// Where a key's time to live counts from.
    first_sent: Option<Timestamp>,
    /// For decorrelated jitter alone, which takes what is below the base for the base.
    previous_wait: u64,
    worst: Processed,
    worst_in_series: Processed,
    /// Some attempt of some series may have done it: what "already done" is believed after.
    may_be_done: bool,
    last: Option<OutcomeKind>,
    last_blame: Option<Blame>,
    hint: Option<Hint>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Phase {
    Waiting {
        not_before: Timestamp,
        because: Because,
        free: bool,
    },
    Sending {
        kind: AttemptKind,
        limit: Timestamp,
        #[cfg_attr(feature = "serde", serde(skip))]
        ticket: Ticket,
    },
    Ended {
        reason: Reason,
        already_done: bool,
    },
}

impl Operation {
    /// An operation that nothing has been sent of, whose window begins now.
    #[must_use]
    #[inline]
    pub fn new(spec: &OperationSpec, policy: &Policy, now: Timestamp) -> Self {
        Operation {
            idempotent: spec.idempotent,
            keyed: spec.keyed,
            key_ttl: spec.key_ttl,
            repeatable_body: spec.repeatable_body,
            deadline: deadline(policy, spec.deliver_by, now),
            series: 1,
            attempts: 0,
            attempts_in_series: 0,
            retries: 0,
            deposited: false,
            free_used: false,
            first_sent: None,
            previous_wait: 0,
            worst: Processed::No,
            worst_in_series: Processed::No,
            may_be_done: false,
            last: None,
            last_blame: None,
            hint: None,
            phase: Phase::Waiting {
                not_before: now,
                because: Because::Turn,
                free: false,
            },
        }
    }

    /// A new series of attempts for an operation that had ended: a fresh window, all retries, the
    /// same operation. What was processed before stays on record; that it is sent again was
    /// somebody's decision.
    #[must_use]
    pub fn replay(&self, policy: &Policy, deliver_by: Option<Timestamp>, now: Timestamp) -> Self {
        Operation {
            deadline: deadline(policy, deliver_by, now),
            series: self.series.saturating_add(1),
            attempts_in_series: 0,
            retries: 0,
            deposited: false,
            free_used: false,
            previous_wait: 0,
            worst_in_series: Processed::No,
            hint: None,
            phase: Phase::Waiting {
                not_before: now,
                because: Because::Turn,
                free: false,
            },
            ..self.clone()
        }
    }

    /// What to do now. [`Decision::Send`] takes a place at the partner: report the attempt's
    /// outcome, or [`cancel`](Operation::cancel) it.
    #[inline]
    pub fn poll<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        partner: &mut Partner,
        _rng: &mut R,
    ) -> Decision {
        // A first attempt that nothing stands before goes all inline.
        if !self.deposited
            && let Phase::Waiting { not_before, .. } = self.phase
            && now >= not_before
            && now < self.deadline
            && partner.is_clear()
            && partner.deposit_plainly(now)
        {
            self.deposited = true;
            let ticket = partner.admit_clear();
            return Decision::Send(self.send(now, partner, AttemptKind::First, ticket));
        }
        self.poll_in_full(now, partner)
    }

    /// Takes what became of the attempt that [`poll`](Operation::poll) had sent, and says what
    /// follows. A word about no attempt, or a second word about one, changes nothing.
    #[inline]
    pub fn on_outcome<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        partner: &mut Partner,
        rng: &mut R,
    ) -> Decision {
        if let Phase::Sending { kind, ticket, .. } = self.phase
            && self.is_success(outcome, partner)
            && partner.settle_plainly(now, ticket, kind, outcome.took)
        {
            self.last = Some(outcome.kind);
            self.last_blame = None;
            self.worst = Processed::Yes;
            return self.end_with(Reason::Delivered, false);
        }
        self.on_outcome_in_full(now, outcome, partner, rng)
    }

    /// Success, and not because it had been done before.
    #[inline]
    fn is_success(&self, outcome: &Outcome, partner: &Partner) -> bool {
        outcome.is_success()
            && (!self.may_be_done
                || partner.policy().rules.success(outcome, Processed::Maybe)
                    == Some(Verdict::Success))
    }

    #[inline]
    fn wait(&mut self, wait: Wait, free: bool) -> Decision {
        self.phase = Phase::Waiting {
            not_before: wait.until,
            because: wait.because,
            free,
        };
        Decision::Wait(wait)
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, reason: Reason) -> Decision {
        self.end_with(reason, false)
    }

    #[inline]
    fn end_with(&mut self, reason: Reason, already_done: bool) -> Decision {
        self.phase = Phase::Ended {
            reason,
            already_done,
        };
        Decision::End(self.end_as(reason, already_done))
    }

    /// The end, in the operation's own words: nothing of it changes once it has ended.
    #[inline]
    const fn end_as(&self, reason: Reason, already_done: bool) -> End {
        End {
            reason,
            blame: self.last_blame,
            processed: self.worst,
            attempts: self.attempts,
            already_done,
            last: self.last,
            hint: by_parts(&self.hint),
        }
    }

    /// Ends the operation for its caller (`cancelled`) or an operator (`discarded`). An attempt in
    /// flight gives its place back: no lost permit, no stuck probe, and no word about the partner.
    /// An operation that had ended stays as it was.
    pub fn cancel<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        reason: Reason,
        partner: &mut Partner,
        rng: &mut R,
    ) -> Decision {
        match self.phase {
            Phase::Ended {
                reason,
                already_done,
            } => return Decision::End(self.end_as(reason, already_done)),
            Phase::Sending { ticket, .. } => {
                partner.release(now, ticket, rng);
                self.worst = self.worst.max(Processed::Maybe);
                self.worst_in_series = self.worst_in_series.max(Processed::Maybe);
                self.may_be_done = true;
            }
            Phase::Waiting { .. } => {}
        }
        self.end(reason)
    }

    /// Takes back an attempt that was decided but provably never begun (its record could not be
    /// written): it counts as never decided, and its token and its place are given back.
    pub fn take_back<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        partner: &mut Partner,
        rng: &mut R,
    ) {
        let Phase::Sending { kind, ticket, .. } = self.phase else {
            return;
        };
        partner.release(now, ticket, rng);
        self.attempts = self.attempts.saturating_sub(1);
        self.attempts_in_series = self.attempts_in_series.saturating_sub(1);
        if self.attempts == 0 {
            self.first_sent = None;
        }
        if uses_retry(kind, partner.policy().mode) {
            self.retries = self.retries.saturating_sub(1);
        }
        if kind == AttemptKind::Retry {
            partner.give_back_token(now, ticket);
        }
        let free = kind == AttemptKind::Free;
        self.phase = Phase::Waiting {
            not_before: now,
            because: Because::Turn,
            free,
        };
    }

    /// What the policy makes of an outcome of this operation, deciding nothing. For records.
    #[must_use]
    pub fn judge(&self, outcome: &Outcome, policy: &Policy) -> Judgement {
        policy
            .rules
            .judge(outcome, self.keyed, self.worst_in_series)
    }

    #[cold]
    #[inline(never)]
    fn poll_unsent(&self) -> Decision {
        match self.phase {
            Phase::Waiting {
                not_before,
                because,
                ..
            } => Decision::Wait(Wait::new(not_before, because)),
            Phase::Sending { limit, .. } => Decision::Wait(Wait::new(limit, Because::Reply)),
            Phase::Ended {
                reason,
                already_done,
            } => Decision::End(self.end_as(reason, already_done)),
        }
    }

    /// May the request be sent again at that moment, though an earlier attempt may have arrived?
    #[must_use]
    #[inline]
    pub fn replayable(&self, at: Timestamp) -> bool {
        let remembered = || match (self.key_ttl, self.first_sent) {
            (Some(ttl), Some(first)) => at < first + ttl,
            _ => true,
        };
        self.idempotent || self.keyed && remembered()
    }

    /// Attempts sent, over all series.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Retries used in this series.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// The series: 1, and one more with each replay.
    #[must_use]
    pub const fn series(&self) -> u32 {
        self.series
    }

    /// Nothing is sent from this moment on.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// The worst over all attempts.
    #[must_use]
    pub const fn processed(&self) -> Processed {
        self.worst
    }

    /// Is the next attempt the first of its series?
    #[must_use]
    pub const fn is_fresh(&self) -> bool {
        self.attempts_in_series == 0
    }

    /// How it ended, if it has.
    #[must_use]
    pub const fn ended(&self) -> Option<End> {
        match self.phase {
            Phase::Ended {
                reason,
                already_done,
            } => Some(self.end_as(reason, already_done)),
            Phase::Waiting { .. } | Phase::Sending { .. } => None,
        }
    }
}

#[inline]
fn deadline(policy: &Policy, deliver_by: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let window = policy.window.map_or(Timestamp::MAX, |window| now + window);
    deliver_by.map_or(window, |moment| moment.min(window))
}
