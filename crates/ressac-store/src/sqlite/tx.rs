//! One transaction of the writer, as the commands that ride in it see it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::failure::Fault;
use super::row::{class_out, count, int, line, nat, small, state_in, state_out};
use crate::error::{Refusal, StoreError};
use crate::types::{ItemResult, Lease, State};

/// What the writer remembers from one transaction to the next. Thrown away when one fails.
#[derive(Debug, Default)]
pub(super) struct Memory {
    partners: HashMap<String, i64>,
    next_seq: Option<i64>,
}

/// More partners than this are looked up in the table each time.
const REMEMBERED_PARTNERS: usize = 10_000;

/// The transaction.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) memory: &'a mut Memory,
    /// The store's clock, read once for the whole batch.
    pub(super) now: u64,
    /// Bytes left for new messages, and for what a delivery can do without; `None` = no limit.
    pub(super) room: Option<i64>,
    pub(super) page_size: usize,
    changes: Vec<(i64, State, i64)>,
}

/// The parts of the hot row that decide what may happen to it.
#[derive(Debug)]
pub(super) struct Hot {
    pub(super) seq: i64,
    pub(super) partner: i64,
    pub(super) state: State,
    /// It waits and nothing of its lane is before it.
    pub(super) ready: bool,
    pub(super) series: u32,
    pub(super) attempt: u32,
    pub(super) lane: Option<String>,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        conn: &'a Connection,
        memory: &'a mut Memory,
        now: u64,
        room: Option<i64>,
        page_size: usize,
    ) -> Self {
        Self {
            conn,
            memory,
            now,
            room,
            page_size,
            changes: Vec::new(),
        }
    }

    /// Takes room for what must not use up the space that deliveries need. `false`: there is none.
    pub(super) fn take_room(&mut self, bytes: usize) -> bool {
        let Some(room) = &mut self.room else {
            return true;
        };
        let bytes = count(bytes);
        let fits = *room >= bytes;
        if fits {
            *room -= bytes;
        }
        fits
    }

    /// Whether only what a delivery cannot do without may still be written.
    pub(super) fn is_short(&self) -> bool {
        self.room.is_some_and(|room| room <= 0)
    }

    /// Runs `work` so that it leaves nothing behind if it fails.
    pub(super) fn nested<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (changes, room) = (self.changes.len(), self.room);
        self.conn.prepare_cached("SAVEPOINT step")?.execute([])?;
        let result = work(self);
        if result.is_err() {
            self.changes.truncate(changes);
            self.room = room;
            // A partner inserted in there is gone again.
            self.memory.partners.clear();
            // After a full disk SQLite may have rolled everything back by itself.
            if self.conn.is_autocommit() {
                return result;
            }
            self.conn.prepare_cached("ROLLBACK TO step")?.execute([])?;
        }
        self.conn.prepare_cached("RELEASE step")?.execute([])?;
        result
    }

    /// Runs `work` for one message of a batch: a refusal, or a row that the table does not take, is
    /// the answer for that message only.
    pub(super) fn item(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<ItemResult, Fault> {
        match self.nested(work) {
            Ok(()) => Ok(Ok(())),
            Err(Fault::Store(StoreError::Refused(refusal))) => Ok(Err(refusal)),
            Err(Fault::Sqlite(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
                    || error.sqlite_error_code() == Some(rusqlite::ErrorCode::TooBig) =>
            {
                Ok(Err(Refusal::Invalid(error.to_string())))
            }
            Err(fault) => Err(fault),
        }
    }

    /// The number of a partner, made where it is new.
    pub(super) fn partner(&mut self, name: &str) -> Result<i64, Fault> {
        if let Some(no) = self.memory.partners.get(name) {
            return Ok(*no);
        }
        let no = match self.known_partner(name)? {
            Some(no) => no,
            None => self
                .conn
                .prepare_cached("INSERT INTO partner (name) VALUES (?1)")?
                .insert([name])?,
        };
        if self.memory.partners.len() >= REMEMBERED_PARTNERS {
            self.memory.partners.clear();
        }
        self.memory.partners.insert(name.to_owned(), no);
        Ok(no)
    }

    pub(super) fn known_partner(&self, name: &str) -> Result<Option<i64>, Fault> {
        let mut find = self
            .conn
            .prepare_cached("SELECT no FROM partner WHERE name = ?1")?;
        Ok(find.query_row([name], |r| r.get(0)).optional()?)
    }

    /// A number for a new message, above all others. A number whose message was rolled back is lost.
    pub(super) fn next_seq(&mut self) -> Result<i64, Fault> {
        let next = match self.memory.next_seq {
            Some(next) => next,
            None => {
                self.conn
                    .query_row("SELECT ifnull(max(seq), 0) + 1 FROM message", [], |r| {
                        r.get(0)
                    })?
            }
        };
        self.memory.next_seq = Some(next + 1);
        Ok(next)
    }

    pub(super) fn hot(&self, id: uuid::Uuid) -> Result<Hot, Fault> {
        let mut find = self.conn.prepare_cached(
            "SELECT seq, partner, state, line IS NOT NULL, series, attempt, lane
             FROM message WHERE id = ?1",
        )?;
        let hot = find.query_row([id.as_bytes()], |r| {
            Ok(Hot {
                seq: r.get(0)?,
                partner: r.get(1)?,
                state: state_out(r.get(2)?),
                ready: r.get(3)?,
                series: small(r.get(4)?),
                attempt: small(r.get(5)?),
                lane: r.get(6)?,
            })
        });
        hot.optional()?.ok_or_else(|| Refusal::NotFound.into())
    }

    /// Notes that a message changed its state, for the counters.
    pub(super) fn moved(&mut self, partner: i64, from: Option<State>, to: Option<State>) {
        if from == to {
            return;
        }
        self.changes.extend(from.map(|state| (partner, state, -1)));
        self.changes.extend(to.map(|state| (partner, state, 1)));
    }

    /// Writes the counters, once per partner and transaction.
    pub(super) fn write_counters(&mut self) -> Result<(), Fault> {
        let mut sums: HashMap<i64, [i64; 4]> = HashMap::new();
        for (partner, state, by) in self.changes.drain(..) {
            let index = usize::try_from(state_in(state)).unwrap_or(0);
            sums.entry(partner).or_default()[index] += by;
        }
        let mut update = self.conn.prepare_cached(
            "UPDATE partner SET waiting = waiting + ?2, sending = sending + ?3,
                                delivered = delivered + ?4, dead = dead + ?5
             WHERE no = ?1",
        )?;
        for (partner, [waiting, sending, delivered, dead]) in sums {
            update.execute(params![partner, waiting, sending, delivered, dead])?;
        }
        Ok(())
    }

    /// Makes the next message of a lane due when its head has ended.
    pub(super) fn promote(&mut self, partner: i64, lane: Option<&str>) -> Result<(), Fault> {
        let Some(lane) = lane else { return Ok(()) };
        let mut find = self.conn.prepare_cached(
            "SELECT seq, class, due FROM message INDEXED BY message_lane
             WHERE partner = ?1 AND lane = ?2 AND lane IS NOT NULL AND state < 2
             ORDER BY place LIMIT 1",
        )?;
        let head: Option<(i64, i64, i64)> = find
            .query_row(params![partner, lane], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?))
            })
            .optional()?;
        if let Some((seq, class, due)) = head {
            let line = line(class_out(class), nat(due), self.now);
            self.conn
                .prepare_cached(
                    "UPDATE message SET line = ?2 WHERE seq = ?1 AND state = 0 AND line IS NULL",
                )?
                .execute(params![seq, line])?;
        }
        Ok(())
    }

    /// The place at the end of a lane, and whether it is the head.
    pub(super) fn place(
        &self,
        partner: i64,
        lane: Option<&str>,
    ) -> Result<(Option<i64>, bool), Fault> {
        let Some(lane) = lane else {
            return Ok((None, true));
        };
        let mut find = self.conn.prepare_cached(
            "SELECT max(place) FROM message INDEXED BY message_lane
             WHERE partner = ?1 AND lane = ?2 AND lane IS NOT NULL AND state < 2",
        )?;
        let last: Option<i64> = find.query_row(params![partner, lane], |r| r.get(0))?;
        Ok((Some(last.unwrap_or(0) + 1), last.is_none()))
    }

    /// Refuses a writer whose epoch is not the current one. Answers the partner's number.
    pub(super) fn fence(&self, lease: &Lease) -> Result<i64, Fault> {
        self.owner(lease).map(|(partner, _)| partner)
    }

    /// As [`fence`](Self::fence), and refuses a lease that has run out, too.
    pub(super) fn fence_sending(&self, lease: &Lease) -> Result<i64, Fault> {
        let (partner, until) = self.owner(lease)?;
        if until <= self.now {
            return Err(lost(lease, lease.epoch));
        }
        Ok(partner)
    }

    fn owner(&self, lease: &Lease) -> Result<(i64, u64), Fault> {
        let mut find = self.conn.prepare_cached(
            "SELECT no, epoch, until, owner IS NOT NULL FROM partner WHERE name = ?1",
        )?;
        let row: Option<(i64, i64, i64, bool)> = find
            .query_row([&lease.partner], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))
            })
            .optional()?;
        match row {
            Some((no, epoch, until, true)) if epoch == int(lease.epoch) => Ok((no, nat(until))),
            Some((_, epoch, _, _)) => Err(lost(lease, nat(epoch))),
            None => Err(lost(lease, 0)),
        }
    }
}

fn lost(lease: &Lease, current: u64) -> Fault {
    Fault::Store(StoreError::LeaseLost {
        partner: lease.partner.clone(),
        epoch: lease.epoch,
        current,
    })
}
