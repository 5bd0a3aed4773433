//! Within a lane the sequence rules.

use super::Harness;
use super::kit::{
    NONE, accepted, begin_one, dead, delivered, due, in_lane, lease_of, send, settle_one, waiting,
};
use crate::{Class, Discard, Outbox, Refusal, Replay, State};

async fn three(store: &impl Outbox) -> [uuid::Uuid; 3] {
    let mut ids = [uuid::Uuid::nil(); 3];
    for (id, key) in ids.iter_mut().zip(["A", "B", "C"]) {
        *id = accepted(store, in_lane(store, "orders", key)).await.id;
    }
    ids
}

/// What stands behind an unfinished message is not due and cannot be begun.
pub async fn only_the_head_of_a_lane_is_due(harness: &impl Harness) {
    let store = harness.open().await;
    let [a, b, _] = three(&store).await;
    let other = accepted(&store, in_lane(&store, "invoices", "D")).await.id;
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(due(&store, Class::First).await, [a, other]);
    assert_eq!(begin_one(&store, &lease, b, 1).await, Err(Refusal::Behind));
    assert_eq!(begin_one(&store, &lease, a, 1).await, Ok(()));
    assert_eq!(due(&store, Class::First).await, [other]);
    assert_eq!(settle_one(&store, &lease, a, 1, delivered()).await, Ok(()));
    assert_eq!(due(&store, Class::First).await, [b, other]);
}

/// LA-2: A is dead; B and C go, each once.
pub async fn a_dead_head_lets_the_next_one_go(harness: &impl Harness) {
    let store = harness.open().await;
    let [a, b, c] = three(&store).await;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, a, 1, dead("permanent")).await;
    send(&store, &lease, b, 1, delivered()).await;
    send(&store, &lease, c, 1, delivered()).await;
    assert_eq!(due(&store, Class::First).await, NONE);
    let counts = store.counts("acme").await.unwrap();
    assert_eq!((counts.dead, counts.delivered), (1, 2));
}

/// A replay cannot overtake, and is not overtaken by, what its lane does meanwhile.
pub async fn a_replay_joins_its_lane_at_the_end(harness: &impl Harness) {
    let store = harness.open().await;
    let [a, b, c] = three(&store).await;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, a, 1, dead("permanent")).await;
    let again = Replay {
        id: a,
        due: 0,
        deadline: None,
        operation: b"again".to_vec(),
    };
    store.replay(again).await.unwrap();
    assert_eq!(due(&store, Class::Replay).await, NONE);
    let d = accepted(&store, in_lane(&store, "orders", "D")).await.id;
    send(&store, &lease, b, 1, delivered()).await;
    send(&store, &lease, c, 1, delivered()).await;
    assert_eq!(due(&store, Class::First).await, NONE);
    assert_eq!(due(&store, Class::Replay).await, [a]);
    send(&store, &lease, a, 1, delivered()).await;
    assert_eq!(due(&store, Class::First).await, [d]);
}

/// A message that waits for its retry is still the head.
pub async fn a_retry_keeps_its_lane_waiting(harness: &impl Harness) {
    let store = harness.open().await;
    let [a, b, _] = three(&store).await;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, a, 1, waiting(store.now())).await;
    assert_eq!(due(&store, Class::First).await, NONE);
    assert_eq!(due(&store, Class::Retry).await, [a]);
    drop(store);
    let store = harness.open().await;
    harness.advance(std::time::Duration::from_secs(3_600));
    let lease = lease_of(&store, "b", "acme").await;
    assert_eq!(due(&store, Class::First).await, NONE);
    send(&store, &lease, a, 2, delivered()).await;
    assert_eq!(due(&store, Class::First).await, [b]);
}

/// Giving up a message in the middle neither frees nor blocks the others.
pub async fn a_discard_behind_the_head_changes_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let [a, b, c] = three(&store).await;
    let lease = lease_of(&store, "a", "acme").await;
    let discard = |id| Discard {
        id,
        force: false,
        blame: "ours".into(),
        processed: "no".into(),
        operation: None,
    };
    assert_eq!(store.discard(discard(b)).await.unwrap().state, State::Dead);
    assert_eq!(due(&store, Class::First).await, [a]);
    assert_eq!(begin_one(&store, &lease, c, 1).await, Err(Refusal::Behind));
    store.discard(discard(a)).await.unwrap();
    assert_eq!(due(&store, Class::First).await, [c]);
}
