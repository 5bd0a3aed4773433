//! Who owns a partner, and the partner's run-time state.

use std::time::Duration;

use rusqlite::params;

use super::failure::Fault;
use super::row::{int, nat};
use super::tx::Tx;
use crate::error::StoreError;
use crate::limits::{MAX_NAME, MAX_OPERATION};
use crate::types::Lease;

/// Refuses names that no store takes, before they are queued.
pub(super) fn check_names(instance: &str, partners: &[String]) -> Result<(), StoreError> {
    let names = partners.iter().map(|name| ("partner", name.as_str()));
    for (field, name) in names.chain([("instance", instance)]) {
        if name.is_empty() || name.len() > MAX_NAME {
            let problem = format!("it has {} bytes, 1 to {MAX_NAME} are allowed", name.len());
            return Err(StoreError::Invalid { field, problem });
        }
    }
    Ok(())
}

fn end(now: u64, ttl: Duration) -> u64 {
    now.saturating_add(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX))
}

pub(super) fn acquire(
    tx: &mut Tx<'_>,
    instance: &str,
    partners: &[String],
    ttl: Duration,
) -> Result<Vec<Lease>, Fault> {
    let until = end(tx.now, ttl);
    let mut leases = Vec::with_capacity(partners.len());
    for partner in partners {
        let no = tx.partner(partner)?;
        let mut take = tx.conn.prepare_cached(
            "UPDATE partner SET owner = ?2, epoch = epoch + 1, until = ?3
             WHERE no = ?1 AND (owner IS NULL OR owner = ?2 OR until <= ?4)
             RETURNING epoch",
        )?;
        let mut rows = take.query(params![no, instance, int(until), int(tx.now)])?;
        if let Some(row) = rows.next()? {
            let epoch = nat(row.get(0)?);
            leases.push(Lease {
                partner: partner.clone(),
                epoch,
                until,
            });
        }
    }
    Ok(leases)
}

pub(super) fn renew(tx: &Tx<'_>, leases: &[Lease], ttl: Duration) -> Result<Vec<Lease>, Fault> {
    let until = end(tx.now, ttl);
    let mut renewed = Vec::with_capacity(leases.len());
    let mut update = tx.conn.prepare_cached(
        "UPDATE partner SET until = ?3 WHERE name = ?1 AND epoch = ?2 AND owner IS NOT NULL",
    )?;
    for lease in leases {
        if update.execute(params![lease.partner, int(lease.epoch), int(until)])? == 1 {
            renewed.push(Lease {
                until,
                ..lease.clone()
            });
        }
    }
    Ok(renewed)
}

pub(super) fn release(tx: &Tx<'_>, leases: &[Lease]) -> Result<(), Fault> {
    let mut update = tx.conn.prepare_cached(
        "UPDATE partner SET owner = NULL, until = 0, epoch = epoch + 1
         WHERE name = ?1 AND epoch = ?2 AND owner IS NOT NULL",
    )?;
    for lease in leases {
        update.execute(params![lease.partner, int(lease.epoch)])?;
    }
    Ok(())
}

pub(super) fn save_partner(tx: &Tx<'_>, lease: &Lease, snapshot: &[u8]) -> Result<(), Fault> {
    let partner = tx.fence(lease)?;
    if snapshot.len() > MAX_OPERATION {
        let problem = format!(
            "it has {} bytes, the limit is {MAX_OPERATION}",
            snapshot.len()
        );
        return Err(StoreError::Invalid {
            field: "snapshot",
            problem,
        }
        .into());
    }
    tx.conn
        .prepare_cached(
            "INSERT INTO snapshot (partner, data) VALUES (?1, ?2)
             ON CONFLICT (partner) DO UPDATE SET data = excluded.data",
        )?
        .execute(params![partner, snapshot])?;
    Ok(())
}
