//! The handle: sends commands to the writer and runs reads.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::checkpoint::Checkpoints;
use super::failure::Fault;
use super::open::open;
use super::options::SqliteOptions;
use super::readers::Readers;
use super::stats::Counters;
use super::tx::{Memory, Tx};
use super::writer::{Letter, Task, Writer};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::types::Stats;

/// The outbox in a SQLite file. One process owns the file; a second one is refused.
///
/// Dropping it writes what is queued, then closes; [`close`](crate::Outbox::close) does the same and
/// does not block the thread.
pub struct SqliteStore {
    letters: Option<mpsc::Sender<Letter>>,
    /// Bytes of messages that may be queued, in KiB.
    queue_room: Arc<Semaphore>,
    queue_kib: u32,
    queue: usize,
    pub(super) readers: Arc<Readers>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) max_body: usize,
    counters: Arc<Counters>,
    path: Arc<PathBuf>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Opens the store, or makes it. Needs a tokio runtime, which also runs the reads.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] while another process has it open, [`StoreError::Corrupt`],
    /// [`StoreError::Foreign`], [`StoreError::Newer`] for a file that cannot be used,
    /// [`StoreError::Unsafe`] when writes would not last, [`StoreError::Io`] and
    /// [`StoreError::Full`] from the file system.
    pub async fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        let opening = tokio::task::spawn_blocking(move || Self::open_blocking(&options));
        opening.await.map_err(|error| StoreError::Internal {
            detail: format!("opening the store failed: {error}"),
        })?
    }

    fn open_blocking(options: &SqliteOptions) -> Result<Self, StoreError> {
        let opened = open(options)?;
        let (letters, received) = mpsc::channel(options.queue);
        let counters = Arc::new(Counters::default());
        let writer = Writer {
            conn: opened.conn,
            path: options.path.clone(),
            clock: Arc::clone(&options.clock),
            letters: received,
            counters: Arc::clone(&counters),
            memory: Memory::default(),
            checkpoints: Checkpoints::default(),
            page_size: opened.page_size,
            intake_pages: opened.intake_pages,
            batch: options.batch,
            batch_bytes: options.batch_bytes,
            lock: opened.lock,
        };
        let builder = std::thread::Builder::new().name("ressac-store".into());
        let thread = builder
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Io {
                detail: format!("cannot start the writer thread: {error}"),
            })?;
        let queue_kib = u32::try_from(options.queue_bytes >> 10).unwrap_or(u32::MAX);
        Ok(Self {
            letters: Some(letters),
            queue_room: Arc::new(Semaphore::new(queue_kib as usize)),
            queue_kib,
            queue: options.queue,
            readers: Readers::new(options.path.clone(), options.readers),
            clock: Arc::clone(&options.clock),
            max_body: options.max_body,
            counters,
            path: Arc::new(options.path.clone()),
            thread: Mutex::new(Some(thread)),
        })
    }

    fn letters(&self) -> Result<&mpsc::Sender<Letter>, StoreError> {
        self.letters.as_ref().ok_or(StoreError::Closed)
    }

    /// Sends a command that brings a new message. An eighth of the queue is kept for all the others, so
    /// that intake cannot crowd out what settles it.
    pub(super) async fn take_in<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let letters = self.letters()?;
        if letters.is_closed() {
            return Err(StoreError::Closed);
        }
        if letters.capacity() <= self.queue / 8 {
            return Err(StoreError::Busy);
        }
        let kib = u32::try_from(bytes.div_ceil(1 << 10))
            .unwrap_or(u32::MAX)
            .min(self.queue_kib);
        let permit = Arc::clone(&self.queue_room).try_acquire_many_owned(kib);
        let permit = permit.map_err(|_| StoreError::Busy)?;
        let (letter, answer) = self.letter(work, bytes, Some(permit));
        letters.try_send(letter).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Sends any other command, waiting for a place in the queue.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (letter, answer) = self.letter(work, bytes, None);
        self.letters()?
            .send(letter)
            .await
            .map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn letter<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
        bytes: usize,
        permit: Option<tokio::sync::OwnedSemaphorePermit>,
    ) -> (Letter, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let intake = permit.is_some();
        let path = Arc::clone(&self.path);
        let task = Task {
            work,
            done: None,
            reply,
            bytes,
            intake,
            path,
            permit,
        };
        (Letter::Job(Box::new(task)), answer)
    }

    pub(super) fn figures(&self) -> Stats {
        let queued = self
            .letters
            .as_ref()
            .map_or(0, |l| l.max_capacity() - l.capacity());
        self.counters.stats(queued)
    }

    pub(super) async fn shut(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        let (closed, wait) = oneshot::channel();
        if self.letters()?.send(Letter::Close(closed)).await.is_ok() {
            // An error means that the writer has ended already.
            let _ = wait.await;
        }
        Ok(())
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.letters = None;
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // After this the file can be opened again. A writer that panicked has said so.
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("stats", &self.figures())
            .finish_non_exhaustive()
    }
}
