//! One operation: what the caller wants done once. The state machine that decides its retries.

use core::time::Duration;

use rand_core::Rng;

use crate::backoff::Jitter;
use crate::decision::{Attempt, AttemptKind, Because, Decision, End, Reason, Wait};
use crate::hint::Hint;
use crate::outcome::{Blame, Outcome, OutcomeKind, Processed};
use crate::partner::{Partner, Ticket};
use crate::policy::{Mode, OverMax, Policy};
use crate::random;
use crate::time::{Timestamp, nanos};
use crate::verdict::{Judgement, Verdict};

/// Is the method safe or idempotent (RFC 9110 §9.2.2)? Then it may be repeated without a key.
/// Methods are case-sensitive.
///
/// ```
/// use ressac_policy::is_idempotent;
///
/// assert!(is_idempotent("PUT") && is_idempotent("GET"));
/// assert!(!is_idempotent("POST") && !is_idempotent("PATCH") && !is_idempotent("get"));
/// ```
#[must_use]
pub fn is_idempotent(method: &str) -> bool {
    matches!(
        method,
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
    )
}

/// What is known of an operation before its first attempt.
///
/// ```
/// use ressac_policy::{Operation, OperationSpec, Policy, Timestamp};
///
/// // A POST with a key that the partner is said to honour for a day.
/// let spec = OperationSpec::new("POST")
///     .with_honoured_key(Some(core::time::Duration::from_secs(86_400)));
/// let operation = Operation::new(&spec, &Policy::sync(), Timestamp::from_secs(0));
/// assert_eq!(operation.attempts(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSpec {
    /// Repeating the request does no harm by itself: its method says so, or its caller.
    pub idempotent: bool,
    /// It has a key that the partner is said to honour.
    pub keyed: bool,
    /// How long the partner remembers the key; `None` is for ever.
    pub key_ttl: Option<Duration>,
    /// Its body can be sent again.
    pub repeatable_body: bool,
    /// Nothing is sent from this moment on, whatever the window says.
    pub deliver_by: Option<Timestamp>,
}

impl OperationSpec {
    /// An operation with this method, without a key, with a body that is kept.
    #[must_use]
    pub fn new(method: &str) -> Self {
        OperationSpec {
            idempotent: is_idempotent(method),
            keyed: false,
            key_ttl: None,
            repeatable_body: true,
            deliver_by: None,
        }
    }

    /// With a key that the partner is said to honour for so long (`None`: for ever).
    #[must_use]
    pub const fn with_honoured_key(mut self, ttl: Option<Duration>) -> Self {
        self.keyed = true;
        self.key_ttl = ttl;
        self
    }

    /// With a moment from which on nothing is sent.
    #[must_use]
    pub const fn deliver_by(mut self, moment: Timestamp) -> Self {
        self.deliver_by = Some(moment);
        self
    }
}

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
    /// For decorrelated jitter alone.
    previous_wait: u64,
    worst: Processed,
    worst_in_series: Processed,
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
    Ended(End),
}

impl Operation {
    /// An operation that nothing has been sent of, whose window begins now.
    #[must_use]
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
            previous_wait: nanos(policy.backoff.base),
            worst: Processed::No,
            worst_in_series: Processed::No,
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
            previous_wait: nanos(policy.backoff.base),
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
    pub fn poll<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        partner: &mut Partner,
        rng: &mut R,
    ) -> Decision {
        let (not_before, because, free) = match self.phase {
            Phase::Waiting {
                not_before,
                because,
                free,
            } => (not_before, because, free),
            Phase::Sending { limit, .. } => {
                return Decision::Wait(Wait::new(limit, Because::Reply));
            }
            Phase::Ended(end) => return Decision::End(end),
        };
        if now >= self.deadline {
            return self.end(Reason::WindowClosed);
        }
        if now < not_before {
            return Decision::Wait(Wait::new(not_before, because));
        }
        // The partner may have forgotten the key while this waited.
        if self.worst_in_series > Processed::No && !self.replayable(now) {
            return self.end(Reason::Ambiguous);
        }
        match self.obstacle(now, partner, free) {
            Some(Obstacle::Wait(readiness)) => Decision::Wait(Wait {
                retry: (self.attempts_in_series > 0).then_some(self.retries),
                hint: self.hint,
                ..Wait::new(readiness.at.min(self.deadline), readiness.because)
            }),
            Some(Obstacle::End(reason)) => self.end(reason),
            None => Decision::Send(self.send(now, partner, free, rng)),
        }
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
            // A place can come free earlier than any clock says; a moment named cannot.
            let by_time_alone = !matches!(ready.because, Because::Concurrency | Because::Probe);
            if by_time_alone && ready.at >= self.deadline && !ready.at.is_never() {
                return Some(Obstacle::End(Reason::WindowClosed));
            }
            return Some(Obstacle::Wait(ready));
        }
        if self.attempts_in_series > 0 && !free {
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
    fn send<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        partner: &mut Partner,
        free: bool,
        _rng: &mut R,
    ) -> Attempt {
        let timeout = partner
            .policy()
            .attempt_timeout
            .min(self.deadline.since(now));
        let ticket = partner.admit(now, timeout);
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
                self.retries = self.retries.saturating_add(1);
            }
            AttemptKind::Probe if partner.policy().mode == Mode::Synchronous => {
                self.retries = self.retries.saturating_add(1);
            }
            AttemptKind::First | AttemptKind::Probe | AttemptKind::Free => {}
        }
        self.attempts = self.attempts.saturating_add(1);
        self.attempts_in_series = self.attempts_in_series.saturating_add(1);
        self.first_sent.get_or_insert(now);
        self.phase = Phase::Sending {
            kind,
            limit: now + timeout,
            ticket,
        };
        Attempt {
            number: self.attempts,
            kind,
            timeout,
        }
    }

    /// Takes what became of the attempt that [`poll`](Operation::poll) had sent, and says what
    /// follows. A word about no attempt, or a second word about one, changes nothing.
    pub fn on_outcome<R: Rng + ?Sized>(
        &mut self,
        now: Timestamp,
        outcome: &Outcome,
        partner: &mut Partner,
        rng: &mut R,
    ) -> Decision {
        let Phase::Sending { kind, ticket, .. } = self.phase else {
            return self.poll_unsent();
        };
        let judgement = partner
            .policy()
            .rules
            .judge(outcome, self.keyed, self.worst_in_series);
        partner.settle(now, ticket, kind, outcome, &judgement, rng);
        self.last = Some(outcome.kind);
        self.last_blame = judgement.blame;
        match judgement.verdict {
            Verdict::Success | Verdict::AlreadyDone => {
                self.worst = Processed::Yes;
                self.end_with(Reason::Delivered, judgement.verdict == Verdict::AlreadyDone)
            }
            Verdict::Retry | Verdict::Permanent => {
                self.worst = self.worst.max(judgement.processed);
                self.worst_in_series = self.worst_in_series.max(judgement.processed);
                self.hint = outcome.hint;
                self.after_failure(now, outcome, &judgement, kind, partner, rng)
            }
        }
    }

    /// The order of decision: the first that applies.
    #[cold]
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
            return self.after_permanent(now, judgement, partner);
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
        if outcome.kind == OutcomeKind::RefusedStream && !self.free_used {
            self.free_used = true;
            return self.wait(Wait::new(now, Because::Turn), true);
        }
        let used_no_retry = kind == AttemptKind::Probe && !synchronous;
        if self.retries >= policy.retries && !used_no_retry {
            return self.end(Reason::Exhausted);
        }
        match self.next_wait(now, policy) {
            Ok(range) => self.draw(now, range, partner, rng),
            Err(reason) => self.end(reason),
        }
    }

    /// A wrong password must not empty a queue into dead letters: once the partner is suspended,
    /// what concerns it is no longer this operation's end.
    fn after_permanent(
        &mut self,
        now: Timestamp,
        judgement: &Judgement,
        partner: &Partner,
    ) -> Decision {
        if judgement.concerns_partner && partner.is_suspended() {
            return self.wait(Wait::new(now, Because::Suspension), true);
        }
        self.end(Reason::Permanent)
    }

    /// Floor and span of the next wait, before partner and window have their say.
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
        let named = shut && !synchronous || matches!(ready.because, Because::Rate | Because::Ramp);
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

    fn wait(&mut self, wait: Wait, free: bool) -> Decision {
        self.phase = Phase::Waiting {
            not_before: wait.until,
            because: wait.because,
            free,
        };
        Decision::Wait(wait)
    }

    fn end(&mut self, reason: Reason) -> Decision {
        self.end_with(reason, false)
    }

    fn end_with(&mut self, reason: Reason, already_done: bool) -> Decision {
        let end = End {
            reason,
            blame: self.last_blame,
            processed: self.worst,
            attempts: self.attempts,
            already_done,
            last: self.last,
            hint: self.hint,
        };
        self.phase = Phase::Ended(end);
        Decision::End(end)
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
            Phase::Ended(end) => return Decision::End(end),
            Phase::Sending { ticket, .. } => {
                partner.release(now, ticket, rng);
                self.worst = self.worst.max(Processed::Maybe);
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
        self.attempts -= 1;
        self.attempts_in_series -= 1;
        if self.attempts == 0 {
            self.first_sent = None;
        }
        if kind == AttemptKind::Retry {
            partner.give_back_token(now);
            self.retries -= 1;
        }
        let free = kind == AttemptKind::Free;
        self.phase = Phase::Waiting {
            not_before: now,
            because: Because::Turn,
            free,
        };
    }

    fn poll_unsent(&self) -> Decision {
        match self.phase {
            Phase::Waiting {
                not_before,
                because,
                ..
            } => Decision::Wait(Wait::new(not_before, because)),
            Phase::Sending { limit, .. } => Decision::Wait(Wait::new(limit, Because::Reply)),
            Phase::Ended(end) => Decision::End(end),
        }
    }

    /// May the request be sent again at that moment, though an earlier attempt may have arrived?
    #[must_use]
    pub fn replayable(&self, at: Timestamp) -> bool {
        let remembered = match (self.key_ttl, self.first_sent) {
            (Some(ttl), Some(first)) => at < first + ttl,
            _ => true,
        };
        self.idempotent || self.keyed && remembered
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
            Phase::Ended(end) => Some(end),
            Phase::Waiting { .. } | Phase::Sending { .. } => None,
        }
    }
}

enum Obstacle {
    Wait(crate::partner::Readiness),
    End(Reason),
}

/// A wait before it is drawn, in nanoseconds.
struct Range {
    floor: u64,
    span: u64,
    cap: u64,
    ceiling: u64,
    because: Because,
}

fn deadline(policy: &Policy, deliver_by: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let window = policy.window.map_or(Timestamp::MAX, |window| now + window);
    deliver_by.map_or(window, |moment| moment.min(window))
}
