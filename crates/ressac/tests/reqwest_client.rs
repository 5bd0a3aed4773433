//! The client on real sockets: what it puts on the wire, how long it waits, what it hands back.
#![cfg(feature = "reqwest")]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Act, Server, partner, quick};
use ressac::policy::{Backoff, BreakerConfig, Jitter};
use ressac::reqwest::Client;
use ressac::{Idempotency, IdempotencyKey, OutcomeKind, Partner, Policy, Processed, Reason};

fn keyed(idempotency: Idempotency) -> Client {
    let partner = Partner::builder(quick())
        .idempotency(idempotency)
        .build()
        .unwrap();
    Client::new(partner).unwrap()
}

#[tokio::test]
async fn ik_1_a_payment_with_a_key_goes_out_again_with_the_same_bytes() {
    let acts = [
        Act::Reply(503, "", ""),
        Act::ReadAndReset,
        Act::ReadAndClose,
    ];
    let server = Server::start(acts).await;
    let client = keyed(Idempotency::header("Idempotency-Key"));
    let reply = client.post(server.url()).json(&[20]).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    let seen = server.seen();
    let keys: Vec<_> = seen
        .iter()
        .map(|one| one.field("idempotency-key").unwrap())
        .collect();
    assert_eq!(keys.len(), 4);
    assert!(
        keys.iter().all(|key| *key == keys[0] && key.len() == 36),
        "{keys:?}"
    );
    assert!(seen.iter().all(|one| one.body == b"[20]"), "EX-1");
    // The next operation has another.
    client.post(server.url()).send().await.unwrap();
    assert_ne!(server.seen()[4].field("idempotency-key").unwrap(), keys[0]);
}

#[tokio::test]
async fn no_key_goes_on_the_wire_behind_the_caller_s_back() {
    let server = Server::start([]).await;
    Client::new(partner())
        .unwrap()
        .post(server.url())
        .send()
        .await
        .unwrap();
    // A GET needs none.
    keyed(Idempotency::header("Idempotency-Key"))
        .get(server.url())
        .send()
        .await
        .unwrap();
    assert!(
        server
            .seen()
            .iter()
            .all(|one| one.field("idempotency-key").is_none())
    );
}

#[tokio::test]
async fn the_caller_s_key_goes_where_and_how_the_partner_wants_it() {
    let server = Server::start([Act::ReadAndReset]).await;
    let key = IdempotencyKey::new("order-4711").unwrap();
    let client = keyed(Idempotency::header("X-Request-Token").quoted());
    client
        .post(server.url())
        .idempotency_key(key.clone())
        .send()
        .await
        .unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|one| one.field("x-request-token") == Some("\"order-4711\""))
    );
    // Without a configured header it is the caller's word that the partner honours it.
    let server = Server::start([Act::ReadAndReset]).await;
    let client = Client::new(partner()).unwrap();
    client
        .post(server.url())
        .idempotency_key(key)
        .send()
        .await
        .unwrap();
    assert_eq!(
        server.seen()[1].field("idempotency-key"),
        Some("order-4711")
    );
}

#[tokio::test]
async fn a_key_header_of_the_caller_s_own_is_left_as_it_is() {
    let server = Server::start([Act::ReadAndReset]).await;
    let client = keyed(Idempotency::header("Idempotency-Key"));
    client
        .post(server.url())
        .header("Idempotency-Key", "mine")
        .send()
        .await
        .unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|one| one.field("idempotency-key") == Some("mine"))
    );
}

/// The draft's 409, without a Retry-After.
#[tokio::test]
async fn a_key_in_flight_is_tried_again_with_the_same_key() {
    let problem = Act::Reply(
        409,
        "content-type: application/problem+json\r\n",
        r#"{"title":"A request is outstanding for this Idempotency-Key"}"#,
    );
    let server = Server::start([problem]).await;
    let client = keyed(Idempotency::header("Idempotency-Key"));
    assert_eq!(
        client.post(server.url()).send().await.unwrap().status(),
        200
    );
    let other = Act::Reply(
        409,
        "content-type: application/problem+json\r\n",
        r#"{"title":"No"}"#,
    );
    let server = Server::start([other]).await;
    let told = client.post(server.url()).send().await.unwrap_err();
    assert_eq!(told.reason(), Reason::Permanent);
}

/// One of the four faults measured on other clients: the hint ignored, or inverted.
#[tokio::test]
async fn ra_3_never_before_retry_after_and_not_all_at_once() {
    let server = Server::start([Act::Reply(429, "retry-after: 1\r\n", "")]).await;
    let client = Client::new(partner()).unwrap();
    client.post(server.url()).send().await.unwrap();
    let seen = server.seen();
    let gap = seen[1].at - seen[0].at;
    assert!(gap >= Duration::from_secs(1), "{gap:?}");
}

/// Another: jitter above the cap.
#[tokio::test]
async fn bo_7_no_wait_on_the_wire_is_above_the_cap() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
        let backoff = Backoff {
            base: Duration::from_millis(20),
            cap: Duration::from_millis(40),
            jitter,
            ..Backoff::default()
        };
        let policy = Policy {
            retries: 8,
            backoff,
            ..quick()
        };
        let server = Server::start([Act::Reply(503, "", ""); 8]).await;
        let client = Client::new(Partner::new(policy)).unwrap();
        let begun = Instant::now();
        client.get(server.url()).send().await.unwrap();
        assert_eq!(server.seen().len(), 9);
        // Timers are late on a busy machine, so the bound is on the whole: eight caps, and as much
        // again for the machine. Equal jitter around the cap instead of below it would pass this.
        let all = begun.elapsed();
        assert!(
            all < Duration::from_millis(8 * 40 * 2 + 500),
            "{jitter:?}: {all:?}"
        );
    }
}

/// Another: half-open probes without a limit.
#[tokio::test]
async fn br_1_half_open_lets_no_more_through_than_the_probes() {
    let policy = Policy {
        retries: 0,
        breaker: Some(BreakerConfig {
            consecutive: Some(3),
            open: Duration::from_millis(200),
            open_jitter: ressac::policy::Ratio::ZERO,
            probes: 2,
            ..BreakerConfig::default()
        }),
        ..quick()
    };
    let server = Server::start([Act::Reply(503, "", ""); 3]).await;
    let client = Client::new(Partner::new(policy)).unwrap();
    for _ in 0..3 {
        client.get(server.url()).send().await.unwrap_err();
    }
    let told = client.get(server.url()).send().await.unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::CircuitOpen, 0));
    tokio::time::sleep(Duration::from_millis(250)).await;
    server.push([Act::Late(400, 200), Act::Late(400, 200)]);
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (client, url) = (client.clone(), server.url());
            tokio::spawn(async move { client.get(url).send().await.is_ok() })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += u32::from(task.await.unwrap());
    }
    assert_eq!((passed, server.seen().len()), (2, 3 + 2));
}

/// The last of the four: a POST delivered again. After a read timeout it is in `reqwest_table`.
#[tokio::test]
async fn vr_4_a_post_the_server_read_goes_out_once_even_with_a_body_in_memory() {
    let server = Server::start([Act::ReadAndClose, Act::ReadAndReset]).await;
    let client = Client::new(partner()).unwrap();
    for _ in 0..2 {
        let told = client
            .post(server.url())
            .body("pay")
            .send()
            .await
            .unwrap_err();
        assert_eq!(
            (told.reason(), told.processed()),
            (Reason::Ambiguous, Processed::Maybe)
        );
    }
    assert_eq!(server.seen().len(), 2);
}

/// A body of which nobody keeps a copy.
struct Stream(Option<bytes::Bytes>);

impl http_body::Body for Stream {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}

fn stream() -> reqwest::Body {
    reqwest::Body::wrap(Stream(Some(bytes::Bytes::from_static(b"streamed"))))
}

#[tokio::test]
async fn ex_4_a_stream_is_sent_once_and_only_a_needed_retry_fails() {
    let server = Server::start([]).await;
    let client = Client::new(partner()).unwrap();
    client
        .put(server.url())
        .body(stream())
        .send()
        .await
        .unwrap();
    let server = Server::start([Act::Reply(429, "", "")]).await;
    let told = client
        .put(server.url())
        .body(stream())
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        (told.reason(), told.attempts()),
        (Reason::BodyNotReplayable, 1)
    );
    assert_eq!(server.seen().len(), 1);
    assert!(
        told.to_string().contains("body cannot be sent again"),
        "{told}"
    );
}

/// PX-5, PX-6: a connection that is refused has touched no body.
#[tokio::test]
async fn px_5_a_stream_survives_connections_that_are_refused() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = port.local_addr().unwrap();
    drop(port);
    let policy = Policy {
        retries: 50,
        backoff: Backoff {
            base: Duration::from_millis(20),
            cap: Duration::from_millis(20),
            jitter: Jitter::None,
            ..Backoff::default()
        },
        ..quick()
    };
    let client = Client::new(Partner::new(policy)).unwrap();
    let sending = tokio::spawn(async move {
        client
            .post(format!("http://{addr}/"))
            .body(stream())
            .send()
            .await
    });
    tokio::time::sleep(Duration::from_millis(60)).await;
    let listener = tokio::net::TcpListener::bind(addr).await.unwrap();
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"0\r\n\r\n") {
        tokio::io::AsyncReadExt::read_buf(&mut socket, &mut bytes)
            .await
            .unwrap();
    }
    let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut socket, reply)
        .await
        .unwrap();
    assert_eq!(sending.await.unwrap().unwrap().status(), 200);
    assert!(String::from_utf8(bytes).unwrap().contains("streamed"));
}

/// EX-5, EX-6: a failed attempt's reply is read, and its connection used again.
#[tokio::test]
async fn ex_5_a_failed_attempt_s_connection_is_used_again() {
    let acts = [
        Act::Reply(503, "", "busy"),
        Act::Reply(503, "", "busy"),
        Act::Reply(429, "", ""),
    ];
    let server = Server::start(acts).await;
    let client = Client::with(partner(), |builder| builder.pool_max_idle_per_host(1)).unwrap();
    client.get(server.url()).send().await.unwrap();
    assert_eq!((server.seen().len(), server.connections()), (4, 1));
}

#[tokio::test]
async fn vr_5_a_layer_that_gave_up_is_believed_and_named() {
    let server = Server::start([Act::Reply(503, "ressac-reason: exhausted\r\n", "")]).await;
    let client = Client::new(partner()).unwrap();
    let told = client.get(server.url()).send().await.unwrap_err();
    assert_eq!(
        (told.reason(), told.attempts()),
        (Reason::UpstreamGaveUp, 1)
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::start([]).await;
    let location: &'static str = Box::leak(format!("location: {}\r\n", other.url()).into());
    let server = Server::start([Act::Reply(307, location, "")]).await;
    let client = Client::new(partner()).unwrap();
    let told = client
        .post(server.url())
        .bearer_auth("secret")
        .send()
        .await
        .unwrap_err();
    assert_eq!(told.last_outcome(), Some(OutcomeKind::Status(307)));
    assert_eq!(
        (told.reason(), other.seen().len()),
        (Reason::Permanent, 0),
        "HT-3"
    );
}

#[tokio::test]
async fn the_smaller_of_the_two_timeouts_limits_an_attempt() {
    let server = Server::start([Act::Silence, Act::Silence]).await;
    let policy = Policy {
        retries: 1,
        ..quick()
    };
    let client = Client::new(Partner::new(policy)).unwrap();
    let begun = Instant::now();
    let limit = Duration::from_millis(150);
    let told = client
        .get(server.url())
        .timeout(limit)
        .send()
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Exhausted, 2));
    assert!(begun.elapsed() >= 2 * limit && begun.elapsed() < Duration::from_secs(3));
}

/// An attempt that is dropped closes its connection, gives its place back and is not repeated.
#[tokio::test]
async fn ca_1_a_dropped_request_sends_nothing_more() {
    let server = Server::start([Act::Silence]).await;
    let client = Client::new(partner()).unwrap();
    let sending = client.get(server.url()).send();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), sending)
            .await
            .is_err()
    );
    assert_eq!(client.partner().view().in_flight, 0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_long_reply_to_a_failed_attempt_is_handed_over_whole() {
    let long: &'static str = Box::leak("x".repeat(200 * 1024).into());
    let server = Server::start([Act::Reply(500, "", long)]).await;
    let client = Client::new(partner()).unwrap();
    let told = client.get(server.url()).send().await.unwrap_err();
    assert_eq!(
        told.into_reply().unwrap().text().await.unwrap().len(),
        long.len()
    );
    // Where a wait follows it is let go: it would hold its connection.
    let server = Server::start([Act::Reply(503, "", long)]).await;
    assert_eq!(
        client
            .get(server.url())
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
        "ok"
    );
}

#[cfg(feature = "reqwest-middleware")]
mod middleware {
    use ressac::RetryError;
    use ressac::reqwest::RetryMiddleware;

    use super::*;

    fn client(partner: Partner) -> reqwest_middleware::ClientWithMiddleware {
        let inner = Client::builder_for(&partner).build().unwrap();
        reqwest_middleware::ClientBuilder::new(inner)
            .with(RetryMiddleware::new(partner))
            .build()
    }

    #[tokio::test]
    async fn the_same_rules_hold_in_a_middleware() {
        let client = client(partner());
        let server = Server::start([Act::ReadAndClose]).await;
        assert_eq!(client.get(server.url()).send().await.unwrap().status(), 200);

        let server = Server::start([Act::Reply(503, "", "")]).await;
        let reply = client.post(server.url()).send().await.unwrap();
        assert_eq!((reply.status().as_u16(), server.seen().len()), (503, 1));

        let server = Server::start([Act::ReadAndReset]).await;
        let told = client.post(server.url()).send().await.unwrap_err();
        let reqwest_middleware::Error::Middleware(told) = told else {
            panic!("{told}")
        };
        let told = told
            .downcast_ref::<RetryError<reqwest_middleware::Error>>()
            .unwrap();
        assert_eq!((told.reason(), server.seen().len()), (Reason::Ambiguous, 1));
    }

    #[tokio::test]
    async fn a_stream_is_sent_once_in_a_middleware_too() {
        let client = client(partner());
        let server = Server::start([Act::Reply(429, "", "")]).await;
        let told = client.put(server.url()).body(stream()).send().await;
        assert_eq!(told.unwrap().status(), 429);
        assert_eq!(server.seen().len(), 1);
    }
}

/// Each call moves its future into a task or a box.
#[test]
fn the_future_of_a_call_is_small() {
    let client = Client::new(partner()).unwrap();
    let bytes = size_of_val(&client.get("http://localhost/").send());
    assert!(bytes < 2_048, "{bytes} bytes");
}
