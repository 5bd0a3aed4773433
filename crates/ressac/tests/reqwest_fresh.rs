//! After a connection that broke the next attempt meets no pooled one; and what a caller sets anew
//! in each attempt.
#![cfg(all(feature = "reqwest", feature = "http2"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::{Act, Server, partner, quick};
use ressac::policy::OutcomeKind;
use ressac::reqwest::Client;
use ressac::{Idempotency, Partner};
use ressac_mock::{Flag, Mock};

/// So many calls at once, each with a connection of its own in the pool afterwards.
const POOL: usize = 8;

/// Eight idle connections, each of which takes one request more and dies of it.
async fn stale_pool(client: &Client, mock: &Mock, how: &str) {
    let fill = mock.script("GET", &format!("200 barrier={POOL} race={how} x{POOL}"));
    let calls: Vec<_> = (0..POOL)
        .map(|_| tokio::spawn(client.get(fill.url()).send_whole(1000)))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_pool_of_dead_connections_costs_one_attempt() {
    for how in ["rst", "fin"] {
        let mock = Mock::start().await;
        let client = Client::new(partner()).unwrap();
        stale_pool(&client, &mock, how).await;
        let after = mock.script("GET", "200 x2");
        assert_eq!(client.get(after.url()).send().await.unwrap().status(), 200);
        let raced = |mock: &Mock| {
            let journal = mock.journal();
            let raced = journal.iter().filter(|e| e.flags.contains(&Flag::Raced));
            raced.count()
        };
        assert_eq!(raced(&mock), 1, "{how}");
        // The next operation is the first to meet the next dead one.
        assert_eq!(client.get(after.url()).send().await.unwrap().status(), 200);
        assert_eq!(raced(&mock), 2, "{how}");
        assert_eq!(mock.connections().len(), POOL + 2, "{how}");
        after.verify();
    }
}

/// A client that was built elsewhere has what it is given.
#[tokio::test]
async fn a_client_of_one_s_own_can_be_given_another_without_a_pool() {
    let partner = partner();
    let builder = || Client::builder_for(&partner);
    let pooled = builder().build().unwrap();
    let unpooled = builder().pool_max_idle_per_host(0).build().unwrap();
    let mock = Mock::start().await;
    let client = Client::from_reqwest(pooled, partner.clone()).with_unpooled(unpooled);
    stale_pool(&client, &mock, "rst").await;
    let after = mock.script("GET", "200");
    client.get(after.url()).send().await.unwrap();
    assert_eq!(mock.connections().len(), POOL + 1);
}

/// RFC 9110 §15.5.9: the connection of a 408 is not used again, whatever its fields say.
#[tokio::test]
async fn a_408_is_repeated_on_another_connection() {
    let server = Server::start([Act::Reply(408, "", "late")]).await;
    let client = Client::new(partner()).unwrap();
    client.get(server.url()).send().await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].connection, seen[1].connection);
}

/// One connection carries them all: a connection for each retry would be a storm of handshakes.
#[tokio::test]
async fn over_http2_the_retries_share_a_connection_again() {
    let mock = Mock::start().await;
    let script = format!("rst@req barrier={POOL} x{POOL}, 200 x*");
    let route = mock.script("GET", &script);
    let client = Client::with(partner(), reqwest::ClientBuilder::http2_prior_knowledge).unwrap();
    let calls: Vec<_> = (0..POOL)
        .map(|_| tokio::spawn(client.get(route.url()).send_whole(1000)))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    let used = mock.connections().len();
    assert!((2..=3).contains(&used), "{used} connections");
}

/// A signature with a timestamp, the attempt's number: new in each attempt, and in it alone.
#[tokio::test]
async fn a_hook_sets_what_is_new_in_each_attempt() {
    let acts = [Act::Reply(503, "", ""), Act::ReadAndReset];
    let server = Server::start(acts).await;
    let partner = Partner::builder(quick())
        .idempotency(Idempotency::header("Idempotency-Key"))
        .build()
        .unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    Client::new(partner)
        .unwrap()
        .post(server.url())
        .body("pay")
        .before_attempt(move |attempt, request| {
            let key = request.headers().get("idempotency-key").unwrap();
            assert_eq!(key.to_str().unwrap(), attempt.key().to_string());
            let body = request.body().and_then(reqwest::Body::as_bytes).unwrap();
            assert_eq!(body, b"pay");
            heard.lock().unwrap().push(attempt.after());
            let fields = request.headers_mut();
            fields.append("ressac-attempt", attempt.number().into());
        })
        .send()
        .await
        .unwrap();
    let seen = server.seen();
    let numbers: Vec<_> = seen
        .iter()
        .map(|one| one.head.matches("ressac-attempt: ").count())
        .collect();
    assert_eq!(numbers, [1, 1, 1], "the copy that is kept has none");
    let last = seen[2].field("ressac-attempt");
    assert_eq!(last, Some("3"));
    assert!(seen.iter().all(|one| one.body == b"pay"));
    let status = Some(OutcomeKind::Status(503));
    assert_eq!(
        *told.lock().unwrap(),
        [None, status, Some(OutcomeKind::Reset)]
    );
}
