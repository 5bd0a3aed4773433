//! The order in which messages become due.

use std::time::Duration;

use super::Harness;
use super::kit::{
    NONE, SECOND, accept_many, accepted, due, lease_of, message, send, settle_one, waiting,
};
use crate::{Class, NewMessage, NewState, Outbox};

/// First attempts: nearest deadline, then the order of acceptance; without a deadline last.
pub async fn first_attempts_by_deadline_then_sequence(harness: &impl Harness) {
    let store = harness.open().await;
    let mut ids = Vec::new();
    for (index, deadline) in [None, Some(9), Some(5), None, Some(9)]
        .into_iter()
        .enumerate()
    {
        let deadline = deadline.map(|seconds| store.now() + seconds * SECOND);
        let new = NewMessage {
            deadline,
            ..message(&store, "acme", &index.to_string(), "x")
        };
        ids.push(accepted(&store, new).await.id);
    }
    let wanted = [ids[2], ids[1], ids[4], ids[0], ids[3]];
    assert_eq!(due(&store, Class::First).await, wanted);
}

/// Retries: by due time, and none before it.
pub async fn retries_by_due_time(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 4).await;
    let lease = lease_of(&store, "a", "acme").await;
    let start = store.now();
    for (id, wait) in ids.iter().zip([3, 1, 100, 2]) {
        send(&store, &lease, *id, 1, waiting(start + wait * SECOND)).await;
    }
    assert_eq!(due(&store, Class::Retry).await, NONE);
    harness.advance(Duration::from_secs(3));
    assert_eq!(due(&store, Class::Retry).await, [ids[1], ids[3], ids[0]]);
    assert_eq!(due(&store, Class::First).await, NONE);
}

/// A message accepted for later, or put off, is due at its time, and then in its order.
pub async fn a_first_attempt_put_off_is_not_due_before(harness: &impl Harness) {
    let store = harness.open().await;
    let start = store.now();
    let late = NewMessage {
        due: start + 2 * SECOND,
        deadline: Some(start + 5 * SECOND),
        ..message(&store, "acme", "late", "x")
    };
    let late = accepted(&store, late).await.id;
    let ids = accept_many(&store, 2).await;
    let lease = lease_of(&store, "a", "acme").await;
    let hold = |due| NewState::Waiting {
        due,
        because: "hold".into(),
        class: Class::First,
    };
    assert_eq!(
        settle_one(&store, &lease, ids[0], 0, hold(start + SECOND)).await,
        Ok(())
    );
    assert_eq!(due(&store, Class::First).await, [ids[1]]);
    harness.advance(Duration::from_secs(1));
    assert_eq!(due(&store, Class::First).await, [ids[0], ids[1]]);
    harness.advance(Duration::from_secs(1));
    assert_eq!(due(&store, Class::First).await, [late, ids[0], ids[1]]);
}

/// A caller that holds some messages already goes on behind them.
pub async fn pages_of_due_messages_join_without_gap(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 7).await;
    let lease = lease_of(&store, "a", "acme").await;
    for class in [Class::First, Class::Retry] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store
                .due("acme", class, store.now(), 3, after)
                .await
                .unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= 3);
            after = Some(last.cursor());
            seen.extend(page.iter().map(|message| message.id));
        }
        assert_eq!(seen, ids, "{class:?}");
        if class == Class::First {
            // All with one due time: the order of acceptance decides.
            for id in &ids {
                send(&store, &lease, *id, 1, waiting(store.now())).await;
            }
        }
    }
}

/// The moment to look again.
pub async fn next_due_is_the_earliest_of_all_classes(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.next_due("acme").await.unwrap(), None);
    let ids = accept_many(&store, 2).await;
    let start = store.now();
    assert_eq!(store.next_due("acme").await.unwrap(), Some(start));
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, ids[0], 1, waiting(start + 8 * SECOND)).await;
    let hold = NewState::Waiting {
        due: start + 9 * SECOND,
        because: "hold".into(),
        class: Class::First,
    };
    send(&store, &lease, ids[1], 1, hold).await;
    assert_eq!(
        store.next_due("acme").await.unwrap(),
        Some(start + 8 * SECOND)
    );
    send(&store, &lease, ids[0], 2, super::kit::dead("exhausted")).await;
    assert_eq!(
        store.next_due("acme").await.unwrap(),
        Some(start + 9 * SECOND)
    );
    send(&store, &lease, ids[1], 2, super::kit::delivered()).await;
    assert_eq!(store.next_due("acme").await.unwrap(), None);
}
