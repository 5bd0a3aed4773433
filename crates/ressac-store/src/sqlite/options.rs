//! How a SQLite store is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};

/// Options of a [`SqliteStore`](super::SqliteStore). The defaults suit a gateway.
///
/// ```
/// use ressac_store::SqliteOptions;
///
/// let options = SqliteOptions::new("ressac.db").max_bytes(Some(10 << 30)).max_body(10 << 20);
/// assert_eq!(options.path().to_str(), Some("ressac.db"));
/// ```
#[derive(Clone)]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_body: usize,
    pub(crate) queue: usize,
    pub(crate) queue_bytes: usize,
    pub(crate) batch: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) readers: usize,
    pub(crate) quick_check_below: u64,
}

impl SqliteOptions {
    /// A store in the file `path`, which is made if it does not exist. Beside it appear `-wal`, `-shm`
    /// and `-lock`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            clock: Arc::new(SystemClock),
            max_bytes: None,
            max_body: 64 << 20,
            queue: 4_096,
            queue_bytes: 128 << 20,
            batch: 1_000,
            batch_bytes: 16 << 20,
            readers: 4,
            quick_check_below: 256 << 20,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The clock that judges leases. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The largest size of the file in bytes, without its log; at least 1 MiB is taken. Messages are
    /// refused an eighth (at most 16 MiB) below it, and 1 KiB more for each that is unfinished, so that
    /// what was accepted can still be delivered. When it comes to that, excerpts of replies and the
    /// attempts before the last give way. Default: no limit.
    #[must_use]
    pub fn max_bytes(mut self, bytes: Option<u64>) -> Self {
        self.max_bytes = bytes.map(|bytes| bytes.max(1 << 20));
        self
    }

    /// The largest body in bytes. Default: 64 MiB; never above 512 MiB.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes.min(512 << 20);
        self
    }

    /// How many commands may wait for the writer before `accept` answers `Busy`, 16 to 65,536.
    /// Default: 4,096.
    #[must_use]
    pub fn queue(mut self, commands: usize) -> Self {
        self.queue = commands.clamp(16, 65_536);
        self
    }

    /// How many bytes of messages may wait for the writer before `accept` answers `Busy`; a single
    /// message may be larger. Default: 128 MiB.
    #[must_use]
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes.clamp(1 << 16, 1 << 32);
        self
    }

    /// The most commands in one commit, 1 to 10,000. Default: 1,000.
    #[must_use]
    pub fn batch(mut self, commands: usize) -> Self {
        self.batch = commands.clamp(1, 10_000);
        self
    }

    /// How many reads run at the same time, 1 to 64. Default: 4.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.clamp(1, 64);
        self
    }

    /// Files below this size are checked page by page when opened; of larger ones only the header and
    /// the schema are. Default: 256 MiB, about a second.
    #[must_use]
    pub fn quick_check_below(mut self, bytes: u64) -> Self {
        self.quick_check_below = bytes;
        self
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("path", &self.path)
            .field("max_bytes", &self.max_bytes)
            .field("max_body", &self.max_body)
            .finish_non_exhaustive()
    }
}
