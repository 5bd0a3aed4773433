//! Counters that the writer keeps and anybody reads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::Stats;

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) failed_commits: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) largest_batch: AtomicU64,
    pub(super) wal_pages: AtomicU64,
    pub(super) checkpoints: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Counters {
    pub(super) fn stats(&self, queued: usize) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: get(&self.commits),
            failed_commits: get(&self.failed_commits),
            commands: get(&self.commands),
            largest_batch: get(&self.largest_batch),
            queued: queued as u64,
            wal_pages: get(&self.wal_pages),
            checkpoints: get(&self.checkpoints),
            bytes: get(&self.bytes),
        }
    }
}
