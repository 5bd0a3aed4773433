//! What every store must do, run against each of them in a time that the test moves.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::record::{Fingerprint, RecordId};
use super::reply::StoredReply;
use super::store::{Begin, IdempotencyStore, Mark};

const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(86_400);
const PRINT: Fingerprint = Fingerprint::from_bytes([1; 32]);
const OTHER: Fingerprint = Fingerprint::from_bytes([2; 32]);

fn id(key: &str) -> RecordId {
    RecordId::new("", b"caller", key)
}

fn reply(body: &'static str) -> StoredReply {
    StoredReply::new(StatusCode::CREATED, HeaderMap::new(), body.into())
}

/// A store, and a way to let time pass for it.
pub(super) struct Case<'a> {
    pub(super) store: &'a dyn IdempotencyStore,
    pub(super) pass: &'a dyn Fn(Duration),
}

impl Case<'_> {
    async fn begin(&self, key: &str, print: Fingerprint) -> Begin {
        self.store.begin(id(key), print, LEASE).await.unwrap()
    }

    async fn fresh(&self, key: &str) -> Mark {
        match self.begin(key, PRINT).await {
            Begin::Fresh(mark) => mark,
            other => panic!("{key}: {other:?}"),
        }
    }

    async fn complete(&self, mark: Mark, body: &'static str) -> bool {
        self.store.complete(mark, reply(body), DAY).await.unwrap()
    }

    pub(super) async fn all(&self) {
        self.the_table_of_keys().await;
        self.ik_6_a_lease_ends_and_is_renewed().await;
        self.la_3_the_late_are_refused().await;
        self.the_late_that_nobody_replaced_are_heard().await;
        self.ik_5_a_key_let_go_is_new().await;
    }

    async fn the_table_of_keys(&self) {
        let mark = self.fresh("table").await;
        assert_eq!(self.begin("table", OTHER).await, Begin::Mismatch);
        (self.pass)(Duration::from_secs(10));
        let rest = LEASE - Duration::from_secs(10);
        assert_eq!(self.begin("table", PRINT).await, Begin::InFlight { rest });
        assert!(self.complete(mark, "paid").await);
        assert_eq!(
            self.begin("table", PRINT).await,
            Begin::Replay(reply("paid"))
        );
        assert_eq!(self.begin("table", OTHER).await, Begin::Mismatch);
        (self.pass)(DAY - Duration::from_secs(1));
        assert_eq!(
            self.begin("table", PRINT).await,
            Begin::Replay(reply("paid"))
        );
        (self.pass)(Duration::from_secs(1));
        assert!(matches!(self.begin("table", OTHER).await, Begin::Fresh(_)));
    }

    async fn ik_6_a_lease_ends_and_is_renewed(&self) {
        let mark = self.fresh("lease").await;
        for _ in 0..5 {
            (self.pass)(Duration::from_secs(20));
            assert!(self.store.renew(mark, LEASE).await.unwrap());
        }
        (self.pass)(LEASE - Duration::from_secs(1));
        let busy = self.begin("lease", PRINT).await;
        assert!(matches!(busy, Begin::InFlight { .. }), "{busy:?}");
        (self.pass)(Duration::from_secs(1));
        assert_ne!(self.fresh("lease").await.ticket, mark.ticket);
    }

    async fn la_3_the_late_are_refused(&self) {
        let old = self.fresh("late").await;
        (self.pass)(LEASE);
        let new = self.fresh("late").await;
        assert!(!self.store.renew(old, LEASE).await.unwrap());
        assert!(!self.complete(old, "old").await);
        self.store.release(old).await.unwrap();
        let busy = self.begin("late", PRINT).await;
        assert!(matches!(busy, Begin::InFlight { .. }), "{busy:?}");
        assert!(self.complete(new, "new").await);
        assert!(!self.complete(old, "old").await);
        self.store.release(old).await.unwrap();
        assert_eq!(self.begin("late", PRINT).await, Begin::Replay(reply("new")));
        // A renewal that comes after the reply takes nothing back.
        assert!(!self.store.renew(new, LEASE).await.unwrap());
        assert_eq!(self.begin("late", PRINT).await, Begin::Replay(reply("new")));
    }

    /// The effect was had, though the lease was over: better late than twice.
    async fn the_late_that_nobody_replaced_are_heard(&self) {
        let slow = self.fresh("slow").await;
        let swept = self.fresh("swept").await;
        (self.pass)(LEASE * 2);
        assert!(self.complete(slow, "slow").await);
        assert_eq!(
            self.begin("slow", PRINT).await,
            Begin::Replay(reply("slow"))
        );
        // Another took the key and let it go; what is left is that this one was done.
        let second = self.fresh("swept").await;
        self.store.release(second).await.unwrap();
        assert!(!self.store.renew(swept, LEASE).await.unwrap());
        assert!(self.complete(swept, "swept").await);
        assert_eq!(
            self.begin("swept", PRINT).await,
            Begin::Replay(reply("swept"))
        );
        assert_eq!(self.begin("swept", OTHER).await, Begin::Mismatch);
    }

    async fn ik_5_a_key_let_go_is_new(&self) {
        let mark = self.fresh("free").await;
        self.store.release(mark).await.unwrap();
        assert!(matches!(self.begin("free", OTHER).await, Begin::Fresh(_)));
    }
}
