//! Read-only connections, each used by one blocking task at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::failure::Fault;
use crate::error::StoreError;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    size: u32,
}

impl Readers {
    pub(super) fn new(path: PathBuf, size: usize) -> Arc<Self> {
        let size = u32::try_from(size).unwrap_or(1);
        Arc::new(Self {
            path,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(size as usize)),
            size,
        })
    }

    /// Runs `work` on a connection of its own, off the runtime's threads. Goes on to its end even if
    /// the caller stops waiting.
    pub(super) async fn read<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let read = move || {
            let conn = self
                .take()
                .map_err(|error| Fault::from(error).told(&self.path))?;
            let result = work(&conn).map_err(|fault| fault.told(&self.path));
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(conn);
            drop(permit);
            result
        };
        let ended = tokio::task::spawn_blocking(read).await;
        ended.map_err(|error| StoreError::Internal {
            detail: format!("a read failed: {error}"),
        })?
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(conn) = idle {
            return Ok(conn);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(super::open::BUSY_TIMEOUT)?;
        conn.pragma_update(None, "query_only", true)?;
        conn.set_prepared_statement_cache_capacity(super::open::STATEMENTS);
        Ok(conn)
    }

    /// Waits for what runs, and lets nothing more begin.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.permits.acquire_many(self.size).await {
            self.permits.close();
            drop(all);
        }
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
