//! The writer: one commit for many, a bounded queue, a clean end.
//!
//! A lock that another connection holds keeps the writer from committing while commands queue up.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::time::Duration;

use ressac_store::{AcceptOutcome, BoxFuture, Outbox, SqliteOptions, SqliteStore, StoreError};
use rusqlite::Connection;
use support::{accepted, lease, message, open};

fn hold(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn let_go(other: Connection) {
    other.execute_batch("ROLLBACK").unwrap();
    other.close().unwrap();
}

/// Sends a command, and gives its future back if it waits for its answer.
async fn send<T>(mut command: BoxFuture<'_, T>) -> Result<BoxFuture<'_, T>, StoreError> {
    // Polls once: until the command waits for its answer nothing in it waits.
    match tokio::time::timeout(Duration::ZERO, &mut command).await {
        Err(_) => Ok(command),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) => panic!("answered while the writer was held"),
    }
}

fn accept(store: &SqliteStore, bytes: usize) -> BoxFuture<'_, AcceptOutcome> {
    store.accept(message(store, vec![1; bytes]))
}

/// Many callers share one commit.
#[tokio::test]
async fn concurrent_accepts_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let other = hold(&path);
    let mut sent = Vec::new();
    for _ in 0..200 {
        sent.push(send(accept(&store, 10)).await.unwrap());
    }
    let_go(other);
    for answer in sent {
        answer.await.unwrap();
    }
    let stats = store.stats();
    // The writer may have begun with the first few while the rest came.
    assert_eq!(stats.commands, 200);
    assert!(stats.commits <= 3, "{stats:?}");
    assert!(stats.largest_batch >= 100, "{stats:?}");
    assert_eq!(store.counts("acme").await.unwrap().waiting, 200);
}

/// A full queue refuses intake at once and keeps a place for what settles it; nothing is lost.
#[tokio::test]
async fn a_full_queue_is_busy_for_intake_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(SqliteOptions::new(&path).queue(16))
        .await
        .unwrap();
    let held = lease(&store).await;
    let other = hold(&path);
    let mut sent = Vec::new();
    let refused = loop {
        match send(accept(&store, 10)).await {
            Ok(answer) => sent.push(answer),
            Err(error) => break error,
        }
        assert!(sent.len() < 1_000, "the queue has no end");
    };
    assert_eq!(refused, StoreError::Busy);
    assert!(sent.len() >= 14, "only {} fit", sent.len());
    let saving = send(store.save_partner(&held, b"x".to_vec()))
        .await
        .unwrap();
    let_go(other);
    saving.await.unwrap();
    let many = sent.len() as u64;
    for answer in sent {
        answer.await.unwrap();
    }
    assert_eq!(store.counts("acme").await.unwrap().waiting, many);
}

/// The bytes of queued bodies are bounded too, not only their number.
#[tokio::test]
async fn queued_bodies_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let options = SqliteOptions::new(&path).queue_bytes(1 << 20);
    let store = SqliteStore::open(options).await.unwrap();
    let other = hold(&path);
    let large = send(accept(&store, 900 << 10)).await.unwrap();
    let busy = send(accept(&store, 900 << 10)).await;
    assert_eq!(busy.err(), Some(StoreError::Busy));
    let small = send(accept(&store, 10)).await.unwrap();
    let_go(other);
    large.await.unwrap();
    small.await.unwrap();
    // Larger than the whole bound: taken when nothing else is queued.
    accepted(&store, vec![1; 2 << 20]).await;
}

/// Closing writes what is queued, empties the log, and says so to those who come later.
#[tokio::test]
async fn closing_drains_and_empties_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let other = hold(&path);
    let mut sent = Vec::new();
    for _ in 0..50 {
        sent.push(send(accept(&store, 10)).await.unwrap());
    }
    let_go(other);
    store.close().await.unwrap();
    for answer in sent {
        answer.await.unwrap();
    }
    assert_eq!(accept(&store, 10).await.unwrap_err(), StoreError::Closed);
    assert_eq!(store.counts("acme").await.unwrap_err(), StoreError::Closed);
    assert_eq!(store.close().await, Ok(()));
    let log = std::fs::metadata(folder.path().join("store.db-wal"));
    assert_eq!(log.map_or(0, |meta| meta.len()), 0);
    // The file is free at once.
    let store = open(&path).await;
    assert_eq!(store.counts("acme").await.unwrap().waiting, 50);
}

/// A caller that stops waiting cancels nothing that was queued.
#[tokio::test]
async fn a_caller_that_goes_away_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let other = hold(&path);
    let new = message(&store, vec![1]);
    let id = new.id;
    drop(send(store.accept(new)).await.unwrap());
    let_go(other);
    accepted(&store, vec![2]).await;
    assert!(store.get(id).await.unwrap().is_some());
    assert_eq!(store.counts("acme").await.unwrap().waiting, 2);
}

/// The log is moved into the file between commits, so that it does not grow for ever.
#[tokio::test]
async fn the_log_is_checkpointed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    for _ in 0..12 {
        accepted(&store, vec![1; 1 << 20]).await;
    }
    let stats = store.stats();
    assert!(stats.checkpoints >= 1, "{stats:?}");
    let log = std::fs::metadata(folder.path().join("store.db-wal"))
        .unwrap()
        .len();
    assert!(log < 10 << 20, "the log has {log} bytes");
}
