//! What all connections of one mock share. One lock: an arrival is matched, numbered and
//! journaled in the same critical section.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, watch};

use crate::barrier::Barriers;
use crate::clock::Clock;
use crate::journal::{Entry, Journal, Metrics};
use crate::outage::OutageClocks;
use crate::resources::Resources;
use crate::scenario::{Route, Scenario};
use crate::store::Store;

/// The most connections at a time.
const MAX_CONNECTIONS: usize = 10_000;

pub(crate) struct Shared {
    core: Mutex<Core>,
    pub(crate) clock: Clock,
    /// Rises at each reset: what waits for something older is cancelled.
    pub(crate) generation: watch::Sender<u64>,
    /// Something was written to the journal.
    pub(crate) changed: watch::Sender<()>,
    /// A clock of the outages moved.
    pub(crate) clocks_moved: watch::Sender<()>,
    pub(crate) shutdown: watch::Sender<bool>,
    /// `stop` was asked for.
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) slots: Arc<Semaphore>,
    connections: AtomicU64,
}

pub(crate) struct Core {
    pub(crate) generation: u64,
    pub(crate) scenario: Scenario,
    pub(crate) routes: Vec<RouteState>,
    /// Routes made by `Mock::script`, by their exact path.
    pub(crate) by_path: HashMap<String, usize>,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
    pub(crate) clocks: OutageClocks,
    pub(crate) barriers: Barriers,
    pub(crate) store: Store,
    pub(crate) resources: Resources,
}

/// A route and how many arrivals each value of its scope has seen.
pub(crate) struct RouteState {
    pub(crate) route: Arc<Route>,
    pub(crate) counts: HashMap<String, u64>,
}

impl RouteState {
    pub(crate) fn new(route: Route) -> Self {
        Self {
            route: Arc::new(route),
            counts: HashMap::new(),
        }
    }
}

/// What a reset forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// The numbers of all arrivals: scripts begin again.
    Scripts,
    /// The journal; its numbers go on.
    Journal,
    /// Resources and the counts of effects.
    Resources,
    /// The idempotency store.
    Keys,
    /// The clocks of outages: `start` is now, the others have not begun.
    Faults,
}

impl Reset {
    /// Everything.
    pub const ALL: [Self; 5] = [
        Self::Scripts,
        Self::Journal,
        Self::Resources,
        Self::Keys,
        Self::Faults,
    ];
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The state behind the lock is large, and locking to print could deadlock.
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(scenario: Scenario, journal_entries: usize) -> Arc<Self> {
        let core = Core {
            generation: 0,
            routes: scenario
                .routes
                .iter()
                .cloned()
                .map(RouteState::new)
                .collect(),
            scenario,
            by_path: HashMap::new(),
            journal: Journal::new(journal_entries),
            metrics: Metrics::default(),
            clocks: OutageClocks::default(),
            barriers: Barriers::default(),
            store: Store::default(),
            resources: Resources::default(),
        };
        Arc::new(Self {
            core: Mutex::new(core),
            clock: Clock::start(),
            generation: watch::Sender::new(0),
            changed: watch::Sender::new(()),
            clocks_moved: watch::Sender::new(()),
            shutdown: watch::Sender::new(false),
            stop: watch::Sender::new(false),
            slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            connections: AtomicU64::new(0),
        })
    }

    /// The lock. A panic elsewhere leaves plain counters, which are still worth reading.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a connection just accepted, from 1.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Fills a journal entry in.
    pub(crate) fn note(&self, seq: u64, change: impl FnOnce(&mut Entry)) {
        self.core().journal.update(seq, change);
        self.changed.send_replace(());
    }

    /// Forgets and cancels: nothing delayed outlives it.
    pub(crate) fn reset(&self, what: &[Reset]) {
        let mut core = self.core();
        core.forget(what, self.clock.now());
        self.cancel(core);
    }

    /// Replaces the scenario and all state that belongs to it; the journal stays.
    pub(crate) fn replace(&self, scenario: Scenario) {
        let mut core = self.core();
        core.routes = scenario
            .routes
            .iter()
            .cloned()
            .map(RouteState::new)
            .collect();
        core.by_path.clear();
        core.scenario = scenario;
        let now = self.clock.now();
        core.forget(
            &[Reset::Scripts, Reset::Resources, Reset::Keys, Reset::Faults],
            now,
        );
        self.cancel(core);
    }

    fn cancel(&self, mut core: MutexGuard<'_, Core>) {
        core.generation += 1;
        core.barriers.clear();
        self.generation.send_replace(core.generation);
        drop(core);
        self.changed.send_replace(());
        self.clocks_moved.send_replace(());
    }

    /// Sets time zero for `clock = "armed"`.
    pub(crate) fn arm(&self) {
        self.core().clocks.armed = Some(self.clock.now());
        self.clocks_moved.send_replace(());
    }
}

impl Core {
    fn forget(&mut self, what: &[Reset], now: u64) {
        for one in what {
            match one {
                Reset::Scripts => self.routes.iter_mut().for_each(|r| r.counts.clear()),
                Reset::Journal => self.journal.clear(),
                Reset::Resources => self.resources.clear(),
                Reset::Keys => self.store.clear(),
                Reset::Faults => {
                    self.clocks = OutageClocks {
                        start: now,
                        ..Default::default()
                    }
                }
            }
        }
    }
}

impl Shared {
    pub(crate) fn count_connection(&self, listener: &str, end: &'static str) {
        *self
            .core()
            .metrics
            .connections
            .entry((listener.to_owned(), end))
            .or_default() += 1;
    }
}

/// Resolves at the shutdown of the mock. The guard of the channel must not live on in a `select!`.
pub(crate) async fn ended(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|s| *s).await;
}
