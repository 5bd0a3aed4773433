//! Every size and number that a stranger controls has a limit, and nothing is ever cut.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::post;
use ressac::idempotency::{IdempotencyLayer, MemoryOptions, MemoryStore};
use tokio::sync::Notify;

use crate::support::{Effects, Reply, exchange, pay, payments, serve};

#[tokio::test]
async fn ht_6_a_request_over_the_limit_is_refused_and_its_key_is_as_it_was() {
    let effects = Effects::default();
    let store = MemoryStore::new();
    let keys = IdempotencyLayer::new(store.clone()).request_limit(1_000);
    let server = serve(payments(&effects, keys)).await;
    let announced = pay("k").body(vec![b'x'; 1_001]).to(server).await;
    assert_eq!(
        (announced.status, announced.title()),
        (413, "Request body too long".into())
    );
    let mut chunked = b"POST /pay HTTP/1.1\r\nhost: test\r\nidempotency-key: k\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    chunked.extend_from_slice(format!("3E9\r\n{}\r\n0\r\n\r\n", "x".repeat(1_001)).as_bytes());
    assert_eq!(exchange(server, &chunked).await.status, 413);
    assert_eq!((store.len(), effects.count()), (0, 0));
    let fits = pay("k").body(vec![b'x'; 1_000]).to(server).await;
    assert_eq!((fits.status, fits.replayed()), (201, false));
}

fn long_replies(effects: &Effects, keys: IdempotencyLayer) -> Router {
    let effects = effects.clone();
    let handler = post(move |length: String| async move {
        let location = format!("/reports/{}", effects.add());
        let body = vec![b'r'; length.parse().unwrap()];
        (StatusCode::CREATED, [(LOCATION, location)], body)
    });
    Router::new().route("/pay", handler).layer(keys)
}

/// The first caller gets all of it; a repetition hears that it was done and where the result is.
#[tokio::test]
async fn a_reply_over_the_limit_is_whole_once_and_never_run_again() {
    let effects = Effects::default();
    let keys = IdempotencyLayer::new(MemoryStore::new()).reply_limit(1_000);
    let server = serve(long_replies(&effects, keys)).await;
    let first = pay("long").body("200000").to(server).await;
    assert_eq!((first.status, first.body.len()), (201, 200_000));
    let again = pay("long").body("200000").to(server).await;
    assert_eq!((again.status, again.replayed()), (409, true));
    assert_eq!(
        again.title(),
        "The reply to this Idempotency-Key was not kept"
    );
    assert!(again.text().contains("status 201"), "{}", again.text());
    assert_eq!(again.header("location"), Some("/reports/1"));
    assert_eq!(again.header("retry-after"), None);
    assert_eq!(effects.count(), 1);
    let at_limit = pay("fits").body("1000").to(server).await;
    let kept = pay("fits").body("1000").to(server).await;
    assert!(kept.replayed());
    assert_eq!(kept.kept(), at_limit.kept());
}

#[tokio::test]
async fn a_reply_that_the_store_has_no_room_for_is_noted() {
    let effects = Effects::default();
    let store = MemoryStore::with(MemoryOptions::default().max_bytes(4_000));
    let server = serve(long_replies(&effects, IdempotencyLayer::new(store))).await;
    let first = pay("k").body("5000").to(server).await;
    assert_eq!((first.status, first.body.len()), (201, 5_000));
    let again = pay("k").body("5000").to(server).await;
    assert_eq!((again.status, again.replayed()), (409, true));
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn handlers_at_once_are_bounded_and_so_are_keys() {
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let running = Arc::new(Notify::new());
    let started = Arc::clone(&running);
    let handler = post(move || async move {
        started.notify_one();
        gate.notified().await;
    });
    let store = MemoryStore::with(MemoryOptions::default().max_keys(2));
    let keys = IdempotencyLayer::new(store).max_running(2);
    let server = serve(Router::new().route("/pay", handler).layer(keys)).await;
    let first = pay("a").begin(server).await;
    running.notified().await;
    let second = pay("b").begin(server).await;
    running.notified().await;
    let third = pay("c").to(server).await;
    assert_eq!(
        (third.status, third.title()),
        (503, "Too many operations are running".into())
    );
    assert_eq!(third.header("retry-after"), Some("1"));
    go.notify_waiters();
    assert_eq!(Reply::read(first).await.status, 200);
    assert_eq!(Reply::read(second).await.status, 200);
    let fourth = pay("c").begin(server).await;
    running.notified().await;
    go.notify_one();
    assert_eq!(Reply::read(fourth).await.status, 200);
}

#[tokio::test]
async fn a_store_full_of_running_keys_refuses_one_more() {
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let running = Arc::new(Notify::new());
    let started = Arc::clone(&running);
    let handler = post(move || async move {
        started.notify_one();
        gate.notified().await;
    });
    let store = MemoryStore::with(MemoryOptions::default().max_keys(1));
    let keys = IdempotencyLayer::new(store);
    let server = serve(Router::new().route("/pay", handler).layer(keys)).await;
    let first = pay("a").begin(server).await;
    running.notified().await;
    let second = pay("b").to(server).await;
    assert_eq!(second.status, 503);
    assert_eq!(second.title(), "No room for another Idempotency-Key");
    go.notify_one();
    assert_eq!(Reply::read(first).await.status, 200);
}

/// CA-2's relative: a caller who breaks off in the middle of its body has asked for nothing.
#[tokio::test]
async fn half_a_body_marks_no_key() {
    let effects = Effects::default();
    let store = MemoryStore::new();
    let server = serve(payments(&effects, IdempotencyLayer::new(store.clone()))).await;
    let whole = pay("k").bytes();
    let half = exchange_half(server, &whole[..whole.len() - 3]).await;
    assert!(half.is_empty() || half.starts_with(b"HTTP/1.1 400"));
    assert_eq!((store.len(), effects.count()), (0, 0));
    assert!(!pay("k").to(server).await.replayed());
}

async fn exchange_half(server: std::net::SocketAddr, bytes: &[u8]) -> Vec<u8> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    reply
}
