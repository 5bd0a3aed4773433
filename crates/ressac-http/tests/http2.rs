//! HTTP/2 against a partner that writes its own frames: what each end proves, and how the
//! connection is shared.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_http::{Client, ClientConfig, Failure, FailureKind, Sent, TlsConfig, Version};
use ressac_mock::{Entry, Mock, Options, Scenario};
use support::tls::{Authority, tls_partner_speaking};
use support::{PATIENCE, get, post};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

fn speaking(version: Version) -> ClientConfig {
    ClientConfig {
        version,
        ..ClientConfig::default()
    }
}

/// HTTP/2 by prior knowledge.
fn h2c() -> Client {
    Client::new(speaking(Version::Http2)).unwrap()
}

fn over_tls(mock: &Mock, version: Version) -> Client {
    let tls = TlsConfig {
        extra_ca_pem: mock.ca_pem().into_bytes(),
        platform_roots: false,
        ..TlsConfig::default()
    };
    Client::new(ClientConfig {
        tls,
        ..speaking(version)
    })
    .unwrap()
}

fn assert_is(failure: &Failure, kind: FailureKind, sent: Sent) {
    assert_eq!((failure.kind, failure.sent), (kind, sent), "{failure:?}");
}

fn connections(entries: &[Entry]) -> usize {
    let mut numbers: Vec<u64> = entries.iter().map(|entry| entry.conn).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

#[tokio::test]
async fn vr_2_a_refused_stream_was_not_processed_and_its_connection_goes_on() {
    let mock = Mock::start().await;
    let pay = mock.script("POST", "refused-stream, 201 create");
    let client = h2c();
    let failure = post(&client, pay.url(), b"one").await.unwrap_err();
    assert_is(&failure, FailureKind::RefusedStream, Sent::NotProcessed);
    assert!(failure.is_unprocessed() && failure.bytes_written > 0);
    assert_eq!(post(&client, pay.url(), b"one").await.unwrap().status, 201);
    assert_eq!((connections(&pay.attempts()), pay.effects()), (1, 1));
    pay.verify();
}

#[tokio::test]
async fn vr_2_a_goaway_below_the_stream_says_not_processed() {
    let mock = Mock::start().await;
    let pay = mock.script(
        "POST",
        "goaway=below, 200, goaway=below code=ENHANCE_YOUR_CALM, 201",
    );
    let client = h2c();
    for status in [200, 201] {
        let failure = post(&client, pay.url(), b"one").await.unwrap_err();
        assert_is(&failure, FailureKind::RefusedStream, Sent::NotProcessed);
        let reply = post(&client, pay.url(), b"one").await.unwrap();
        assert_eq!(reply.status.as_u16(), status);
    }
    // The third attempt shares the second one's connection, and takes it along.
    assert_eq!(connections(&pay.attempts()), 3);
    pay.verify();
}

#[tokio::test]
async fn vr_3_a_goaway_that_covers_the_stream_proves_nothing() {
    let mock = Mock::start().await;
    let pay = mock.script("POST", "201 create goaway=covers");
    let failure = post(&h2c(), pay.url(), b"one").await.unwrap_err();
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
    assert!(failure.message.contains("GOAWAY"), "{failure}");
    assert_eq!(pay.effects(), 1);
}

#[tokio::test]
async fn vr_3_any_other_reset_proves_nothing() {
    for code in ["INTERNAL_ERROR", "CANCEL", "NO_ERROR", "ENHANCE_YOUR_CALM"] {
        let mock = Mock::start().await;
        let pay = mock.script("POST", &format!("201 create rst-stream={code}, 200"));
        let client = h2c();
        let failure = post(&client, pay.url(), b"one").await.unwrap_err();
        assert_is(&failure, FailureKind::Reset, Sent::MaybeProcessed);
        // The stream alone was reset.
        assert_eq!(post(&client, pay.url(), b"two").await.unwrap().status, 200);
        assert_eq!(connections(&pay.attempts()), 1, "{code}");
    }
}

#[tokio::test]
async fn vr_4_the_end_of_the_connection_before_the_reply_is_maybe() {
    for (script, kinds) in [
        ("201 create fin@req", &[FailureKind::Eof][..]),
        ("201 create rst@req", &[FailureKind::Reset]),
    ] {
        let mock = Mock::start().await;
        let pay = mock.script("POST", script);
        let failure = post(&h2c(), pay.url(), b"one").await.unwrap_err();
        assert_is(&failure, failure.kind, Sent::MaybeProcessed);
        assert!(kinds.contains(&failure.kind), "{script}: {failure:?}");
    }
}

#[tokio::test]
async fn a_reply_with_less_than_it_announced_is_truncated_with_its_head() {
    for script in [
        "200 h=X-Id:7 cl=100 body=40 end-stream",
        "200 h=X-Id:7 cl=100 body=40 rst-stream=INTERNAL_ERROR@body+40",
        "200 h=X-Id:7 body=100 fin@body+40",
    ] {
        let mock = Mock::start().await;
        let order = mock.script("GET", script);
        let failure = get(&h2c(), order.url(), PATIENCE).await.unwrap_err();
        assert_is(&failure, FailureKind::Truncated, Sent::ProcessedInPart);
        let head = failure.reply.unwrap();
        assert_eq!(
            (head.status.as_u16(), &head.headers["x-id"]),
            (200, &"7".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn a_graceful_goaway_costs_nothing() {
    for pause in [0, 300] {
        let mock = Mock::start().await;
        let order = mock.script("GET", "200 goaway=graceful, 200");
        let client = h2c();
        let first = get(&client, order.url(), PATIENCE).await.unwrap();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let second = get(&client, order.url(), PATIENCE).await.unwrap();
        assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
        if pause > 0 {
            assert_eq!(connections(&order.attempts()), 2);
        }
        order.verify();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_once_share_one_connection() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200 barrier=50 x50");
    assert_eq!(all_at_once(&h2c(), &order.url(), 50).await, 50);
    assert_eq!(connections(&order.attempts()), 1);
    assert!(order.attempts().iter().all(|entry| entry.proto == "HTTP/2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_carries_a_hundred_requests_and_the_next_one_the_rest() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200 barrier=150 x150");
    assert_eq!(all_at_once(&h2c(), &order.url(), 150).await, 150);
    assert_eq!(connections(&order.attempts()), 2);
}

async fn all_at_once(client: &Client, url: &str, count: usize) -> usize {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (client, url) = (client.clone(), url.to_owned());
        tasks.spawn(async move { get(&client, url, PATIENCE).await });
    }
    let replies = tasks.join_all().await;
    replies
        .into_iter()
        .filter(|reply| reply.as_ref().unwrap().status == 200)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_dial_shares_its_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let client = h2c();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (client, url) = (client.clone(), url.clone());
        tasks.spawn(async move { get(&client, url, PATIENCE).await });
    }
    for outcome in tasks.join_all().await {
        assert_is(&outcome.unwrap_err(), FailureKind::Refused, Sent::NotSent);
    }
}

#[tokio::test]
async fn tls_is_what_the_partner_chooses_and_what_the_caller_allows() {
    for (version, proto) in [
        (Version::Auto, "HTTP/2"),
        (Version::Http2, "HTTP/2"),
        (Version::Http1, "HTTP/1.1"),
    ] {
        let mock = Mock::start().await;
        let pay = mock.script("POST", "201 create x2");
        let client = over_tls(&mock, version);
        for _ in 0..2 {
            assert_eq!(
                post(&client, pay.tls_url(), b"x").await.unwrap().status,
                201
            );
        }
        let attempts = pay.attempts();
        assert!(
            attempts.iter().all(|entry| entry.proto == proto),
            "{version:?}"
        );
        assert_eq!(connections(&attempts), 1, "{version:?}");
    }
}

#[tokio::test]
async fn a_partner_without_http2_is_spoken_to_in_its_own_version() {
    let scenario = "version = 1\n[[listener]]\nname = \"tls\"\ntls = true\nspeak = [\"http/1.1\"]\n\
                    [[route]]\nname = \"all\"\npath = \"/\"\nscope = \"global\"\nscript = \"200 x*\"\n";
    let scenario = Scenario::parse(scenario).unwrap();
    let mock = Mock::start_with(scenario, Options::default())
        .await
        .unwrap();
    let url = mock.tls_url();
    let client = over_tls(&mock, Version::Auto);
    assert_eq!(
        get(&client, url.clone(), PATIENCE).await.unwrap().status,
        200
    );
    assert_eq!(mock.journal()[0].proto, "HTTP/1.1");

    let strict = over_tls(&mock, Version::Http2);
    let failure = get(&strict, url, PATIENCE).await.unwrap_err();
    assert_is(&failure, FailureKind::Tls, Sent::NotSent);
    assert_eq!(mock.journal().len(), 1);
}

#[tokio::test]
async fn prior_knowledge_of_a_partner_that_has_none_is_malformed() {
    let (partner, _) = support::answering(&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]).await;
    let failure = post(&h2c(), partner.url("/"), b"x").await.unwrap_err();
    assert_is(&failure, FailureKind::Malformed, Sent::MaybeProcessed);
}

#[tokio::test]
async fn large_bodies_pass_and_a_reply_is_kept_up_to_the_limit() {
    let mock = Mock::start().await;
    let order = mock.script("PUT", "200 body=3000000, 204");
    let client = Client::new(ClientConfig {
        max_response_body: 100_000,
        ..speaking(Version::Http2)
    })
    .unwrap();
    let body = Bytes::from(vec![b'x'; 2_000_000]);
    for (kept, whole) in [(100_000, false), (0, true)] {
        let request = Request::put(order.url()).body(body.clone()).unwrap();
        let reply = client.send(request, PATIENCE).await.unwrap();
        assert_eq!((reply.body.len(), reply.body_limit_hit), (kept, !whole));
    }
    let attempts = order.attempts();
    assert!(attempts.iter().all(|entry| entry.body_len == 2_000_000));
    assert_eq!(connections(&attempts), 1);
}

#[tokio::test]
async fn headers_of_a_hop_stay_behind_and_the_length_is_announced() {
    let mock = Mock::start().await;
    let pay = mock.script("POST", "201");
    let request = Request::post(pay.url())
        .header("connection", "close")
        .header("keep-alive", "timeout=5")
        .header("x-order", "17")
        .body(Bytes::from_static(b"abc"))
        .unwrap();
    assert_eq!(h2c().send(request, PATIENCE).await.unwrap().status, 201);
    let entry = &pay.attempts()[0];
    assert_eq!(entry.header("x-order"), Some("17"));
    assert_eq!(entry.header("content-length"), Some("3"));
    for gone in ["connection", "keep-alive"] {
        assert_eq!(entry.header(gone), None, "{gone}");
    }
    // The mock writes the authority down as `host`: once, as no `Host` came beside it.
    let hosts = entry.headers.iter().filter(|(name, _)| name == "host");
    assert_eq!(hosts.count(), 1);
}

#[tokio::test]
async fn a_connection_that_fell_silent_is_not_used_again() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200, 200 hold=*, 200");
    let client = h2c();
    get(&client, order.url(), PATIENCE).await.unwrap();
    let limit = Duration::from_millis(300);
    let failure = get(&client, order.url(), limit).await.unwrap_err();
    assert_is(&failure, FailureKind::Timeout, Sent::MaybeProcessed);
    assert_eq!(
        get(&client, order.url(), PATIENCE).await.unwrap().status,
        200
    );
    let attempts = order.attempts();
    assert_eq!(attempts[0].conn, attempts[1].conn);
    assert_ne!(attempts[1].conn, attempts[2].conn);
}

#[tokio::test]
async fn a_dropped_request_ends_its_stream_alone() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200, 200 hold=*, 200");
    let client = h2c();
    get(&client, order.url(), PATIENCE).await.unwrap();
    let dropped = tokio::time::timeout(
        Duration::from_millis(200),
        get(&client, order.url(), PATIENCE),
    );
    assert!(dropped.await.is_err());
    assert_eq!(
        get(&client, order.url(), PATIENCE).await.unwrap().status,
        200
    );
    let attempts = order.wait_attempts(3, PATIENCE).await.unwrap();
    assert_eq!(connections(&attempts), 1);
    let seen = async {
        while order.attempts()[1].t_peer_close.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.unwrap();
}

/// With TLS 1.3 the partner's word about our certificate comes after the request.
#[tokio::test]
async fn a_refused_client_certificate_is_not_processed_over_http2_too() {
    let authority = Authority::new();
    let leaf = authority.leaf("localhost", false);
    let partner = tls_partner_speaking(
        &["h2"],
        leaf,
        Some(&Authority::new()),
        |_, mut s| async move {
            let _ = s.read_u8().await;
        },
    )
    .await;
    let url = format!("https://localhost:{}/", partner.address.port());
    let failure = post(&authority.client(None), url, b"x").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Certificate, "{failure:?}");
    assert!(failure.is_unprocessed(), "{failure:?}");
}
