//! A heartbeat that shows when this machine does not get round to its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

/// How often it beats.
const BEAT: Duration = Duration::from_millis(5);

/// Measures until it is dropped.
pub(super) struct Heartbeat {
    worst_ns: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Heartbeat {
    pub(super) fn start() -> Self {
        let worst_ns = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&worst_ns);
        let task = tokio::spawn(async move {
            loop {
                let due = Instant::now() + BEAT;
                tokio::time::sleep(BEAT).await;
                // A timer of Tokio may be a millisecond late by design.
                let late = Instant::now().saturating_duration_since(due);
                let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
                shared.fetch_max(ns.saturating_sub(1_000_000), Ordering::Relaxed);
            }
        });
        Self { worst_ns, task }
    }

    /// The largest delay so far, ms.
    pub(super) fn worst_ms(&self) -> f64 {
        self.worst_ns.load(Ordering::Relaxed) as f64 / 1e6
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}
