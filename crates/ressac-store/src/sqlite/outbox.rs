//! The trait, call by call: check, then send to the writer or read.

use std::time::Duration;

use uuid::Uuid;

use super::store::SqliteStore;
use super::{accept, admin, deliver, lease, list, queue, read};
use crate::outbox::{BoxFuture, Outbox};
use crate::types::{
    AcceptOutcome, Begin, Class, Counts, Discard, DueCursor, DueMessage, Filter, ItemResult,
    LateSettle, Lease, MessageContent, MessageRecord, MessageSummary, NewMessage, Page,
    PartnerStatus, PutBack, Replay, Settle, Stats,
};

impl Outbox for SqliteStore {
    fn accept(&self, message: NewMessage) -> BoxFuture<'_, AcceptOutcome> {
        Box::pin(async move {
            accept::check(&message, self.max_body)?;
            self.take_in(accept::weight(&message), move |tx| {
                accept::accept(tx, &message)
            })
            .await
        })
    }

    fn acquire<'a>(
        &'a self,
        instance: &'a str,
        partners: &'a [String],
        ttl: Duration,
    ) -> BoxFuture<'a, Vec<Lease>> {
        Box::pin(async move {
            lease::check_names(instance, partners)?;
            let (instance, partners) = (instance.to_owned(), partners.to_vec());
            self.write(0, move |tx| lease::acquire(tx, &instance, &partners, ttl))
                .await
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], ttl: Duration) -> BoxFuture<'a, Vec<Lease>> {
        let leases = leases.to_vec();
        Box::pin(self.write(0, move |tx| lease::renew(tx, &leases, ttl)))
    }

    fn release<'a>(&'a self, leases: &'a [Lease]) -> BoxFuture<'a, ()> {
        let leases = leases.to_vec();
        Box::pin(self.write(0, move |tx| lease::release(tx, &leases)))
    }

    fn due<'a>(
        &'a self,
        partner: &'a str,
        class: Class,
        now: u64,
        limit: usize,
        after: Option<DueCursor>,
    ) -> BoxFuture<'a, Vec<DueMessage>> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| queue::due(conn, &partner, class, now, limit, after)),
        )
    }

    fn next_due<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Option<u64>> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| queue::next_due(conn, &partner)),
        )
    }

    fn in_flight<'a>(
        &'a self,
        partner: &'a str,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Vec<DueMessage>> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| queue::in_flight(conn, &partner, after_seq, limit)),
        )
    }

    fn load(&self, id: Uuid) -> BoxFuture<'_, Option<MessageContent>> {
        Box::pin(self.readers.clone().read(move |conn| read::load(conn, id)))
    }

    fn begin<'a>(&'a self, lease: &'a Lease, items: Vec<Begin>) -> BoxFuture<'a, Vec<ItemResult>> {
        Box::pin(async move {
            deliver::check_items(items.len())?;
            let lease = lease.clone();
            let bytes = items.iter().map(|item| item.operation.len()).sum();
            self.write(bytes, move |tx| deliver::begin(tx, &lease, &items))
                .await
        })
    }

    fn settle<'a>(
        &'a self,
        lease: &'a Lease,
        items: Vec<Settle>,
    ) -> BoxFuture<'a, Vec<ItemResult>> {
        Box::pin(async move {
            deliver::check_items(items.len())?;
            let lease = lease.clone();
            let bytes = items.iter().map(|item| item.operation.len()).sum();
            self.write(bytes, move |tx| deliver::settle(tx, &lease, &items))
                .await?
        })
    }

    fn put_back<'a>(
        &'a self,
        lease: &'a Lease,
        items: Vec<PutBack>,
    ) -> BoxFuture<'a, Vec<ItemResult>> {
        Box::pin(async move {
            deliver::check_items(items.len())?;
            let lease = lease.clone();
            let bytes = items.iter().map(|item| item.operation.len()).sum();
            self.write(bytes, move |tx| deliver::put_back(tx, &lease, &items))
                .await
        })
    }

    fn save_partner<'a>(&'a self, lease: &'a Lease, snapshot: Vec<u8>) -> BoxFuture<'a, ()> {
        let lease = lease.clone();
        let bytes = snapshot.len();
        Box::pin(self.write(bytes, move |tx| lease::save_partner(tx, &lease, &snapshot)))
    }

    fn load_partner<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| list::load_partner(conn, &partner)),
        )
    }

    fn get(&self, id: Uuid) -> BoxFuture<'_, Option<MessageRecord>> {
        Box::pin(self.readers.clone().read(move |conn| read::get(conn, id)))
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Page> {
        Box::pin(async move {
            let before = list::cursor_in(cursor)?;
            let filter = filter.clone();
            let readers = self.readers.clone();
            readers
                .read(move |conn| list::list(conn, &filter, before, limit))
                .await
        })
    }

    fn counts<'a>(&'a self, partner: &'a str) -> BoxFuture<'a, Counts> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| list::counts(conn, &partner)),
        )
    }

    fn partners(&self) -> BoxFuture<'_, Vec<PartnerStatus>> {
        Box::pin(self.readers.clone().read(list::partners))
    }

    fn replay(&self, replay: Replay) -> BoxFuture<'_, MessageSummary> {
        let bytes = replay.operation.len();
        Box::pin(self.write(bytes, move |tx| admin::replay(tx, &replay)))
    }

    fn discard(&self, discard: Discard) -> BoxFuture<'_, MessageSummary> {
        Box::pin(self.write(0, move |tx| admin::discard(tx, &discard)))
    }

    fn late_settles<'a>(
        &'a self,
        partner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Vec<LateSettle>> {
        let partner = partner.to_owned();
        Box::pin(
            self.readers
                .clone()
                .read(move |conn| list::late_settles(conn, &partner, limit)),
        )
    }

    fn prune(&self, older_than: u64, limit: usize) -> BoxFuture<'_, u64> {
        Box::pin(self.write(0, move |tx| admin::prune(tx, older_than, limit)))
    }

    fn stats(&self) -> Stats {
        self.figures()
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shut())
    }
}
