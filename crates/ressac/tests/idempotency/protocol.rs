//! What is answered to which request: draft-ietf-httpapi-idempotency-key-header-07 §2.6 and §2.7.

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::post;
use ressac::idempotency::{IdempotencyLayer, MemoryStore};

use crate::support::{Ask, Effects, ask, exchange, pay, payments, serve};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

#[tokio::test]
async fn ik_7_without_a_key_400() {
    let effects = Effects::default();
    let docs = "https://api.example/docs/keys";
    let server = serve(payments(&effects, layer().docs(docs))).await;
    let reply = ask("POST", "/pay").body("10 EUR").to(server).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.title(), "Idempotency-Key is missing");
    let link = reply.header("link").unwrap();
    assert_eq!(
        link,
        "<https://api.example/docs/keys>; rel=\"describedby\"; type=\"text/html\""
    );
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn ik_7_what_is_no_key_400() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer())).await;
    let long = "k".repeat(256);
    for key in ["\"open", "a b", "\"\"", &long] {
        let reply = pay(key).to(server).await;
        assert_eq!(
            (reply.status, reply.title()),
            (400, "Idempotency-Key is not valid".into())
        );
    }
    let twice = pay("a").key("b").to(server).await;
    assert_eq!(twice.status, 400);
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn ik_7_the_same_key_for_another_request_422() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer())).await;
    let first = pay("k");
    assert_eq!(first.to(server).await.status, 201);
    let typed = ask("POST", "/pay")
        .key("k")
        .header("content-type", "text/csv")
        .body("10 EUR");
    let others: [Ask; 5] = [
        first.clone().body("20 EUR"),
        first.clone().path("/refund"),
        first.clone().path("/pay?fast=1"),
        first.clone().method("PATCH"),
        typed,
    ];
    for other in others {
        let reply = other.to(server).await;
        assert_eq!(
            (reply.status, reply.title()),
            (422, "Idempotency-Key is already used".into())
        );
        assert_eq!(reply.header("retry-after"), None);
    }
    assert_eq!(effects.count(), 1);
}

/// MO-5 seen from the other side: the reply is the first one's, not an echo of the key.
#[tokio::test]
async fn a_repetition_is_answered_byte_for_byte() {
    let effects = Effects::default();
    let counted = effects.clone();
    let odd = post(move || async move {
        let number = counted.add();
        let mut headers = HeaderMap::new();
        headers.append("set-cookie", HeaderValue::from_static("a=1"));
        headers.append("set-cookie", HeaderValue::from_static("b=2"));
        headers.insert("x-number", HeaderValue::from(number));
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/octet-stream"),
        );
        let body: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        (StatusCode::ACCEPTED, headers, body)
    });
    let server = serve(Router::new().route("/pay", odd).layer(layer())).await;
    let first = pay("k").to(server).await;
    assert!(!first.replayed());
    assert_eq!((first.status, first.body.len()), (202, 10_000));
    for _ in 0..3 {
        let again = pay("k").to(server).await;
        assert!(again.replayed());
        assert_eq!(again.kept(), first.kept());
    }
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn an_empty_reply_is_repeated_as_such() {
    let effects = Effects::default();
    let counted = effects.clone();
    let empty = post(move || async move {
        counted.add();
        StatusCode::NO_CONTENT
    });
    let server = serve(Router::new().route("/pay", empty).layer(layer())).await;
    let first = pay("k").to(server).await;
    let again = pay("k").to(server).await;
    assert_eq!((first.status, first.body.len()), (204, 0));
    assert_eq!(again.kept(), first.kept());
    assert!(again.replayed());
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn quoted_and_bare_are_one_key() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer())).await;
    let bare = pay("8e03978e-40d5").to(server).await;
    let quoted = pay("\"8e03978e-40d5\"").to(server).await;
    assert!(quoted.replayed());
    assert_eq!(quoted.kept(), bare.kept());
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn two_callers_with_one_key_never_meet() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer())).await;
    let alice = pay("k").header("authorization", "Bearer alice");
    let bob = pay("k").header("authorization", "Bearer bob");
    assert_eq!(alice.to(server).await.text(), "1: 10 EUR");
    let of_bob = bob.to(server).await;
    assert_eq!(of_bob.text(), "2: 10 EUR");
    assert!(!of_bob.replayed());
    // Not even as a 422 does one hear of the other's key.
    assert_eq!(pay("k").body("other").to(server).await.text(), "3: other");
    assert_eq!(alice.to(server).await.text(), "1: 10 EUR");
    assert_eq!(effects.count(), 3);
}

/// A token that is renewed between two attempts is the same caller, if the server says so.
#[tokio::test]
async fn ik_1_a_caller_by_account_survives_a_new_token() {
    let effects = Effects::default();
    let keys = layer().caller(|parts| {
        let token = parts
            .headers
            .get("authorization")
            .map_or(&b""[..], |value| value.as_bytes());
        token
            .split(|byte| *byte == b'.')
            .next()
            .unwrap_or_default()
            .to_vec()
    });
    let server = serve(payments(&effects, keys)).await;
    pay("k")
        .header("authorization", "Bearer alice.1")
        .to(server)
        .await;
    let again = pay("k")
        .header("authorization", "Bearer alice.2")
        .to(server)
        .await;
    assert!(again.replayed());
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn other_methods_and_optional_keys_pass() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer().optional())).await;
    for number in 1..=2 {
        let reply = ask("PUT", "/pay").key("k").body("x").to(server).await;
        assert_eq!(reply.text(), format!("{number}: x"));
    }
    for number in 3..=4 {
        let reply = ask("POST", "/pay").body("y").to(server).await;
        assert_eq!(reply.text(), format!("{number}: y"));
    }
    let kept = [pay("k").to(server).await, pay("k").to(server).await];
    assert_eq!(kept[0].kept(), kept[1].kept());
    assert_eq!(effects.count(), 5);
}

#[tokio::test]
async fn header_and_methods_can_be_named() {
    let effects = Effects::default();
    let keys = layer()
        .header("x-request-key".parse().unwrap())
        .methods([axum::http::Method::PUT]);
    let server = serve(payments(&effects, keys)).await;
    assert_eq!(pay("k").to(server).await.status, 201);
    assert_eq!(ask("PUT", "/pay").key("k").to(server).await.status, 400);
    let put = ask("PUT", "/pay").header("x-request-key", "k").body("x");
    assert!(!put.to(server).await.replayed());
    assert!(put.to(server).await.replayed());
    assert_eq!(effects.count(), 2);
}

/// Two layers over one store do not disturb each other.
#[tokio::test]
async fn mo_3_namespaces_are_apart() {
    let (effects, store) = (Effects::default(), MemoryStore::new());
    let keys = |name| IdempotencyLayer::new(store.clone()).namespace(name);
    let one = serve(payments(&effects, keys("one"))).await;
    let two = serve(payments(&effects, keys("two"))).await;
    pay("k").to(one).await;
    assert!(!pay("k").to(two).await.replayed());
    assert!(pay("k").to(one).await.replayed());
    assert_eq!(store.len(), 2);
}

/// The body is hashed by its bytes, however they come.
#[tokio::test]
async fn a_body_in_chunks_is_the_same_request() {
    let effects = Effects::default();
    let server = serve(payments(&effects, layer())).await;
    pay("k").to(server).await;
    let chunked =
        b"POST /pay HTTP/1.1\r\nhost: test\r\nconnection: close\r\nidempotency-key: k\r\n\
        content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\n10 \r\n3\r\nEUR\r\n0\r\n\r\n";
    let again = exchange(server, chunked).await;
    assert!(again.replayed());
    assert_eq!(effects.count(), 1);
}
