//! The HTTP/2 connections to the upstream: as few as carry what is under way.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ressac_http::{Failure, FailureKind, Http2, Sent};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, timeout_at};

use crate::http2::Lease;

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    open: Mutex<Vec<Arc<Http2>>>,
    /// One dials at a time; its failure is that of all who waited for it.
    dialling: AsyncMutex<Option<(Instant, Failure)>>,
}

impl Shared {
    /// A connection that is there already, after it was looked whether there still is one.
    pub(crate) async fn waiting(&self) -> Option<Lease> {
        let lease = self.take()?;
        lease.settle().await;
        drop(lease);
        // What was unread may have been a GOAWAY.
        self.take()
    }

    /// A fresh connection, or one that somebody else has just opened.
    pub(crate) async fn open(
        &self,
        until: Instant,
        dial: impl Future<Output = Result<Http2, Failure>>,
    ) -> Result<Lease, Failure> {
        let since = Instant::now();
        let Ok(mut last) = timeout_at(until, self.dialling.lock()).await else {
            return Err(too_slow());
        };
        match &*last {
            Some((at, failure)) if *at >= since => return Err(failure.clone()),
            _ => {}
        }
        if let Some(lease) = self.take() {
            return Ok(lease);
        }
        let dialled = timeout_at(until, dial).await;
        match dialled.unwrap_or_else(|_| Err(too_slow())) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                let lease = Lease::new(&connection);
                self.lock().push(connection);
                Ok(lease)
            }
            Err(failure) => {
                // Those who wait may have more time.
                if failure.kind != FailureKind::ConnectTimeout {
                    *last = Some((Instant::now(), failure.clone()));
                }
                Err(failure)
            }
        }
    }

    /// Whether one of the connections takes no more requests.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().iter().any(|c| !c.is_usable())
    }

    /// One with room for a request. What is over is let go: the requests that are still under way
    /// on it keep it open.
    fn take(&self) -> Option<Lease> {
        let mut open = self.lock();
        open.retain(|connection| connection.is_usable());
        // The list holds one of the references.
        let has_room = |c: &&Arc<Http2>| Arc::strong_count(c) - 1 < c.capacity();
        open.iter().find(has_room).map(Lease::new)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Http2>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_slow() -> Failure {
    let message = "no HTTP/2 connection in time";
    Failure::new(FailureKind::ConnectTimeout, Sent::NotSent, message)
}
