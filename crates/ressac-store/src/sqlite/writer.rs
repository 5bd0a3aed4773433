//! The only writer: one thread, one connection, one commit for all that is queued.
//!
//! It waits for a command, takes what else is queued, runs all of it in one transaction (each command in
//! a savepoint of its own), commits, and answers everybody. It never waits for more to come: that was
//! measured to make it slower.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Checkpoints;
use super::failure::{Fault, failure};
use super::open::Lock;
use super::row::count;
use super::stats::Counters;
use super::tx::{Memory, Tx};
use crate::clock::Clock;
use crate::error::StoreError;

/// What the delivery of one message takes beside the message: its last two attempts without excerpts of
/// the replies, the growth of its row, entries in indexes. 420 were measured.
pub(super) const DELIVERY_BYTES: i64 = 1_024;

/// A command on its way to the writer.
pub(super) enum Letter {
    Job(Box<dyn Job>),
    Close(oneshot::Sender<()>),
}

/// A command as the writer sees it.
pub(super) trait Job: Send {
    /// Does the work and keeps its result. May be called again when the transaction failed.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault>;
    /// Answers the caller: with the result if the transaction was committed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
    /// Memory it holds.
    fn bytes(&self) -> usize;
    /// Whether it brings new messages. Those give way when space is short.
    fn intake(&self) -> bool;
}

pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) letters: mpsc::Receiver<Letter>,
    pub(super) counters: Arc<Counters>,
    pub(super) memory: Memory,
    pub(super) checkpoints: Checkpoints,
    pub(super) page_size: usize,
    /// Pages that new messages may fill.
    pub(super) intake_pages: Option<i64>,
    pub(super) batch: usize,
    pub(super) batch_bytes: usize,
    /// Held until the connection is closed.
    pub(super) lock: Lock,
}

impl Writer {
    /// Runs until closed, or until every handle is gone.
    pub(super) fn run(mut self) {
        let mut closing = None;
        while let Some(letter) = self.letters.blocking_recv() {
            let jobs = self.gather(letter, &mut closing);
            if closing.is_some() {
                self.letters.close();
            }
            self.write(jobs);
            self.checkpoints
                .after_commit(&self.conn, self.letters.is_empty(), &self.counters);
        }
        self.checkpoints.at_close(&self.conn);
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(path = %self.path.display(), %error, "the store did not close cleanly");
        }
        drop(self.lock);
        if let Some(closed) = closing {
            // The caller may have stopped waiting.
            let _ = closed.send(());
        }
    }

    fn gather(
        &mut self,
        first: Letter,
        closing: &mut Option<oneshot::Sender<()>>,
    ) -> Vec<Box<dyn Job>> {
        let (mut jobs, mut bytes, mut next) = (Vec::new(), 0, Some(first));
        while let Some(letter) = next {
            match letter {
                Letter::Job(job) => {
                    bytes += job.bytes();
                    jobs.push(job);
                }
                Letter::Close(closed) => {
                    *closing = Some(closed);
                    break;
                }
            }
            if jobs.len() >= self.batch || bytes >= self.batch_bytes {
                break;
            }
            next = self.letters.try_recv().ok();
        }
        jobs
    }

    fn write(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        if jobs.is_empty() {
            return;
        }
        match self.transaction(&mut jobs) {
            Ok(()) => answer(jobs, &Ok(())),
            Err(error) => self.rescue(jobs, error),
        }
    }

    /// After a failed transaction: makes what room it can, lets new messages give way, and tries the
    /// rest together, then one by one, so that one bad command sinks no other.
    fn rescue(&mut self, jobs: Vec<Box<dyn Job>>, error: StoreError) {
        tracing::warn!(path = %self.path.display(), %error, commands = jobs.len(), "a commit failed");
        // What lies in the log moves to its place, and the log's space can be used again.
        self.checkpoints.run(&self.conn, &self.counters);
        let no_space = matches!(error, StoreError::Full { .. } | StoreError::Io { .. });
        let (given_up, mut rest): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| no_space && job.intake());
        answer(given_up, &Err(error));
        if rest.is_empty() {
            return;
        }
        match self.transaction(&mut rest) {
            Ok(()) => answer(rest, &Ok(())),
            // The disk, or somebody who holds a lock: no single command is to blame, and each try may
            // take as long as the last.
            Err(error @ StoreError::Io { .. }) => answer(rest, &Err(error)),
            Err(_) => {
                for job in rest {
                    let mut one = vec![job];
                    let result = self.transaction(&mut one);
                    answer(one, &result);
                }
            }
        }
    }

    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        let result = self.attempt(jobs).map_err(|fault| fault.told(&self.path));
        if result.is_err() {
            self.memory = Memory::default();
            self.counters.failed_commits.fetch_add(1, Ordering::Relaxed);
            if !self.conn.is_autocommit()
                && let Err(error) = self.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(path = %self.path.display(), %error, "a roll-back failed");
            }
            return result;
        }
        let counters = &self.counters;
        let commands = jobs.len() as u64;
        counters.commits.fetch_add(1, Ordering::Relaxed);
        counters.commands.fetch_add(commands, Ordering::Relaxed);
        counters
            .largest_batch
            .fetch_max(commands, Ordering::Relaxed);
        result
    }

    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        let now = self.clock.now();
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let room = self.room()?;
        let mut tx = Tx::new(&self.conn, &mut self.memory, now, room, self.page_size);
        for job in &mut *jobs {
            job.run(&mut tx)?;
        }
        tx.write_counters()?;
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Bytes left for new messages.
    fn room(&self) -> Result<Option<i64>, Fault> {
        let pragma = |sql: &str| -> Result<i64, Fault> {
            Ok(self.conn.prepare_cached(sql)?.query_row([], |r| r.get(0))?)
        };
        let pages = pragma("PRAGMA page_count")?;
        let bytes = u64::try_from(pages).unwrap_or(0) * self.page_size as u64;
        self.counters.bytes.store(bytes, Ordering::Relaxed);
        let Some(limit) = self.intake_pages else {
            return Ok(None);
        };
        let used = pages - pragma("PRAGMA freelist_count")?;
        // What was accepted must fit to its end: its delivery takes space that is not written yet.
        let unfinished = pragma("SELECT ifnull(sum(waiting + sending), 0) FROM partner")?;
        let promised = unfinished.saturating_mul(DELIVERY_BYTES);
        let left = (limit - used).saturating_mul(count(self.page_size));
        Ok(Some(left.saturating_sub(promised)))
    }
}

fn answer(jobs: Vec<Box<dyn Job>>, committed: &Result<(), StoreError>) {
    for job in jobs {
        job.answer(committed.clone());
    }
}

/// A command: what to do, and whom to answer.
pub(super) struct Task<F, T> {
    pub(super) work: F,
    pub(super) done: Option<Result<T, StoreError>>,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
    pub(super) bytes: usize,
    pub(super) intake: bool,
    pub(super) path: Arc<PathBuf>,
    /// Gives the queue's bytes back when the command is done with.
    pub(super) permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl<F, T> Job for Task<F, T>
where
    F: FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send,
    T: Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault> {
        let result = tx.nested(|tx| (self.work)(tx));
        match result {
            Ok(value) => self.done = Some(Ok(value)),
            // SQLite rolled the whole transaction back, or cannot go on: the others must hear of it.
            Err(Fault::Sqlite(error)) if fatal(&error) || tx.conn.is_autocommit() => {
                return Err(Fault::Sqlite(error));
            }
            Err(Fault::Sqlite(error)) => self.done = Some(Err(failure(&self.path, &error))),
            Err(Fault::Store(error)) => self.done = Some(Err(error)),
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (committed, self.done) {
            (Ok(()), Some(result)) => result,
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        drop(self.permit);
        // The caller may have stopped waiting; what is written stays written.
        let _ = self.reply.send(result);
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn intake(&self) -> bool {
        self.intake
    }
}

fn fatal(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        DatabaseCorrupt, DiskFull, NotADatabase, OutOfMemory, SystemIoFailure,
    };
    matches!(
        error.sqlite_error_code(),
        Some(DiskFull | SystemIoFailure | OutOfMemory | DatabaseCorrupt | NotADatabase)
    )
}
