//! HTTP/1.1 connections that wait for their next request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::http1::Connection;
use crate::target::Origin;

/// Unused connections over all origins: each is an open file.
const MOST_IDLE: usize = 1024;

/// Unused connections by origin, youngest last.
#[derive(Debug)]
pub(crate) struct Pool {
    idle_timeout: Duration,
    most_per_origin: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    idle: HashMap<Origin, Vec<Idle>>,
    count: usize,
    sweeping: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(idle_timeout: Duration, most_per_origin: usize) -> Self {
        Self {
            idle_timeout,
            most_per_origin,
            state: Mutex::default(),
        }
    }

    /// The youngest connection to `origin` that is still good. The bad ones it meets are closed.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut state = self.lock();
        loop {
            let idle = state.idle.get_mut(origin)?.pop()?;
            state.count -= 1;
            if idle.since.elapsed() < self.idle_timeout && idle.connection.is_idle() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection whose last reply was read to its end.
    pub(crate) fn put(self: &Arc<Self>, origin: &Origin, connection: Connection) {
        if self.most_per_origin == 0 || self.idle_timeout.is_zero() {
            return;
        }
        let mut state = self.lock();
        if state.count >= MOST_IDLE {
            return;
        }
        let list = state.idle.entry(origin.clone()).or_default();
        list.push(Idle {
            connection,
            since: Instant::now(),
        });
        if list.len() > self.most_per_origin {
            list.remove(0);
        } else {
            state.count += 1;
        }
        if !state.sweeping {
            state.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// Closes what waits for this origin.
    pub(crate) fn forget(&self, origin: &Origin) {
        let mut state = self.lock();
        let forgotten = state.idle.remove(origin);
        state.count -= forgotten.map_or(0, |list| list.len());
    }

    /// Closes what has waited too long. `false` when nothing is left.
    fn expire(&self) -> bool {
        let mut state = self.lock();
        state.idle.retain(|_, list| {
            list.retain(|idle| {
                idle.since.elapsed() < self.idle_timeout && idle.connection.is_idle()
            });
            !list.is_empty()
        });
        state.count = state.idle.values().map(Vec::len).sum();
        state.sweeping = state.count > 0;
        state.sweeping
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state whole, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs while there is something to close; a client that was dropped ends it.
async fn sweep(pool: Weak<Pool>, idle_timeout: Duration) {
    loop {
        sleep(idle_timeout).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.expire() {
            return;
        }
    }
}
