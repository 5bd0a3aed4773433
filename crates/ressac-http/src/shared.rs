//! HTTP/2 connections, each shared by the requests under way to its origin.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncGuard};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::http2::Connection;
use crate::target::Origin;

/// Origins of which it is remembered that they speak HTTP/1.1; past it, all are asked anew.
const MOST_REMEMBERED: usize = 1024;

/// A connection that one request uses.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Connection>);

impl Lease {
    /// Whether nobody else uses the connection.
    pub(crate) fn is_alone(&self) -> bool {
        // The list's, and this one.
        Arc::strong_count(&self.0) <= 2
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.touch();
    }
}

/// The connections, by origin.
#[derive(Debug)]
pub(crate) struct Shared {
    /// 0 shares none.
    idle_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<Origin, Vec<Arc<Connection>>>,
    turns: HashMap<Origin, Arc<Turn>>,
    http1: HashSet<Origin>,
    sweeping: bool,
}

/// One dial to an origin at a time; its failure is that of all who waited for it.
type Turn = AsyncMutex<Option<(Instant, Failure)>>;

impl Shared {
    pub(crate) fn new(idle_timeout: Duration) -> Self {
        Self {
            idle_timeout,
            state: Mutex::default(),
        }
    }

    /// A connection to `origin` with room for a request. What is over is let go: the requests
    /// that are still under way on it keep it open.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Lease> {
        let mut state = self.lock();
        let list = state.open.get_mut(origin)?;
        list.retain(|connection| {
            connection.link.is_usable()
                && (in_use(connection) > 0 || connection.idle_for() < self.idle_timeout)
        });
        let free = list
            .iter()
            .find(|connection| in_use(connection) < connection.link.capacity());
        free.map(|connection| Lease(Arc::clone(connection)))
    }

    /// Shares a connection with those who come after.
    pub(crate) fn put(self: &Arc<Self>, origin: &Origin, connection: Connection) -> Lease {
        let connection = Arc::new(connection);
        let lease = Lease(Arc::clone(&connection));
        let mut state = self.lock();
        state.http1.remove(origin);
        if self.idle_timeout.is_zero() {
            return lease;
        }
        let list = state.open.entry(origin.clone()).or_default();
        list.push(connection);
        if !state.sweeping {
            state.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.idle_timeout));
        }
        lease
    }

    /// The origin chose HTTP/1.1: its connections are dialled side by side.
    pub(crate) fn speaks_http1(&self, origin: &Origin) {
        let mut state = self.lock();
        if state.http1.len() >= MOST_REMEMBERED {
            state.http1.clear();
        }
        state.http1.insert(origin.clone());
    }

    /// The right to be the one who dials, or `None` where there is nothing to wait for.
    pub(crate) fn ticket(self: &Arc<Self>, origin: &Origin) -> Option<Ticket> {
        let mut state = self.lock();
        if self.idle_timeout.is_zero() || state.http1.contains(origin) {
            return None;
        }
        let turn = state.turns.entry(origin.clone()).or_default();
        Some(Ticket {
            turn: Arc::clone(turn),
            shared: Arc::clone(self),
            origin: origin.clone(),
            since: Instant::now(),
        })
    }

    /// Closes what has been idle too long. `false` when nothing is left.
    fn expire(&self) -> bool {
        let mut state = self.lock();
        state.open.retain(|_, list| {
            list.retain(|connection| {
                in_use(connection) > 0
                    || connection.link.is_usable() && connection.idle_for() < self.idle_timeout
            });
            !list.is_empty()
        });
        state.sweeping = !state.open.is_empty();
        state.sweeping
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state whole, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests under way; the list itself holds one reference.
fn in_use(connection: &Arc<Connection>) -> usize {
    Arc::strong_count(connection) - 1
}

/// A place in the line of those who need a connection to one origin.
#[derive(Debug)]
pub(crate) struct Ticket {
    turn: Arc<Turn>,
    shared: Arc<Shared>,
    origin: Origin,
    since: Instant,
}

impl Ticket {
    /// Waits for the turn. An error is the failure of a dial that was waited for.
    pub(crate) async fn turn(&self) -> Result<Dialling<'_>, Failure> {
        let known = self.turn.lock().await;
        match &*known {
            Some((at, failure)) if *at >= self.since => Err(failure.clone()),
            _ => Ok(Dialling(known)),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        // The map's, and this one.
        if Arc::strong_count(&self.turn) <= 2 {
            state.turns.remove(&self.origin);
        }
    }
}

/// Nobody else dials meanwhile.
#[derive(Debug)]
pub(crate) struct Dialling<'a>(AsyncGuard<'a, Option<(Instant, Failure)>>);

impl Dialling<'_> {
    pub(crate) fn failed(mut self, failure: &Failure) {
        *self.0 = Some((Instant::now(), failure.clone()));
    }
}

/// Runs while there is something to close; a client that was dropped ends it.
async fn sweep(shared: Weak<Shared>, idle_timeout: Duration) {
    loop {
        sleep(idle_timeout).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if !shared.expire() {
            return;
        }
    }
}
