//! What is journaled of a connection.

use std::sync::Arc;

use serde::Serialize;

use crate::wire::Tape;

/// A connection: when it was accepted, what it met, and how it ended.
///
/// Times are nanoseconds of the mock's monotonic clock. An entry appears when `accept` returns and
/// is filled in as the connection goes on.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Connection {
    /// Number of the entry, rising, never reused; the same count as that of [`crate::Entry`].
    pub seq: u64,
    /// `connection`.
    pub kind: &'static str,
    /// Number of the connection in the mock, in order of `accept`.
    pub conn: u64,
    /// Name of the listener.
    pub listener: String,
    /// Number of the connection on its listener, which is what its accept script counts.
    pub n: u64,
    /// The word of the accept script that it met, like `ok` or `rst`.
    pub accept: String,
    /// When it was accepted.
    pub t_accept: u64,
    /// What its TLS handshake came to.
    pub tls: Option<Arc<TlsInfo>>,
    /// Why there was no TLS session.
    pub tls_error: Option<String>,
    /// How many requests arrived on it.
    pub requests: u64,
    /// Its first bytes, where the mock was told to keep them.
    pub raw: Option<Arc<Tape>>,
    /// How it ended, like `peer`, `fin`, `rst` or `rst@accept`; `None`: it has not.
    pub end: Option<&'static str>,
    /// When.
    pub t_end: Option<u64>,
}

/// What was agreed on in a TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TlsInfo {
    /// `TLS 1.2` or `TLS 1.3`.
    pub version: &'static str,
    /// The name that the client asked for.
    pub sni: Option<String>,
    /// The protocol that was chosen.
    pub alpn: Option<String>,
    /// Whether an earlier session was taken up.
    pub resumed: bool,
}
