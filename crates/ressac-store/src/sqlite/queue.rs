//! The queues of a partner: what is due, what is in flight.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Fault;
use super::row::{class_in, class_out, count, deadline_out, id, int, nat, small};
use crate::limits::MAX_PAGE;
use crate::types::{Class, DueCursor, DueMessage};

const COLUMNS: &str = "seq, id, lane, class, due, deadline, accepted_at, series, attempt, begun_at, \
                       operation";

fn partner(conn: &Connection, name: &str) -> Result<Option<i64>, Fault> {
    let mut find = conn.prepare_cached("SELECT no FROM partner WHERE name = ?1")?;
    Ok(find.query_row([name], |r| r.get(0)).optional()?)
}

pub(super) fn due(
    conn: &Connection,
    name: &str,
    class: Class,
    now: u64,
    limit: usize,
    after: Option<DueCursor>,
) -> Result<Vec<DueMessage>, Fault> {
    let Some(partner) = partner(conn, name)? else {
        return Ok(Vec::new());
    };
    let limit = limit.min(MAX_PAGE);
    let (rank, seq) = after.map_or((-1, -1), |after| (int(after.rank), int(after.seq)));
    if class != Class::First {
        let mut select = conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM message INDEXED BY message_due
             WHERE partner = ?1 AND line = ?2 AND line > 0 AND due <= ?3 AND (due, seq) > (?4, ?5)
             ORDER BY due, seq LIMIT ?6"
        ))?;
        let line = class_in(class);
        let rows = select.query_map(
            params![partner, line, int(now), rank, seq, count(limit)],
            due_message,
        )?;
        return Ok(rows.collect::<Result<_, _>>()?);
    }
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM message INDEXED BY message_first
         WHERE partner = ?1 AND line = 0 AND (deadline, seq) > (?2, ?3)
         ORDER BY deadline, seq LIMIT ?4"
    ))?;
    let rows = select.query_map(params![partner, rank, seq, count(limit)], due_message)?;
    let mut messages: Vec<DueMessage> = rows.collect::<Result<_, _>>()?;
    // First attempts that were put off stand in the index by due time until then; they are few.
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM message INDEXED BY message_due
         WHERE partner = ?1 AND line = 3 AND line > 0 AND due <= ?2 AND (deadline, seq) > (?3, ?4)
         ORDER BY deadline, seq LIMIT ?5"
    ))?;
    let rows = select.query_map(
        params![partner, int(now), rank, seq, count(limit)],
        due_message,
    )?;
    let before = messages.len();
    for row in rows {
        messages.push(row?);
    }
    if messages.len() > before {
        messages.sort_by_key(DueMessage::cursor);
        messages.truncate(limit);
    }
    Ok(messages)
}

pub(super) fn next_due(conn: &Connection, name: &str) -> Result<Option<u64>, Fault> {
    let Some(partner) = partner(conn, name)? else {
        return Ok(None);
    };
    // What stands in line 0 was due when it got there: any of them will do.
    let mut first = conn.prepare_cached(
        "SELECT due FROM message INDEXED BY message_first
         WHERE partner = ?1 AND line = 0 ORDER BY deadline LIMIT 1",
    )?;
    let mut next: Option<i64> = first.query_row([partner], |r| r.get(0)).optional()?;
    let mut least = conn.prepare_cached(
        "SELECT due FROM message INDEXED BY message_due
         WHERE partner = ?1 AND line = ?2 AND line > 0 ORDER BY due LIMIT 1",
    )?;
    for line in 1..=3 {
        let due: Option<i64> = least.query_row([partner, line], |r| r.get(0)).optional()?;
        next = [next, due].into_iter().flatten().min();
    }
    Ok(next.map(nat))
}

pub(super) fn in_flight(
    conn: &Connection,
    name: &str,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<DueMessage>, Fault> {
    let Some(partner) = partner(conn, name)? else {
        return Ok(Vec::new());
    };
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM message INDEXED BY message_state
         WHERE partner = ?1 AND state = 1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    ))?;
    let limit = count(limit.min(MAX_PAGE));
    let rows = select.query_map(params![partner, int(after_seq), limit], due_message)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn due_message(row: &Row<'_>) -> rusqlite::Result<DueMessage> {
    Ok(DueMessage {
        seq: nat(row.get(0)?),
        id: id(row.get(1)?),
        lane: row.get(2)?,
        class: class_out(row.get(3)?),
        due: nat(row.get(4)?),
        deadline: deadline_out(row.get(5)?),
        accepted_at: nat(row.get(6)?),
        series: small(row.get(7)?),
        attempt: small(row.get(8)?),
        begun_at: row.get::<_, Option<i64>>(9)?.map(nat),
        operation: row.get(10)?,
    })
}
