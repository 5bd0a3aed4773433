//! Its bounds, and the contract of every store.
#![allow(clippy::unwrap_used)]

use std::pin::pin;
use std::task::{Context, Waker};

use http::{HeaderMap, StatusCode};

use super::*;
use crate::idempotency::contract::Case;

const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(86_400);
const PRINT: Fingerprint = Fingerprint::from_bytes([7; 32]);

fn id(n: usize) -> RecordId {
    RecordId::new("", b"", &n.to_string())
}

fn reply(bytes: usize) -> StoredReply {
    StoredReply::new(StatusCode::OK, HeaderMap::new(), vec![b'x'; bytes].into())
}

async fn fresh(store: &MemoryStore, n: usize) -> Mark {
    match store.begin(id(n), PRINT, LEASE).await.unwrap() {
        Begin::Fresh(mark) => mark,
        other => panic!("{other:?}"),
    }
}

async fn done(store: &MemoryStore, n: usize, bytes: usize) {
    let mark = fresh(store, n).await;
    assert!(store.complete(mark, reply(bytes), DAY).await.unwrap());
}

async fn replays(store: &MemoryStore, n: usize) -> bool {
    matches!(
        store.begin(id(n), PRINT, LEASE).await.unwrap(),
        Begin::Replay(_)
    )
}

#[tokio::test(start_paused = true)]
async fn it_keeps_the_contract() {
    let pass = |time| {
        // The first poll moves the clock, then it would let others run: there are none.
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(tokio::time::advance(time)).poll(&mut cx).is_pending());
    };
    let store = MemoryStore::new();
    let case = Case {
        store: &store,
        pass: &pass,
    };
    case.all().await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_bounded_and_one_in_flight_is_never_forgotten() {
    let store = MemoryStore::with(MemoryOptions::default().max_keys(3));
    let held = fresh(&store, 0).await;
    for n in 1..=20 {
        done(&store, n, 10).await;
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!((store.len(), store.forgotten()), (3, 18));
    assert!(replays(&store, 20).await && replays(&store, 19).await);
    assert!(store.renew(held, LEASE).await.unwrap());
    fresh(&store, 30).await;
    fresh(&store, 31).await;
    let full = store.begin(id(32), PRINT, LEASE).await.unwrap();
    assert_eq!(full, Begin::Full);
    // A lease that is over makes room.
    tokio::time::advance(LEASE).await;
    fresh(&store, 32).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_are_bounded() {
    let store = MemoryStore::with(MemoryOptions::default().max_bytes(1_000));
    for n in 0..50 {
        done(&store, n, 300).await;
        assert!(store.bytes() <= 1_000);
    }
    assert!(replays(&store, 49).await);
    assert!(!replays(&store, 0).await);
    let mark = fresh(&store, 99).await;
    let refused = store.complete(mark, reply(1_001), DAY).await;
    let wanted = StoreError::NoRoom {
        needed: 1_001,
        limit: 1_000,
    };
    assert_eq!(refused, Err(wanted));
    // The key is still held: nothing was half done.
    assert!(store.complete(mark, reply(1_000), DAY).await.unwrap());
    assert_eq!(store.bytes(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_swept_without_being_asked_for() {
    let store = MemoryStore::new();
    for n in 0..100 {
        done(&store, n, 10).await;
    }
    tokio::time::advance(DAY).await;
    for n in 100..140 {
        fresh(&store, n).await;
    }
    assert_eq!((store.len(), store.bytes(), store.forgotten()), (40, 0, 0));
}
