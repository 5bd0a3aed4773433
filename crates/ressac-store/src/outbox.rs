//! The trait that every store keeps.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use uuid::Uuid;

use crate::error::StoreError;
use crate::types::{
    AcceptOutcome, Begin, Class, Counts, Discard, DueCursor, DueMessage, Filter, ItemResult,
    LateSettle, Lease, MessageContent, MessageRecord, MessageSummary, NewMessage, Page,
    PartnerStatus, PutBack, Replay, Settle, Stats,
};

/// A future on the heap: next to a commit its allocation is nothing, and it lets the store be chosen
/// when the program starts (`Arc<dyn Outbox>`).
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where accepted messages live until they are delivered or dead.
///
/// # Promises
///
/// - A write that answered `Ok` is durable: it outlives a kill and a power cut.
/// - A write that answered with an error changed nothing, except that a refused settle is kept as
///   evidence. A caller that drops the future, or is killed, cannot know: it must ask again.
/// - In a batch one bad message sinks no other; each has its own [`ItemResult`].
/// - Nothing is held open between two calls: no transaction spans the network.
///
/// # The life of a message
///
/// ```text
///             accept
///               │            put_back (was not sent)
///               ▼       ◄──────────────────┐
///            waiting ───────── begin ──► sending
///               │  ▲                       │
///    discard,   │  └──── settle: waiting ──┤
///    settle     │                          │ settle, discard with force
///               ▼                          ▼
///             dead ◄──────────────────── delivered / dead
///               └──── replay: a new series, class Replay ──► waiting
/// ```
///
/// # Lanes
///
/// Only the head of a lane is ever due: [`due`](Self::due) leaves out what stands behind an unfinished
/// message, and [`begin`](Self::begin) refuses it. When the head ends, either way, the next one becomes
/// due. A replay joins its lane at the end.
///
/// # Clock
///
/// Moments are nanoseconds since the Unix epoch. The store's clock ([`now`](Self::now)) judges leases.
pub trait Outbox: Send + Sync + 'static {
    /// Stores a message, its idempotency record and its delivery in one transaction, and answers after
    /// the commit. One atomic step decides between new, same and conflicting.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] when too much is queued, [`StoreError::Full`] when no space is left (a
    /// little earlier than settles fail), [`StoreError::Invalid`] for a value over its limit.
    fn accept(&self, message: NewMessage) -> BoxFuture<'_, AcceptOutcome>;

    /// Takes those partners that are free, or whose lease has run out, or that this instance had. Each
    /// lease has a new epoch. Partners held by another instance are left out of the answer.
    fn acquire<'a>(
        &'a self,
        instance: &'a str,
        partners: &'a [String],
        ttl: Duration,
    ) -> BoxFuture<'a, Vec<Lease>>;

    /// Prolongs leases to `ttl` from now. Those that were lost are left out of the answer.
    fn renew<'a>(&'a self, leases: &'a [Lease], ttl: Duration) -> BoxFuture<'a, Vec<Lease>>;

    /// Gives leases back: another instance can take the partners at once, and the epochs are void.
    fn release<'a>(&'a self, leases: &'a [Lease]) -> BoxFuture<'a, ()>;

    /// The messages of one class that can be begun at `now`, in order, at most `limit`
    /// ([`MAX_PAGE`](crate::MAX_PAGE)), after `after` where that is given. The work does not grow with
    /// the number of messages waiting.
    fn due<'a>(
        &'a self,
        partner: &'a str,
        class: Class,
        now: u64,
        limit: usize,
        after: Option<DueCursor>,
    ) -> BoxFuture<'a, Vec<DueMessage>>;

    /// When the next message of any class is due; in the past if one is due already.
    fn next_due<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Option<u64>>;

    /// The messages marked as being sent, in the order of acceptance, at most `limit` with a `seq`
    /// above `after_seq` (0 = from the start). To a new owner each is an attempt without an outcome:
    /// settle it as such.
    fn in_flight<'a>(
        &'a self,
        partner: &'a str,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Vec<DueMessage>>;

    /// What is to be sent; `None` for an unknown id.
    fn load(&self, id: Uuid) -> BoxFuture<'_, Option<MessageContent>>;

    /// Records attempts as open and marks their messages as being sent. Send only what was answered
    /// with `Ok`, and only after the answer.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the epoch is not current or the lease has run out.
    fn begin<'a>(&'a self, lease: &'a Lease, items: Vec<Begin>) -> BoxFuture<'a, Vec<ItemResult>>;

    /// Records what became of messages.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the epoch is not current; the items are then kept and can be
    /// read with [`late_settles`](Self::late_settles). A lease that ran out and that nobody else took
    /// still settles.
    fn settle<'a>(&'a self, lease: &'a Lease, items: Vec<Settle>)
    -> BoxFuture<'a, Vec<ItemResult>>;

    /// Puts messages back that were begun and certainly not sent; their open attempts are forgotten.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the epoch is not current.
    fn put_back<'a>(
        &'a self,
        lease: &'a Lease,
        items: Vec<PutBack>,
    ) -> BoxFuture<'a, Vec<ItemResult>>;

    /// Keeps a partner's run-time state for the next owner.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the epoch is not current.
    fn save_partner<'a>(&'a self, lease: &'a Lease, snapshot: Vec<u8>) -> BoxFuture<'a, ()>;

    /// The partner's run-time state as last saved.
    fn load_partner<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Option<Vec<u8>>>;

    /// One message with its history; `None` for an unknown id.
    fn get(&self, id: Uuid) -> BoxFuture<'_, Option<MessageRecord>>;

    /// Messages, newest first, at most `limit` ([`MAX_PAGE`](crate::MAX_PAGE)), from `cursor` on, which
    /// is the `next` of the page before. Messages that come in meanwhile do not shift the pages.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for a cursor that is none.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Page>;

    /// How many messages a partner has; all zero for an unknown one.
    fn counts<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Counts>;

    /// Every partner that ever had a message or a lease, by name.
    fn partners(&self) -> BoxFuture<'_, Vec<PartnerStatus>>;

    /// Makes a dead letter wait again as the first of a new series, with its key, its history kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] unless it is dead.
    fn replay(&self, replay: Replay) -> BoxFuture<'_, MessageSummary>;

    /// Ends a message with the reason `discarded`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when it is delivered, or being sent and not forced.
    fn discard(&self, discard: Discard) -> BoxFuture<'_, MessageSummary>;

    /// Settles that were refused, newest first.
    fn late_settles<'a>(&'a self, partner: &'a str, limit: usize)
    -> BoxFuture<'a, Vec<LateSettle>>;

    /// Deletes up to `limit` messages delivered before `older_than` with all that belongs to them, and
    /// as many late settles of that age. Never a dead letter. A deleted message's key is free again: keep
    /// messages longer than any caller repeats a key. Answers how many messages it deleted; call again
    /// while that is `limit`.
    fn prune(&self, older_than: u64, limit: usize) -> BoxFuture<'_, u64>;

    /// Figures of the store itself. Cheap.
    fn stats(&self) -> Stats;

    /// The store's clock, ns since the Unix epoch.
    fn now(&self) -> u64;

    /// Writes what is queued, and closes. Later calls answer [`StoreError::Closed`].
    fn close(&self) -> BoxFuture<'_, ()>;
}
