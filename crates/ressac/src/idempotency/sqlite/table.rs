//! The four steps, as SQL. Each runs inside the worker's transaction.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::idempotency::record::{Fingerprint, RecordId};
use crate::idempotency::reply::StoredReply;
use crate::idempotency::store::{Begin, Mark, StoreError};

/// Records that are over, deleted with each new key: more than come in.
const SWEEP: i64 = 8;

struct Row {
    ticket: i64,
    same: bool,
    until: i64,
    lease: Option<i64>,
}

pub(super) fn begin(
    conn: &Connection,
    now: i64,
    id: RecordId,
    print: Fingerprint,
    lease: i64,
    intake_pages: i64,
) -> Result<std::result::Result<Begin, StoreError>> {
    if let Some(row) = row(conn, id, print)?
        && now < row.until
    {
        return found(conn, now, &row);
    }
    let sweep = "DELETE FROM record WHERE ticket IN
                 (SELECT ticket FROM record WHERE until <= ?1 ORDER BY until LIMIT ?2)";
    conn.prepare_cached(sweep)?.execute(params![now, SWEEP])?;
    conn.prepare_cached("DELETE FROM record WHERE id = ?1")?
        .execute([id.as_bytes()])?;
    if used_pages(conn)? >= intake_pages {
        return Ok(Ok(Begin::Full));
    }
    let insert = "INSERT INTO record (id, fingerprint, until, lease) VALUES (?1, ?2, ?3, ?4)";
    conn.prepare_cached(insert)?.execute(params![
        id.as_bytes(),
        print.as_bytes(),
        now.saturating_add(lease),
        lease
    ])?;
    Ok(Ok(Begin::Fresh(Mark {
        id,
        fingerprint: print,
        ticket: conn.last_insert_rowid().cast_unsigned(),
    })))
}

fn row(conn: &Connection, id: RecordId, print: Fingerprint) -> Result<Option<Row>> {
    let select = "SELECT ticket, fingerprint = ?2, until, lease FROM record WHERE id = ?1";
    conn.prepare_cached(select)?
        .query_row(params![id.as_bytes(), print.as_bytes()], |r| {
            Ok(Row {
                ticket: r.get(0)?,
                same: r.get(1)?,
                until: r.get(2)?,
                lease: r.get(3)?,
            })
        })
        .optional()
}

fn found(conn: &Connection, now: i64, row: &Row) -> Result<std::result::Result<Begin, StoreError>> {
    if !row.same {
        return Ok(Ok(Begin::Mismatch));
    }
    let Some(lease) = row.lease else {
        let reply: Vec<u8> = conn
            .prepare_cached("SELECT reply FROM record WHERE ticket = ?1")?
            .query_row([row.ticket], |r| r.get(0))?;
        return Ok(StoredReply::from_bytes(&reply).map(Begin::Replay));
    };
    let rest = (row.until - now).min(lease);
    if rest < row.until - now {
        // The clock was set back: without this the lease would last until it has caught up.
        let update = "UPDATE record SET until = ?2 WHERE ticket = ?1";
        conn.prepare_cached(update)?
            .execute([row.ticket, now.saturating_add(rest)])?;
    }
    let rest = Duration::from_millis(u64::try_from(rest).unwrap_or(0));
    Ok(Ok(Begin::InFlight { rest }))
}

fn used_pages(conn: &Connection) -> Result<i64> {
    let pragma = |sql: &str| {
        conn.prepare_cached(sql)?
            .query_row([], |r| r.get::<_, i64>(0))
    };
    Ok(pragma("PRAGMA page_count")? - pragma("PRAGMA freelist_count")?)
}

pub(super) fn renew(conn: &Connection, now: i64, mark: Mark, lease: i64) -> Result<bool> {
    let update = "UPDATE record SET until = ?3, lease = ?4
                  WHERE id = ?1 AND ticket = ?2 AND lease IS NOT NULL";
    let changed = conn.prepare_cached(update)?.execute(params![
        mark.id.as_bytes(),
        mark.ticket.cast_signed(),
        now.saturating_add(lease),
        lease
    ])?;
    Ok(changed == 1)
}

/// Inserts where the mark is gone: nobody has replaced it.
pub(super) fn complete(
    conn: &Connection,
    now: i64,
    mark: Mark,
    reply: &[u8],
    ttl: i64,
) -> Result<bool> {
    let upsert = "INSERT INTO record (ticket, id, fingerprint, until, lease, reply)
                  VALUES (?1, ?2, ?3, ?4, NULL, ?5)
                  ON CONFLICT (id) DO UPDATE
                  SET until = excluded.until, lease = NULL, reply = excluded.reply
                  WHERE ticket = excluded.ticket";
    let changed = conn.prepare_cached(upsert)?.execute(params![
        mark.ticket.cast_signed(),
        mark.id.as_bytes(),
        mark.fingerprint.as_bytes(),
        now.saturating_add(ttl),
        reply
    ])?;
    Ok(changed == 1)
}

pub(super) fn release(conn: &Connection, mark: Mark) -> Result<bool> {
    let delete = "DELETE FROM record WHERE id = ?1 AND ticket = ?2 AND lease IS NOT NULL";
    let deleted = conn
        .prepare_cached(delete)?
        .execute(params![mark.id.as_bytes(), mark.ticket.cast_signed()])?;
    Ok(deleted == 1)
}
