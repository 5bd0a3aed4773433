//! What the engine answers, with the numbers it used: send, wait until then because, or end.

use core::fmt;
use core::time::Duration;

use crate::hint::Hint;
use crate::outcome::{Blame, OutcomeKind, Processed};
use crate::time::Timestamp;

/// Why an operation ended. The closed list: the same words stand in the library's error, the dead
/// letter, the log, the metric's label and the reply header `Ressac-Reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reason {
    /// It is done.
    Delivered,
    /// Another attempt cannot help.
    Permanent,
    /// It may have been done, and doing it again is not safe: a person decides.
    Ambiguous,
    /// All retries are used up.
    Exhausted,
    /// The next attempt would come after the window.
    WindowClosed,
    /// Synchronous: the breaker is open.
    CircuitOpen,
    /// Synchronous: the retry budget is spent.
    BudgetSpent,
    /// The body had begun to leave and cannot be sent again.
    BodyNotReplayable,
    /// Synchronous: the partner asked for more time than `retry_after.max`, and the policy gives up.
    HintOverMax,
    /// Synchronous: an inner layer had retried and given up; retrying on top would multiply.
    UpstreamGaveUp,
    /// A receipt contradicts what was sent.
    Disputed,
    /// The caller gave up.
    Cancelled,
    /// An operator threw it away.
    Discarded,
}

impl Reason {
    /// All of them, in the order of the list.
    pub const ALL: [Reason; 13] = [
        Reason::Delivered,
        Reason::Permanent,
        Reason::Ambiguous,
        Reason::Exhausted,
        Reason::WindowClosed,
        Reason::CircuitOpen,
        Reason::BudgetSpent,
        Reason::BodyNotReplayable,
        Reason::HintOverMax,
        Reason::UpstreamGaveUp,
        Reason::Disputed,
        Reason::Cancelled,
        Reason::Discarded,
    ];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Delivered => "delivered",
            Reason::Permanent => "permanent",
            Reason::Ambiguous => "ambiguous",
            Reason::Exhausted => "exhausted",
            Reason::WindowClosed => "window_closed",
            Reason::CircuitOpen => "circuit_open",
            Reason::BudgetSpent => "budget_spent",
            Reason::BodyNotReplayable => "body_not_replayable",
            Reason::HintOverMax => "hint_over_max",
            Reason::UpstreamGaveUp => "upstream_gave_up",
            Reason::Disputed => "disputed",
            Reason::Cancelled => "cancelled",
            Reason::Discarded => "discarded",
        }
    }

    /// The reason with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Reason> {
        Reason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Because {
    /// Its turn: it may be sent as soon as somebody does.
    Turn,
    /// Its backoff.
    Backoff,
    /// The time the partner asked for, and the jitter on top.
    RetryAfter,
    /// A hold: the partner asked another operation to wait.
    Hold,
    /// The open breaker.
    Breaker,
    /// The probes of a half-open breaker, whose places are all taken.
    Probe,
    /// The partner's suspension.
    Suspension,
    /// The paced drain after the breaker closed.
    Ramp,
    /// The partner's rate.
    Rate,
    /// One of those in flight to end.
    Concurrency,
    /// A token of the retry budget.
    Budget,
    /// The reply to the attempt that is under way.
    Reply,
}

impl Because {
    /// The word that stands in logs, labels and replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Because::Turn => "turn",
            Because::Backoff => "backoff",
            Because::RetryAfter => "retry_after",
            Because::Hold => "hold",
            Because::Breaker => "breaker",
            Because::Probe => "probe",
            Because::Suspension => "suspension",
            Because::Ramp => "ramp",
            Because::Rate => "rate",
            Because::Concurrency => "concurrency",
            Because::Budget => "budget",
            Because::Reply => "reply",
        }
    }
}

impl Because {
    /// Nothing but time ends this wait: no reply of another operation, no deposit, no operator.
    pub(crate) const fn is_by_time_alone(self) -> bool {
        !matches!(
            self,
            Because::Concurrency
                | Because::Probe
                | Because::Suspension
                | Because::Budget
                | Because::Reply
        )
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an operation shall do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// Send this attempt, now. Its place at the partner is taken: report what became of it.
    Send(Attempt),
    /// Ask again at that moment.
    Wait(Wait),
    /// Nothing more will be sent.
    End(End),
}

/// An attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number over the operation's whole life, from 1.
    pub number: u32,
    /// Which kind it is: what it costs.
    pub kind: AttemptKind,
    /// The longest it may take: its own limit, or what the window leaves.
    pub timeout: Duration,
}

/// What an attempt costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum AttemptKind {
    /// The first of its series. Feeds the budget.
    First,
    /// A retry: one of `retries`, and a token.
    Retry,
    /// A retry that also is a probe of the gate. Needs no token; durable, it uses no retry.
    Probe,
    /// The first repetition of what was provably not processed (`REFUSED_STREAM`). Needs no token;
    /// durable, it uses no retry.
    Free,
}

impl AttemptKind {
    /// The word that stands in logs and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AttemptKind::First => "first",
            AttemptKind::Retry => "retry",
            AttemptKind::Probe => "probe",
            AttemptKind::Free => "free",
        }
    }
}

/// A wait, and the numbers that made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Ask again then. An outcome of another operation can make it earlier where `because` is
    /// [`Because::Concurrency`], [`Because::Probe`] or [`Because::Budget`], and
    /// [`crate::Partner::resume`] where it is a hold, the breaker or a suspension.
    pub until: Timestamp,
    /// What it waits for.
    pub because: Because,
    /// The number of the retry it waits for, from 0; `None` before a first attempt.
    pub retry: Option<u32>,
    /// The backoff's ceiling `c(r)` for that retry.
    pub ceiling: Duration,
    /// The part of the wait that was not drawn: the hint, or what the jitter leaves fixed.
    pub floor: Duration,
    /// The part that was drawn.
    pub jitter: Duration,
    /// What the partner asked for, whole, even where it was clamped.
    pub hint: Option<Hint>,
}

impl Wait {
    pub(crate) const fn new(until: Timestamp, because: Because) -> Self {
        Wait {
            until,
            because,
            retry: None,
            ceiling: Duration::ZERO,
            floor: Duration::ZERO,
            jitter: Duration::ZERO,
            hint: None,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wait because {}", self.because)?;
        if let Some(retry) = self.retry {
            write!(
                f,
                " (retry {}: {:.3} s floor + {:.3} s jitter, ceiling {:.3} s",
                retry + 1,
                self.floor.as_secs_f64(),
                self.jitter.as_secs_f64(),
                self.ceiling.as_secs_f64(),
            )?;
            if let Some(hint) = self.hint {
                write!(f, ", partner asked for {:.3} s", hint.wait.as_secs_f64())?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct End {
    /// Why.
    pub reason: Reason,
    /// Whose failure the last attempt was; `None` after success or where nothing was sent.
    pub blame: Option<Blame>,
    /// The worst over all attempts: an `exhausted` operation that may have arrived says so.
    pub processed: Processed,
    /// Attempts sent, over all series.
    pub attempts: u32,
    /// Success, because the partner says that it had been done before.
    pub already_done: bool,
    /// How the last attempt ended.
    pub last: Option<OutcomeKind>,
    /// What the partner asked for last, whole.
    pub hint: Option<Hint>,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "{} after {} attempt{plural}", self.reason, self.attempts)?;
        if let Some(last) = self.last {
            write!(f, ", last {last}")?;
        }
        if let Some(blame) = self.blame {
            write!(f, ", blame {blame}")?;
        }
        write!(f, ", processed {}", self.processed)
    }
}
