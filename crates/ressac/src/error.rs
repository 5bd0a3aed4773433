//! Why an operation ended without success. Nothing about why is lost.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ressac_policy::{Blame, End, Hint, OutcomeKind, Processed, Reason, Wait};

use crate::classify::NoReply;
use crate::key::IdempotencyKey;

/// What the last attempt left.
#[derive(Debug)]
#[non_exhaustive]
pub enum Last<E, R = NoReply> {
    /// A reply that was no success.
    Reply(R),
    /// An error.
    Error(E),
    /// Neither: nothing was sent, it took too long, or its reply was let go before a wait.
    Nothing,
}

/// An operation that ended without success: why, whose failure it was, whether the partner may have
/// processed it, and what to do.
///
/// ```
/// use ressac::{Blame, Partner, Policy, Processed, Reason};
///
/// let partner = Partner::new(Policy::sync());
/// let error = partner
///     .retry_blocking(|_| Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))
///     .call()
///     .unwrap_err();
/// assert_eq!(error.reason(), Reason::Ambiguous);
/// assert_eq!(error.processed(), Processed::Maybe);
/// assert_eq!(error.blame(), Some(Blame::Network));
/// assert_eq!(error.attempts(), 1);
/// assert!(error.to_string().starts_with("ambiguous after 1 attempt"));
/// ```
pub struct RetryError<E, R = NoReply>(Box<Inner<E, R>>);

struct Inner<E, R> {
    end: End,
    wait: Option<Wait>,
    elapsed: Duration,
    partner: Box<str>,
    key: IdempotencyKey,
    last: Last<E, R>,
}

/// All but what the last attempt left.
pub(crate) struct Facts {
    pub(crate) end: End,
    pub(crate) wait: Option<Wait>,
    pub(crate) elapsed: Duration,
    pub(crate) partner: Box<str>,
    pub(crate) key: IdempotencyKey,
}

impl<E, R> RetryError<E, R> {
    pub(crate) fn new(facts: Facts, last: Last<E, R>) -> Self {
        RetryError(Box::new(Inner {
            end: facts.end,
            wait: facts.wait,
            elapsed: facts.elapsed,
            partner: facts.partner,
            key: facts.key,
            last,
        }))
    }

    #[cfg(feature = "reqwest-middleware")]
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            end: self.0.end,
            wait: self.0.wait,
            elapsed: self.0.elapsed,
            partner: self.0.partner.clone(),
            key: self.0.key.clone(),
        }
    }

    /// Why it ended.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.end.reason
    }

    /// Whose failure the last attempt was; `None` where nothing was sent.
    #[must_use]
    pub fn blame(&self) -> Option<Blame> {
        self.0.end.blame
    }

    /// Did the partner process it? The worst over all attempts.
    #[must_use]
    pub fn processed(&self) -> Processed {
        self.0.end.processed
    }

    /// Attempts that were sent.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.end.attempts
    }

    /// How the last attempt ended; `None` where nothing was sent.
    #[must_use]
    pub fn last_outcome(&self) -> Option<OutcomeKind> {
        self.0.end.last
    }

    /// What the partner asked for last, whole, even where it was clamped.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        self.0.end.hint
    }

    /// The last wait with the numbers that made it: what for, ceiling, floor, jitter.
    #[must_use]
    pub fn wait(&self) -> Option<&Wait> {
        self.0.wait.as_ref()
    }

    /// All the engine says about the end.
    #[must_use]
    pub fn end(&self) -> &End {
        &self.0.end
    }

    /// From the start of the operation to its end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// The partner's name.
    #[must_use]
    pub fn partner(&self) -> &str {
        &self.0.partner
    }

    /// The operation's key: a later try of the same operation, by a person or a job, needs it again.
    #[must_use]
    pub fn key(&self) -> &IdempotencyKey {
        &self.0.key
    }

    /// What the last attempt left.
    #[must_use]
    pub fn last(&self) -> &Last<E, R> {
        &self.0.last
    }

    /// What the last attempt left, by value.
    #[must_use]
    pub fn into_last(self) -> Last<E, R> {
        self.0.last
    }

    /// The last attempt's error, if it left one.
    #[must_use]
    pub fn last_error(&self) -> Option<&E> {
        match &self.0.last {
            Last::Error(error) => Some(error),
            Last::Reply(_) | Last::Nothing => None,
        }
    }

    /// The last attempt's reply, if it left one.
    #[must_use]
    pub fn reply(&self) -> Option<&R> {
        match &self.0.last {
            Last::Reply(reply) => Some(reply),
            Last::Error(_) | Last::Nothing => None,
        }
    }

    /// The last attempt's reply by value, or the error itself back.
    ///
    /// # Errors
    ///
    /// This error, where the last attempt left no reply.
    pub fn into_reply(self) -> Result<R, Self> {
        match self.0.last {
            Last::Reply(reply) => Ok(reply),
            last => Err(RetryError(Box::new(Inner { last, ..*self.0 }))),
        }
    }

    /// The same with another error inside, e.g. one that names the operation.
    pub fn map_error<F>(self, map: impl FnOnce(E) -> F) -> RetryError<F, R> {
        let Inner {
            end,
            wait,
            elapsed,
            partner,
            key,
            last,
        } = *self.0;
        let last = match last {
            Last::Error(error) => Last::Error(map(error)),
            Last::Reply(reply) => Last::Reply(reply),
            Last::Nothing => Last::Nothing,
        };
        RetryError(Box::new(Inner {
            end,
            wait,
            elapsed,
            partner,
            key,
            last,
        }))
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        let end = &self.0.end;
        match end.reason {
            Reason::Delivered => "an earlier attempt had done it; there is no reply to hand over",
            Reason::Permanent => permanent(end.last),
            Reason::Ambiguous => {
                "it may have been processed: ask the partner before sending it again, or send it \
                 with a key that the partner honours"
            }
            Reason::BodyNotReplayable => {
                "its body cannot be sent again: give a body that is kept in memory, or a new one"
            }
            Reason::CircuitOpen => "the partner keeps failing: leave it alone for a while",
            Reason::BudgetSpent => "too many operations are being retried already: try much later",
            Reason::HintOverMax => {
                "the partner asks for more time than retry_after.max: come back then"
            }
            Reason::UpstreamGaveUp => {
                "a layer in between has retried already: read its Ressac-Reason, do not retry on top"
            }
            Reason::WindowClosed if end.attempts == 0 => {
                "the time was over before the first attempt"
            }
            Reason::WindowClosed | Reason::Exhausted | Reason::Cancelled => doubt(end.processed),
            Reason::Disputed | Reason::Discarded => "look at what the partner says",
        }
    }
}

fn permanent(last: Option<OutcomeKind>) -> &'static str {
    match last {
        Some(OutcomeKind::Certificate) => "check the host name and the partner's certificate",
        Some(OutcomeKind::Status(300..=399)) => "redirects are not followed: send to the new URL",
        Some(OutcomeKind::Status(401 | 403 | 407)) => {
            "check the credentials: the same ones would be refused again"
        }
        Some(OutcomeKind::Status(500..)) => "the partner says that another attempt cannot help",
        _ => "mend the request: the same one would be refused again",
    }
}

const fn doubt(processed: Processed) -> &'static str {
    match processed {
        Processed::No => "it was not processed and can be sent again later",
        Processed::Maybe | Processed::Yes => {
            "it may have been processed: send it again later only if it is idempotent, or with the \
             same key"
        }
    }
}

/// What happened, whose failure it was, and what to do.
impl<E: fmt::Display, R> fmt::Display for RetryError<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.end)?;
        if let Some(hint) = self.0.end.hint {
            write!(
                f,
                ", {} asked for {:.3} s",
                self.0.partner,
                hint.wait.as_secs_f64()
            )?;
        }
        write!(
            f,
            " ({}, {:.3} s)",
            self.0.partner,
            self.0.elapsed.as_secs_f64()
        )?;
        if let Last::Error(error) = &self.0.last {
            write!(f, ": {error}")?;
        }
        write!(f, "; {}", self.advice())
    }
}

impl<E: fmt::Debug, R> fmt::Debug for RetryError<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RetryError");
        out.field("partner", &self.0.partner)
            .field("end", &self.0.end)
            .field("wait", &self.0.wait)
            .field("elapsed", &self.0.elapsed)
            .field("key", &self.0.key);
        match &self.0.last {
            Last::Error(error) => out.field("last", error),
            Last::Reply(_) => out.field("last", &format_args!("a reply")),
            Last::Nothing => &mut out,
        };
        out.finish()
    }
}

/// The source is the last attempt's error.
impl<E: Error + 'static, R> Error for RetryError<E, R> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last_error().map(|error| error as _)
    }
}
