//! Intake: a message, its idempotency record and its delivery, all or nothing.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};

use super::failure::Fault;
use super::read::summary_by_seq;
use super::row::{count, deadline_in, headers_in, id, int, line};
use super::tx::Tx;
use crate::error::StoreError;
use crate::limits::{MAX_HEADERS, MAX_KEY, MAX_NAME, MAX_OPERATION, MAX_PATH, MAX_WORD};
use crate::types::{AcceptOutcome, Class, MessageSummary, NewMessage, State};

/// Refuses what no store takes, before it is queued.
pub(super) fn check(message: &NewMessage, max_body: usize) -> Result<(), StoreError> {
    let headers = message
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 8)
        .sum();
    let sizes = [
        ("partner", message.partner.len(), 1, MAX_NAME),
        (
            "lane",
            message.lane.as_ref().map_or(1, String::len),
            1,
            MAX_NAME,
        ),
        ("key", message.key.len(), 1, MAX_KEY),
        ("method", message.method.len(), 1, MAX_WORD),
        ("path", message.path.len(), 0, MAX_PATH),
        ("headers", headers, 0, MAX_HEADERS),
        ("body", message.body.len(), 0, max_body),
        ("operation", message.operation.len(), 0, MAX_OPERATION),
    ];
    for (field, size, least, most) in sizes {
        if size < least {
            return Err(StoreError::Invalid {
                field,
                problem: "it is empty".into(),
            });
        }
        if size > most {
            return Err(StoreError::Invalid {
                field,
                problem: format!("it has {size} bytes, the limit is {most}"),
            });
        }
    }
    Ok(())
}

/// Roughly what a message takes in memory and on disk.
pub(super) fn weight(message: &NewMessage) -> usize {
    let headers: usize = message
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    1_024
        + message.body.len()
        + headers
        + message.operation.len()
        + 2 * message.key.len()
        + message.path.len()
}

pub(super) fn accept(tx: &mut Tx<'_>, message: &NewMessage) -> Result<AcceptOutcome, Fault> {
    let partner = tx.partner(&message.partner)?;
    let seq = tx.next_seq()?;
    if let Some(outcome) = claim_key(tx, partner, seq, message)? {
        return Ok(outcome);
    }
    take_room(tx, message)?;
    let (place, head) = tx.place(partner, message.lane.as_deref())?;
    let line = head.then(|| line(Class::First, message.due, tx.now));
    let mut insert = tx.conn.prepare_cached(
        "INSERT INTO message (seq, id, partner, state, class, line, due, deadline, accepted_at,
                              series, attempt, lane, place, operation)
         VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6, ?7, 1, 0, ?8, ?9, ?10)",
    )?;
    let inserted = insert.execute(params![
        seq,
        message.id.as_bytes(),
        partner,
        line,
        int(message.due),
        deadline_in(message.deadline),
        int(message.accepted_at),
        message.lane,
        place,
        message.operation
    ]);
    drop(insert);
    if let Err(error) = inserted {
        return Err(id_taken(error));
    }
    store_content(tx, seq, message)?;
    tx.moved(partner, None, Some(State::Waiting));
    Ok(AcceptOutcome::Accepted(summary(seq, message)))
}

/// The one atomic step: whoever writes the key first has it.
fn claim_key(
    tx: &Tx<'_>,
    partner: i64,
    seq: i64,
    message: &NewMessage,
) -> Result<Option<AcceptOutcome>, Fault> {
    let claimed = tx
        .conn
        .prepare_cached(
            "INSERT INTO idempotency (partner, key, seq, fingerprint) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![partner, message.key, seq, message.fingerprint])?;
    if claimed == 1 {
        return Ok(None);
    }
    let mut find = tx.conn.prepare_cached(
        "SELECT seq, fingerprint FROM idempotency WHERE partner = ?1 AND key = ?2",
    )?;
    let (earlier, fingerprint): (i64, [u8; 32]) = find
        .query_row(params![partner, message.key], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })?;
    if fingerprint == message.fingerprint {
        return Ok(Some(AcceptOutcome::Existing(summary_by_seq(
            tx.conn, earlier,
        )?)));
    }
    let holder: Option<[u8; 16]> = tx
        .conn
        .prepare_cached("SELECT id FROM message WHERE seq = ?1")?
        .query_row([earlier], |r| r.get(0))
        .optional()?;
    Ok(Some(AcceptOutcome::KeyConflict {
        id: id(holder.unwrap_or_default()),
    }))
}

/// Refuses a message before the file is full, so that all that was accepted can still be delivered.
fn take_room(tx: &mut Tx<'_>, message: &NewMessage) -> Result<(), Fault> {
    // Its delivery is counted for it from the next transaction on; within this one, by whole pages.
    let pages = weight(message).div_ceil(tx.page_size);
    if tx.take_room(pages * tx.page_size) {
        return Ok(());
    }
    Err(StoreError::Full {
        detail: "its size limit is reached".into(),
    }
    .into())
}

fn store_content(tx: &Tx<'_>, seq: i64, message: &NewMessage) -> Result<(), Fault> {
    tx.conn
        .prepare_cached(
            "INSERT INTO content (seq, key, key_given, method, path, body_len, headers, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            seq,
            message.key,
            message.key_given,
            message.method,
            message.path,
            count(message.body.len()),
            headers_in(&message.headers),
            Bytes::as_ref(&message.body)
        ])?;
    Ok(())
}

fn id_taken(error: rusqlite::Error) -> Fault {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) {
        let problem = "another message has it".to_owned();
        return StoreError::Invalid {
            field: "id",
            problem,
        }
        .into();
    }
    error.into()
}

fn summary(seq: i64, message: &NewMessage) -> MessageSummary {
    MessageSummary {
        id: message.id,
        seq: super::row::nat(seq),
        partner: message.partner.clone(),
        lane: message.lane.clone(),
        key: message.key.clone(),
        key_given: message.key_given,
        state: State::Waiting,
        class: Class::First,
        due: Some(message.due),
        because: String::new(),
        deadline: message.deadline,
        accepted_at: message.accepted_at,
        ended_at: None,
        reason: None,
        blame: None,
        processed: None,
        series: 1,
        attempts: 0,
    }
}
