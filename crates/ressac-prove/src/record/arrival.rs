//! One entry of the mock's journal, as it is kept and read again.

use serde::{Deserialize, Serialize};

/// An arrival, a connection or a wire event of the mock. Times are nanoseconds of its clock. What
/// this version does not know is left out, what an older journal lacks is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrival {
    /// Rising number.
    pub seq: u64,
    /// `request`, `incomplete`, `bad-request`, `connection`, ...
    pub kind: String,
    /// When the connection was accepted.
    pub t_accept: u64,
    /// First byte of the request.
    pub t_first: u64,
    /// Head complete.
    pub t_head: u64,
    /// Request read whole.
    pub t_req_end: Option<u64>,
    /// Before the first byte of the reply.
    pub t_reply_before: Option<u64>,
    /// After the last byte and the end.
    pub t_reply_after: Option<u64>,
    /// When the peer was seen to close.
    pub t_peer_close: Option<u64>,
    /// Number of the connection.
    pub conn: u64,
    /// Stream of HTTP/2.
    pub stream: Option<u64>,
    /// Listener.
    pub listener: String,
    /// `HTTP/1.1`.
    pub proto: String,
    /// TLS, where there is any.
    pub tls: Option<serde_json::Value>,
    /// Method.
    pub method: String,
    /// Target.
    pub target: String,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Body bytes read.
    pub body_len: u64,
    /// Their hash.
    pub body_sha256: Option<String>,
    /// The beginning of the body: text, or `{"hex": ..}`.
    pub body_head: serde_json::Value,
    /// Route.
    pub route: Option<String>,
    /// Token of the operation.
    pub token: Option<String>,
    /// Arrival number.
    pub n: Option<u64>,
    /// Step, from 1.
    pub step: Option<u64>,
    /// Outage, from 1.
    pub outage: Option<u64>,
    /// What was sent.
    pub sent: Option<SentLine>,
    /// Must not come back before.
    pub retry_at: Option<u64>,
    /// `created`, `replayed`, `none`.
    pub effect: String,
    /// Idempotency key.
    pub key: Option<String>,
    /// Whether it came quoted.
    pub key_quoted: bool,
    /// `overrun`, `raced`, `early`, ...
    pub flags: Vec<String>,
    /// Of a connection: the word of the accept script that it met.
    pub accept: String,
    /// Of a connection: its first bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawBytes>,
    /// Of a connection: how it ended.
    pub end: Option<String>,
    /// Of a connection: when.
    pub t_end: Option<u64>,
    /// Of a connection: why there was no TLS session.
    pub tls_error: Option<String>,
}

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentLine {
    /// The status; none if no byte of a reply was sent.
    pub status: Option<u16>,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    pub body_bytes: u64,
    /// `complete`, `fin`, `rst`, `stall`, ...
    pub wire: String,
}

/// The first bytes of a connection, what is no visible ASCII escaped as in Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawBytes {
    /// What the client sent.
    pub received: String,
    /// What it was sent.
    pub sent: String,
}

impl Arrival {
    /// From an entry of the mock. `None` only if the mock's entries stop being JSON objects.
    pub(crate) fn of(entry: &impl Serialize) -> Option<Self> {
        serde_json::from_value(serde_json::to_value(entry).ok()?).ok()
    }

    /// Is it a request, whole or raced?
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.kind == "request" || self.raced()
    }

    /// Did its connection end under it on purpose, before a step?
    #[must_use]
    pub fn raced(&self) -> bool {
        self.has("raced")
    }

    /// Is it flagged so?
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// The status that was sent.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.sent.as_ref()?.status
    }

    /// How it ended.
    #[must_use]
    pub fn wire(&self) -> &str {
        self.sent.as_ref().map_or("", |s| s.wire.as_str())
    }

    /// The first header of that name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    /// The end of the attempt for floors: never later than the client could know of it.
    #[must_use]
    pub fn end_early(&self) -> Option<u64> {
        match (self.t_reply_before, self.t_peer_close) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b).or(self.t_reply_after),
        }
    }

    /// The end of the attempt for ceilings: never earlier than the client could know of it.
    #[must_use]
    pub fn end_late(&self) -> Option<u64> {
        match (self.t_reply_after, self.t_peer_close) {
            // A silent connection ends when the client gives it up.
            (Some(a), Some(b)) if self.wire() == "stall" => Some(a.max(b)),
            (Some(_), None) if self.wire() == "stall" => None,
            (a, b) => a.or(b),
        }
    }
}
