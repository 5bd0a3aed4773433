//! A message as it comes in and as it is sent.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::MessageSummary;

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for its next attempt.
    Waiting,
    /// An attempt was begun and not settled. After a crash: may have been sent.
    Sending,
    /// It arrived.
    Delivered,
    /// It ended without arriving: a dead letter.
    Dead,
}

impl State {
    /// Every state, in the order a message goes through them.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Sending, Self::Delivered, Self::Dead];

    /// The word for it: `waiting`, `sending`, `delivered`, `dead`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of the three queues of a partner a waiting message stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Before its first attempt: nearest deadline first, then in the order of acceptance.
    First,
    /// After a failed attempt: by due time.
    Retry,
    /// A dead letter that is to be sent again: by due time.
    Replay,
}

/// A message to accept.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Its id, a UUID v7 (which keeps the index of ids growing at one end).
    pub id: Uuid,
    /// The partner it goes to, 1 to [`MAX_NAME`](crate::MAX_NAME) bytes.
    pub partner: String,
    /// The ordered stream it belongs to; `None` = unordered.
    pub lane: Option<String>,
    /// Its idempotency key, 1 to [`MAX_KEY`](crate::MAX_KEY) bytes, unique per partner.
    pub key: String,
    /// Whether the caller gave the key (`false`: it was made here).
    pub key_given: bool,
    /// HTTP method.
    pub method: String,
    /// Path with query below the partner's URL; may be empty.
    pub path: String,
    /// Headers in order, values as bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Bytes,
    /// What tells the same request from another one; see [`fingerprint`](crate::fingerprint()).
    pub fingerprint: [u8; 32],
    /// When it was accepted, ns since the Unix epoch.
    pub accepted_at: u64,
    /// When its first attempt is due, ns since the Unix epoch; normally `accepted_at`.
    pub due: u64,
    /// The end of its window, ns since the Unix epoch.
    pub deadline: Option<u64>,
    /// The policy engine's operation: opaque here, at most [`MAX_OPERATION`](crate::MAX_OPERATION)
    /// bytes.
    pub operation: Vec<u8>,
}

impl NewMessage {
    /// An unordered message without headers or deadline, due at once, with a new id that is its key
    /// too. Change the fields as needed; whoever sets a key or a content type sets the fingerprint.
    #[must_use]
    pub fn new(
        partner: impl Into<String>,
        method: impl Into<String>,
        path: impl Into<String>,
        body: impl Into<Bytes>,
        now: u64,
    ) -> Self {
        let (id, method, path, body) = (Uuid::now_v7(), method.into(), path.into(), body.into());
        Self {
            id,
            partner: partner.into(),
            lane: None,
            key: id.to_string(),
            key_given: false,
            fingerprint: crate::fingerprint(&method, &path, None, &body),
            method,
            path,
            headers: Vec::new(),
            body,
            accepted_at: now,
            due: now,
            deadline: None,
            operation: Vec::new(),
        }
    }
}

/// What [`accept`](crate::Outbox::accept) came to. The message is durable in every case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// It is new and now stored.
    Accepted(MessageSummary),
    /// The same request came before under the same key: this is the earlier one, as it stands now.
    Existing(MessageSummary),
    /// The key was used for another request.
    KeyConflict {
        /// The message that has the key.
        id: Uuid,
    },
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageContent {
    /// The message's id.
    pub id: Uuid,
    /// Its idempotency key: the same bytes on every attempt.
    pub key: String,
    /// Whether the caller gave the key.
    pub key_given: bool,
    /// HTTP method.
    pub method: String,
    /// Path with query below the partner's URL; may be empty.
    pub path: String,
    /// Headers in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Bytes,
}
