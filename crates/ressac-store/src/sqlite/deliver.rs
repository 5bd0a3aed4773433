//! Delivery: begin, settle, put back. Each is fenced by the lease's epoch.

use rusqlite::params;

use super::failure::Fault;
use super::row::{class_in, int, line, state_in};
use super::tx::{Hot, Tx};
use crate::error::{Refusal, StoreError};
use crate::limits::{MAX_EXCERPT, MAX_ITEMS, MAX_NOTE, MAX_OPERATION, MAX_WORD, cut, cut_bytes};
use crate::types::{
    AttemptRecord, Begin, Class, ItemResult, Lease, NewState, PutBack, Settle, State,
};

/// What is kept of a note when space is short, in bytes.
const SHORT_NOTE: usize = 128;

/// Refuses a batch that is too long, before it is queued.
pub(super) fn check_items(items: usize) -> Result<(), StoreError> {
    if items > MAX_ITEMS {
        let problem = format!("{items} messages in one call, the limit is {MAX_ITEMS}");
        return Err(StoreError::Invalid {
            field: "items",
            problem,
        });
    }
    Ok(())
}

pub(super) fn begin(
    tx: &mut Tx<'_>,
    lease: &Lease,
    items: &[Begin],
) -> Result<Vec<ItemResult>, Fault> {
    let partner = tx.fence_sending(lease)?;
    items
        .iter()
        .map(|item| tx.item(|tx| begin_one(tx, partner, item)))
        .collect()
}

fn begin_one(tx: &mut Tx<'_>, partner: i64, item: &Begin) -> Result<(), Fault> {
    let hot = owned(tx, partner, item.id)?;
    check_operation(&item.operation)?;
    if hot.state != State::Waiting {
        return Err(Refusal::State(hot.state).into());
    }
    if !hot.ready {
        return Err(Refusal::Behind.into());
    }
    if item.attempt <= hot.attempt {
        return Err(Refusal::Attempt {
            given: item.attempt,
            open: hot.attempt,
        }
        .into());
    }
    if tx.is_short() {
        shorten_history(tx, &hot)?;
    }
    tx.conn
        .prepare_cached(
            "INSERT INTO attempt (seq, series, number, started_at) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            hot.seq,
            hot.series,
            item.attempt,
            int(item.started_at)
        ])?;
    tx.conn
        .prepare_cached(
            "UPDATE message SET state = 1, line = NULL, attempt = ?2, begun_at = ?3, operation = ?4
             WHERE seq = ?1",
        )?
        .execute(params![
            hot.seq,
            item.attempt,
            int(item.started_at),
            item.operation
        ])?;
    tx.moved(partner, Some(hot.state), Some(State::Sending));
    Ok(())
}

/// Forgets all attempts of the series but the last: a partner that fails for days must not fill the
/// space that delivering its messages takes.
fn shorten_history(tx: &Tx<'_>, hot: &Hot) -> Result<(), Fault> {
    tx.conn
        .prepare_cached("DELETE FROM attempt WHERE seq = ?1 AND series = ?2 AND number < ?3")?
        .execute(params![hot.seq, hot.series, hot.attempt])?;
    Ok(())
}

/// Settles, or, where the lease is lost, keeps what was to be settled as evidence. The inner error is
/// an answer; the transaction goes on.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    lease: &Lease,
    items: &[Settle],
) -> Result<Result<Vec<ItemResult>, StoreError>, Fault> {
    let partner = match tx.fence(lease) {
        Ok(partner) => partner,
        Err(Fault::Store(lost @ StoreError::LeaseLost { current, .. })) => {
            let partner = tx.partner(&lease.partner)?;
            for item in items {
                keep_evidence(tx, partner, lease.epoch, current, item)?;
            }
            return Ok(Err(lost));
        }
        Err(fault) => return Err(fault),
    };
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let result = tx.item(|tx| settle_one(tx, partner, item))?;
        if item.attempt.is_some()
            && matches!(result, Err(Refusal::State(_) | Refusal::Attempt { .. }))
        {
            keep_evidence(tx, partner, lease.epoch, lease.epoch, item)?;
        }
        results.push(result);
    }
    Ok(Ok(results))
}

fn settle_one(tx: &mut Tx<'_>, partner: i64, item: &Settle) -> Result<(), Fault> {
    let hot = owned(tx, partner, item.id)?;
    check_operation(&item.operation)?;
    match (&item.attempt, hot.state) {
        (Some(attempt), State::Sending) => close_attempt(tx, &hot, attempt)?,
        (None, State::Waiting) => {}
        (None, State::Sending) => return Err(Refusal::AttemptOpen { open: hot.attempt }.into()),
        (_, state) => return Err(Refusal::State(state).into()),
    }
    match &item.next {
        NewState::Waiting {
            due,
            because,
            class,
        } => wait(
            tx,
            &hot,
            *due,
            because,
            *class,
            hot.attempt,
            &item.operation,
        ),
        NewState::Delivered { reason } => {
            let end = End {
                state: State::Delivered,
                reason,
                blame: None,
                processed: None,
            };
            finish(tx, &hot, &end, Some(&item.operation))
        }
        NewState::Dead {
            reason,
            blame,
            processed,
        } => {
            let (blame, processed) = (Some(blame.as_str()), Some(processed.as_str()));
            let end = End {
                state: State::Dead,
                reason,
                blame,
                processed,
            };
            finish(tx, &hot, &end, Some(&item.operation))
        }
    }
}

pub(super) fn put_back(
    tx: &mut Tx<'_>,
    lease: &Lease,
    items: &[PutBack],
) -> Result<Vec<ItemResult>, Fault> {
    let partner = tx.fence(lease)?;
    items
        .iter()
        .map(|item| tx.item(|tx| put_back_one(tx, partner, item)))
        .collect()
}

fn put_back_one(tx: &mut Tx<'_>, partner: i64, item: &PutBack) -> Result<(), Fault> {
    let hot = owned(tx, partner, item.id)?;
    check_operation(&item.operation)?;
    if hot.state != State::Sending {
        return Err(Refusal::State(hot.state).into());
    }
    tx.conn
        .prepare_cached("DELETE FROM attempt WHERE seq = ?1 AND series = ?2 AND number = ?3")?
        .execute(params![hot.seq, hot.series, hot.attempt])?;
    let last: u32 = tx
        .conn
        .prepare_cached(
            "SELECT ifnull(max(number), 0) FROM attempt WHERE seq = ?1 AND series = ?2",
        )?
        .query_row(params![hot.seq, hot.series], |r| r.get(0))?;
    wait(
        tx,
        &hot,
        item.due,
        &item.because,
        item.class,
        last,
        &item.operation,
    )
}

fn wait(
    tx: &mut Tx<'_>,
    hot: &Hot,
    due: u64,
    because: &str,
    class: Class,
    attempt: u32,
    operation: &[u8],
) -> Result<(), Fault> {
    // What is being sent is the head of its lane; what waits may not be.
    let head = hot.ready || hot.state == State::Sending;
    let line = head.then(|| line(class, due, tx.now));
    tx.conn
        .prepare_cached(
            "UPDATE message SET state = 0, class = ?2, line = ?3, due = ?4, because = ?5,
                                attempt = ?6, begun_at = NULL, operation = ?7
             WHERE seq = ?1",
        )?
        .execute(params![
            hot.seq,
            class_in(class),
            line,
            int(due),
            cut(because, MAX_WORD),
            attempt,
            operation
        ])?;
    tx.moved(hot.partner, Some(hot.state), Some(State::Waiting));
    Ok(())
}

/// How a message ends.
pub(super) struct End<'a> {
    pub(super) state: State,
    pub(super) reason: &'a str,
    pub(super) blame: Option<&'a str>,
    pub(super) processed: Option<&'a str>,
}

pub(super) fn finish(
    tx: &mut Tx<'_>,
    hot: &Hot,
    end: &End<'_>,
    operation: Option<&[u8]>,
) -> Result<(), Fault> {
    tx.conn
        .prepare_cached(
            "UPDATE message SET state = ?2, line = NULL, ended_at = ?3, begun_at = NULL,
                                because = NULL, reason = ?4, blame = ?5, processed = ?6,
                                operation = ifnull(?7, operation)
             WHERE seq = ?1",
        )?
        .execute(params![
            hot.seq,
            state_in(end.state),
            int(tx.now),
            cut(end.reason, MAX_WORD),
            end.blame.map(|word| cut(word, MAX_WORD)),
            end.processed.map(|word| cut(word, MAX_WORD)),
            operation
        ])?;
    tx.moved(hot.partner, Some(hot.state), Some(end.state));
    tx.promote(hot.partner, hot.lane.as_deref())
}

fn close_attempt(tx: &mut Tx<'_>, hot: &Hot, attempt: &AttemptRecord) -> Result<(), Fault> {
    let mut note = cut(&attempt.note, MAX_NOTE);
    let mut head = cut_bytes(&attempt.reply_head, MAX_EXCERPT);
    let mut body = cut_bytes(&attempt.reply_body, MAX_EXCERPT);
    // What serves people only gives way first.
    if !tx.take_room(note.len() + head.len() + body.len()) {
        note = cut(note, SHORT_NOTE);
        (head, body) = (&[], &[]);
    }
    let closed = tx
        .conn
        .prepare_cached(
            "UPDATE attempt SET ended_at = ?4, kind = ?5, status = ?6, processed = ?7, blame = ?8,
                                hint_ms = ?9, note = ?10, reply_head = ?11, reply_body = ?12
             WHERE seq = ?1 AND series = ?2 AND number = ?3 AND ended_at IS NULL",
        )?
        .execute(params![
            hot.seq,
            hot.series,
            attempt.number,
            int(attempt.ended_at.unwrap_or(tx.now)),
            cut(&attempt.kind, MAX_WORD),
            attempt.status,
            cut(&attempt.processed, MAX_WORD),
            cut(&attempt.blame, MAX_WORD),
            attempt.hint_ms.map(int),
            note,
            head,
            body
        ])?;
    if closed == 0 || attempt.number != hot.attempt {
        return Err(Refusal::Attempt {
            given: attempt.number,
            open: hot.attempt,
        }
        .into());
    }
    Ok(())
}

fn keep_evidence(
    tx: &Tx<'_>,
    partner: i64,
    epoch: u64,
    current: u64,
    item: &Settle,
) -> Result<(), Fault> {
    let attempt = item.attempt.as_ref().map(|attempt| AttemptRecord {
        kind: cut(&attempt.kind, MAX_WORD).to_owned(),
        processed: cut(&attempt.processed, MAX_WORD).to_owned(),
        blame: cut(&attempt.blame, MAX_WORD).to_owned(),
        note: cut(&attempt.note, MAX_NOTE).to_owned(),
        reply_head: cut_bytes(&attempt.reply_head, MAX_EXCERPT).to_owned(),
        reply_body: cut_bytes(&attempt.reply_body, MAX_EXCERPT).to_owned(),
        ..*attempt
    });
    let attempt = attempt
        .map(|attempt| serde_json::to_string(&attempt))
        .transpose();
    let attempt = attempt.map_err(|error| StoreError::Internal {
        detail: error.to_string(),
    })?;
    tx.conn
        .prepare_cached(
            "INSERT INTO late_settle (partner, id, refused_at, epoch, current_epoch, wanted, attempt)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            partner,
            item.id.as_bytes(),
            int(tx.now),
            int(epoch),
            int(current),
            item.next.word(),
            attempt
        ])?;
    Ok(())
}

/// The message, if it is this partner's.
fn owned(tx: &Tx<'_>, partner: i64, id: uuid::Uuid) -> Result<Hot, Fault> {
    let hot = tx.hot(id)?;
    if hot.partner == partner {
        Ok(hot)
    } else {
        Err(Refusal::NotFound.into())
    }
}

pub(super) fn check_operation(operation: &[u8]) -> Result<(), Refusal> {
    if operation.len() > MAX_OPERATION {
        let size = operation.len();
        let text = format!("the operation has {size} bytes, the limit is {MAX_OPERATION}");
        return Err(Refusal::Invalid(text));
    }
    Ok(())
}
