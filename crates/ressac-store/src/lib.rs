//! The outbox of Ressac: what was accepted is kept here until it is delivered or dead.
//!
//! A gateway that answers `202` promises that the message outlives it: a crash, a full disk, a second
//! instance that takes over. The [`Outbox`] trait is that promise; [`SqliteStore`] keeps it in one file.
//!
//! - A message, its idempotency record and its delivery are **one transaction**, and `accept` answers
//!   after the commit. Many callers share one commit.
//! - An attempt is **written before it is sent** ([`Outbox::begin`]). A row still marked
//!   [`State::Sending`] after a crash is work to do ([`Outbox::in_flight`]), never a success.
//! - A partner belongs to one instance at a time. Its [`Lease`] carries an **epoch**; a write with an
//!   older epoch is refused, and a settle refused so is kept as evidence ([`Outbox::late_settles`]).
//! - The store knows no retry rule: the policy engine's operation is an opaque blob to it.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use ressac_store::{AcceptOutcome, Class, NewMessage, Outbox, SqliteOptions, SqliteStore};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("ressac.db");
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let store = SqliteStore::open(SqliteOptions::new(path)).await?;
//! let now = store.now();
//!
//! let message = NewMessage::new("acme", "POST", "/v1/payments", "{}", now);
//! let AcceptOutcome::Accepted(accepted) = store.accept(message).await? else {
//!     panic!("a new key is always accepted");
//! };
//!
//! let leases = store.acquire("this-instance", &["acme".into()], Duration::from_secs(45)).await?;
//! assert_eq!(leases.len(), 1);
//! let due = store.due("acme", Class::First, store.now(), 10, None).await?;
//! assert_eq!(due[0].id, accepted.id);
//! store.close().await?;
//! # Ok::<(), ressac_store::StoreError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod error;
mod fingerprint;
mod limits;
mod outbox;
mod sqlite;
mod types;

#[cfg(feature = "contract")]
pub mod contract;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Refusal, StoreError};
pub use fingerprint::fingerprint;
pub use limits::{
    MAX_EXCERPT, MAX_HEADERS, MAX_ITEMS, MAX_KEY, MAX_NAME, MAX_NOTE, MAX_OPERATION, MAX_PAGE,
    MAX_PATH, MAX_WORD,
};
pub use outbox::{BoxFuture, Outbox};
pub use sqlite::{SqliteOptions, SqliteStore};
pub use types::{
    AcceptOutcome, AttemptEntry, AttemptRecord, Begin, Class, Counts, Discard, DueCursor,
    DueMessage, Filter, ItemResult, LateSettle, Lease, MessageContent, MessageRecord,
    MessageSummary, NewMessage, NewState, Page, PartnerStatus, PutBack, Replay, SeriesEnd, Settle,
    State, Stats,
};
