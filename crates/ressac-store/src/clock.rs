//! The store's clock. It judges leases and due times, so that no instance does so by its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall time in nanoseconds since the Unix epoch.
///
/// Given to a store when it is opened, so that a test can move time by hand.
pub trait Clock: Send + Sync + 'static {
    /// The time now, in nanoseconds since the Unix epoch.
    fn now(&self) -> u64;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A clock that only moves when told to. Clones share the same time.
///
/// ```
/// use ressac_store::{Clock, ManualClock};
///
/// let clock = ManualClock::new(1_000);
/// clock.advance(std::time::Duration::from_nanos(5));
/// assert_eq!(clock.now(), 1_005);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that stands at `now` nanoseconds since the Unix epoch.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self(Arc::new(AtomicU64::new(now)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: std::time::Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
