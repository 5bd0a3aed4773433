//! When the write-ahead log is moved into the file.
//!
//! SQLite's own way makes one unlucky commit wait for it. Here it is done between commits: when nobody
//! waits and it is worth it, or when the log has grown past its limit.

use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::stats::Counters;

/// Worth a checkpoint when nobody waits: 4 MiB.
const IDLE_PAGES: i64 = 1_000;
/// Too long even while others wait: 64 MiB.
const BUSY_PAGES: i64 = 16_000;

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Pages in the log when the last checkpoint could not empty it because of a reader. Not tried
    /// again before it has grown.
    stuck_at: i64,
}

impl Checkpoints {
    pub(super) fn after_commit(&mut self, conn: &Connection, idle: bool, counters: &Counters) {
        // NOOP only tells the size of the log and how much of it was moved already.
        let Ok((pages, moved)) = pragma(conn, "PRAGMA wal_checkpoint(NOOP)") else {
            return;
        };
        counters
            .wal_pages
            .store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        let left = pages - moved;
        let limit = if idle { IDLE_PAGES } else { BUSY_PAGES };
        if left < limit || pages < self.stuck_at {
            return;
        }
        self.run(conn, counters);
    }

    pub(super) fn run(&mut self, conn: &Connection, counters: &Counters) {
        match pragma(conn, "PRAGMA wal_checkpoint(PASSIVE)") {
            Ok((pages, moved)) => {
                counters.checkpoints.fetch_add(1, Ordering::Relaxed);
                self.stuck_at = if moved < pages { pages + IDLE_PAGES } else { 0 };
            }
            // The log keeps everything; the next commit tries again.
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }

    /// Leaves an empty log behind.
    pub(super) fn at_close(&self, conn: &Connection) {
        if let Err(error) = pragma(conn, "PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "the last checkpoint failed; the log keeps everything");
        }
    }
}

fn pragma(conn: &Connection, sql: &str) -> rusqlite::Result<(i64, i64)> {
    conn.prepare_cached(sql)?
        .query_row([], |r| Ok((r.get(1)?, r.get(2)?)))
}
