//! What one attempt came to: facts, not yet a judgement.

use core::fmt;
use core::time::Duration;

use crate::hint::Hint;

/// Did the partner process the request? Ordered: the worst over all attempts is the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Processed {
    /// Certainly not: sending again cannot do it twice.
    #[default]
    No,
    /// Nobody on this side can know.
    Maybe,
    /// Certainly, at least in part.
    Yes,
}

impl Processed {
    /// The word that stands in logs, labels and replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Processed::No => "no",
            Processed::Maybe => "maybe",
            Processed::Yes => "yes",
        }
    }
}

impl fmt::Display for Processed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose failure it was: who has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Blame {
    /// The system called.
    Partner,
    /// What lies between.
    Network,
    /// This side: the request, its credentials, this process.
    Ours,
}

impl Blame {
    /// The word that stands in logs, labels and replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::Partner => "partner",
            Blame::Network => "network",
            Blame::Ours => "ours",
        }
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an attempt ended. Exhaustive: a new kind must be judged before it compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum OutcomeKind {
    /// It worked, and no status tells more (a closure that returned `Ok`).
    Success,
    /// A complete, final HTTP reply with this status; 200 to 299 is success. An interim 1xx is no
    /// reply and never reported here.
    Status(u16),
    /// The partner's name did not resolve.
    Dns,
    /// The connection was refused, or no route led there.
    Refused,
    /// No connection within the time for connecting.
    ConnectTimeout,
    /// The TLS handshake was cut off before the certificate was judged.
    Tls,
    /// The partner's certificate was refused, or ours by the partner.
    Certificate,
    /// Ours: the URL or a header is invalid, the address not allowed, the disk full.
    Invalid,
    /// HTTP/2 `REFUSED_STREAM`, or a `GOAWAY` below our stream: not processed, by RFC 9113 §8.7.
    RefusedStream,
    /// The connection was reset before the whole reply head was here.
    Reset,
    /// The connection ended before the whole reply head was here, or what came was no HTTP.
    Eof,
    /// The attempt's time limit passed before the reply.
    Timeout,
    /// The reply was cut in its body: shorter than announced.
    Truncated,
    /// This process died with the attempt open (or the caller's closure panicked).
    Crash,
}

impl OutcomeKind {
    /// The word of configuration (`retry_on`), logs and labels. Statuses are `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            OutcomeKind::Success => "success",
            OutcomeKind::Status(_) => "status",
            OutcomeKind::Dns => "dns",
            OutcomeKind::Refused => "refused",
            OutcomeKind::ConnectTimeout => "connect_timeout",
            OutcomeKind::Tls => "tls",
            OutcomeKind::Certificate => "certificate",
            OutcomeKind::Invalid => "invalid",
            OutcomeKind::RefusedStream => "refused_stream",
            OutcomeKind::Reset => "reset",
            OutcomeKind::Eof => "eof",
            OutcomeKind::Timeout => "timeout",
            OutcomeKind::Truncated => "truncated",
            OutcomeKind::Crash => "crash",
        }
    }

    /// Nothing of the request had left when it failed.
    pub(crate) const fn before_sending(self) -> bool {
        matches!(
            self,
            OutcomeKind::Dns
                | OutcomeKind::Refused
                | OutcomeKind::ConnectTimeout
                | OutcomeKind::Tls
                | OutcomeKind::Certificate
                | OutcomeKind::Invalid
        )
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutcomeKind::Status(status) => write!(f, "{status}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// What one attempt came to.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::{Hint, Outcome, OutcomeKind, Timestamp, VendorHints};
///
/// let headers = [("retry-after", &b"120"[..])];
/// let hint = Hint::from_headers(headers, Timestamp::from_secs(0), VendorHints::NONE);
/// let outcome = Outcome::status(503).with_hint(hint).took(Duration::from_millis(80));
/// assert_eq!(outcome.kind, OutcomeKind::Status(503));
/// assert_eq!(outcome.hint.map(|h| h.wait), Some(Duration::from_secs(120)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcome {
    /// How it ended.
    pub kind: OutcomeKind,
    /// What the transport can *prove* about processing; `None` leaves it to the table. Only a
    /// proof belongs here: a reset after zero bytes were written is `Some(No)`.
    pub processed: Option<Processed>,
    /// When the partner wants us back.
    pub hint: Option<Hint>,
    /// The reply said that an inner layer had retried and given up (`Ressac-Reason`).
    pub gave_up: bool,
    /// A 409 whose problem type says that the key is still being worked on
    /// (draft-ietf-httpapi-idempotency-key-header §2.7).
    pub key_in_flight: bool,
    /// How long the attempt took, for the breaker's slow-call rate.
    pub took: Duration,
}

impl Outcome {
    /// An outcome of this kind and nothing more known.
    #[must_use]
    pub const fn new(kind: OutcomeKind) -> Self {
        Outcome {
            kind,
            processed: None,
            hint: None,
            gave_up: false,
            key_in_flight: false,
            took: Duration::ZERO,
        }
    }

    /// A complete reply with this status.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Outcome::new(OutcomeKind::Status(status))
    }

    /// Success, and no status tells more.
    #[must_use]
    pub const fn success() -> Self {
        Outcome::new(OutcomeKind::Success)
    }

    /// With what the partner asked for.
    #[must_use]
    pub const fn with_hint(mut self, hint: Option<Hint>) -> Self {
        self.hint = hint;
        self
    }

    /// With what the transport can prove.
    #[must_use]
    pub const fn proving(mut self, processed: Processed) -> Self {
        self.processed = Some(processed);
        self
    }

    /// With the time the attempt took.
    #[must_use]
    pub const fn took(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    /// Marked as the reply of a layer that had retried and given up.
    #[must_use]
    pub const fn gave_up(mut self, gave_up: bool) -> Self {
        self.gave_up = gave_up;
        self
    }

    /// Had any byte of the request's body possibly left?
    pub(crate) fn body_begun(&self) -> bool {
        let cut_unsent = matches!(
            self.kind,
            OutcomeKind::Reset | OutcomeKind::Eof | OutcomeKind::Timeout | OutcomeKind::Crash
        ) && self.processed == Some(Processed::No);
        !self.kind.before_sending() && !cut_unsent
    }

    /// Did it work?
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(
            self.kind,
            OutcomeKind::Success | OutcomeKind::Status(200..=299)
        )
    }
}
