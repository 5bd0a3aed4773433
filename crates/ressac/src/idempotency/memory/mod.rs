//! Keys in memory: bounded in number and bytes, gone with the process.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::idempotency::record::{Fingerprint, RecordId};
use crate::idempotency::reply::StoredReply;
use crate::idempotency::store::{Begin, IdempotencyStore, Mark, StoreError, StoreFuture};

/// How much a [`MemoryStore`] may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Keys, in flight and answered. Default 100 000.
    pub max_keys: usize,
    /// Bytes of all stored replies. Default 64 MiB.
    pub max_bytes: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        MemoryOptions {
            max_keys: 100_000,
            max_bytes: 64 << 20,
        }
    }
}

impl MemoryOptions {
    /// With so many keys at most, 1 or more.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// With so many bytes of replies at most.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// Keys in the memory of one process. Clones share them.
///
/// A restart forgets every key, and with several instances behind one address each knows only its
/// own: use it for tests, for one instance, or where a doubled effect after a crash is bearable.
///
/// When it is full the reply that is nearest to its end is forgotten, and a retry that comes later
/// still would run again: give it room for the keys of one time to live. A key in flight is never
/// forgotten while its lease runs; when all that is there is in flight, new keys are refused.
///
/// Time is tokio's, so a paused clock moves it.
///
/// ```
/// use ressac::idempotency::{MemoryOptions, MemoryStore};
///
/// let store = MemoryStore::with(MemoryOptions::default().max_keys(10_000));
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    options: MemoryOptions,
    records: HashMap<RecordId, Record>,
    /// Those in flight, by the end of their lease.
    marks: BTreeMap<(Instant, u64), RecordId>,
    /// Those answered, by the end of their life.
    replies: BTreeMap<(Instant, u64), RecordId>,
    bytes: usize,
    last_ticket: u64,
    forgotten: u64,
}

struct Record {
    fingerprint: Fingerprint,
    ticket: u64,
    until: Instant,
    /// `None` while in flight.
    reply: Option<StoredReply>,
}

/// Records that are over, cleaned up with each new key: more than come in.
const SWEEP: usize = 4;

/// Longer than any clock is asked for, and no overflow.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

impl MemoryStore {
    /// A store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::with(MemoryOptions::default())
    }

    /// A store with these limits.
    #[must_use]
    pub fn with(options: MemoryOptions) -> Self {
        let options = options.max_keys(options.max_keys.max(1));
        MemoryStore {
            inner: Arc::new(Mutex::new(Inner {
                options,
                records: HashMap::new(),
                marks: BTreeMap::new(),
                replies: BTreeMap::new(),
                bytes: 0,
                last_ticket: 0,
                forgotten: 0,
            })),
        }
    }

    /// Keys in it, those that are over and not cleaned up yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner().records.len()
    }

    /// No key in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the replies in it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner().bytes
    }

    /// Replies forgotten for room before their time, since it was made. More than none means that
    /// the limits are too small for what comes in.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.inner().forgotten
    }

    /// No step leaves the records half changed, so a panic elsewhere spoils nothing.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("MemoryStore")
            .field("keys", &inner.records.len())
            .field("bytes", &inner.bytes)
            .field("options", &inner.options)
            .finish()
    }
}

impl IdempotencyStore for MemoryStore {
    fn begin(&self, id: RecordId, print: Fingerprint, lease: Duration) -> StoreFuture<'_, Begin> {
        Box::pin(async move { Ok(self.inner().begin(id, print, lease)) })
    }

    fn renew(&self, mark: Mark, lease: Duration) -> StoreFuture<'_, bool> {
        Box::pin(async move { Ok(self.inner().renew(mark, lease)) })
    }

    fn complete(&self, mark: Mark, reply: StoredReply, ttl: Duration) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.inner().complete(mark, reply, ttl) })
    }

    fn release(&self, mark: Mark) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut inner = self.inner();
            if !inner.is_lost(&mark) {
                inner.remove(mark.id);
            }
            Ok(())
        })
    }
}

impl Inner {
    fn begin(&mut self, id: RecordId, fingerprint: Fingerprint, lease: Duration) -> Begin {
        let now = Instant::now();
        self.sweep(now);
        if let Some(record) = self.records.get(&id)
            && now < record.until
        {
            return match &record.reply {
                _ if record.fingerprint != fingerprint => Begin::Mismatch,
                Some(reply) => Begin::Replay(reply.clone()),
                None => Begin::InFlight {
                    rest: record.until - now,
                },
            };
        }
        self.remove(id);
        if !self.make_room(now) {
            return Begin::Full;
        }
        self.last_ticket += 1;
        let mark = Mark {
            id,
            fingerprint,
            ticket: self.last_ticket,
        };
        self.insert(mark, end(now, lease), None);
        Begin::Fresh(mark)
    }

    fn renew(&mut self, mark: Mark, lease: Duration) -> bool {
        let held = self
            .records
            .get(&mark.id)
            .filter(|record| record.ticket == mark.ticket);
        if held.is_none_or(|record| record.reply.is_some()) {
            return false;
        }
        self.remove(mark.id);
        self.insert(mark, end(Instant::now(), lease), None);
        true
    }

    fn complete(
        &mut self,
        mark: Mark,
        reply: StoredReply,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        if self.is_lost(&mark) {
            return Ok(false);
        }
        let (needed, limit) = (reply.size(), self.options.max_bytes);
        if needed > limit {
            return Err(StoreError::NoRoom { needed, limit });
        }
        self.remove(mark.id);
        while self.bytes > limit - needed && self.forget_one() {}
        self.insert(mark, end(Instant::now(), ttl), Some(reply));
        Ok(true)
    }

    /// Whether somebody else has the record.
    fn is_lost(&self, mark: &Mark) -> bool {
        self.records
            .get(&mark.id)
            .is_some_and(|record| record.ticket != mark.ticket)
    }

    fn insert(&mut self, mark: Mark, until: Instant, reply: Option<StoredReply>) {
        let order = if reply.is_some() {
            &mut self.replies
        } else {
            &mut self.marks
        };
        order.insert((until, mark.ticket), mark.id);
        self.bytes += reply.as_ref().map_or(0, StoredReply::size);
        let record = Record {
            fingerprint: mark.fingerprint,
            ticket: mark.ticket,
            until,
            reply,
        };
        self.records.insert(mark.id, record);
    }

    fn remove(&mut self, id: RecordId) {
        let Some(record) = self.records.remove(&id) else {
            return;
        };
        let order = if record.reply.is_some() {
            &mut self.replies
        } else {
            &mut self.marks
        };
        order.remove(&(record.until, record.ticket));
        self.bytes -= record.reply.as_ref().map_or(0, StoredReply::size);
    }

    fn sweep(&mut self, now: Instant) {
        for _ in 0..SWEEP {
            let Some(id) = over(&self.replies, now).or_else(|| over(&self.marks, now)) else {
                return;
            };
            self.remove(id);
        }
    }

    /// Room for one key more. What is over goes first; one in flight never goes.
    fn make_room(&mut self, now: Instant) -> bool {
        while self.records.len() >= self.options.max_keys {
            match over(&self.marks, now) {
                Some(id) => self.remove(id),
                None if self.forget_one() => {}
                None => return false,
            }
        }
        true
    }

    fn forget_one(&mut self) -> bool {
        let Some((&(until, _), &id)) = self.replies.first_key_value() else {
            return false;
        };
        self.forgotten += u64::from(Instant::now() < until);
        self.remove(id);
        true
    }
}

fn over(order: &BTreeMap<(Instant, u64), RecordId>, now: Instant) -> Option<RecordId> {
    let (&(until, _), &id) = order.first_key_value()?;
    (until <= now).then_some(id)
}

fn end(now: Instant, after: Duration) -> Instant {
    now + after.min(FOREVER)
}
