//! What goes back and forth while messages are delivered.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AttemptRecord, Class};
use crate::error::Refusal;

/// The right to deliver to one partner, for a time.
///
/// The epoch is the fence: it goes up each time the partner changes hands, and a write with an older
/// one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The partner.
    pub partner: String,
    /// Goes up with every change of owner.
    pub epoch: u64,
    /// When the lease ends unless renewed, ns since the Unix epoch, by the store's clock.
    pub until: u64,
}

/// A message that can be taken up: the hot row and the operation, not the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// The message's id.
    pub id: Uuid,
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// The ordered stream it belongs to, of which it is the head.
    pub lane: Option<String>,
    /// The queue it stands in.
    pub class: Class,
    /// When it is due, ns since the Unix epoch.
    pub due: u64,
    /// The end of its window, ns since the Unix epoch.
    pub deadline: Option<u64>,
    /// When it was accepted, ns since the Unix epoch.
    pub accepted_at: u64,
    /// The series, from 1; each replay starts a new one.
    pub series: u32,
    /// The last attempt begun in this series; 0 = none. For a message in flight: the open one.
    pub attempt: u32,
    /// When the open attempt was begun; `None` for a message that waits.
    pub begun_at: Option<u64>,
    /// The policy engine's operation.
    pub operation: Vec<u8>,
}

impl DueMessage {
    /// Where to go on after this one; see [`due`](crate::Outbox::due).
    #[must_use]
    pub fn cursor(&self) -> DueCursor {
        let rank = match self.class {
            Class::First => self.deadline.unwrap_or(u64::MAX),
            Class::Retry | Class::Replay => self.due,
        };
        DueCursor {
            rank,
            seq: self.seq,
        }
    }
}

/// A place in the order of due messages of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueCursor {
    pub(crate) rank: u64,
    pub(crate) seq: u64,
}

/// An attempt that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The message.
    pub id: Uuid,
    /// The number of the attempt in its series, above that of the last one.
    pub attempt: u32,
    /// When it begins, ns since the Unix epoch.
    pub started_at: u64,
    /// The operation with this attempt counted.
    pub operation: Vec<u8>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The message.
    pub id: Uuid,
    /// The attempt that ended. `None` only for a waiting message: to end it unsent, or to move it.
    pub attempt: Option<AttemptRecord>,
    /// Where it goes.
    pub next: NewState,
    /// The operation as it stands now.
    pub operation: Vec<u8>,
}

/// Where a settle sends a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewState {
    /// It waits for its next attempt.
    Waiting {
        /// When that is due, ns since the Unix epoch.
        due: u64,
        /// What it waits for, a word such as `backoff` or `hold`.
        because: String,
        /// The queue it stands in.
        class: Class,
    },
    /// It arrived.
    Delivered {
        /// `delivered`, or how else it came to be done.
        reason: String,
    },
    /// It is a dead letter.
    Dead {
        /// Why it ended, of the closed list of reasons.
        reason: String,
        /// Who is to blame.
        blame: String,
        /// The worst `processed` over all attempts.
        processed: String,
    },
}

impl NewState {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Delivered { .. } => "delivered",
            Self::Dead { .. } => "dead",
        }
    }
}

/// A message that was begun and certainly not sent. Its open attempt is forgotten: it was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// The message.
    pub id: Uuid,
    /// When it is due again, ns since the Unix epoch.
    pub due: u64,
    /// What it waits for.
    pub because: String,
    /// The queue it goes back to.
    pub class: Class,
    /// The operation without the attempt.
    pub operation: Vec<u8>,
}

/// A dead letter to send again, as a new series with its old key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The message.
    pub id: Uuid,
    /// When it is due, ns since the Unix epoch.
    pub due: u64,
    /// The end of the new series' window, ns since the Unix epoch.
    pub deadline: Option<u64>,
    /// The operation of the new series.
    pub operation: Vec<u8>,
}

/// A message that an operator gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discard {
    /// The message.
    pub id: Uuid,
    /// Also while it is being sent. What the open attempt comes to is then kept as a late settle.
    pub force: bool,
    /// Who is to blame.
    pub blame: String,
    /// The worst `processed` over all attempts, as far as is known.
    pub processed: String,
    /// The operation as it stands now; `None` leaves the stored one.
    pub operation: Option<Vec<u8>>,
}

/// The answer for one message of a batch.
pub type ItemResult = Result<(), Refusal>;
