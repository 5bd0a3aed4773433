//! What a store of keys promises.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::record::{Fingerprint, RecordId};
use super::reply::StoredReply;

/// What a store's method returns: a boxed future, so that a store can be chosen at run time.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where keys and their replies are kept.
///
/// [`MemoryStore`](super::MemoryStore) and `SqliteStore` (feature `idempotency-sqlite`) are here;
/// this trait is for others. The rules of each method are what makes one effect of many requests:
///
/// * every method is **one atomic step** against all callers that share the store, in other
///   processes too, if there are any;
/// * the **store's clock** decides when a lease or a reply's life is over, not the caller's;
/// * a record of a request in flight is **never thrown out for room** while its lease runs.
pub trait IdempotencyStore: Send + Sync + fmt::Debug + 'static {
    /// Looks a key up, and marks it in flight until `now + lease` if it is free.
    ///
    /// A key is free when there is no record of it, when its reply has outlived its time, or when
    /// its lease is over. Each [`Begin::Fresh`] carries a ticket that no other mark of this store
    /// ever had.
    fn begin(
        &self,
        id: RecordId,
        fingerprint: Fingerprint,
        lease: Duration,
    ) -> StoreFuture<'_, Begin>;

    /// Puts the end of a mark off to `now + lease`, also of one that is over but still there.
    /// `false`: it is gone, completed, or another stands in its place; nothing was changed.
    fn renew(&self, mark: Mark, lease: Duration) -> StoreFuture<'_, bool>;

    /// Replaces a mark by its reply, kept until `now + ttl`. When this returns `true` the reply is
    /// as safe as this store can make it. `false`: another mark or its reply stands in its place,
    /// and nothing was changed.
    ///
    /// A mark that is over, or gone, but not replaced is completed: the effect was had.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoRoom`] if this reply is too large for the store whatever else it forgets.
    fn complete(&self, mark: Mark, reply: StoredReply, ttl: Duration) -> StoreFuture<'_, bool>;

    /// Lets a key go, so that the next request with it is new. Changes nothing if another mark
    /// stands in its place.
    fn release(&self, mark: Mark) -> StoreFuture<'_, ()>;
}

/// A shared store is a store.
impl<T: IdempotencyStore + ?Sized> IdempotencyStore for Arc<T> {
    fn begin(&self, id: RecordId, print: Fingerprint, lease: Duration) -> StoreFuture<'_, Begin> {
        T::begin(self, id, print, lease)
    }

    fn renew(&self, mark: Mark, lease: Duration) -> StoreFuture<'_, bool> {
        T::renew(self, mark, lease)
    }

    fn complete(&self, mark: Mark, reply: StoredReply, ttl: Duration) -> StoreFuture<'_, bool> {
        T::complete(self, mark, reply, ttl)
    }

    fn release(&self, mark: Mark) -> StoreFuture<'_, ()> {
        T::release(self, mark)
    }
}

/// A key in flight, as its holder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose record.
    pub id: RecordId,
    /// Of which request.
    pub fingerprint: Fingerprint,
    /// Tells this mark from any other that ever stood in the record: the fencing token.
    pub ticket: u64,
}

/// What [`IdempotencyStore::begin`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// The key was free, and is now marked.
    Fresh(Mark),
    /// It was answered before: this reply again.
    Replay(StoredReply),
    /// The same request is at work, and its lease runs for this long yet.
    InFlight {
        /// The rest of the lease.
        rest: Duration,
    },
    /// The key belongs to another request, at work or answered.
    Mismatch,
    /// No room for one more key.
    Full,
}

/// Why a store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// This reply is too large for the store.
    #[error(
        "a reply of {needed} bytes does not fit into a store of {limit}; raise the store's limit"
    )]
    NoRoom {
        /// What it takes.
        needed: usize,
        /// What the store may hold.
        limit: usize,
    },
    /// The store was closed.
    #[error("the idempotency store is closed")]
    Closed,
    /// What lies under the store failed: a disk, a lock, a connection.
    #[error("the idempotency store failed: {detail}")]
    Failed {
        /// What happened, for a person.
        detail: String,
    },
    /// A stored record cannot be read.
    #[error("a record of the idempotency store is damaged: {detail}")]
    Damaged {
        /// What is wrong with it.
        detail: String,
    },
}
