//! One entry of the journal.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::TlsInfo;

/// What reached the mock, what it answered, and when.
///
/// Times are nanoseconds of the mock's monotonic clock; see [`crate::Mock::anchor`] for the wall
/// clock. An entry appears when the head of the request is complete and is filled in as the
/// exchange goes on.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// Number of the entry, rising, never reused.
    pub seq: u64,
    /// What it is about.
    pub kind: Kind,
    /// When the connection was accepted.
    pub t_accept: u64,
    /// When the first byte of the request came.
    pub t_first: u64,
    /// When the head was complete: the time of arrival.
    pub t_head: u64,
    /// When the whole request was read.
    pub t_req_end: Option<u64>,
    /// Just before the last write of the reply (the only one, of a small reply), or before the
    /// connection ended: a client cannot have had the whole reply earlier.
    pub t_reply_before: Option<u64>,
    /// When the last byte was written and the end carried out.
    pub t_reply_after: Option<u64>,
    /// When the peer was seen to close before the reply.
    pub t_peer_close: Option<u64>,
    /// Number of the connection, in order of `accept`.
    pub conn: u64,
    /// The stream, on HTTP/2.
    pub stream: Option<u32>,
    /// Name of the listener.
    pub listener: String,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub proto: &'static str,
    /// What was agreed on in the TLS handshake; without TLS: `None`.
    pub tls: Option<Arc<TlsInfo>>,
    /// Method.
    pub method: String,
    /// Request target, as it came.
    pub target: String,
    /// Header lines in order, names as they came.
    pub headers: Vec<(String, String)>,
    /// Body bytes read, after decoding of chunks.
    pub body_len: u64,
    /// SHA-256 of the body in hex, once it was read.
    pub body_sha256: Option<String>,
    /// The first 64 KiB of the body. In JSON: text where it is UTF-8, else `{"hex": ".."}`.
    #[serde(serialize_with = "body_head")]
    pub body_head: Bytes,
    /// Name of the route that took it.
    pub route: Option<String>,
    /// Value of the scope it was numbered in.
    pub scope: Option<String>,
    /// The token: captured from the path, or from the token header.
    pub token: Option<String>,
    /// Arrival number in its scope, from 1. Outages take none.
    pub n: Option<u64>,
    /// Number of the step, from 1.
    pub step: Option<u64>,
    /// Number of the outage that answered, from 1.
    pub outage: Option<u64>,
    /// Id of the fault that answered.
    pub fault: Option<u64>,
    /// What was sent.
    pub sent: Option<Sent>,
    /// A client that was told Retry-After must not come back before this moment.
    pub retry_at: Option<u64>,
    /// The date in the Retry-After line, in seconds since 1970, where it is one.
    pub retry_date: Option<i64>,
    /// What a `create` came to.
    pub effect: Effect,
    /// The idempotency key, without the quotes of a structured string.
    pub key: Option<String>,
    /// Whether the key came quoted, as a structured string.
    pub key_quoted: bool,
    /// What else is to be said.
    pub flags: Vec<Flag>,
}

impl Entry {
    /// Whether the exchange is over.
    pub fn is_done(&self) -> bool {
        self.t_reply_after.is_some()
    }

    /// The status that was sent.
    pub fn status(&self) -> Option<u16> {
        self.sent.as_ref()?.status
    }

    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    /// What the entry takes in memory, about.
    pub(super) fn weight(&self) -> usize {
        let lines = |l: &[(String, String)]| -> usize {
            l.iter().map(|(n, v)| n.len() + v.len() + 48).sum()
        };
        let sent = self.sent.as_ref().map_or(0, |s| lines(&s.headers));
        512 + self.target.len() + lines(&self.headers) + self.body_head.len() + sent
    }
}

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A request whose head was complete.
    Request,
    /// A head that never was; it takes no step.
    Incomplete,
    /// Bytes that are no HTTP; answered 400, takes no step.
    BadRequest,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// The status; `None` if no byte of a reply was sent.
    pub status: Option<u16>,
    /// The header lines in order.
    pub headers: Vec<(String, String)>,
    /// Body bytes handed to the socket.
    pub body_bytes: u64,
    /// How it ended.
    pub wire: Wire,
}

/// How an exchange ended on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Not yet.
    Sending,
    /// Whole reply.
    Complete,
    /// Cut by FIN.
    Fin,
    /// Cut by RST, after every byte was acknowledged.
    Rst,
    /// Left open and silent.
    Stall,
    /// It raced with the end of its connection: no reply, FIN or RST.
    Race,
    /// RST_STREAM with REFUSED_STREAM.
    RefusedStream,
    /// RST_STREAM with another code.
    RstStream,
    /// GOAWAY and FIN instead of a reply.
    Goaway,
    /// RST, but the peer had not acknowledged every byte in time: it may have seen fewer.
    Uncertain,
    /// The peer went away first.
    PeerClosed,
    /// A reset of the mock ended it.
    Cancelled,
}

impl Wire {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Complete => "complete",
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Stall => "stall",
            Self::Race => "race",
            Self::RefusedStream => "refused-stream",
            Self::RstStream => "rst-stream",
            Self::Goaway => "goaway",
            Self::Uncertain => "uncertain",
            Self::PeerClosed => "peer-closed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a `create` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// An effect was committed.
    Created,
    /// A stored reply was sent again.
    Replayed,
    /// Nothing happened.
    None,
}

/// What else is to be said of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// It came after the end of its script.
    Overrun,
    /// Its route has too many scope values.
    ScopeTableFull,
    /// It matched no route.
    NoRoute,
    /// Its body never came whole.
    Incomplete,
    /// Its barrier was released by time, not by number.
    BarrierTimeout,
    /// It came while no route was there for it: a stranger's.
    Foreign,
    /// It met the end of a connection that was kept alive (`race`).
    Raced,
    /// It came as early data of TLS 1.3 (0-RTT).
    Early,
    /// Its quota was used up.
    OverQuota,
    /// A fault of the control API answered.
    Fault,
    /// It was answered from a resource, not from a script.
    Resource,
    /// Its step needs HTTP/2, and it came over HTTP/1.
    NeedsHttp2,
    /// The upstream could not be reached, or gave no reply.
    UpstreamFailed,
}

fn body_head<S: Serializer>(body: &Bytes, s: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    match std::str::from_utf8(body) {
        Ok(text) => s.serialize_str(text),
        Err(_) => {
            let mut map = s.serialize_map(Some(1))?;
            map.serialize_entry("hex", &hex(body))?;
            map.end()
        }
    }
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)] as char);
        out.push(DIGITS[usize::from(b & 15)] as char);
    }
    out
}
