//! What the tests of the SQLite store share.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ressac_store::{
    AcceptOutcome, AttemptRecord, Begin, Lease, MessageSummary, NewMessage, NewState, Outbox,
    Settle, SqliteOptions, SqliteStore,
};

/// Set in a child process; holds the path of the store.
pub(crate) const CHILD: &str = "RESSAC_STORE_TEST_CHILD";

pub(crate) async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteOptions::new(path)).await.unwrap()
}

pub(crate) fn message(store: &SqliteStore, body: Vec<u8>) -> NewMessage {
    NewMessage::new("acme", "POST", "/in", body, store.now())
}

pub(crate) async fn accepted(store: &SqliteStore, body: Vec<u8>) -> MessageSummary {
    match store.accept(message(store, body)).await.unwrap() {
        AcceptOutcome::Accepted(summary) => summary,
        other => panic!("not accepted: {other:?}"),
    }
}

pub(crate) async fn lease(store: &SqliteStore) -> Lease {
    let partners = ["acme".to_owned()];
    store
        .acquire("test", &partners, Duration::from_secs(3_600))
        .await
        .unwrap()
        .remove(0)
}

pub(crate) fn begin(store: &SqliteStore, id: uuid::Uuid) -> Begin {
    Begin {
        id,
        attempt: 1,
        started_at: store.now(),
        operation: b"begun".to_vec(),
    }
}

pub(crate) fn delivered(id: uuid::Uuid) -> Settle {
    let attempt = AttemptRecord {
        number: 1,
        ..AttemptRecord::default()
    };
    let next = NewState::Delivered {
        reason: "delivered".into(),
    };
    Settle {
        id,
        attempt: Some(attempt),
        next,
        operation: b"done".to_vec(),
    }
}

/// This test binary again, to run one test of it as a child on the store at `path`.
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, path);
    command
}
