//! The journal: a bounded ring of what reached the wire.

mod connection;
mod entry;
mod metrics;
mod summary;

use std::collections::{HashMap, VecDeque};

pub use connection::{Connection, TlsInfo};
pub(crate) use entry::hex;
pub use entry::{Effect, Entry, Flag, Kind, Sent, Wire};
pub(crate) use metrics::Metrics;
pub use summary::Summary;

/// The most bytes the journal keeps.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Two rings, of arrivals and of connections; the oldest entries go first, and are counted.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The `seq` of the entry last written.
    seq: u64,
    arrivals: Ring<Entry>,
    connections: Ring<Connection>,
    /// Where an open connection stands in its ring.
    open: HashMap<u64, u64>,
    bytes: usize,
}

/// Entries by their place, which rises by one and is never used again.
#[derive(Debug)]
struct Ring<T> {
    list: VecDeque<T>,
    /// The most it holds, at least 1.
    max: usize,
    first: u64,
    dropped: u64,
}

impl<T> Ring<T> {
    fn new(max: usize) -> Self {
        Self {
            list: VecDeque::new(),
            max,
            first: 1,
            dropped: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.list.len() >= self.max
    }

    /// Adds to a ring that is not full.
    fn push(&mut self, one: T) -> u64 {
        if self.list.len() == self.list.capacity() {
            // Doubling goes past the limit, and a ring comes to touch all it was given.
            let rest = self.max.saturating_sub(self.list.len());
            self.list
                .reserve_exact(self.list.len().clamp(16, rest.max(16)));
        }
        self.list.push_back(one);
        self.first + self.list.len() as u64 - 1
    }

    fn get(&mut self, place: u64) -> Option<&mut T> {
        let i = place.checked_sub(self.first)?;
        self.list.get_mut(usize::try_from(i).ok()?)
    }

    fn pop(&mut self) -> Option<T> {
        let old = self.list.pop_front()?;
        self.first += 1;
        self.dropped += 1;
        Some(old)
    }

    fn clear(&mut self) {
        self.first += self.list.len() as u64;
        self.list.clear();
        self.dropped = 0;
    }

    /// Those numbered above `since`.
    fn since(&self, since: u64, seq: impl Fn(&T) -> u64) -> impl Iterator<Item = &T> {
        let skip = self.list.partition_point(|e| seq(e) <= since);
        self.list.iter().skip(skip)
    }
}

impl Journal {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self {
            seq: 0,
            arrivals: Ring::new(max_entries.max(1)),
            connections: Ring::new(max_entries.max(1)),
            open: HashMap::new(),
            bytes: 0,
        }
    }

    /// The number the next entry gets.
    pub(crate) fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Writes an entry down; its place, to fill it in later.
    pub(crate) fn push(&mut self, mut entry: Entry) -> u64 {
        self.seq += 1;
        entry.seq = self.seq;
        if let Some(conn) = self.connection(entry.conn) {
            conn.requests += 1;
        }
        if self.arrivals.is_full() {
            self.drop_oldest();
        }
        self.bytes += entry.weight();
        let place = self.arrivals.push(entry);
        self.shrink();
        place
    }

    /// Fills an entry in; nothing happens if it was dropped or cleared away.
    pub(crate) fn update(&mut self, place: u64, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.arrivals.get(place) else {
            return;
        };
        let before = entry.weight();
        change(entry);
        self.bytes = self.bytes + entry.weight() - before;
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.bytes > MAX_BYTES && self.drop_oldest() {}
    }

    /// `false`: there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some(old) = self.arrivals.pop() else {
            return false;
        };
        self.bytes -= old.weight();
        true
    }

    /// Writes a connection down.
    pub(crate) fn connected(&mut self, mut connection: Connection) {
        self.seq += 1;
        connection.seq = self.seq;
        let number = connection.conn;
        if self.connections.is_full()
            && let Some(old) = self.connections.pop()
        {
            self.open.remove(&old.conn);
        }
        let place = self.connections.push(connection);
        self.open.insert(number, place);
    }

    /// Fills a connection in; once it has ended, it stays as it is.
    pub(crate) fn disconnected(&mut self, number: u64, change: impl FnOnce(&mut Connection)) {
        let Some(connection) = self.connection(number) else {
            return;
        };
        change(connection);
        if connection.end.is_some() {
            self.open.remove(&number);
        }
    }

    fn connection(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.get(*self.open.get(&number)?)
    }

    /// Forgets everything; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.arrivals.clear();
        self.connections.clear();
        self.open.clear();
        self.bytes = 0;
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.arrivals.dropped + self.connections.dropped
    }

    /// Entries with a number above `since`, oldest first.
    pub(crate) fn since(&self, since: u64) -> impl Iterator<Item = &Entry> {
        self.arrivals.since(since, |e| e.seq)
    }

    /// Connections with a number above `since`, oldest first.
    pub(crate) fn connections(&self, since: u64) -> impl Iterator<Item = &Connection> {
        self.connections.since(since, |c| c.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_never_given_more_than_it_may_hold() {
        for max in [1, 3, 100, 10_000] {
            let mut ring = Ring::new(max);
            for i in 0..3 * max {
                if ring.is_full() {
                    ring.pop();
                }
                ring.push(i);
            }
            assert_eq!(ring.list.len(), max);
            assert!(ring.list.capacity() <= max.max(16), "{max}");
            assert_eq!(
                (ring.first, ring.dropped),
                (2 * max as u64 + 1, 2 * max as u64)
            );
        }
    }
}
