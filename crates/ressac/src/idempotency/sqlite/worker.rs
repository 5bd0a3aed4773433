//! The only writer of a process: one thread, one connection, one commit for all that is queued.

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::open::Database;
use super::{Clock, table};
use crate::idempotency::record::{Fingerprint, RecordId};
use crate::idempotency::store::{Begin, Mark, StoreError};

/// The most that is committed together.
const BATCH: usize = 256;

pub(super) enum Ask {
    Begin {
        id: RecordId,
        print: Fingerprint,
        lease: i64,
    },
    Renew {
        mark: Mark,
        lease: i64,
    },
    Complete {
        mark: Mark,
        reply: Vec<u8>,
        ttl: i64,
    },
    Release {
        mark: Mark,
    },
}

#[expect(clippy::large_enum_variant, reason = "moved once, then gone")]
pub(super) enum Answer {
    Begun(Begin),
    Held(bool),
}

type Answered = Result<Answer, StoreError>;

pub(super) struct Job {
    pub(super) ask: Ask,
    pub(super) reply_to: oneshot::Sender<Answered>,
}

/// Runs until every handle of the store is gone.
pub(super) fn run(database: Database, clock: &Clock, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(BATCH);
    while queue.blocking_recv_many(&mut jobs, BATCH) > 0 {
        let answers = transaction(&database, clock, &jobs).unwrap_or_else(|error| {
            let failed = StoreError::Failed {
                detail: error.to_string(),
            };
            if !database.conn.is_autocommit()
                && let Err(error) = database.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "a roll-back failed");
            }
            jobs.iter().map(|_| Err(failed.clone())).collect()
        });
        for (job, answer) in jobs.drain(..).zip(answers) {
            // The caller may have stopped waiting; what is written stays written.
            let _ = job.reply_to.send(answer);
        }
    }
    if let Err((_, error)) = database.conn.close() {
        tracing::warn!(%error, "the store of idempotency keys did not close cleanly");
    }
}

/// Nothing is answered before the commit.
fn transaction(
    database: &Database,
    clock: &Clock,
    jobs: &[Job],
) -> rusqlite::Result<Vec<Answered>> {
    let conn = &database.conn;
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    // Read after the lock is held: another process may have kept it.
    let now = clock();
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.push(alone(conn, || step(database, now, &job.ask))?);
    }
    conn.prepare_cached("COMMIT")?.execute([])?;
    Ok(answers)
}

/// In a savepoint, so that one bad step sinks no other. `Err` where the whole transaction is lost.
fn alone(
    conn: &Connection,
    step: impl FnOnce() -> rusqlite::Result<Answered>,
) -> rusqlite::Result<Answered> {
    conn.prepare_cached("SAVEPOINT step")?.execute([])?;
    let answer = match step() {
        Ok(answer) => answer,
        Err(error) if conn.is_autocommit() => return Err(error),
        Err(error) => {
            conn.prepare_cached("ROLLBACK TO step")?.execute([])?;
            Err(StoreError::Failed {
                detail: error.to_string(),
            })
        }
    };
    conn.prepare_cached("RELEASE step")?.execute([])?;
    Ok(answer)
}

fn step(database: &Database, now: i64, ask: &Ask) -> rusqlite::Result<Answered> {
    let conn = &database.conn;
    let held = match ask {
        Ask::Begin { id, print, lease } => {
            let begun = table::begin(conn, now, *id, *print, *lease, database.intake_pages)?;
            return Ok(begun.map(Answer::Begun));
        }
        Ask::Renew { mark, lease } => table::renew(conn, now, *mark, *lease)?,
        Ask::Complete { mark, reply, ttl } => table::complete(conn, now, *mark, reply, *ttl)?,
        Ask::Release { mark } => table::release(conn, *mark)?,
    };
    Ok(Ok(Answer::Held(held)))
}
