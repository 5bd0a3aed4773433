//! Keys in a SQLite file: they outlive a crash and a restart.

mod open;
mod table;
mod worker;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

use super::record::{Fingerprint, RecordId};
use super::reply::StoredReply;
use super::store::{Begin, IdempotencyStore, Mark, StoreError, StoreFuture};
use worker::{Answer, Ask, Job};

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Requests that may wait for the writer; more wait where they come from.
const QUEUE: usize = 1_024;

/// Where a [`SqliteStore`] is, and how large it may grow.
#[derive(Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    path: PathBuf,
    max_bytes: u64,
    clock: Clock,
}

impl SqliteOptions {
    /// A store in this file, made if it is not there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SqliteOptions {
            path: path.into(),
            max_bytes: 1 << 30,
            clock: Arc::new(wall_clock),
        }
    }

    /// The largest the file may grow, in bytes; default 1 GiB, at least 1 MiB. New keys are refused a
    /// little earlier, so that those in flight can be completed.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes.max(1 << 20);
        self
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("path", &self.path)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| {
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Keys in one SQLite file. Clones share it.
///
/// What [`complete`](IdempotencyStore::complete) has answered survives `kill -9` and a power cut
/// (`synchronous=FULL`, write-ahead log). All SQL runs on one thread of the store's own, never on an
/// async one; what is queued is committed together.
///
/// **Processes of one machine** may share the file, as in a restart where the old one still
/// answers while the new one starts. It must lie on a local disk.
///
/// **Time** is the machine's wall clock, since leases and replies must outlive a restart. Set back, it lengthens a lease by
/// one more at most. Set ahead by more than a lease, it ends leases early, until the next renewal.
///
/// **Room**: records that are over are deleted a few with each new key. None is forgotten before
/// its time: at [`SqliteOptions::max_bytes`] new keys are refused.
///
/// ```
/// use ressac::idempotency::{IdempotencyLayer, SqliteOptions, SqliteStore};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("keys.db");
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let store = SqliteStore::open(SqliteOptions::new(path)).await?;
/// let keys = IdempotencyLayer::new(store);
/// # drop(keys);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
    path: Arc<Path>,
}

impl SqliteStore {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the file cannot be opened, belongs to another application, was
    /// written by a newer version, or cannot be made to last.
    pub async fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let path: Arc<Path> = options.path.clone().into();
        let (opened, ready) = oneshot::channel();
        let thread = std::thread::Builder::new().name("ressac-keys".to_owned());
        let spawned = thread.spawn(move || match open::open(&options) {
            Ok(database) => {
                // Nobody to tell means nobody to work for: the queue is closed then.
                let _ = opened.send(Ok(()));
                worker::run(database, &options.clock, queue);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        });
        if let Err(error) = spawned {
            let detail = format!("no thread for it: {error}");
            return Err(StoreError::Failed { detail });
        }
        ready.await.map_err(|_| StoreError::Closed)??;
        Ok(SqliteStore { jobs, path })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, StoreError> {
        let (reply_to, answer) = oneshot::channel();
        let job = Job { ask, reply_to };
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn ask_whether(&self, ask: Ask) -> Result<bool, StoreError> {
        Ok(matches!(self.ask(ask).await?, Answer::Held(true)))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl IdempotencyStore for SqliteStore {
    fn begin(&self, id: RecordId, print: Fingerprint, lease: Duration) -> StoreFuture<'_, Begin> {
        let lease = millis_up(lease);
        Box::pin(async move {
            match self.ask(Ask::Begin { id, print, lease }).await? {
                Answer::Begun(begun) => Ok(begun),
                Answer::Held(_) => Err(StoreError::Closed),
            }
        })
    }

    fn renew(&self, mark: Mark, lease: Duration) -> StoreFuture<'_, bool> {
        let lease = millis_up(lease);
        Box::pin(self.ask_whether(Ask::Renew { mark, lease }))
    }

    fn complete(&self, mark: Mark, reply: StoredReply, ttl: Duration) -> StoreFuture<'_, bool> {
        let (reply, ttl) = (reply.to_bytes(), millis_up(ttl));
        Box::pin(self.ask_whether(Ask::Complete { mark, reply, ttl }))
    }

    fn release(&self, mark: Mark) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.ask(Ask::Release { mark }).await.map(|_| ()) })
    }
}

/// A lease of part of a millisecond is one of a whole.
fn millis_up(time: Duration) -> i64 {
    let millis = time.as_nanos().div_ceil(1_000_000);
    // Far below where adding it to a moment would overflow.
    i64::try_from(millis).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicI64, Ordering};

    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::idempotency::contract::Case;

    const LEASE: Duration = Duration::from_secs(30);
    const DAY: Duration = Duration::from_secs(86_400);
    const PRINT: Fingerprint = Fingerprint::from_bytes([7; 32]);

    fn id(n: usize) -> RecordId {
        RecordId::new("", b"", &n.to_string())
    }

    fn reply(bytes: usize) -> StoredReply {
        StoredReply::new(StatusCode::OK, HeaderMap::new(), vec![b'x'; bytes].into())
    }

    struct Bench {
        folder: tempfile::TempDir,
        now: Arc<AtomicI64>,
    }

    impl Bench {
        fn new() -> Self {
            Bench {
                folder: tempfile::tempdir().unwrap(),
                now: Arc::new(AtomicI64::new(1_796_040_000_000)),
            }
        }

        fn options(&self) -> SqliteOptions {
            let now = Arc::clone(&self.now);
            SqliteOptions {
                clock: Arc::new(move || now.load(Ordering::SeqCst)),
                ..SqliteOptions::new(self.folder.path().join("keys.db"))
            }
        }

        async fn open(&self) -> SqliteStore {
            SqliteStore::open(self.options()).await.unwrap()
        }

        fn pass(&self, time: Duration) {
            self.now.fetch_add(millis_up(time), Ordering::SeqCst);
        }
    }

    async fn fresh(store: &SqliteStore, n: usize) -> Mark {
        match store.begin(id(n), PRINT, LEASE).await.unwrap() {
            Begin::Fresh(mark) => mark,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let bench = Bench::new();
        let store = bench.open().await;
        let pass = |time| bench.pass(time);
        let case = Case {
            store: &store,
            pass: &pass,
        };
        case.all().await;
    }

    #[tokio::test]
    async fn ik_3_of_64_at_once_one_gets_the_key_also_over_two_handles() {
        let bench = Bench::new();
        let handles = [bench.open().await, bench.open().await];
        let mut tasks = Vec::new();
        for n in 0..64 {
            let store = handles[n % 2].clone();
            tasks.push(tokio::spawn(async move {
                store.begin(id(1), PRINT, LEASE).await.unwrap()
            }));
        }
        let mut marks = 0;
        for task in tasks {
            match task.await.unwrap() {
                Begin::Fresh(_) => marks += 1,
                Begin::InFlight { rest } => assert!(rest <= LEASE),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(marks, 1);
    }

    #[tokio::test]
    async fn cl_1_a_clock_set_back_lengthens_a_lease_by_one_at_most() {
        let bench = Bench::new();
        let store = bench.open().await;
        fresh(&store, 1).await;
        bench.now.fetch_sub(3_600_000, Ordering::SeqCst);
        let busy = store.begin(id(1), PRINT, LEASE).await.unwrap();
        assert_eq!(busy, Begin::InFlight { rest: LEASE });
        bench.pass(LEASE);
        fresh(&store, 1).await;
    }

    #[tokio::test]
    async fn what_is_over_is_deleted() {
        let bench = Bench::new();
        let store = bench.open().await;
        for n in 0..100 {
            let mark = fresh(&store, n).await;
            assert!(store.complete(mark, reply(10), DAY).await.unwrap());
        }
        bench.pass(DAY);
        for n in 100..200 {
            fresh(&store, n).await;
        }
        let file = rusqlite::Connection::open(store.path()).unwrap();
        let rows = file.query_row("SELECT count(*) FROM record", [], |r| r.get::<_, i64>(0));
        assert_eq!(rows.unwrap(), 100);
    }

    #[tokio::test]
    async fn a_full_file_refuses_new_keys_and_completes_those_in_flight() {
        let bench = Bench::new();
        let options = bench.options().max_bytes(1 << 20);
        let store = SqliteStore::open(options).await.unwrap();
        let held = fresh(&store, 0).await;
        let mut taken = 0;
        for n in 1..200 {
            match store.begin(id(n), PRINT, LEASE).await.unwrap() {
                Begin::Fresh(mark) => {
                    assert!(store.complete(mark, reply(20_000), DAY).await.unwrap());
                    taken += 1;
                }
                other => {
                    assert_eq!(other, Begin::Full);
                    break;
                }
            }
        }
        assert!((20..60).contains(&taken), "{taken}");
        assert!(store.complete(held, reply(20_000), DAY).await.unwrap());
        let again = store.begin(id(1), PRINT, LEASE).await.unwrap();
        assert_eq!(again, Begin::Replay(reply(20_000)));
        bench.pass(DAY);
        fresh(&store, 500).await;
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_is_refused_and_left_alone() {
        let bench = Bench::new();
        let path = bench.folder.path().join("keys.db");
        let other = rusqlite::Connection::open(&path).unwrap();
        other
            .execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 7")
            .unwrap();
        drop(other);
        let before = std::fs::read(&path).unwrap();
        let refused = SqliteStore::open(bench.options()).await.unwrap_err();
        assert!(
            refused.to_string().contains("another application"),
            "{refused}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::write(
            &path,
            "no database at all, and long enough to be read as one",
        )
        .unwrap();
        assert!(SqliteStore::open(bench.options()).await.is_err());
        let nowhere = SqliteOptions::new(bench.folder.path().join("no/such/folder.db"));
        assert!(SqliteStore::open(nowhere).await.is_err());
    }
}
