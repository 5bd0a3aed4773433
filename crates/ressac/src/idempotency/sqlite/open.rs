//! Opening: the checks before anything is touched, the settings that make writes last.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::SqliteOptions;
use crate::idempotency::store::StoreError;

/// "RSIK" in the file's header says whose file it is.
const APPLICATION_ID: i32 = 0x5253_494b;
const SCHEMA: i32 = 1;
/// Below 3.51.3 SQLite can lose committed pages when a write races a checkpoint.
const OLDEST_SQLITE: i32 = 3_051_003;
/// For another process that writes at the moment.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE record (
        -- The fencing token: never given twice.
        ticket      INTEGER PRIMARY KEY AUTOINCREMENT,
        id          BLOB    NOT NULL UNIQUE,
        fingerprint BLOB    NOT NULL,
        -- The end of the lease, or of the reply's life: milliseconds since 1970.
        until       INTEGER NOT NULL,
        -- Milliseconds, while in flight.
        lease       INTEGER,
        reply       BLOB
    ) STRICT;
    CREATE INDEX record_by_end ON record (until);
";

/// A store that was checked and can be written to.
pub(super) struct Database {
    pub(super) conn: Connection,
    /// Pages that new keys may fill.
    pub(super) intake_pages: i64,
}

pub(super) fn open(options: &SqliteOptions) -> Result<Database, StoreError> {
    let failed = |why: String| StoreError::Failed {
        detail: format!("{}: {why}", options.path.display()),
    };
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = rusqlite::version();
        return Err(failed(format!(
            "the SQLite library is {found}; 3.51.3 or newer is needed"
        )));
    }
    match open_checked(&options.path, options.max_bytes) {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(why)) => Err(failed(why)),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// SQLite's own errors outside, what is wrong with the file inside.
fn open_checked(path: &Path, max_bytes: u64) -> rusqlite::Result<Result<Database, String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    if let Err(why) = check_owner(&conn)? {
        return Ok(Err(why));
    }
    let journal: String =
        conn.pragma_update_and_check(None, "journal_mode", "wal", |r| r.get(0))?;
    if journal != "wal" {
        return Ok(Err(format!(
            "journal_mode is {journal}, and wal is needed; put the file on a local disk"
        )));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    let page: i64 = conn.pragma_query_value(None, "page_size", |r| r.get(0))?;
    let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page.max(1);
    conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    // The lock is taken first: of two processes that start at once one makes the tables.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if tx.pragma_query_value(None, "user_version", |r| r.get::<_, i32>(0))? == 0 {
        tx.execute_batch(TABLES)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", SCHEMA)?;
    }
    tx.commit()?;
    let reserve = (pages / 8).clamp(32, 4_096);
    let intake_pages = pages - reserve;
    Ok(Ok(Database { conn, intake_pages }))
}

/// Refuses a foreign file and a newer schema before a byte of it is changed.
fn check_owner(conn: &Connection) -> rusqlite::Result<Result<(), String>> {
    let application: i32 = conn.pragma_query_value(None, "application_id", |r| r.get(0))?;
    let version: i32 = conn.pragma_query_value(None, "user_version", |r| r.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
    Ok(match (application, version) {
        (0, 0) if tables == 0 => Ok(()),
        (APPLICATION_ID, 1..=SCHEMA) => Ok(()),
        (APPLICATION_ID, newer) => Err(format!(
            "its schema is number {newer}, and {SCHEMA} is the newest known here; update this program"
        )),
        _ => Err("it is a SQLite file of another application; name another file".to_owned()),
    })
}
