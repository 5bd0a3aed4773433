//! Replay, discard, prune.

use std::time::Duration;

use super::Harness;
use super::kit::{
    NONE, SECOND, accept_many, accepted, begin_one, dead, delivered, due, lease_of, message, send,
    settle_one, waiting,
};
use crate::{AcceptOutcome, Class, Discard, Outbox, Refusal, Replay, State, StoreError};

fn replay(id: uuid::Uuid, due: u64) -> Replay {
    Replay {
        id,
        due,
        deadline: Some(due + SECOND),
        operation: b"series two".to_vec(),
    }
}

fn discard(id: uuid::Uuid, force: bool) -> Discard {
    Discard {
        id,
        force,
        blame: "ours".into(),
        processed: "maybe".into(),
        operation: Some(b"given up".to_vec()),
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Refusal {
    match result {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// PA-4: a new series, so that the first failure does not kill it; history and key are kept.
pub async fn a_replay_is_a_new_series_with_history(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let key = store.load(id).await.unwrap().unwrap().key;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, id, 1, waiting(0)).await;
    send(&store, &lease, id, 2, dead("exhausted")).await;
    let died = store.now();
    harness.advance(Duration::from_secs(5));
    let due_at = store.now() + SECOND;
    let again = store.replay(replay(id, due_at)).await.unwrap();
    assert_eq!(
        (again.state, again.class, again.series),
        (State::Waiting, Class::Replay, 2)
    );
    assert_eq!(
        (again.attempts, again.due, again.reason),
        (0, Some(due_at), None)
    );
    assert_eq!(again.deadline, Some(due_at + SECOND));
    assert_eq!(due(&store, Class::Replay).await, NONE);
    harness.advance(Duration::from_secs(1));
    assert_eq!(due(&store, Class::Replay).await, [id]);

    send(&store, &lease, id, 1, waiting(0)).await;
    send(&store, &lease, id, 2, delivered()).await;
    let record = store.get(id).await.unwrap().unwrap();
    let attempts: Vec<_> = record
        .attempts
        .iter()
        .map(|entry| (entry.series, entry.record.number))
        .collect();
    assert_eq!(attempts, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(record.earlier.len(), 1);
    let first = &record.earlier[0];
    assert_eq!((first.series, first.reason.as_str()), (1, "exhausted"));
    assert_eq!((first.ended_at, first.processed.as_str()), (died, "maybe"));
    assert_eq!(store.load(id).await.unwrap().unwrap().key, key);
}

/// What is not dead has nothing to replay, and the answer says what it is.
pub async fn only_a_dead_letter_is_replayed(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(
        refusal(store.replay(replay(id, 0)).await),
        Refusal::State(State::Waiting)
    );
    assert_eq!(begin_one(&store, &lease, id, 1).await, Ok(()));
    assert_eq!(
        refusal(store.replay(replay(id, 0)).await),
        Refusal::State(State::Sending)
    );
    assert_eq!(settle_one(&store, &lease, id, 1, delivered()).await, Ok(()));
    assert_eq!(
        refusal(store.replay(replay(id, 0)).await),
        Refusal::State(State::Delivered)
    );
    let unknown = store.replay(replay(uuid::Uuid::now_v7(), 0)).await;
    assert_eq!(refusal(unknown), Refusal::NotFound);
}

/// LA-9: what waits can be given up; what had died keeps why.
pub async fn a_discard_fits_waiting_and_dead(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 3).await;
    let lease = lease_of(&store, "a", "acme").await;
    let gone = store.discard(discard(ids[0], false)).await.unwrap();
    assert_eq!(
        (gone.state, gone.reason.as_deref()),
        (State::Dead, Some("discarded"))
    );
    assert_eq!(gone.blame.as_deref(), Some("ours"));
    assert_eq!(
        begin_one(&store, &lease, ids[0], 1).await,
        Err(Refusal::State(State::Dead))
    );

    send(&store, &lease, ids[1], 1, dead("ambiguous")).await;
    store.discard(discard(ids[1], false)).await.unwrap();
    store.discard(discard(ids[1], false)).await.unwrap();
    let record = store.get(ids[1]).await.unwrap().unwrap();
    assert_eq!(record.summary.reason.as_deref(), Some("discarded"));
    assert_eq!(
        (record.earlier.len(), record.earlier[0].reason.as_str()),
        (1, "ambiguous")
    );
    assert_eq!(record.operation, b"given up");

    send(&store, &lease, ids[2], 1, delivered()).await;
    let refused = refusal(store.discard(discard(ids[2], true)).await);
    assert_eq!(refused, Refusal::State(State::Delivered));
    let counts = store.counts("acme").await.unwrap();
    assert_eq!((counts.waiting, counts.delivered, counts.dead), (0, 1, 2));
}

/// What is on the wire may arrive: only force ends it, and what comes of it is kept.
pub async fn a_discard_while_sending_is_forced_and_leaves_evidence(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &lease, id, 1).await, Ok(()));
    let refused = refusal(store.discard(discard(id, false)).await);
    assert_eq!(refused, Refusal::State(State::Sending));
    store.discard(discard(id, true)).await.unwrap();
    let late = settle_one(&store, &lease, id, 1, delivered()).await;
    assert_eq!(late, Err(Refusal::State(State::Dead)));
    let kept = store.late_settles("acme", 10).await.unwrap();
    assert_eq!(
        (kept.len(), kept[0].id, kept[0].wanted.as_str()),
        (1, id, "delivered")
    );
    assert_eq!(store.counts("acme").await.unwrap().dead, 1);
}

/// DM-2: bounded steps, delivered messages only, with their attempts and their keys.
pub async fn pruning_takes_delivered_messages_in_steps(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 7).await;
    let lease = lease_of(&store, "a", "acme").await;
    for id in &ids[..4] {
        send(&store, &lease, *id, 1, delivered()).await;
    }
    send(&store, &lease, ids[4], 1, dead("exhausted")).await;
    let old = store.now();
    harness.advance(Duration::from_secs(10));
    send(&store, &lease, ids[5], 1, delivered()).await;

    assert_eq!(store.prune(old, 100).await.unwrap(), 0);
    assert_eq!(store.prune(old + 1, 3).await.unwrap(), 3);
    assert_eq!(store.prune(old + 1, 3).await.unwrap(), 1);
    assert_eq!(store.prune(old + 1, 3).await.unwrap(), 0);
    assert_eq!(store.get(ids[0]).await.unwrap(), None);
    assert_eq!(store.load(ids[0]).await.unwrap(), None);
    for id in &ids[4..] {
        assert!(store.get(*id).await.unwrap().is_some());
    }
    let counts = store.counts("acme").await.unwrap();
    assert_eq!((counts.waiting, counts.delivered, counts.dead), (1, 1, 1));
    accepted(&store, message(&store, "acme", "key-0", "key-0")).await;
    let kept = store
        .accept(message(&store, "acme", "key-5", "key-5"))
        .await
        .unwrap();
    assert!(matches!(kept, AcceptOutcome::Existing(_)), "{kept:?}");
}
