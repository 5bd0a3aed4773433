//! The mock's clock: monotonic nanoseconds since its start, and one wall-clock anchor.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time since the start of the mock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    anchor: SystemTime,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            anchor: SystemTime::now(),
        }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    /// The wall-clock time at nanosecond 0.
    pub(crate) fn anchor(&self) -> SystemTime {
        self.anchor
    }

    /// The wall-clock time at nanosecond 0, in nanoseconds since 1970.
    pub(crate) fn anchor_unix_ns(&self) -> u64 {
        nanos(self.anchor.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Where a moment of the wall clock lies on the mock's clock; 0 if before its start.
    pub(crate) fn at_unix_ns(&self, unix_ns: i128) -> u64 {
        // Read both clocks now: the wall clock may have been set since the start.
        let ahead = unix_ns - unix_ns_now();
        let t = i128::from(self.now()) + ahead;
        u64::try_from(t.max(0)).unwrap_or(u64::MAX)
    }

    /// The instant at which the mock's clock shows `ns`.
    pub(crate) fn instant(&self, ns: u64) -> tokio::time::Instant {
        let at = self
            .start
            .checked_add(Duration::from_nanos(ns))
            .unwrap_or(self.start);
        tokio::time::Instant::from_std(at)
    }
}

/// The wall clock in nanoseconds since 1970.
pub(crate) fn unix_ns_now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(d) => i128::try_from(d.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}

/// A duration in nanoseconds, saturating after 584 years.
pub(crate) fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
