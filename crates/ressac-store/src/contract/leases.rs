//! Leases and their fence.

use std::time::Duration;

use super::Harness;
use super::kit::{
    TTL, accept_many, accepted, begin, begin_one, delivered, due, lease_of, message, settle,
};
use crate::{Class, Outbox, PutBack, Refusal, State, StoreError};

fn is_lost<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::LeaseLost { .. }))
}

/// LA-3: only the current epoch writes.
pub async fn an_old_epoch_writes_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 2).await;
    let old = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &old, ids[0], 1).await, Ok(()));
    harness.advance(TTL);
    let new = lease_of(&store, "b", "acme").await;
    assert!(new.epoch > old.epoch);

    assert!(is_lost(
        store.begin(&old, vec![begin(&store, ids[1], 1)]).await
    ));
    assert!(is_lost(
        store
            .settle(&old, vec![settle(&store, ids[0], 1, delivered())])
            .await
    ));
    let back = PutBack {
        id: ids[0],
        due: 0,
        because: String::new(),
        class: Class::First,
        operation: Vec::new(),
    };
    assert!(is_lost(store.put_back(&old, vec![back]).await));
    assert!(is_lost(store.save_partner(&old, b"old".to_vec()).await));
    assert_eq!(
        store.renew(std::slice::from_ref(&old), TTL).await.unwrap(),
        []
    );
    assert_eq!(
        store.get(ids[0]).await.unwrap().unwrap().summary.state,
        State::Sending
    );
    assert_eq!(store.load_partner("acme").await.unwrap(), None);
    let settled = store
        .settle(&new, vec![settle(&store, ids[0], 1, delivered())])
        .await
        .unwrap();
    assert_eq!(settled, [Ok(())]);
}

/// LA-5, LA-4: the lease is a row with an end; nobody else gets it before, anybody after.
pub async fn a_lease_has_an_end(harness: &impl Harness) {
    let store = harness.open().await;
    let partners = ["acme".to_owned(), "other".to_owned()];
    let first = store.acquire("a", &partners, TTL).await.unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].until, store.now() + 60_000_000_000);
    assert_eq!(store.acquire("b", &partners, TTL).await.unwrap(), []);
    harness.advance(TTL - Duration::from_nanos(1));
    assert_eq!(store.acquire("b", &partners, TTL).await.unwrap(), []);
    harness.advance(Duration::from_nanos(1));
    let second = store.acquire("b", &partners, TTL).await.unwrap();
    assert_eq!(second.len(), 2);
    assert!(second[0].epoch > first[0].epoch);
}

/// An owner whose lease ran out sends nothing more, even if nobody has taken the partner.
pub async fn a_lease_that_ran_out_begins_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 2).await;
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &lease, ids[0], 1).await, Ok(()));
    harness.advance(TTL);
    assert!(is_lost(
        store.begin(&lease, vec![begin(&store, ids[1], 1)]).await
    ));
    // What it had sent it may still settle: nobody else has touched it.
    let settled = store
        .settle(&lease, vec![settle(&store, ids[0], 1, delivered())])
        .await
        .unwrap();
    assert_eq!(settled, [Ok(())]);
    assert_eq!(due(&store, Class::First).await, [ids[1]]);
}

/// LA-3: what came too late changes nothing and can be read by a person.
pub async fn a_settle_after_the_lease_is_refused_and_kept(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accept_many(&store, 1).await[0];
    let old = lease_of(&store, "a", "acme").await;
    assert_eq!(begin_one(&store, &old, id, 1).await, Ok(()));
    harness.advance(TTL);
    let new = lease_of(&store, "b", "acme").await;
    let late = settle(&store, id, 1, delivered());
    assert!(is_lost(store.settle(&old, vec![late.clone()]).await));

    let kept = store.late_settles("acme", 10).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].id, kept[0].wanted.as_str()), (id, "delivered"));
    assert_eq!(
        (kept[0].epoch, kept[0].current_epoch),
        (old.epoch, new.epoch)
    );
    assert_eq!(
        (kept[0].refused_at, &kept[0].attempt),
        (store.now(), &late.attempt)
    );
}

/// A renewal counts from now and keeps the epoch.
pub async fn a_renewed_lease_lasts(harness: &impl Harness) {
    let store = harness.open().await;
    let lease = lease_of(&store, "a", "acme").await;
    harness.advance(Duration::from_secs(40));
    let renewed = store
        .renew(std::slice::from_ref(&lease), TTL)
        .await
        .unwrap();
    assert_eq!(renewed.len(), 1);
    assert_eq!(
        (renewed[0].epoch, renewed[0].until),
        (lease.epoch, store.now() + 60_000_000_000)
    );
    harness.advance(Duration::from_secs(40));
    assert_eq!(
        store.acquire("b", &["acme".to_owned()], TTL).await.unwrap(),
        []
    );
}

/// A clean stop makes nobody wait.
pub async fn a_released_partner_is_free_at_once(harness: &impl Harness) {
    let store = harness.open().await;
    let lease = lease_of(&store, "a", "acme").await;
    store.release(std::slice::from_ref(&lease)).await.unwrap();
    assert!(is_lost(store.save_partner(&lease, Vec::new()).await));
    let next = lease_of(&store, "b", "acme").await;
    assert!(next.epoch > lease.epoch);
    // The old owner's second release must not free what is the other's now.
    store.release(std::slice::from_ref(&lease)).await.unwrap();
    store.save_partner(&next, Vec::new()).await.unwrap();
}

/// Breaker and hold of a partner outlive their owner.
pub async fn a_snapshot_goes_to_the_next_owner(harness: &impl Harness) {
    let store = harness.open().await;
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(store.load_partner("acme").await.unwrap(), None);
    store.save_partner(&lease, b"one".to_vec()).await.unwrap();
    store.save_partner(&lease, b"two".to_vec()).await.unwrap();
    let long = vec![0; crate::MAX_OPERATION + 1];
    assert!(store.save_partner(&lease, long).await.is_err());
    drop(store);
    let store = harness.open().await;
    assert_eq!(
        store.load_partner("acme").await.unwrap().as_deref(),
        Some(&b"two"[..])
    );
}

/// A lease on one partner writes nothing of another.
pub async fn a_partner_takes_only_its_own_messages(harness: &impl Harness) {
    let store = harness.open().await;
    let id = accepted(&store, message(&store, "other", "k", "one"))
        .await
        .id;
    let lease = lease_of(&store, "a", "acme").await;
    assert_eq!(
        begin_one(&store, &lease, id, 1).await,
        Err(Refusal::NotFound)
    );
    assert_eq!(
        store.get(id).await.unwrap().unwrap().summary.state,
        State::Waiting
    );
}
