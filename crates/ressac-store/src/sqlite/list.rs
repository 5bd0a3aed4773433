//! Pages of messages, counts, partners, late settles. No scan of a table: every page is read from the
//! index by partner and state, and the work for one page is bounded.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Fault;
use super::read::summary_by_seq;
use super::row::{count, id, nat, state_in};
use crate::error::StoreError;
use crate::limits::MAX_PAGE;
use crate::types::{Counts, Filter, LateSettle, Page, PartnerStatus, State};

/// Rows looked at for one page when a filter may leave most of them out.
const MAX_LOOKED_AT: usize = 5_000;

/// A cursor is the number of the last message looked at, behind a letter that tells it from a guess.
pub(super) fn cursor_in(cursor: Option<&str>) -> Result<i64, StoreError> {
    let Some(cursor) = cursor else {
        return Ok(i64::MAX);
    };
    let number = cursor
        .strip_prefix('m')
        .and_then(|number| number.parse().ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| StoreError::Invalid {
            field: "cursor",
            problem: "it is not the `next` of a page".into(),
        })
}

pub(super) fn list(
    conn: &Connection,
    filter: &Filter,
    before: i64,
    limit: usize,
) -> Result<Page, Fault> {
    let limit = limit.clamp(1, MAX_PAGE);
    let look_at = if filter.reason.is_some() {
        MAX_LOOKED_AT
    } else {
        limit
    };
    let snapshot = conn.unchecked_transaction()?;
    let seqs = newest(&snapshot, filter, before, look_at)?;
    let mut page = Page {
        items: Vec::new(),
        next: None,
    };
    let mut last = None;
    let mut rest = seqs.iter();
    for seq in rest.by_ref() {
        last = Some(*seq);
        if !has_reason(&snapshot, *seq, filter.reason.as_deref())? {
            continue;
        }
        page.items.push(summary_by_seq(&snapshot, *seq)?);
        if page.items.len() == limit {
            break;
        }
    }
    // A full look may have left more behind it.
    if rest.next().is_some() || seqs.len() == look_at {
        page.next = last.map(|seq| format!("m{seq}"));
    }
    Ok(page)
}

fn has_reason(conn: &Connection, seq: i64, reason: Option<&str>) -> Result<bool, Fault> {
    let Some(reason) = reason else {
        return Ok(true);
    };
    let mut select = conn.prepare_cached("SELECT reason IS ?2 FROM message WHERE seq = ?1")?;
    Ok(select.query_row(params![seq, reason], |r| r.get(0))?)
}

/// The newest numbers below `before`, from all the streams that the filter lets through.
fn newest(
    conn: &Connection,
    filter: &Filter,
    before: i64,
    limit: usize,
) -> Result<Vec<i64>, Fault> {
    if filter.state.is_none() && filter.partner.is_none() {
        let mut select = conn
            .prepare_cached("SELECT seq FROM message WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2")?;
        let rows = select.query_map(params![before, count(limit)], |r| r.get(0))?;
        return Ok(rows.collect::<Result<_, _>>()?);
    }
    let mut select = conn.prepare_cached(
        "SELECT seq FROM message INDEXED BY message_state
         WHERE partner = ?1 AND state = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4",
    )?;
    let mut seqs: Vec<i64> = Vec::new();
    for (partner, state) in streams(conn, filter)? {
        let state = state_in(state);
        let rows = select.query_map(params![partner, state, before, count(limit)], |r| r.get(0))?;
        for seq in rows {
            seqs.push(seq?);
        }
        // Never more than two pages in memory, however many partners there are.
        if seqs.len() > 2 * limit {
            keep_newest(&mut seqs, limit);
        }
    }
    keep_newest(&mut seqs, limit);
    Ok(seqs)
}

fn keep_newest(seqs: &mut Vec<i64>, limit: usize) {
    seqs.sort_unstable_by(|a, b| b.cmp(a));
    seqs.truncate(limit);
}

/// The pairs of partner and state that the filter lets through and that have messages.
fn streams(conn: &Connection, filter: &Filter) -> Result<Vec<(i64, State)>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT no, waiting, sending, delivered, dead FROM partner WHERE ?1 IS NULL OR name = ?1",
    )?;
    let rows = select.query_map([&filter.partner], |r| {
        Ok((
            r.get::<_, i64>(0)?,
            [r.get::<_, i64>(1)?, r.get(2)?, r.get(3)?, r.get(4)?],
        ))
    })?;
    let mut streams = Vec::new();
    for row in rows {
        let (partner, counts) = row?;
        let wanted = State::ALL.into_iter().zip(counts).filter(|(state, many)| {
            *many > 0 && filter.state.is_none_or(|wanted| wanted == *state)
        });
        streams.extend(wanted.map(|(state, _)| (partner, state)));
    }
    Ok(streams)
}

pub(super) fn counts(conn: &Connection, name: &str) -> Result<Counts, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT no, waiting, sending, delivered, dead FROM partner WHERE name = ?1",
    )?;
    let found = select
        .query_row([name], |r| Ok((r.get(0)?, read_counts(r, 1)?)))
        .optional()?;
    match found {
        Some((partner, counts)) => with_oldest(conn, partner, counts),
        None => Ok(Counts::default()),
    }
}

fn read_counts(row: &Row<'_>, from: usize) -> rusqlite::Result<Counts> {
    Ok(Counts {
        waiting: nat(row.get(from)?),
        sending: nat(row.get(from + 1)?),
        delivered: nat(row.get(from + 2)?),
        dead: nat(row.get(from + 3)?),
        oldest_waiting: None,
    })
}

fn with_oldest(conn: &Connection, partner: i64, counts: Counts) -> Result<Counts, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT accepted_at FROM message INDEXED BY message_state
         WHERE partner = ?1 AND state = 0 ORDER BY seq LIMIT 1",
    )?;
    let oldest: Option<i64> = select.query_row([partner], |r| r.get(0)).optional()?;
    Ok(Counts {
        oldest_waiting: oldest.map(nat),
        ..counts
    })
}

pub(super) fn partners(conn: &Connection) -> Result<Vec<PartnerStatus>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut select = snapshot.prepare_cached(
        "SELECT no, name, owner, epoch, until, waiting, sending, delivered, dead
         FROM partner ORDER BY name",
    )?;
    let rows = select.query_map([], |r| {
        let status = PartnerStatus {
            partner: r.get(1)?,
            owner: r.get(2)?,
            epoch: nat(r.get(3)?),
            until: nat(r.get(4)?),
            counts: read_counts(r, 5)?,
        };
        Ok((r.get(0)?, status))
    })?;
    let mut partners = Vec::new();
    for row in rows {
        let (no, mut status) = row?;
        status.counts = with_oldest(&snapshot, no, status.counts)?;
        partners.push(status);
    }
    Ok(partners)
}

pub(super) fn late_settles(
    conn: &Connection,
    name: &str,
    limit: usize,
) -> Result<Vec<LateSettle>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, refused_at, epoch, current_epoch, wanted, attempt FROM late_settle
         WHERE partner = (SELECT no FROM partner WHERE name = ?1) ORDER BY rowno DESC LIMIT ?2",
    )?;
    let mut rows = select.query(params![name, count(limit.min(MAX_PAGE))])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let attempt: Option<String> = row.get(5)?;
        let attempt = attempt.map(|text| serde_json::from_str(&text)).transpose();
        found.push(LateSettle {
            id: id(row.get(0)?),
            refused_at: nat(row.get(1)?),
            epoch: nat(row.get(2)?),
            current_epoch: nat(row.get(3)?),
            wanted: row.get(4)?,
            attempt: attempt.map_err(|error| StoreError::Internal {
                detail: error.to_string(),
            })?,
        });
    }
    Ok(found)
}

pub(super) fn load_partner(conn: &Connection, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT s.data FROM snapshot s JOIN partner p ON p.no = s.partner WHERE p.name = ?1",
    )?;
    Ok(select.query_row([name], |r| r.get(0)).optional()?)
}
