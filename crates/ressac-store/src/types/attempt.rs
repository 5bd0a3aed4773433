//! What is kept about attempts and about series of them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One attempt. Texts and excerpts over their limit are cut, never refused, so that a long error
/// message cannot keep an outcome from being recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Its number within the series, from 1.
    pub number: u32,
    /// When it was begun, ns since the Unix epoch.
    pub started_at: u64,
    /// When it ended; `None` while it is open. A settle without it gets the store's time.
    pub ended_at: Option<u64>,
    /// The kind of outcome, a word such as `reset`; empty while it is open.
    pub kind: String,
    /// The HTTP status, where there was a reply.
    pub status: Option<u16>,
    /// Whether the partner processed the request: `no`, `maybe`, `yes`.
    pub processed: String,
    /// Who is to blame: `partner`, `network`, `ours`; empty for none.
    pub blame: String,
    /// The partner's hint (Retry-After and its relatives), in milliseconds.
    pub hint_ms: Option<u64>,
    /// More for a person to read.
    pub note: String,
    /// The beginning of the reply's head.
    pub reply_head: Vec<u8>,
    /// The beginning of the reply's body.
    pub reply_body: Vec<u8>,
}

/// An attempt and the series it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEntry {
    /// The series, from 1; each replay starts a new one.
    pub series: u32,
    /// The attempt.
    pub record: AttemptRecord,
}

/// How an earlier series ended, kept when a replay begins the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesEnd {
    /// The series that ended, from 1.
    pub series: u32,
    /// When it ended, ns since the Unix epoch.
    pub ended_at: u64,
    /// Why it ended.
    pub reason: String,
    /// Who was to blame.
    pub blame: String,
    /// The worst `processed` over its attempts.
    pub processed: String,
}

/// A settle that was refused: what an owner that had lost its lease, or whose message an operator had
/// ended, wanted to write. Evidence for a person who has to find out whether something arrived twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateSettle {
    /// The message, as the caller named it.
    pub id: Uuid,
    /// When it was refused, ns since the Unix epoch.
    pub refused_at: u64,
    /// The epoch the caller held.
    pub epoch: u64,
    /// The epoch that was current.
    pub current_epoch: u64,
    /// The attempt the caller wanted to close.
    pub attempt: Option<AttemptRecord>,
    /// The state it wanted: `waiting`, `delivered`, `dead`.
    pub wanted: String,
}
