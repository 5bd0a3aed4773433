//! Pages and counts.

use super::Harness;
use super::kit::{NONE, accept_many, accepted, dead, delivered, lease_of, message, send, waiting};
use crate::{Class, Counts, Filter, Outbox, State, StoreError};

async fn all(store: &impl Outbox, filter: &Filter, limit: usize) -> Vec<uuid::Uuid> {
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..1_000 {
        let page = store.list(filter, cursor.as_deref(), limit).await.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items.iter().map(|item| item.id));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return seen,
        }
    }
    panic!("the list does not end");
}

/// DM-4: keyset pages; what comes in meanwhile neither shifts nor repeats anything.
pub async fn pages_do_not_shift_under_inserts(harness: &impl Harness) {
    let store = harness.open().await;
    let mut ids = accept_many(&store, 7).await;
    ids.reverse();
    let filter = Filter {
        partner: Some("acme".into()),
        ..Filter::default()
    };
    for filter in [Filter::default(), filter] {
        let first = store.list(&filter, None, 3).await.unwrap();
        let key = format!("later-{filter:?}");
        let later = accepted(&store, message(&store, "acme", &key, "x"))
            .await
            .id;
        let cursor = first.next.clone().unwrap();
        let second = store.list(&filter, Some(&cursor), 3).await.unwrap();
        let old: Vec<_> = first
            .items
            .iter()
            .chain(&second.items)
            .map(|item| item.id)
            .collect();
        assert_eq!(old, ids[..6]);
        ids.insert(0, later);
        assert_eq!(all(&store, &filter, 2).await, ids);
    }
}

/// State and partner, each alone and together.
pub async fn filters_go_together(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 4).await;
    let other = accepted(&store, message(&store, "other", "k", "one"))
        .await
        .id;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, ids[0], 1, delivered()).await;
    send(&store, &lease, ids[1], 1, dead("exhausted")).await;
    send(&store, &lease, ids[2], 1, waiting(0)).await;
    let by = |state, partner: Option<&str>| Filter {
        state,
        partner: partner.map(str::to_owned),
        reason: None,
    };
    let cases = [
        (by(None, None), vec![other, ids[3], ids[2], ids[1], ids[0]]),
        (by(None, Some("acme")), vec![ids[3], ids[2], ids[1], ids[0]]),
        (by(Some(State::Waiting), None), vec![other, ids[3], ids[2]]),
        (by(Some(State::Waiting), Some("acme")), vec![ids[3], ids[2]]),
        (by(Some(State::Delivered), None), vec![ids[0]]),
        (by(Some(State::Dead), Some("acme")), vec![ids[1]]),
        (by(Some(State::Dead), Some("other")), vec![]),
        (by(Some(State::Sending), None), vec![]),
        (by(None, Some("nobody")), vec![]),
    ];
    for (filter, wanted) in cases {
        for limit in [1, 2, 100] {
            assert_eq!(
                all(&store, &filter, limit).await,
                wanted,
                "{filter:?} by {limit}"
            );
        }
    }
    let waiting = store
        .list(&by(Some(State::Waiting), Some("acme")), None, 10)
        .await
        .unwrap();
    assert_eq!(
        (waiting.items[1].class, waiting.items[1].attempts),
        (Class::Retry, 1)
    );
}

/// The page of failures is by reason.
pub async fn a_page_by_reason_goes_on_to_the_end(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 6).await;
    let lease = lease_of(&store, "a", "acme").await;
    let reasons = [
        "exhausted",
        "permanent",
        "exhausted",
        "permanent",
        "permanent",
    ];
    for (id, reason) in ids.iter().zip(reasons) {
        send(&store, &lease, *id, 1, dead(reason)).await;
    }
    let filter = |reason: &str| Filter {
        state: Some(State::Dead),
        reason: Some(reason.into()),
        ..Filter::default()
    };
    for limit in [1, 2, 100] {
        assert_eq!(
            all(&store, &filter("exhausted"), limit).await,
            [ids[2], ids[0]]
        );
        assert_eq!(
            all(&store, &filter("permanent"), limit).await,
            [ids[4], ids[3], ids[1]]
        );
        assert_eq!(all(&store, &filter("ambiguous"), limit).await, NONE);
    }
}

/// A cursor comes from a stranger's address bar.
pub async fn a_cursor_that_is_none_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    for cursor in [
        "",
        "m",
        "x1",
        "m-1",
        "m0",
        "m99999999999999999999",
        "m1; DROP TABLE message",
    ] {
        let refused = store.list(&Filter::default(), Some(cursor), 10).await;
        let refused = refused.expect_err(cursor);
        assert!(
            matches!(
                refused,
                StoreError::Invalid {
                    field: "cursor",
                    ..
                }
            ),
            "{refused:?}"
        );
    }
}

/// Asking for what is not there is no failure.
pub async fn unknown_names_are_empty_not_errors(harness: &impl Harness) {
    let store = harness.open().await;
    let id = uuid::Uuid::now_v7();
    assert_eq!(store.get(id).await.unwrap(), None);
    assert_eq!(store.load(id).await.unwrap(), None);
    assert_eq!(store.counts("nobody").await.unwrap(), Counts::default());
    assert_eq!(
        store
            .due("nobody", Class::First, store.now(), 10, None)
            .await
            .unwrap(),
        []
    );
    assert_eq!(store.in_flight("nobody", 0, 10).await.unwrap(), []);
    assert_eq!(store.load_partner("nobody").await.unwrap(), None);
    assert_eq!(store.late_settles("nobody", 10).await.unwrap(), []);
    assert_eq!(store.partners().await.unwrap(), []);
    assert_eq!(store.prune(u64::MAX, 10).await.unwrap(), 0);
}

/// DM-3: the overview comes from counters; LA-6: with the age of what waits longest.
pub async fn partners_are_listed_with_their_counts(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = accept_many(&store, 3).await;
    let start = store.now();
    harness.advance(std::time::Duration::from_secs(5));
    accepted(&store, message(&store, "other", "k", "one")).await;
    let lease = lease_of(&store, "a", "acme").await;
    send(&store, &lease, ids[0], 1, delivered()).await;
    let partners = store.partners().await.unwrap();
    assert_eq!(partners.len(), 2);
    let counts = Counts {
        waiting: 2,
        delivered: 1,
        oldest_waiting: Some(start),
        ..Counts::default()
    };
    assert_eq!(
        (partners[0].partner.as_str(), partners[0].counts),
        ("acme", counts)
    );
    assert_eq!(partners[0].counts, store.counts("acme").await.unwrap());
    assert_eq!(
        (partners[0].owner.as_deref(), partners[0].epoch),
        (Some("a"), lease.epoch)
    );
    assert_eq!(
        (partners[1].partner.as_str(), &partners[1].owner),
        ("other", &None)
    );
    assert_eq!(partners[1].counts.oldest_waiting, Some(store.now()));
}
