//! Opening: the lock, the checks before anything is touched, the settings that make writes last.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::failure::Fault;
use super::migrate::{NEWEST, migrate};
use super::options::SqliteOptions;
use crate::error::StoreError;

/// "RSAC" in the file's header says whose file it is.
const APPLICATION_ID: i32 = 0x5253_4143;
/// Below 3.51.3 SQLite can lose committed pages when a write races a checkpoint.
const OLDEST_SQLITE: i32 = 3_051_003;
/// What a log keeps of its size once it was moved into the file.
const LOG_BYTES: i64 = 64 << 20;
/// For another program that looks into the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// More than there are different statements.
pub(super) const STATEMENTS: usize = 128;

/// The lock file, held as long as the store is open.
pub(super) struct Lock(#[expect(dead_code, reason = "held, never read")] File);

/// A store that was checked and can be written to.
pub(super) struct Opened {
    pub(super) conn: Connection,
    pub(super) lock: Lock,
    pub(super) page_size: usize,
    pub(super) intake_pages: Option<i64>,
}

pub(super) fn open(options: &SqliteOptions) -> Result<Opened, StoreError> {
    let path = &options.path;
    check_library()?;
    let lock = lock(path)?;
    let fresh = check_header(path)?;
    let result = open_checked(options, fresh);
    let (conn, page_size, intake_pages) = result.map_err(|fault| fault.told(path))?;
    Ok(Opened {
        conn,
        lock,
        page_size,
        intake_pages,
    })
}

fn open_checked(
    options: &SqliteOptions,
    fresh: bool,
) -> Result<(Connection, usize, Option<i64>), Fault> {
    let path = &options.path;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    if !fresh {
        check_owner(&conn, path)?;
        check_pages(&conn, options)?;
    }
    make_durable(&conn)?;
    let page_size: i64 = conn.pragma_query_value(None, "page_size", |r| r.get(0))?;
    let page_size = usize::try_from(page_size).unwrap_or(4_096);
    let intake_pages = limit_size(&conn, options.max_bytes, page_size)?;
    let now = options.clock.now();
    migrate(&mut conn, path, now, APPLICATION_ID)?;
    // One process owns the file, so whoever held a lease is gone: a new boot voids them all at once.
    conn.execute(
        "UPDATE partner SET owner = NULL, until = 0, epoch = epoch + 1",
        [],
    )?;
    Ok((conn, page_size, intake_pages))
}

fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::Unsafe {
            setting: "the SQLite library",
            found: rusqlite::version().to_owned(),
            wanted: "3.51.3 or newer",
        });
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The lock dies with its process, so nothing is left behind by a kill.
fn lock(path: &Path) -> Result<Lock, StoreError> {
    let lock_path = beside(path, "-lock");
    let failed = |error: std::io::Error| StoreError::Io {
        detail: format!("cannot lock {}: {error}", lock_path.display()),
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Only for the message: without it "another process" must do.
            let _ = file.take(20).read_to_string(&mut text);
            let holder = text.trim().parse::<u32>();
            let holder = holder
                .map(|pid| format!(" (process {pid})"))
                .unwrap_or_default();
            return Err(StoreError::Locked {
                path: path.to_owned(),
                holder,
            });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // The number serves the message above only; a full disk must not keep the store from opening.
    let _ = file.set_len(0);
    let _ = file.rewind();
    let _ = file.write_all(std::process::id().to_string().as_bytes());
    Ok(Lock(file))
}

/// Looks at the first bytes before SQLite does. Answers whether there is nothing yet.
fn check_header(path: &Path) -> Result<bool, StoreError> {
    let io = |error: std::io::Error| StoreError::Io {
        detail: format!("cannot read {}: {error}", path.display()),
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(io(error)),
    };
    let mut header = Vec::new();
    file.take(100).read_to_end(&mut header).map_err(io)?;
    if header.is_empty() {
        // Empty, but with a log the file was emptied by somebody, not new.
        let log = std::fs::metadata(beside(path, "-wal")).map_or(0, |meta| meta.len());
        return if log == 0 {
            Ok(true)
        } else {
            Err(damaged(path, "it is empty, its log is not"))
        };
    }
    if header.len() < 100 {
        return Err(damaged(path, "it ends within its header"));
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(damaged(path, "it does not begin as a SQLite file does"));
    }
    Ok(false)
}

fn damaged(path: &Path, detail: &str) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        detail: detail.to_owned(),
    }
}

/// Refuses a foreign file and a newer schema before a byte of it is changed.
fn check_owner(conn: &Connection, path: &Path) -> Result<(), Fault> {
    let application: i32 = conn.pragma_query_value(None, "application_id", |r| r.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        let detail = format!("it is a SQLite file of another application (id {application})");
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            detail,
        }
        .into());
    }
    let found: u32 = conn.pragma_query_value(None, "user_version", |r| r.get(0))?;
    if found > NEWEST {
        let path = path.to_owned();
        return Err(StoreError::Newer {
            path,
            found,
            known: NEWEST,
        }
        .into());
    }
    Ok(())
}

/// Reads every page of a small file. Of a large one the header and schema were read by now, and a page
/// that turns out to be damaged later is an error then.
fn check_pages(conn: &Connection, options: &SqliteOptions) -> Result<(), Fault> {
    let size = |suffix| std::fs::metadata(beside(&options.path, suffix)).map_or(0, |m| m.len());
    if size("").saturating_add(size("-wal")) >= options.quick_check_below {
        return Ok(());
    }
    let found: String = conn.query_row("PRAGMA quick_check(1)", [], |r| r.get(0))?;
    if found != "ok" {
        // After a line that says in which of its databases.
        let problem = found.lines().last().unwrap_or("a page is not readable");
        return Err(damaged(&options.path, problem).into());
    }
    Ok(())
}

/// Sets what makes a commit last, and looks whether it was taken.
fn make_durable(conn: &Connection) -> Result<(), Fault> {
    let journal: String =
        conn.pragma_update_and_check(None, "journal_mode", "wal", |r| r.get(0))?;
    if journal != "wal" {
        return Err(not_durable("journal_mode", journal, "wal"));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    let synchronous: i64 = conn.pragma_query_value(None, "synchronous", |r| r.get(0))?;
    if synchronous != 2 {
        return Err(not_durable(
            "synchronous",
            synchronous.to_string(),
            "2 (FULL)",
        ));
    }
    conn.pragma_update(None, "foreign_keys", true)?;
    // See `checkpoint`.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    Ok(())
}

fn not_durable(setting: &'static str, found: String, wanted: &'static str) -> Fault {
    StoreError::Unsafe {
        setting,
        found,
        wanted,
    }
    .into()
}

/// Limits the file, and answers how many pages new messages may fill.
fn limit_size(
    conn: &Connection,
    max_bytes: Option<u64>,
    page_size: usize,
) -> Result<Option<i64>, Fault> {
    let Some(bytes) = max_bytes else {
        return Ok(None);
    };
    let pages = i64::try_from(bytes / page_size as u64).unwrap_or(i64::MAX);
    conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    let reserve = (pages / 8).clamp(32, 4_096);
    Ok(Some(pages - reserve))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{make_durable, open};
    use crate::error::StoreError;
    use crate::sqlite::SqliteOptions;

    /// ST-4: every setting that makes a commit last is on, on the connection that writes.
    #[test]
    fn the_writer_commits_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&SqliteOptions::new(folder.path().join("store.db"))).unwrap();
        let setting = |name| -> i64 {
            opened
                .conn
                .pragma_query_value(None, name, |r| r.get(0))
                .unwrap()
        };
        assert_eq!(setting("synchronous"), 2);
        assert_eq!(setting("foreign_keys"), 1);
        assert_eq!(setting("wal_autocheckpoint"), 0);
    }

    /// ST-4: a database that cannot have a log of that kind is refused, and the setting named.
    #[test]
    fn a_journal_that_does_not_last_is_refused() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        let fault = make_durable(&conn).unwrap_err().told("memory".as_ref());
        let wanted = StoreError::Unsafe {
            setting: "journal_mode",
            found: "memory".into(),
            wanted: "wal",
        };
        assert_eq!(fault, wanted);
    }
}
