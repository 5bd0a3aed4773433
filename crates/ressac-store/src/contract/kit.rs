//! Short words for the cases.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    AcceptOutcome, AttemptRecord, Begin, Class, DueMessage, ItemResult, Lease, MessageSummary,
    NewMessage, NewState, Outbox, Settle, fingerprint,
};

pub(super) const SECOND: u64 = 1_000_000_000;
/// No messages.
pub(super) const NONE: [Uuid; 0] = [];
pub(super) const TTL: Duration = Duration::from_secs(60);

/// A message with a key of the caller's.
pub(super) fn message(store: &impl Outbox, partner: &str, key: &str, body: &str) -> NewMessage {
    NewMessage {
        key: key.to_owned(),
        key_given: true,
        operation: b"new".to_vec(),
        ..NewMessage::new(partner, "POST", "/in", body.to_owned(), store.now())
    }
}

pub(super) fn in_lane(store: &impl Outbox, lane: &str, key: &str) -> NewMessage {
    NewMessage {
        lane: Some(lane.to_owned()),
        ..message(store, "acme", key, key)
    }
}

pub(super) fn typed(mut message: NewMessage, content_type: &str) -> NewMessage {
    message.headers = vec![("content-type".into(), content_type.into())];
    let kind = Some(content_type.as_bytes());
    message.fingerprint = fingerprint(&message.method, &message.path, kind, &message.body);
    message
}

pub(super) async fn accepted(store: &impl Outbox, message: NewMessage) -> MessageSummary {
    match store.accept(message).await.unwrap() {
        AcceptOutcome::Accepted(summary) => summary,
        other => panic!("not accepted: {other:?}"),
    }
}

/// Accepts `count` messages to "acme" and answers their ids.
pub(super) async fn accept_many(store: &impl Outbox, count: usize) -> Vec<Uuid> {
    let mut ids = Vec::with_capacity(count);
    for index in 0..count {
        let key = format!("key-{index}");
        ids.push(accepted(store, message(store, "acme", &key, &key)).await.id);
    }
    ids
}

pub(super) async fn lease_of(store: &impl Outbox, instance: &str, partner: &str) -> Lease {
    let mut leases = store
        .acquire(instance, &[partner.to_owned()], TTL)
        .await
        .unwrap();
    assert_eq!(leases.len(), 1, "{instance} gets {partner}");
    leases.remove(0)
}

pub(super) async fn due(store: &impl Outbox, class: Class) -> Vec<Uuid> {
    let due = due_messages(store, class).await;
    due.into_iter().map(|message| message.id).collect()
}

pub(super) async fn due_messages(store: &impl Outbox, class: Class) -> Vec<DueMessage> {
    store
        .due("acme", class, store.now(), 100, None)
        .await
        .unwrap()
}

pub(super) fn begin(store: &impl Outbox, id: Uuid, attempt: u32) -> Begin {
    Begin {
        id,
        attempt,
        started_at: store.now(),
        operation: b"begun".to_vec(),
    }
}

pub(super) fn attempt(store: &impl Outbox, number: u32) -> AttemptRecord {
    AttemptRecord {
        number,
        started_at: store.now(),
        ended_at: Some(store.now()),
        kind: "status".into(),
        status: Some(503),
        processed: "maybe".into(),
        blame: "partner".into(),
        hint_ms: Some(1_500),
        note: "try later".into(),
        reply_head: b"HTTP/1.1 503".to_vec(),
        reply_body: b"busy".to_vec(),
    }
}

pub(super) fn delivered() -> NewState {
    NewState::Delivered {
        reason: "delivered".into(),
    }
}

pub(super) fn dead(reason: &str) -> NewState {
    NewState::Dead {
        reason: reason.into(),
        blame: "partner".into(),
        processed: "maybe".into(),
    }
}

pub(super) fn waiting(due: u64) -> NewState {
    NewState::Waiting {
        due,
        because: "backoff".into(),
        class: Class::Retry,
    }
}

pub(super) fn settle(store: &impl Outbox, id: Uuid, number: u32, next: NewState) -> Settle {
    let attempt = (number > 0).then(|| attempt(store, number));
    Settle {
        id,
        attempt,
        next,
        operation: b"settled".to_vec(),
    }
}

/// Begins and settles attempt `number` of one message.
pub(super) async fn send(
    store: &impl Outbox,
    lease: &Lease,
    id: Uuid,
    number: u32,
    next: NewState,
) {
    let begun = store
        .begin(lease, vec![begin(store, id, number)])
        .await
        .unwrap();
    assert_eq!(begun, [Ok(())], "begin {number}");
    let settled = store
        .settle(lease, vec![settle(store, id, number, next)])
        .await
        .unwrap();
    assert_eq!(settled, [Ok(())], "settle {number}");
}

/// Settles one message and answers what came of it.
pub(super) async fn settle_one(
    store: &impl Outbox,
    lease: &Lease,
    id: Uuid,
    number: u32,
    next: NewState,
) -> ItemResult {
    let mut results = store
        .settle(lease, vec![settle(store, id, number, next)])
        .await
        .unwrap();
    assert_eq!(results.len(), 1);
    results.remove(0)
}

pub(super) async fn begin_one(
    store: &impl Outbox,
    lease: &Lease,
    id: Uuid,
    number: u32,
) -> ItemResult {
    let mut results = store
        .begin(lease, vec![begin(store, id, number)])
        .await
        .unwrap();
    assert_eq!(results.len(), 1);
    results.remove(0)
}
