//! A whole reply.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// A final reply, whole or cut by our own limit. Any status: judging it is not the client's work,
/// and no redirect is followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The status; never 1xx.
    pub status: StatusCode,
    /// The headers. Values may be any bytes, also not UTF-8.
    pub headers: HeaderMap,
    /// The body as it came, at most
    /// [`max_response_body`](crate::ClientConfig::max_response_body) bytes. Nothing is decoded.
    pub body: Bytes,
    /// Whether the body went on past the limit: `body` is then its beginning only.
    pub body_limit_hit: bool,
    /// Whether the connection had served another request before.
    pub reused_connection: bool,
    /// From the call to the last byte that was read.
    pub elapsed: Duration,
    /// When the request was handed to the connection, by this machine's clock.
    pub sent_at: SystemTime,
    /// When the head of the reply was there, by this machine's clock.
    pub replied_at: SystemTime,
    /// The address that answered.
    pub remote: SocketAddr,
}
