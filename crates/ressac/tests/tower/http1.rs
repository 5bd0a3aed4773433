//! What each end of an HTTP/1.1 exchange proves, and what is sent again.

use std::time::{Duration, Instant};

use http::{Method, Request};
use ressac::tower::{Idempotent, RetryLayer};
use ressac::{Blame, Idempotency, IdempotencyKey, OutcomeKind, Partner, Policy, Processed, Reason};
use tower::ServiceExt;

use crate::support::{
    BUSY, Does, OK, SLOW_DOWN, Server, client, end, full, plain, policy, refused, text,
};

fn request(method: Method, url: &str) -> Request<http_body_util::Full<bytes::Bytes>> {
    Request::builder()
        .method(method)
        .uri(url)
        .body(full("10 EUR"))
        .unwrap()
}

#[tokio::test]
async fn a_get_is_repeated_after_each_failure() {
    for first in [BUSY, Does::Closes, Does::Resets, SLOW_DOWN] {
        let turns: &'static [Does] = Box::leak(Box::new([first, OK]));
        let server = Server::start(turns).await;
        let reply = client(&plain())
            .oneshot(request(Method::GET, &server.url()))
            .await
            .unwrap();
        let came_to = end(&reply);
        assert_eq!(
            (came_to.reason, came_to.attempts),
            (Reason::Delivered, 2),
            "{first:?}"
        );
        assert_eq!(text(reply).await, "ok");
        assert_eq!(server.requests().len(), 2);
    }
}

/// VR-1, VR-3: the server read all of it and then broke off. A payment is not sent twice.
#[tokio::test]
async fn vr_3_a_post_is_not_repeated_after_a_close_or_a_reset() {
    for fault in [Does::Closes, Does::Resets] {
        let turns: &'static [Does] = Box::leak(Box::new([fault, OK]));
        let server = Server::start(turns).await;
        let sent = client(&plain())
            .oneshot(request(Method::POST, &server.url()))
            .await;
        let error = sent.unwrap_err();
        assert_eq!(error.reason(), Reason::Ambiguous, "{fault:?}: {error}");
        assert_eq!((error.processed(), error.attempts()), (Processed::Maybe, 1));
        assert_eq!(error.blame(), Some(Blame::Network));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn vr_1_a_post_is_not_repeated_after_its_time_limit() {
    let server = Server::start(&[Does::Hangs]).await;
    let policy = Policy {
        attempt_timeout: Duration::from_secs(1),
        ..policy()
    };
    let layer = RetryLayer::new(Partner::new(policy));
    let start = Instant::now();
    let sent = client(&layer)
        .oneshot(request(Method::POST, &server.url()))
        .await;
    let error = sent.unwrap_err();
    assert_eq!(error.reason(), Reason::Ambiguous);
    assert_eq!(error.last_outcome(), Some(OutcomeKind::Timeout));
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.requests().len(), 1);
}

/// VR-2: a 503 may come from a proxy in front of an application that has done it.
#[tokio::test]
async fn vr_2_a_post_answered_503_is_returned_as_it_came() {
    let server = Server::start(&[BUSY, OK]).await;
    let reply = client(&plain())
        .oneshot(request(Method::POST, &server.url()))
        .await
        .unwrap();
    let came_to = end(&reply);
    assert_eq!((came_to.reason, came_to.attempts), (Reason::Ambiguous, 1));
    assert_eq!(reply.status(), 503);
    // PX-4: untouched.
    assert_eq!(text(reply).await, "busy");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_was_not_processed_is_repeated_whatever_its_method() {
    let server = Server::start(&[SLOW_DOWN, OK]).await;
    let reply = client(&plain())
        .oneshot(request(Method::POST, &server.url()))
        .await
        .unwrap();
    assert_eq!((end(&reply).attempts, text(reply).await), (2, "ok".into()));
    // EX-1: the same bytes.
    let requests = server.requests();
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].ends_with("\r\n\r\n10 EUR"));

    let (_socket, addr) = refused();
    let url = format!("http://{addr}/pay");
    let error = client(&plain())
        .oneshot(request(Method::POST, &url))
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts()),
        (Reason::Exhausted, 3),
        "{error}"
    );
    assert_eq!(error.last_outcome(), Some(OutcomeKind::Refused));
    assert_eq!(error.processed(), Processed::No);
}

/// IK-1: one key for all attempts, and it makes a POST repeatable.
#[tokio::test]
async fn ik_1_under_a_key_that_the_partner_honours_a_post_is_repeated() {
    for quoted in [false, true] {
        let server = Server::start(&[Does::Closes, BUSY, OK]).await;
        let named = Idempotency::header("X-Key");
        let named = if quoted { named.quoted() } else { named };
        let partner = Partner::builder(policy())
            .idempotency(named)
            .build()
            .unwrap();
        let layer = RetryLayer::new(partner);
        let reply = client(&layer)
            .oneshot(request(Method::POST, &server.url()))
            .await
            .unwrap();
        assert_eq!((end(&reply).attempts, text(reply).await), (3, "ok".into()));
        let requests = server.requests();
        assert!(requests.iter().all(|request| *request == requests[0]));
        let key = requests[0]
            .split("x-key: ")
            .nth(1)
            .unwrap()
            .split("\r\n")
            .next()
            .unwrap();
        assert_eq!(key.len(), 36 + if quoted { 2 } else { 0 }, "{key}");
        // A read needs none.
        client(&layer)
            .oneshot(request(Method::GET, &server.url()))
            .await
            .unwrap();
        assert!(!server.requests()[3].contains("x-key"));
    }
}

/// IK-2: a key of the caller's, one that was stored before; in an extension, or in the header itself.
#[tokio::test]
async fn ik_2_a_key_of_the_callers_goes_out_as_it_stands() {
    let server = Server::start(&[BUSY, OK]).await;
    let mut keyed = request(Method::POST, &server.url());
    keyed
        .extensions_mut()
        .insert(IdempotencyKey::new("order-7").unwrap());
    let reply = client(&plain()).oneshot(keyed).await.unwrap();
    assert_eq!(end(&reply).attempts, 2);
    for sent in server.requests() {
        assert!(sent.contains("idempotency-key: order-7\r\n"), "{sent}");
    }

    let server = Server::start(&[BUSY, OK]).await;
    let named = Idempotency::header("Idempotency-Key");
    let partner = Partner::builder(policy())
        .idempotency(named)
        .build()
        .unwrap();
    let mut own = request(Method::POST, &server.url());
    own.headers_mut()
        .insert("idempotency-key", "\"mine\"".parse().unwrap());
    let reply = client(&RetryLayer::new(partner))
        .oneshot(own)
        .await
        .unwrap();
    assert_eq!(end(&reply).attempts, 2);
    for sent in server.requests() {
        assert!(sent.contains("idempotency-key: \"mine\"\r\n"), "{sent}");
    }

    // Nobody said that this partner honours it: a header alone makes nothing repeatable.
    let server = Server::start(&[BUSY, OK]).await;
    let mut own = request(Method::POST, &server.url());
    own.headers_mut()
        .insert("idempotency-key", "mine".parse().unwrap());
    let reply = client(&plain()).oneshot(own).await.unwrap();
    assert_eq!(
        (reply.status().as_u16(), end(&reply).reason),
        (503, Reason::Ambiguous)
    );
}

#[tokio::test]
async fn what_the_caller_calls_idempotent_is_repeated() {
    let server = Server::start(&[BUSY, OK]).await;
    let mut marked = request(Method::POST, &server.url());
    marked.extensions_mut().insert(Idempotent);
    assert_eq!(
        client(&plain()).oneshot(marked).await.unwrap().status(),
        200
    );

    let server = Server::start(&[BUSY, OK]).await;
    let layer = plain().idempotent(|parts| parts.uri.path() == "/pay");
    let reply = client(&layer)
        .oneshot(request(Method::POST, &server.url()))
        .await
        .unwrap();
    assert_eq!(reply.status(), 200);
}

/// PX-4: after the last attempt the reply is returned, with what it came to beside it.
#[tokio::test]
async fn the_last_reply_is_returned() {
    let server = Server::start(&[BUSY]).await;
    let reply = client(&plain())
        .oneshot(request(Method::GET, &server.url()))
        .await
        .unwrap();
    let came_to = end(&reply);
    assert_eq!((came_to.reason, came_to.attempts), (Reason::Exhausted, 3));
    assert_eq!(
        (reply.status().as_u16(), text(reply).await),
        (503, "busy".into())
    );
}

/// VR-5: 3 times 3 makes 3.
#[tokio::test]
async fn vr_5_an_inner_layer_that_gave_up_is_not_retried() {
    let gave_up = Does::Says(
        "HTTP/1.1 503 Service Unavailable\r\nressac-reason: exhausted\r\ncontent-length: 0\r\n\r\n",
    );
    let turns: &'static [Does] = Box::leak(Box::new([gave_up]));
    let server = Server::start(turns).await;
    let reply = client(&plain())
        .oneshot(request(Method::GET, &server.url()))
        .await
        .unwrap();
    assert_eq!(end(&reply).reason, Reason::UpstreamGaveUp);
    assert_eq!(server.requests().len(), 1);
}

/// RA-3: a hint is the floor of the wait.
#[tokio::test]
async fn ra_3_a_hint_is_kept() {
    let busy = Does::Says(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
    );
    let turns: &'static [Does] = Box::leak(Box::new([busy, OK]));
    let server = Server::start(turns).await;
    let start = Instant::now();
    let reply = client(&plain())
        .oneshot(request(Method::GET, &server.url()))
        .await
        .unwrap();
    assert_eq!(reply.status(), 200);
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

/// EX-5: the reply of a failed attempt is read, so that its connection serves the next.
#[tokio::test]
async fn ex_5_a_failed_attempt_costs_no_connection() {
    // More than arrives with the head: dropped unread, it would close its connection.
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 40000\r\n\r\n";
    let busy = Does::Says(String::leak(format!("{head}{}", "x".repeat(40_000))));
    let turns: &'static [Does] = Box::leak(Box::new([busy, busy, OK]));
    let server = Server::start(turns).await;
    let mut slow = policy();
    slow.backoff.base = Duration::from_millis(300);
    let layer = RetryLayer::new(Partner::new(slow));
    let reply = client(&layer)
        .oneshot(request(Method::GET, &server.url()))
        .await
        .unwrap();
    assert_eq!(end(&reply).attempts, 3);
    assert_eq!(server.connections(), 1);
}

/// CA-1: dropping the future in its backoff: nothing more is sent, and no place is lost.
#[tokio::test]
async fn ca_1_a_dropped_future_sends_nothing_more() {
    let server = Server::start(&[BUSY]).await;
    let mut slow = policy();
    slow.backoff.base = Duration::from_millis(400);
    let partner = Partner::new(slow);
    let layer = RetryLayer::new(partner.clone());
    let sent = client(&layer).oneshot(request(Method::GET, &server.url()));
    let mut sent = Box::pin(sent);
    while server.requests().is_empty() || partner.view().in_flight > 0 {
        let pause = tokio::time::sleep(Duration::from_millis(5));
        tokio::select! { _ = &mut sent => panic!("it waits"), () = pause => {} }
    }
    drop(sent);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(server.requests().len(), 1);
    assert_eq!(partner.view().in_flight, 0);
}

/// The same in an attempt: its place goes back, and the breaker hears nothing (BR-3).
#[tokio::test]
async fn br_3_a_future_dropped_in_an_attempt_gives_its_place_back() {
    let server = Server::start(&[Does::Hangs]).await;
    let partner = Partner::new(policy());
    let layer = RetryLayer::new(partner.clone());
    let mut sent = Box::pin(client(&layer).oneshot(request(Method::GET, &server.url())));
    while server.requests().is_empty() {
        let pause = tokio::time::sleep(Duration::from_millis(5));
        tokio::select! { _ = &mut sent => panic!("it hangs"), () = pause => {} }
    }
    assert_eq!(partner.view().in_flight, 1);
    drop(sent);
    let view = partner.view();
    assert_eq!((view.in_flight, view.failures), (0, 0));
}

/// What the client itself cannot send is the caller's to mend.
#[tokio::test]
async fn a_request_without_a_host_is_permanent() {
    let error = client(&plain())
        .oneshot(request(Method::POST, "/pay"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.blame()),
        (Reason::Permanent, Some(Blame::Ours)),
        "{error}"
    );
    assert_eq!(error.processed(), Processed::No);
}

/// The partner is shared: what closures learn of it holds for the service too.
#[tokio::test]
async fn br_10_an_open_breaker_answers_at_once() {
    let server = Server::start(&[OK]).await;
    let partner = Partner::new(policy());
    for _ in 0..5 {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let _ = partner.retry(async |_| Err::<(), _>(refused())).await;
    }
    let layer = RetryLayer::new(partner);
    let error = client(&layer)
        .oneshot(request(Method::GET, &server.url()))
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts()),
        (Reason::CircuitOpen, 0),
        "{error}"
    );
    assert!(server.requests().is_empty());
}
