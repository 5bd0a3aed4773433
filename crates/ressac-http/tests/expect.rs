//! `Expect: 100-continue`, over both versions (RFC 9110 §10.1.1).
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use ressac_http::{Client, ClientConfig, ExpectContinue, Reply, Version};
use ressac_mock::Mock;
use support::PATIENCE;

const BODY: &[u8] = &[b'x'; 65_536];

async fn put(version: Version, expect: ExpectContinue, url: String) -> Reply {
    let client = Client::new(ClientConfig {
        version,
        expect,
        ..ClientConfig::default()
    })
    .unwrap();
    let request = Request::put(url)
        .header("expect", "100-continue")
        .body(Bytes::from_static(BODY))
        .unwrap();
    client.send(request, PATIENCE).await.unwrap()
}

/// Longer than any test takes: who waits so long has missed the 100.
fn patient() -> ExpectContinue {
    ExpectContinue {
        wait: PATIENCE * 2,
        ..ExpectContinue::default()
    }
}

#[tokio::test]
async fn the_body_follows_the_100() {
    for version in [Version::Http1, Version::Http2] {
        let mock = Mock::start().await;
        let order = mock.script("PUT", "201 create expect=late:100ms");
        let reply = put(version, patient(), order.url()).await;
        assert_eq!(reply.status, 201, "{version:?}");
        let entry = &order.attempts()[0];
        assert_eq!(entry.body_len, BODY.len() as u64);
        assert_eq!(entry.header("expect"), Some("100-continue"));
    }
}

#[tokio::test]
async fn a_100_that_never_comes_is_waited_for_in_vain_and_not_for_ever() {
    for version in [Version::Http1, Version::Http2] {
        let mock = Mock::start().await;
        let order = mock.script("PUT", "201 create expect=never");
        let wait = Duration::from_millis(200);
        let begun = Instant::now();
        let expect = ExpectContinue {
            wait,
            ..ExpectContinue::default()
        };
        let reply = put(version, expect, order.url()).await;
        assert_eq!(reply.status, 201, "{version:?}");
        assert!(
            begun.elapsed() >= wait,
            "{version:?}: the body did not wait"
        );
        assert_eq!(order.attempts()[0].body_len, BODY.len() as u64);
    }
}

#[tokio::test]
async fn a_417_sends_the_request_once_more_without_the_expectation() {
    for version in [Version::Http1, Version::Http2] {
        let mock = Mock::start().await;
        let order = mock.script("PUT", "200 expect=417, 201 create");
        let reply = put(version, patient(), order.url()).await;
        assert_eq!(reply.status, 201, "{version:?}");
        let attempts = order.attempts();
        assert_eq!(
            attempts[0].body_len, 0,
            "{version:?}: the body was not asked for"
        );
        assert_eq!(attempts[1].header("expect"), None);
        assert_eq!(attempts[1].body_len, BODY.len() as u64);
        order.verify();

        // A second 417 is an answer like any other.
        let stubborn = mock.script("PUT", "417 x*");
        let reply = put(version, patient(), stubborn.url()).await;
        assert_eq!((reply.status.as_u16(), stubborn.attempts().len()), (417, 2));
    }
}

#[tokio::test]
async fn who_wants_the_417_gets_it() {
    let mock = Mock::start().await;
    let order = mock.script("PUT", "200 expect=417");
    let expect = ExpectContinue {
        resend_on_417: false,
        ..patient()
    };
    let reply = put(Version::Http1, expect, order.url()).await;
    assert_eq!(reply.status, 417);
    assert_eq!(order.attempts().len(), 1);
}

#[tokio::test]
async fn a_final_reply_ends_the_waiting_with_the_body_unsent() {
    for version in [Version::Http1, Version::Http2] {
        let mock = Mock::start().await;
        let order = mock.script("PUT", "403 expect=final");
        let reply = put(version, patient(), order.url()).await;
        assert_eq!(reply.status, 403, "{version:?}");
        assert_eq!(order.attempts()[0].body_len, 0, "{version:?}");
    }
}

#[tokio::test]
async fn without_a_body_there_is_nothing_to_expect() {
    let mock = Mock::start().await;
    let order = mock.script("PUT", "204");
    let client = Client::new(ClientConfig::default()).unwrap();
    let request = Request::put(order.url()).header("expect", "100-Continue");
    let request = request.body(Bytes::new()).unwrap();
    assert_eq!(client.send(request, PATIENCE).await.unwrap().status, 204);
    assert_eq!(order.attempts()[0].header("expect"), None);
}
