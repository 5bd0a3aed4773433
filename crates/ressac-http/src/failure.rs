//! An attempt that brought no whole reply, and what is known about it.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// What is known about the request when no whole reply came.
///
/// The order is that of doubt: from nothing sent to something done.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Sent {
    /// Not one byte of it went out. Any method may be sent again.
    NotSent,
    /// Bytes went out, and the partner's protocol says that it did not act on them.
    NotProcessed,
    /// Bytes went out and nothing proves what became of them. An end or a reset of the connection
    /// proves nothing: it looks the same after the partner has read and done everything.
    MaybeProcessed,
    /// The head of the final reply came, so the partner acted, but the body is not whole.
    ProcessedInPart,
}

impl Sent {
    /// A word for logs and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::NotProcessed => "not_processed",
            Self::MaybeProcessed => "maybe_processed",
            Self::ProcessedInPart => "processed_in_part",
        }
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The name resolves to an address that the [`AddressPolicy`](crate::AddressPolicy) forbids.
    AddressNotAllowed,
    /// The partner's certificate was refused, or the partner refused ours.
    Certificate,
    /// No connection (with its TLS handshake) within the time.
    ConnectTimeout,
    /// The name was not resolved.
    Dns,
    /// The connection ended before the reply.
    Eof,
    /// The URL, a header, or what TLS needs on this machine is not usable; nothing was tried.
    Invalid,
    /// What came back is no HTTP reply, or its head is over the limit.
    Malformed,
    /// The connection was refused.
    Refused,
    /// Over HTTP/2 the partner said that it did not process the request: REFUSED_STREAM, or a
    /// GOAWAY whose last stream lies below the request's (RFC 9113 §8.7).
    RefusedStream,
    /// The connection or the stream was reset, or broke in another way, before the reply.
    Reset,
    /// The attempt's time was over: before the reply, or within its body.
    Timeout,
    /// The TLS handshake was cut, or failed for another reason than a certificate.
    Tls,
    /// The head of the reply came, its body broke off.
    Truncated,
    /// Connecting failed in another way than refusal or silence.
    Unreachable,
}

impl FailureKind {
    /// The word that policies, logs and records use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddressNotAllowed => "address_not_allowed",
            Self::Certificate => "certificate",
            Self::ConnectTimeout => "connect_timeout",
            Self::Dns => "dns",
            Self::Eof => "eof",
            Self::Invalid => "invalid",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::RefusedStream => "refused_stream",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Truncated => "truncated",
            Self::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An attempt without a whole reply. Its text names the host, never a path, query, credential or
/// header value.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Failure {
    /// What went wrong.
    pub kind: FailureKind,
    /// What is known about the request.
    pub sent: Sent,
    /// Bytes given to the socket since the request was handed over, TLS framing included. That
    /// they were given to the socket does not mean that the partner saw them. Over HTTP/2 those of
    /// the requests beside it count too.
    pub bytes_written: u64,
    /// What happened, for people.
    pub message: String,
    /// From the call to the failure.
    pub elapsed: Duration,
    /// The head of the reply, where one came.
    pub reply: Option<Box<ReplyHead>>,
    /// The address that was talked to, where there was one.
    pub remote: Option<SocketAddr>,
}

/// Status and headers of a reply whose body is not whole.
#[derive(Clone, Debug)]
pub struct ReplyHead {
    /// The status.
    pub status: StatusCode,
    /// The headers. Values may be any bytes.
    pub headers: HeaderMap,
}

impl Failure {
    /// Whether it is certain that the partner did nothing.
    pub fn is_unprocessed(&self) -> bool {
        self.sent <= Sent::NotProcessed
    }

    pub(crate) fn not_sent(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::new(kind, Sent::NotSent, message)
    }

    /// A failure that nothing else is known of.
    pub fn new(kind: FailureKind, sent: Sent, message: impl Into<String>) -> Self {
        Self {
            kind,
            sent,
            bytes_written: 0,
            message: message.into(),
            elapsed: Duration::ZERO,
            reply: None,
            remote: None,
        }
    }

    pub(crate) fn at(mut self, remote: SocketAddr) -> Self {
        self.remote = Some(remote);
        self
    }
}
