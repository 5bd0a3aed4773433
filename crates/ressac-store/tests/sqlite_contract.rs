//! The SQLite store keeps the contract.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use ressac_store::contract::Harness;
use ressac_store::{ManualClock, SqliteOptions, SqliteStore};

struct InAFolder {
    folder: tempfile::TempDir,
    clock: ManualClock,
}

impl InAFolder {
    fn new() -> Self {
        let clock = ManualClock::new(1_800_000_000_000_000_000);
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock,
        }
    }
}

impl Harness for InAFolder {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        let options = SqliteOptions::new(self.folder.path().join("store.db"));
        SqliteStore::open(options.clock(self.clock.clone()))
            .await
            .unwrap()
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

ressac_store::outbox_contract!(InAFolder::new());
