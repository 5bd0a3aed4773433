//! One message: its line, its content, its history.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::failure::Fault;
use super::row::{class_out, deadline_out, headers_out, id, nat, small, state_out};
use crate::types::{
    AttemptEntry, AttemptRecord, MessageContent, MessageRecord, MessageSummary, SeriesEnd, State,
};

/// Attempts read with a message.
const MAX_ATTEMPTS: i64 = 1_000;

const SUMMARY: &str = "SELECT m.seq, m.id, p.name, m.lane, c.key, c.key_given, m.state, m.class, \
     m.due, m.because, m.deadline, m.accepted_at, m.ended_at, m.reason, m.blame, m.processed, \
     m.series, m.attempt \
     FROM message m JOIN partner p ON p.no = m.partner JOIN content c ON c.seq = m.seq";

pub(super) fn summary_by_seq(conn: &Connection, seq: i64) -> Result<MessageSummary, Fault> {
    let mut select = conn.prepare_cached(&format!("{SUMMARY} WHERE m.seq = ?1"))?;
    Ok(select.query_row([seq], summary)?)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<MessageSummary> {
    let state = state_out(row.get(6)?);
    let due: i64 = row.get(8)?;
    Ok(MessageSummary {
        seq: nat(row.get(0)?),
        id: id(row.get(1)?),
        partner: row.get(2)?,
        lane: row.get(3)?,
        key: row.get(4)?,
        key_given: row.get(5)?,
        state,
        class: class_out(row.get(7)?),
        due: (state == State::Waiting).then(|| nat(due)),
        because: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
        deadline: deadline_out(row.get(10)?),
        accepted_at: nat(row.get(11)?),
        ended_at: row.get::<_, Option<i64>>(12)?.map(nat),
        reason: row.get(13)?,
        blame: row.get(14)?,
        processed: row.get(15)?,
        series: small(row.get(16)?),
        attempts: small(row.get(17)?),
    })
}

pub(super) fn find(conn: &Connection, id: Uuid) -> Result<Option<i64>, Fault> {
    let mut find = conn.prepare_cached("SELECT seq FROM message WHERE id = ?1")?;
    Ok(find.query_row([id.as_bytes()], |r| r.get(0)).optional()?)
}

pub(super) fn load(conn: &Connection, id: Uuid) -> Result<Option<MessageContent>, Fault> {
    let Some(seq) = find(conn, id)? else {
        return Ok(None);
    };
    let mut select = conn.prepare_cached(
        "SELECT key, key_given, method, path, headers, body FROM content WHERE seq = ?1",
    )?;
    let mut rows = select.query([seq])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(MessageContent {
        id,
        key: row.get(0)?,
        key_given: row.get(1)?,
        method: row.get(2)?,
        path: row.get(3)?,
        headers: headers_out(&row.get::<_, Vec<u8>>(4)?)?,
        body: Bytes::from(row.get::<_, Vec<u8>>(5)?),
    }))
}

/// Reads within one snapshot, so that the parts belong together.
pub(super) fn get(conn: &Connection, id: Uuid) -> Result<Option<MessageRecord>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let Some(seq) = find(&snapshot, id)? else {
        return Ok(None);
    };
    let mut select = snapshot.prepare_cached(
        "SELECT c.method, c.path, c.headers, c.body_len, m.operation
         FROM content c JOIN message m ON m.seq = c.seq WHERE c.seq = ?1",
    )?;
    let (method, path, headers, body_len, operation) = select.query_row([seq], |r| {
        Ok((
            r.get(0)?,
            r.get(1)?,
            r.get::<_, Vec<u8>>(2)?,
            r.get(3)?,
            r.get(4)?,
        ))
    })?;
    Ok(Some(MessageRecord {
        summary: summary_by_seq(&snapshot, seq)?,
        method,
        path,
        headers: headers_out(&headers)?,
        body_len: nat(body_len),
        operation,
        attempts: attempts(&snapshot, seq)?,
        earlier: earlier(&snapshot, seq)?,
    }))
}

fn attempts(conn: &Connection, seq: i64) -> Result<Vec<AttemptEntry>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT series, number, started_at, ended_at, kind, status, processed, blame, hint_ms, note,
                reply_head, reply_body
         FROM attempt WHERE seq = ?1 ORDER BY series DESC, number DESC LIMIT ?2",
    )?;
    let rows = select.query_map(params![seq, MAX_ATTEMPTS], |r| {
        let text = |index| r.get::<_, Option<String>>(index);
        Ok(AttemptEntry {
            series: small(r.get(0)?),
            record: AttemptRecord {
                number: small(r.get(1)?),
                started_at: nat(r.get(2)?),
                ended_at: r.get::<_, Option<i64>>(3)?.map(nat),
                kind: text(4)?.unwrap_or_default(),
                status: r.get(5)?,
                processed: text(6)?.unwrap_or_default(),
                blame: text(7)?.unwrap_or_default(),
                hint_ms: r.get::<_, Option<i64>>(8)?.map(nat),
                note: text(9)?.unwrap_or_default(),
                reply_head: r.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default(),
                reply_body: r.get::<_, Option<Vec<u8>>>(11)?.unwrap_or_default(),
            },
        })
    })?;
    let mut attempts: Vec<_> = rows.collect::<Result<_, _>>()?;
    attempts.reverse();
    Ok(attempts)
}

fn earlier(conn: &Connection, seq: i64) -> Result<Vec<SeriesEnd>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT series, ended_at, reason, blame, processed FROM series_end
         WHERE seq = ?1 ORDER BY series DESC LIMIT ?2",
    )?;
    let rows = select.query_map(params![seq, MAX_ATTEMPTS], |r| {
        Ok(SeriesEnd {
            series: small(r.get(0)?),
            ended_at: nat(r.get(1)?),
            reason: r.get(2)?,
            blame: r.get(3)?,
            processed: r.get(4)?,
        })
    })?;
    let mut ends: Vec<_> = rows.collect::<Result<_, _>>()?;
    ends.reverse();
    Ok(ends)
}
