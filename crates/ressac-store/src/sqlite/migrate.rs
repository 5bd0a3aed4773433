//! Numbered SQL files and a table of those applied.
//!
//! Own code because the table holds the hash of each file: a store whose history differs from ours is
//! refused instead of being used half-understood.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::failure::Fault;
use super::row::{int, small};
use crate::error::StoreError;

/// In order; a file once released never changes.
const MIGRATIONS: [(u32, &str, &str); 1] =
    [(1, "outbox", include_str!("migrations/001_outbox.sql"))];

/// The newest schema known here.
pub(super) const NEWEST: u32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Brings the schema up to date in one transaction.
pub(super) fn migrate(
    conn: &mut Connection,
    path: &Path,
    now: u64,
    application_id: i32,
) -> Result<(), Fault> {
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (
             number     INTEGER PRIMARY KEY,
             name       TEXT    NOT NULL,
             sha256     BLOB    NOT NULL,
             applied_at INTEGER NOT NULL
         ) STRICT",
    )?;
    let found: Option<i64> = tx.query_row("SELECT max(number) FROM migration", [], |r| r.get(0))?;
    let found = small(found.unwrap_or(0));
    if found > NEWEST {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: NEWEST,
        }
        .into());
    }
    for (number, name, sql) in MIGRATIONS {
        let hash: [u8; 32] = Sha256::digest(sql).into();
        let applied: Option<[u8; 32]> = tx
            .query_row(
                "SELECT sha256 FROM migration WHERE number = ?1",
                [number],
                |r| r.get(0),
            )
            .optional()?;
        match applied {
            Some(applied) if applied == hash => {}
            Some(_) => {
                return Err(StoreError::Foreign {
                    path: path.to_owned(),
                    detail: format!("its schema step {number} ({name}) is not the one known here"),
                }
                .into());
            }
            None => {
                tx.execute_batch(sql)?;
                tx.execute(
                    "INSERT INTO migration (number, name, sha256, applied_at)
                     VALUES (?1, ?2, ?3, ?4)",
                    params![number, name, hash, int(now)],
                )?;
            }
        }
    }
    tx.pragma_update(None, "application_id", application_id)?;
    tx.pragma_update(None, "user_version", NEWEST)?;
    tx.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;

    #[test]
    fn migrations_are_numbered_without_gaps() {
        for (index, (number, name, sql)) in MIGRATIONS.iter().enumerate() {
            assert_eq!(*number as usize, index + 1, "{name}");
            assert!(!sql.is_empty(), "{name}");
        }
    }
}
