//! The journal: a bounded ring of what reached the wire.

mod entry;
mod metrics;
mod summary;

use std::collections::VecDeque;

pub(crate) use entry::hex;
pub use entry::{Effect, Entry, Flag, Kind, Sent, Wire};
pub(crate) use metrics::Metrics;
pub use summary::Summary;

/// The most bytes the journal keeps.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The ring; the oldest entries go first, and are counted.
#[derive(Debug)]
pub(crate) struct Journal {
    ring: VecDeque<Entry>,
    first: u64,
    bytes: usize,
    dropped: u64,
    max_entries: usize,
}

impl Journal {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self {
            ring: VecDeque::new(),
            first: 1,
            bytes: 0,
            dropped: 0,
            max_entries,
        }
    }

    /// The number the next entry gets.
    pub(crate) fn next_seq(&self) -> u64 {
        self.first + self.ring.len() as u64
    }

    pub(crate) fn push(&mut self, mut entry: Entry) -> u64 {
        let seq = self.next_seq();
        entry.seq = seq;
        self.bytes += entry.weight();
        self.ring.push_back(entry);
        self.shrink();
        seq
    }

    /// Fills an entry in; nothing happens if it was dropped or cleared away.
    pub(crate) fn update(&mut self, seq: u64, change: impl FnOnce(&mut Entry)) {
        let Some(i) = seq.checked_sub(self.first) else {
            return;
        };
        let Some(entry) = usize::try_from(i).ok().and_then(|i| self.ring.get_mut(i)) else {
            return;
        };
        let before = entry.weight();
        change(entry);
        self.bytes = self.bytes + entry.weight() - before;
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.ring.len() > self.max_entries || self.bytes > MAX_BYTES {
            let Some(old) = self.ring.pop_front() else {
                return;
            };
            self.bytes -= old.weight();
            self.first += 1;
            self.dropped += 1;
        }
    }

    /// Forgets everything; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.first = self.next_seq();
        self.ring.clear();
        self.bytes = 0;
        self.dropped = 0;
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Entries with a number above `since`, oldest first.
    pub(crate) fn since(&self, since: u64) -> impl Iterator<Item = &Entry> {
        let skip = (since + 1).saturating_sub(self.first);
        self.ring
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
    }
}
