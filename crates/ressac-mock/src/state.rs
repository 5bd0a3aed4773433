//! What all connections of one mock share. One lock: an arrival is matched, numbered and
//! journaled in the same critical section.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{Semaphore, watch};

use crate::barrier::Barriers;
use crate::clock::Clock;
use crate::fault::Faults;
use crate::journal::{Entry, Journal, Metrics};
use crate::outage::OutageClocks;
use crate::quota::QuotaState;
use crate::resources::Resources;
use crate::scenario::{Route, Scenario};
use crate::store::Store;
use crate::tls::Tls;
use crate::upstream::Upstream;
use crate::wire::{Closing, Conn, Peer, Slot};

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
    conns: Mutex<HashMap<u64, Arc<Closing>>>,
    listeners: OnceLock<Vec<Arc<Slot>>>,
    tls: OnceLock<Result<Tls, String>>,
    /// Where requests go that no route takes.
    pub(crate) upstream: Option<Upstream>,
    /// The tokens that may come; `None`: any.
    pub(crate) tokens: Option<HashSet<String>>,
    /// How many bytes of each direction of a connection are kept.
    pub(crate) raw_bytes: usize,
    /// Calls under `/__ressac/` that come in on listeners without TLS, if they are answered there.
    pub(crate) control: OnceLock<Weak<crate::control::Context>>,
}

/// What a mock may have beside its scenario.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) upstream: Option<Upstream>,
    pub(crate) tokens: Option<HashSet<String>>,
    pub(crate) raw_bytes: usize,
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
    pub(crate) faults: Faults,
    /// Connections accepted, by listener, and in all.
    pub(crate) accepted: HashMap<usize, u64>,
    pub(crate) connections: u64,
    pub(crate) store: Store,
    pub(crate) resources: Resources,
}

/// A route and how many arrivals each value of its scope has seen.
pub(crate) struct RouteState {
    pub(crate) route: Arc<Route>,
    pub(crate) counts: HashMap<String, u64>,
    pub(crate) quotas: HashMap<String, QuotaState>,
}

impl RouteState {
    pub(crate) fn new(route: Route) -> Self {
        Self {
            route: Arc::new(route),
            counts: HashMap::new(),
            quotas: HashMap::new(),
        }
    }
}

/// What a reset forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// The numbers of all arrivals and connections: scripts begin again.
    Scripts,
    /// The journal; its numbers go on.
    Journal,
    /// Resources and the counts of effects.
    Resources,
    /// The idempotency store.
    Keys,
    /// The clocks of outages: `start` is now, the others have not begun. Faults of the control API
    /// go, and listeners that were told to refuse open again.
    Faults,
    /// What quotas have counted.
    Quotas,
}

impl Reset {
    /// Everything.
    pub const ALL: [Self; 6] = [
        Self::Scripts,
        Self::Journal,
        Self::Resources,
        Self::Keys,
        Self::Faults,
        Self::Quotas,
    ];
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The state behind the lock is large, and locking to print could deadlock.
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(scenario: Scenario, journal_entries: usize, extras: Extras) -> Arc<Self> {
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
            faults: Faults::default(),
            accepted: HashMap::new(),
            connections: 0,
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
            conns: Mutex::new(HashMap::new()),
            listeners: OnceLock::new(),
            tls: OnceLock::new(),
            upstream: extras.upstream,
            tokens: extras.tokens,
            raw_bytes: extras.raw_bytes,
            control: OnceLock::new(),
        })
    }

    /// The lock. A panic elsewhere leaves plain counters, which are still worth reading.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections that are open.
    pub(crate) fn conns(&self) -> MutexGuard<'_, HashMap<u64, Arc<Closing>>> {
        self.conns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault; its id.
    pub(crate) fn add_fault(&self, fault: crate::fault::Fault) -> Result<u64, String> {
        if fault.needs_upstream() && self.upstream.is_none() {
            return Err("do: `pass` needs an upstream; start the mock with --upstream".to_owned());
        }
        let (now, early) = (self.clock.now(), fault.is_early());
        let id = self.core().faults.add(fault, now)?;
        if early {
            self.shrink_buffers();
        }
        Ok(id)
    }

    /// Ends connections; how many.
    pub(crate) fn close_connections(
        &self,
        listener: Option<&str>,
        cut: crate::step::Cut,
        idle_only: bool,
    ) -> usize {
        let conns = self.conns();
        let named = conns.values().filter(|c| {
            listener.is_none_or(|l| l == c.listener.as_ref()) && !(idle_only && c.busy())
        });
        named.map(|c| c.ask(cut)).count()
    }

    /// Connections accepted from now on have a small receive buffer.
    pub(crate) fn shrink_buffers(&self) {
        self.listeners().iter().for_each(|s| s.shrink_buffer());
    }

    /// The listeners, once they are open.
    pub(crate) fn listeners(&self) -> &[Arc<Slot>] {
        self.listeners.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn set_listeners(&self, slots: Vec<Arc<Slot>>) {
        // Set once, by the start.
        let _ = self.listeners.set(slots);
    }

    /// The authority, made when it is first needed.
    pub(crate) fn tls(&self) -> Result<&Tls, String> {
        self.tls
            .get_or_init(Tls::new)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Refuses connections for a time (`None`: until told otherwise), or opens again.
    pub(crate) fn set_down(&self, slot: &Slot, down: Option<Option<std::time::Duration>>) {
        let until = down.map(|d| match d {
            Some(d) => self.clock.now().saturating_add(crate::clock::nanos(d)),
            None => u64::MAX,
        });
        slot.set_down(until);
        self.clocks_moved.send_replace(());
    }

    /// Stays silent on a connection until the mock is reset or the client goes.
    pub(crate) async fn silent(&self, conn: &mut Conn) {
        let mut reset = self.generation.subscribe();
        let now = *reset.borrow_and_update();
        conn.wait(None, &mut reset, now, || {}).await;
    }

    /// Fills a journal entry in.
    pub(crate) fn note(&self, place: u64, change: impl FnOnce(&mut Entry)) {
        self.core().journal.update(place, change);
        self.changed.send_replace(());
    }

    /// Forgets and cancels: nothing delayed outlives it.
    pub(crate) fn reset(&self, what: &[Reset]) {
        let mut core = self.core();
        core.forget(what, self.clock.now());
        self.cancel(core);
        if what.contains(&Reset::Faults) {
            for slot in self.listeners() {
                slot.set_down(None);
            }
            self.clocks_moved.send_replace(());
        }
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
            &[
                Reset::Scripts,
                Reset::Resources,
                Reset::Keys,
                Reset::Faults,
                Reset::Quotas,
            ],
            now,
        );
        let early = core.scenario.has_early();
        self.cancel(core);
        for slot in self.listeners() {
            slot.set_down(None);
        }
        if early {
            self.shrink_buffers();
        }
        self.clocks_moved.send_replace(());
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
                Reset::Scripts => {
                    self.routes.iter_mut().for_each(|r| r.counts.clear());
                    self.accepted.clear();
                }
                Reset::Quotas => self.routes.iter_mut().for_each(|r| r.quotas.clear()),
                Reset::Journal => self.journal.clear(),
                Reset::Resources => self.resources.clear(),
                Reset::Keys => self.store.clear(),
                Reset::Faults => {
                    self.faults.clear();
                    self.clocks = OutageClocks {
                        start: now,
                        ..Default::default()
                    }
                }
            }
        }
    }
}

/// Resolves at the shutdown of the mock. The guard of the channel must not live on in a `select!`.
pub(crate) async fn ended(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|s| *s).await;
}
