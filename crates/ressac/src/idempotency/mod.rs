//! The server's side of an idempotency key: the handler runs once for a key, a repetition gets the
//! first reply again.
//!
//! [`IdempotencyLayer`] is a tower layer for axum and for any service over [`http`] types. It
//! follows draft-ietf-httpapi-idempotency-key-header-07:
//!
//! | a request with | is answered |
//! |---|---|
//! | no key where one is required | 400, §2.7 |
//! | a key whose first request is still at work | 409 and `Retry-After` = the rest of its lease, §2.6 and §2.7 |
//! | a key used before with another method, path, content type or body | 422, §2.7 |
//! | a key that was answered before | the stored reply, byte for byte, and `Idempotent-Replayed: true`, §2.6 |
//! | a new key | by the handler |
//!
//! The three errors are problem details (RFC 9457) with the titles of the draft.
//!
//! ```
//! use axum::{Router, routing::post};
//! use ressac::idempotency::{IdempotencyLayer, MemoryStore};
//!
//! let app: Router = Router::new()
//!     .route("/v1/payments", post(|| async { "paid" }))
//!     .layer(IdempotencyLayer::new(MemoryStore::new()));
//! ```
//!
//! # What it promises
//!
//! * **One effect for a key.** Looking a key up and marking it is one atomic step of the
//!   [`IdempotencyStore`], so of any number of requests at once one runs.
//! * **No key is stuck.** The mark of a running handler is a *lease*, renewed while it runs. When its process dies,
//!   the lease ends and a retry runs the handler again.
//! * **No late word.** Who lost its lease cannot overwrite the reply of who took the key after it:
//!   each [`Mark`] has a ticket, and the store refuses an old one.
//! * **A caller who hangs up changes nothing.** The handler runs in a task of its own, to its end.
//!   Its reply is stored, and the retry that follows gets it. To drop the handler with the
//!   connection would leave an effect behind that nobody answers for: letting the key go would
//!   double it, keeping the mark would only put that off until the lease ends.
//! * **Nothing is cut.** A request body over the limit is refused before anything runs. A reply
//!   over the limit goes to its caller whole; for the key a note is kept that it was done.
//!
//! # What is left to the handler
//!
//! A key is let go, so that a retry runs the handler again, when the handler answers 5xx, 3xx, or
//! a 4xx that another time may change (see [`keeps_by_default`]), fails, or panics. Such a handler should have had no
//! effect, or be able to take it up again. A crash between the effect and the stored reply cannot
//! be told from one before the effect by anybody outside: where that matters, write the key into
//! the same transaction as the effect.
//!
//! The whole guide, with an example that runs, is `docs/idempotency.md`.

mod body;
mod collect;
#[cfg(test)]
mod contract;
mod key;
mod layer;
mod memory;
mod problem;
mod record;
mod reply;
mod run;
mod service;
mod settings;
#[cfg(feature = "idempotency-sqlite")]
mod sqlite;
mod store;

pub use body::IdempotencyBody;
pub use key::MAX_KEY;
pub use layer::IdempotencyLayer;
pub use memory::{MemoryOptions, MemoryStore};
pub use record::{Fingerprint, RecordId};
pub use reply::StoredReply;
pub use service::{Idempotency, ResponseFuture};
pub use settings::keeps_by_default;
#[cfg(feature = "idempotency-sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{Begin, IdempotencyStore, Mark, StoreError, StoreFuture};

/// Compiles and runs the code of the guide.
#[cfg(all(doctest, feature = "idempotency-sqlite"))]
#[doc = include_str!("../../../../docs/idempotency.md")]
pub struct Guide;
