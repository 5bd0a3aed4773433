//! Intake: keys, atomicity, limits.

use std::sync::Arc;

use super::Harness;
use super::kit::{accepted, delivered, due, lease_of, message, send, typed};
use crate::{
    AcceptOutcome, Class, Counts, Filter, MAX_HEADERS, MAX_KEY, MAX_NAME, MAX_OPERATION, MAX_PATH,
    NewMessage, Outbox, State, StoreError,
};

/// IK-7: the caller repeats a request because the answer was lost.
pub async fn the_same_request_is_the_same_message(harness: &impl Harness) {
    let store = harness.open().await;
    let first = accepted(&store, message(&store, "acme", "k", "one")).await;
    let again = store
        .accept(message(&store, "acme", "k", "one"))
        .await
        .unwrap();
    assert_eq!(again, AcceptOutcome::Existing(first.clone()));
    assert_eq!(store.counts("acme").await.unwrap().waiting, 1);

    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, first.id, 1, delivered()).await;
    let later = store
        .accept(message(&store, "acme", "k", "one"))
        .await
        .unwrap();
    let AcceptOutcome::Existing(later) = later else {
        panic!("not the same: {later:?}")
    };
    assert_eq!(
        (later.id, later.state, later.attempts),
        (first.id, State::Delivered, 1)
    );
}

/// IK-7: the same key with other bytes must not go through in silence.
pub async fn another_request_with_the_key_conflicts(harness: &impl Harness) {
    let store = harness.open().await;
    let first = accepted(&store, message(&store, "acme", "k", "one")).await;
    let base = || message(&store, "acme", "k", "one");
    let remade = |mut other: NewMessage| {
        other.fingerprint = crate::fingerprint(&other.method, &other.path, None, &other.body);
        other
    };
    let others = [
        ("body", message(&store, "acme", "k", "two")),
        ("type", typed(base(), "text/plain")),
        (
            "method",
            remade(NewMessage {
                method: "PUT".into(),
                ..base()
            }),
        ),
        (
            "path",
            remade(NewMessage {
                path: "/other".into(),
                ..base()
            }),
        ),
    ];
    for (what, other) in others {
        let outcome = store.accept(other).await.unwrap();
        assert_eq!(
            outcome,
            AcceptOutcome::KeyConflict { id: first.id },
            "other {what}"
        );
    }
    assert_eq!(store.counts("acme").await.unwrap().waiting, 1);
}

/// One key may be used with two partners: they are two operations.
pub async fn a_key_is_unique_per_partner(harness: &impl Harness) {
    let store = harness.open().await;
    let acme = accepted(&store, message(&store, "acme", "k", "one")).await;
    let other = accepted(&store, message(&store, "other", "k", "one")).await;
    assert_ne!(acme.id, other.id);
}

/// IK-3: requests with one key at the same time; check-then-insert would let several through.
pub async fn one_key_from_64_tasks_makes_one_message(harness: &impl Harness) {
    let store = Arc::new(harness.open().await);
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store
                    .accept(message(&*store, "acme", "k", "one"))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let (mut new, mut ids) = (0, Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            AcceptOutcome::Accepted(summary) => {
                new += 1;
                ids.push(summary.id);
            }
            AcceptOutcome::Existing(summary) => ids.push(summary.id),
            AcceptOutcome::KeyConflict { id } => panic!("conflict with {id}"),
        }
    }
    ids.dedup();
    assert_eq!((new, ids.len()), (1, 1));
    assert_eq!(store.counts("acme").await.unwrap().waiting, 1);
}

/// ST-3: after the answer everything is there; a refused message leaves nothing, not even its key.
pub async fn a_message_is_there_whole_or_not_at_all(harness: &impl Harness) {
    let store = harness.open().await;
    let first = accepted(&store, message(&store, "acme", "k", "one")).await;
    assert_eq!(due(&store, Class::First).await, [first.id]);
    assert!(store.load(first.id).await.unwrap().is_some());

    let twin = NewMessage {
        id: first.id,
        ..message(&store, "acme", "k2", "two")
    };
    let refused = store.accept(twin).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::Invalid { field: "id", .. }),
        "{refused:?}"
    );
    assert_eq!(store.counts("acme").await.unwrap().waiting, 1);
    assert_eq!(
        store
            .list(&Filter::default(), None, 10)
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    accepted(&store, message(&store, "acme", "k2", "three")).await;
}

/// IK-2: the key is stored with the message, before anything is sent.
pub async fn a_key_outlives_a_restart(harness: &impl Harness) {
    let store = harness.open().await;
    let first = accepted(&store, message(&store, "acme", "k", "one")).await;
    drop(store);
    let store = harness.open().await;
    assert_eq!(store.load(first.id).await.unwrap().unwrap().key, "k");
    let again = store
        .accept(message(&store, "acme", "k", "one"))
        .await
        .unwrap();
    assert_eq!(again, AcceptOutcome::Existing(first));
}

/// What is sent is what came in, to the byte.
pub async fn content_comes_back_as_it_went_in(harness: &impl Harness) {
    let store = harness.open().await;
    let body: Vec<u8> = (0..100_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let sent = NewMessage {
        headers: vec![
            ("a".into(), b"1".to_vec()),
            ("a".into(), vec![0xff, 0]),
            ("b".into(), vec![]),
        ],
        path: String::new(),
        body: body.clone().into(),
        deadline: Some(store.now() + 5),
        ..message(&store, "acme", "käy", "")
    };
    let id = accepted(&store, sent.clone()).await.id;
    let content = store.load(id).await.unwrap().unwrap();
    assert_eq!(content.headers, sent.headers);
    assert_eq!(content.body, body);
    assert_eq!((content.key.as_str(), content.key_given), ("käy", true));
    assert_eq!(
        (content.method.as_str(), content.path.as_str()),
        ("POST", "")
    );
    let record = store.get(id).await.unwrap().unwrap();
    assert_eq!(record.body_len, 100_000);
    assert_eq!(record.operation, b"new");
    assert_eq!(record.summary.deadline, sent.deadline);
    assert_eq!(record.attempts, []);
}

/// Every size a stranger controls has a limit, and the answer names the field.
pub async fn sizes_have_limits(harness: &impl Harness) {
    let store = harness.open().await;
    let base = || message(&store, "acme", "k", "one");
    let long = |bytes: usize| "x".repeat(bytes);
    let bad = [
        (
            "partner",
            NewMessage {
                partner: long(MAX_NAME + 1),
                ..base()
            },
        ),
        (
            "partner",
            NewMessage {
                partner: String::new(),
                ..base()
            },
        ),
        (
            "lane",
            NewMessage {
                lane: Some(String::new()),
                ..base()
            },
        ),
        (
            "lane",
            NewMessage {
                lane: Some(long(MAX_NAME + 1)),
                ..base()
            },
        ),
        (
            "key",
            NewMessage {
                key: long(MAX_KEY + 1),
                ..base()
            },
        ),
        (
            "key",
            NewMessage {
                key: String::new(),
                ..base()
            },
        ),
        (
            "method",
            NewMessage {
                method: long(100),
                ..base()
            },
        ),
        (
            "path",
            NewMessage {
                path: long(MAX_PATH + 1),
                ..base()
            },
        ),
        (
            "headers",
            NewMessage {
                headers: vec![("a".into(), vec![0; MAX_HEADERS])],
                ..base()
            },
        ),
        (
            "operation",
            NewMessage {
                operation: vec![0; MAX_OPERATION + 1],
                ..base()
            },
        ),
    ];
    for (wanted, message) in bad {
        match store.accept(message).await {
            Err(StoreError::Invalid { field, .. }) => assert_eq!(field, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
    assert_eq!(store.counts("acme").await.unwrap(), Counts::default());
}
