//! Reading slowly, so that a large body is not read whole however long it is sent.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// What is read at most in one slot: 16 KiB every 20 ms, so 816 KiB in a second. What the kernel of
/// a client takes in advance, often 4 MiB, comes on top.
const PIECE: usize = 16 * 1024;
const EVERY: Duration = Duration::from_millis(20);

/// How fast a connection may be read.
#[derive(Debug)]
pub(crate) struct Pace {
    left: usize,
    next: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            left: PIECE,
            next: Instant::now() + EVERY,
        }
    }

    /// Waits until something may be read; how much at most, never 0.
    pub(super) async fn room(&mut self) -> usize {
        if self.left == 0 {
            sleep_until(self.next).await;
            // A slot that came late is not made up for: the bound holds on a busy machine.
            self.next = Instant::now() + EVERY;
            self.left = PIECE;
        }
        self.left
    }

    /// So much was read.
    pub(super) fn took(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn eleven_pieces_take_ten_waits() {
        let begun = Instant::now();
        let mut pace = Pace::new();
        let mut read = 0;
        while read < 11 * PIECE {
            let room = pace.room().await.min(4096);
            pace.took(room);
            read += room;
        }
        let took = begun.elapsed();
        assert!(took >= 10 * EVERY, "{took:?}");
    }
}
