//! Delivery: what a crash leaves, what a settle writes.

use std::time::Duration;

use super::Harness;
use super::kit::{
    NONE, SECOND, accept_many, accepted, attempt, begin, begin_one, dead, delivered, due,
    due_messages, lease_of, message, send, settle, settle_one, waiting,
};
use crate::{
    Class, MAX_EXCERPT, MAX_NOTE, MAX_OPERATION, MAX_WORD, NewState, Outbox, PutBack, Refusal,
    Settle, State,
};

/// ST-5, ST-1: a mark without an outcome is work to do, never a success and never lost.
pub async fn an_open_attempt_is_work_after_a_crash(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 3).await;
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &lease, ids[1], 1).await, Ok(()));
    drop(store);

    let store = harness.open().await;
    harness.advance(Duration::from_secs(3_600));
    let lease = lease_of(&store, "b", "acme").await;
    let open = store.in_flight("acme", 0, 10).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(
        (open[0].id, open[0].attempt, open[0].operation.as_slice()),
        (ids[1], 1, &b"begun"[..])
    );
    assert!(open[0].begun_at.is_some());
    assert_eq!(due(&store, Class::First).await, [ids[0], ids[2]]);

    assert_eq!(
        settle_one(&store, &lease, ids[1], 1, waiting(store.now())).await,
        Ok(())
    );
    assert_eq!(store.in_flight("acme", 0, 10).await.unwrap(), []);
    assert_eq!(due(&store, Class::Retry).await, [ids[1]]);
}

/// ST-6: the counter is saved before the attempt is sent, so that it cannot be sent for ever.
pub async fn an_attempt_counts_before_it_is_sent(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &lease, id, 1).await, Ok(()));
    drop(store);

    let store = harness.open().await;
    harness.advance(Duration::from_secs(3_600));
    let record = store.get(id).await.unwrap().unwrap();
    assert_eq!(
        (record.summary.state, record.summary.attempts),
        (State::Sending, 1)
    );
    assert_eq!(record.attempts.len(), 1);
    assert_eq!(record.attempts[0].record.ended_at, None);
    let lease = lease_of(&store, "b", "acme").await;
    assert_eq!(
        settle_one(&store, &lease, id, 1, waiting(store.now())).await,
        Ok(())
    );
    let repeated = begin_one(&store, &lease, id, 1).await;
    assert_eq!(repeated, Err(Refusal::Attempt { given: 1, open: 1 }));
    send(&store, &lease, id, 2, delivered()).await;
}

/// All that was said about an attempt and an end can be read again.
pub async fn a_settle_says_where_it_goes(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 2).await;
    let lease = lease_of(&store, "a", "acme").await;
    let later = store.now() + 10 * SECOND;
    send(&store, &lease, ids[0], 1, waiting(later)).await;
    let record = store.get(ids[0]).await.unwrap().unwrap();
    assert_eq!(record.summary.state, State::Waiting);
    assert_eq!(record.summary.due, Some(later));
    assert_eq!(
        (record.summary.because.as_str(), record.summary.class),
        ("backoff", Class::Retry)
    );
    assert_eq!(record.operation, b"settled");
    assert_eq!(record.attempts[0].record, attempt(&store, 1));

    send(&store, &lease, ids[0], 2, dead("exhausted")).await;
    let ended = store.get(ids[0]).await.unwrap().unwrap().summary;
    assert_eq!(
        (ended.state, ended.ended_at),
        (State::Dead, Some(store.now()))
    );
    assert_eq!(ended.reason.as_deref(), Some("exhausted"));
    assert_eq!(ended.blame.as_deref(), Some("partner"));
    assert_eq!(ended.processed.as_deref(), Some("maybe"));
    assert_eq!(ended.due, None);

    send(&store, &lease, ids[1], 1, delivered()).await;
    let ended = store.get(ids[1]).await.unwrap().unwrap().summary;
    assert_eq!(
        (ended.state, ended.reason.as_deref()),
        (State::Delivered, Some("delivered"))
    );
    for class in [Class::First, Class::Retry, Class::Replay] {
        assert_eq!(due(&store, class).await, NONE);
    }
}

/// ST-7: one bad row sinks no other.
pub async fn one_bad_item_sinks_no_other(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 4).await;
    let lease = lease_of(&store, "a", "acme").await;
    let mut begins: Vec<_> = ids.iter().map(|id| begin(&store, *id, 1)).collect();
    begins[1].operation = vec![0; MAX_OPERATION + 1];
    begins.push(begin(&store, uuid::Uuid::now_v7(), 1));
    let begun = store.begin(&lease, begins).await.unwrap();
    assert!(
        matches!(begun[1], Err(Refusal::Invalid(_))),
        "{:?}",
        begun[1]
    );
    assert_eq!(begun[4], Err(Refusal::NotFound));
    assert_eq!(
        (&begun[0], &begun[2], &begun[3]),
        (&Ok(()), &Ok(()), &Ok(()))
    );

    let mut settles: Vec<_> = ids
        .iter()
        .map(|id| settle(&store, *id, 1, delivered()))
        .collect();
    settles[2].operation = vec![0; MAX_OPERATION + 1];
    let settled = store.settle(&lease, settles).await.unwrap();
    assert_eq!((&settled[0], &settled[3]), (&Ok(()), &Ok(())));
    assert_eq!(settled[1], Err(Refusal::State(State::Waiting)));
    assert!(
        matches!(settled[2], Err(Refusal::Invalid(_))),
        "{:?}",
        settled[2]
    );
    let counts = store.counts("acme").await.unwrap();
    assert_eq!(
        (counts.waiting, counts.sending, counts.delivered),
        (1, 1, 2)
    );
}

/// ST-7: an error text of a megabyte must not keep the outcome from being recorded.
pub async fn long_texts_are_cut_not_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &lease, id, 1).await, Ok(()));
    let mut item = settle(&store, id, 1, dead(&"r".repeat(1_000)));
    let long = item.attempt.as_mut().unwrap();
    long.note = "ä".repeat(1 << 20);
    long.kind = "k".repeat(1_000);
    long.reply_head = vec![b'h'; 1 << 20];
    long.reply_body = vec![b'b'; 1 << 20];
    assert_eq!(store.settle(&lease, vec![item]).await.unwrap(), [Ok(())]);
    let record = store.get(id).await.unwrap().unwrap();
    let kept = &record.attempts[0].record;
    assert_eq!((kept.note.len(), kept.kind.len()), (MAX_NOTE, MAX_WORD));
    assert_eq!(
        (kept.reply_head.len(), kept.reply_body.len()),
        (MAX_EXCERPT, MAX_EXCERPT)
    );
    assert_eq!(
        record.summary.reason.map(|reason| reason.len()),
        Some(MAX_WORD)
    );
}

/// What was begun and not sent was no attempt.
pub async fn put_back_forgets_the_attempt(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, id, 1, waiting(0)).await;
    assert_eq!(begin_one(&store, &lease, id, 2).await, Ok(()));
    let back = |due| PutBack {
        id,
        due,
        because: "breaker".into(),
        class: Class::Retry,
        operation: b"back".to_vec(),
    };
    let due_at = store.now() + SECOND;
    assert_eq!(
        store.put_back(&lease, vec![back(due_at)]).await.unwrap(),
        [Ok(())]
    );
    let record = store.get(id).await.unwrap().unwrap();
    assert_eq!((record.summary.attempts, record.attempts.len()), (1, 1));
    assert_eq!(
        (record.summary.due, record.operation.as_slice()),
        (Some(due_at), &b"back"[..])
    );
    let twice = store.put_back(&lease, vec![back(due_at)]).await.unwrap();
    assert_eq!(twice, [Err(Refusal::State(State::Waiting))]);
    assert_eq!(begin_one(&store, &lease, id, 2).await, Ok(()));
}

/// A window can close while a message waits; it ends without an attempt.
pub async fn a_waiting_message_can_end_unsent(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accepted(&store, message(&store, "acme", "k", "one"))
        .await
        .id;
    let lease = lease_of(&store, "a", "acme").await;
    let moved = NewState::Waiting {
        due: 7,
        because: "hold".into(),
        class: Class::First,
    };
    assert_eq!(settle_one(&store, &lease, id, 0, moved).await, Ok(()));
    assert_eq!(due_messages(&store, Class::First).await[0].due, 7);
    assert_eq!(
        settle_one(&store, &lease, id, 0, dead("window_closed")).await,
        Ok(())
    );
    let record = store.get(id).await.unwrap().unwrap();
    assert_eq!(
        (record.summary.state, record.attempts.len()),
        (State::Dead, 0)
    );
}

/// A settle names the attempt that it closes; another number, or none, closes nothing.
pub async fn only_the_open_attempt_settles(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let lease = lease_of(&store, "a", "acme").await;
    let early = settle_one(&store, &lease, id, 1, delivered()).await;
    assert_eq!(early, Err(Refusal::State(State::Waiting)));
    assert_eq!(begin_one(&store, &lease, id, 1).await, Ok(()));
    let twice = begin_one(&store, &lease, id, 2).await;
    assert_eq!(twice, Err(Refusal::State(State::Sending)));
    let wrong = settle_one(&store, &lease, id, 2, delivered()).await;
    assert_eq!(wrong, Err(Refusal::Attempt { given: 2, open: 1 }));
    let none = settle_one(&store, &lease, id, 0, delivered()).await;
    assert_eq!(none, Err(Refusal::AttemptOpen { open: 1 }));
    assert_eq!(store.counts("acme").await.unwrap().sending, 1);
    assert_eq!(settle_one(&store, &lease, id, 1, delivered()).await, Ok(()));
    let again = settle_one(&store, &lease, id, 1, dead("exhausted")).await;
    assert_eq!(again, Err(Refusal::State(State::Delivered)));
    let too_many = vec![
        Settle {
            id,
            attempt: None,
            next: delivered(),
            operation: Vec::new()
        };
        crate::MAX_ITEMS + 1
    ];
    assert!(store.settle(&lease, too_many).await.is_err());
}
