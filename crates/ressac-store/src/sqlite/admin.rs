//! What operators and the clean-up do.

use rusqlite::params;

use super::deliver::{End, check_operation, finish};
use super::failure::Fault;
use super::read::summary_by_seq;
use super::row::{count, deadline_in, int, line};
use super::tx::Tx;
use crate::error::Refusal;
use crate::limits::MAX_ITEMS;
use crate::types::{Class, Discard, MessageSummary, Replay, State};

pub(super) fn replay(tx: &mut Tx<'_>, replay: &Replay) -> Result<MessageSummary, Fault> {
    let hot = tx.hot(replay.id)?;
    check_operation(&replay.operation)?;
    if hot.state != State::Dead {
        return Err(Refusal::State(hot.state).into());
    }
    keep_end(tx, hot.seq)?;
    let (place, head) = tx.place(hot.partner, hot.lane.as_deref())?;
    let line = head.then(|| line(Class::Replay, replay.due, tx.now));
    tx.conn
        .prepare_cached(
            "UPDATE message SET state = 0, class = 2, line = ?2, due = ?3, deadline = ?4,
                                series = series + 1, attempt = 0, begun_at = NULL, ended_at = NULL,
                                place = ?5, because = 'replay', reason = NULL, blame = NULL,
                                processed = NULL, operation = ?6
             WHERE seq = ?1",
        )?
        .execute(params![
            hot.seq,
            line,
            int(replay.due),
            deadline_in(replay.deadline),
            place,
            replay.operation
        ])?;
    tx.moved(hot.partner, Some(State::Dead), Some(State::Waiting));
    summary_by_seq(tx.conn, hot.seq)
}

pub(super) fn discard(tx: &mut Tx<'_>, discard: &Discard) -> Result<MessageSummary, Fault> {
    let hot = tx.hot(discard.id)?;
    if let Some(operation) = &discard.operation {
        check_operation(operation)?;
    }
    match hot.state {
        State::Waiting => {}
        // Why it had died is kept.
        State::Dead => keep_end(tx, hot.seq)?,
        State::Sending if discard.force => {}
        state => return Err(Refusal::State(state).into()),
    }
    let end = End {
        state: State::Dead,
        reason: "discarded",
        blame: Some(&discard.blame),
        processed: Some(&discard.processed),
    };
    finish(tx, &hot, &end, discard.operation.as_deref())?;
    summary_by_seq(tx.conn, hot.seq)
}

/// Keeps why the series ended, as it was first.
fn keep_end(tx: &Tx<'_>, seq: i64) -> Result<(), Fault> {
    tx.conn
        .prepare_cached(
            "INSERT INTO series_end (seq, series, ended_at, reason, blame, processed)
             SELECT seq, series, ended_at, ifnull(reason, ''), ifnull(blame, ''),
                    ifnull(processed, '')
             FROM message WHERE seq = ?1
             ON CONFLICT DO NOTHING",
        )?
        .execute([seq])?;
    Ok(())
}

/// One bounded step of the clean-up, along the index by the time of delivery.
pub(super) fn prune(tx: &mut Tx<'_>, older_than: u64, limit: usize) -> Result<u64, Fault> {
    let limit = count(limit.min(MAX_ITEMS));
    let mut select = tx.conn.prepare_cached(
        "SELECT m.seq, m.partner, c.key FROM message m INDEXED BY message_delivered
         JOIN content c ON c.seq = m.seq
         WHERE m.state = 2 AND m.ended_at < ?1 ORDER BY m.ended_at LIMIT ?2",
    )?;
    let rows = select.query_map(params![int(older_than), limit], |r| {
        Ok((
            r.get::<_, i64>(0)?,
            r.get::<_, i64>(1)?,
            r.get::<_, String>(2)?,
        ))
    })?;
    let old: Vec<_> = rows.collect::<Result<_, _>>()?;
    drop(select);
    for (seq, partner, key) in &old {
        tx.conn
            .prepare_cached("DELETE FROM idempotency WHERE partner = ?1 AND key = ?2 AND seq = ?3")?
            .execute(params![partner, key, seq])?;
        for sql in [
            "DELETE FROM attempt WHERE seq = ?1",
            "DELETE FROM series_end WHERE seq = ?1",
            "DELETE FROM content WHERE seq = ?1",
            "DELETE FROM message WHERE seq = ?1",
        ] {
            tx.conn.prepare_cached(sql)?.execute([seq])?;
        }
        tx.moved(*partner, Some(State::Delivered), None);
    }
    tx.conn
        .prepare_cached(
            "DELETE FROM late_settle WHERE rowno IN (
                 SELECT rowno FROM late_settle INDEXED BY late_settle_age
                 WHERE refused_at < ?1 ORDER BY refused_at LIMIT ?2)",
        )?
        .execute(params![int(older_than), limit])?;
    Ok(old.len() as u64)
}
