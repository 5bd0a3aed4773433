//! What each failure proves, on real sockets: the table of the design, row by row.
#![cfg(feature = "reqwest")]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Act, Server, partner, quick};
use ressac::reqwest::{Client, Error};
use ressac::{Blame, OutcomeKind, Partner, Policy, Processed, Reason};

type Told = Result<reqwest::Response, Error>;

async fn post(client: &Client, url: &str) -> Told {
    client.post(url).body("pay 20").send().await
}

fn end(told: &Error) -> (Reason, Option<OutcomeKind>, Processed, Option<Blame>, u32) {
    (
        told.reason(),
        told.last_outcome(),
        told.processed(),
        told.blame(),
        told.attempts(),
    )
}

/// What nothing proves unsent is not sent again, whatever the server saw of it (VR-1 to VR-4).
#[tokio::test]
async fn a_post_in_doubt_is_ambiguous_and_goes_out_once() {
    use OutcomeKind::{Eof, Reset, Status};
    let rows = [
        (Act::ReadAndClose, Eof, Blame::Network),
        (Act::ReadAndReset, Reset, Blame::Network),
        (Act::Raw("HTTP/1.1 20"), Eof, Blame::Network),
        (Act::Raw("SMTP ready\r\n\r\n"), Eof, Blame::Network),
        (Act::Reply(502, "", ""), Status(502), Blame::Partner),
        (Act::Reply(503, "", ""), Status(503), Blame::Partner),
        (Act::Reply(504, "", ""), Status(504), Blame::Partner),
    ];
    for (act, kind, blame) in rows {
        let server = Server::start([act]).await;
        let client = Client::new(partner()).unwrap();
        let told = post(&client, &server.url()).await.unwrap_err();
        let expected = (
            Reason::Ambiguous,
            Some(kind),
            Processed::Maybe,
            Some(blame),
            1,
        );
        assert_eq!(end(&told), expected, "{act:?}");
        assert_eq!(server.seen().len(), 1, "{act:?}");
        assert_eq!(server.seen()[0].body, b"pay 20", "{act:?}");
    }
}

#[tokio::test]
async fn vr_1_a_post_that_times_out_is_ambiguous_and_goes_out_once() {
    let server = Server::start([Act::Silence]).await;
    let policy = Policy {
        attempt_timeout: Duration::from_millis(300),
        ..quick()
    };
    let client = Client::new(Partner::new(policy)).unwrap();
    let told = post(&client, &server.url()).await.unwrap_err();
    let timeout = Some(OutcomeKind::Timeout);
    let expected = (
        Reason::Ambiguous,
        timeout,
        Processed::Maybe,
        Some(Blame::Network),
        1,
    );
    assert_eq!(end(&told), expected);
    assert!(told.last_error().unwrap().is_timeout());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.seen().len(), 1);
}

/// A connection that ends as it is accepted may have taken bytes with it, or the client stack knows
/// that it had not begun to write: in doubt, or sent again. Either way it arrives once at most.
#[tokio::test]
async fn a_connection_that_ends_at_once_never_doubles_a_post() {
    for act in [Act::Close, Act::Reset] {
        let server = Server::start([act]).await;
        let client = Client::new(partner()).unwrap();
        match post(&client, &server.url()).await {
            Ok(_) => assert_eq!(server.seen().len(), 1, "{act:?}"),
            Err(told) => {
                assert_eq!(told.reason(), Reason::Ambiguous, "{act:?}");
                assert_eq!(server.seen().len(), 0, "{act:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_may_be_repeated_is() {
    let acts = [
        Act::ReadAndClose,
        Act::Reply(503, "", ""),
        Act::ReadAndReset,
    ];
    let server = Server::start(acts).await;
    let client = Client::new(partner()).unwrap();
    let reply = client.get(server.url()).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn refusals_prove_that_nothing_was_done_so_a_post_goes_again() {
    for status in [408, 425, 429] {
        let server = Server::start([Act::Reply(status, "", "")]).await;
        let client = Client::new(partner()).unwrap();
        assert_eq!(post(&client, &server.url()).await.unwrap().status(), 200);
        assert_eq!(server.seen().len(), 2, "{status}");
    }
}

/// VR-7: permanent, whatever hint comes along; the reply comes back untouched (PX-4).
#[tokio::test]
async fn permanent_answers_end_at_once_and_come_back_whole() {
    for status in [
        301, 302, 307, 400, 401, 403, 404, 409, 410, 422, 500, 501, 505,
    ] {
        let fields = "retry-after: 0\r\nlocation: /elsewhere\r\n";
        let server = Server::start([Act::Reply(status, fields, "{\"why\":1}")]).await;
        let client = Client::new(partner()).unwrap();
        let told = post(&client, &server.url()).await.unwrap_err();
        let expected = (
            Reason::Permanent,
            Some(OutcomeKind::Status(status)),
            Processed::Yes,
        );
        assert_eq!(
            (told.reason(), told.last_outcome(), told.processed()),
            expected
        );
        let reply = told.into_reply().unwrap();
        assert_eq!(
            (reply.status().as_u16(), reply.url().path()),
            (status, "/pay")
        );
        assert_eq!(reply.text().await.unwrap(), "{\"why\":1}");
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_closed_port_is_refused_and_tried_again() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = port.local_addr().unwrap();
    drop(port);
    let client = Client::new(partner()).unwrap();
    let told = post(&client, &format!("http://{addr}/")).await.unwrap_err();
    let refused = Some(OutcomeKind::Refused);
    let expected = (
        Reason::Exhausted,
        refused,
        Processed::No,
        Some(Blame::Network),
        4,
    );
    assert_eq!(end(&told), expected);
    assert!(told.advice().contains("not processed"), "{told}");
}

/// A name server of a test.
struct NoSuchName;

impl reqwest::dns::Resolve for NoSuchName {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async { Err("no such host".into()) })
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_was_not_sent() {
    let resolver = std::sync::Arc::new(NoSuchName);
    let client = Client::with(partner(), |builder| builder.dns_resolver(resolver.clone())).unwrap();
    let told = post(&client, "http://partner.invalid/").await.unwrap_err();
    let dns = Some(OutcomeKind::Dns);
    let expected = (
        Reason::Exhausted,
        dns,
        Processed::No,
        Some(Blame::Network),
        4,
    );
    assert_eq!(end(&told), expected);
}

/// A port whose queue of connections is full: nobody answers the SYN.
async fn full_port() -> (
    socket2::Socket,
    std::net::SocketAddr,
    Vec<tokio::net::TcpStream>,
) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    let patience = Duration::from_millis(200);
    while let Ok(Ok(stream)) =
        tokio::time::timeout(patience, tokio::net::TcpStream::connect(addr)).await
    {
        queued.push(stream);
        assert!(queued.len() < 100, "the queue does not fill");
    }
    (socket, addr, queued)
}

#[tokio::test]
async fn a_connect_timeout_is_told_from_an_answer_that_does_not_come() {
    let (_socket, addr, _queued) = full_port().await;
    let policy = Policy {
        retries: 1,
        ..quick()
    };
    let client = Client::with(Partner::new(policy), |builder| {
        builder.connect_timeout(Duration::from_millis(150))
    })
    .unwrap();
    let told = post(&client, &format!("http://{addr}/")).await.unwrap_err();
    let timeout = Some(OutcomeKind::ConnectTimeout);
    let expected = (
        Reason::Exhausted,
        timeout,
        Processed::No,
        Some(Blame::Network),
        2,
    );
    assert_eq!(end(&told), expected);
}

/// Our own limit on connecting lies below the attempt's, whatever that is.
#[tokio::test]
async fn the_client_s_own_connect_timeout_is_below_the_attempt_s() {
    let (_socket, addr, _queued) = full_port().await;
    let policy = Policy {
        retries: 0,
        attempt_timeout: Duration::from_millis(400),
        ..quick()
    };
    let client = Client::new(Partner::new(policy)).unwrap();
    let told = post(&client, &format!("http://{addr}/")).await.unwrap_err();
    assert_eq!(told.last_outcome(), Some(OutcomeKind::ConnectTimeout));
    assert_eq!(told.processed(), Processed::No);
}

/// The reply had begun: a short body is never passed off as whole.
#[tokio::test]
async fn a_reply_cut_in_its_body_is_a_failure_where_the_body_is_asked_for() {
    let cut = Act::Raw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    let server = Server::start([cut]).await;
    let client = Client::new(partner()).unwrap();
    let told = client
        .post(server.url())
        .body("x")
        .send_whole(1024)
        .await
        .unwrap_err();
    let truncated = Some(OutcomeKind::Truncated);
    let expected = (
        Reason::Ambiguous,
        truncated,
        Processed::Yes,
        Some(Blame::Network),
        1,
    );
    assert_eq!(end(&told), expected);

    let server = Server::start([cut, cut]).await;
    let reply = client.get(server.url()).send_whole(1024).await.unwrap();
    assert_eq!(reply.text().await.unwrap(), "ok");
    assert_eq!(server.seen().len(), 3);

    // Streamed, the operation has ended before the body breaks off: reading it fails.
    let server = Server::start([cut]).await;
    let reply = client.get(server.url()).send().await.unwrap();
    assert!(reply.text().await.is_err());
    assert_eq!(server.seen().len(), 1);
}

/// A 503 need not be whole to be obeyed.
#[tokio::test]
async fn a_failure_cut_in_its_body_is_its_status() {
    let cut = Act::Raw("HTTP/1.1 429 Slow\r\ncontent-length: 10\r\n\r\nhalf");
    let server = Server::start([cut]).await;
    let client = Client::new(partner()).unwrap();
    assert_eq!(post(&client, &server.url()).await.unwrap().status(), 200);
}

/// VR-6: a pooled connection that its server has closed since.
#[tokio::test]
async fn vr_6_an_idle_connection_that_was_closed_loses_no_request() {
    let close = Act::Raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let server = Server::start([close]).await;
    let client = Client::new(partner()).unwrap();
    let first = post(&client, &server.url()).await.unwrap();
    assert_eq!(first.text().await.unwrap(), "ok");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(post(&client, &server.url()).await.unwrap().status(), 200);
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].connection, seen[1].connection);
}

#[tokio::test]
async fn a_url_that_is_none_is_ours_and_nothing_is_tried() {
    let client = Client::new(partner()).unwrap();
    let told = post(&client, "not a url").await.unwrap_err();
    let invalid = Some(OutcomeKind::Invalid);
    let expected = (
        Reason::Permanent,
        invalid,
        Processed::No,
        Some(Blame::Ours),
        0,
    );
    assert_eq!(end(&told), expected);
    let told = client
        .post("http://localhost/")
        .header("x-bad", "a\r\nb")
        .send()
        .await
        .unwrap_err();
    assert_eq!(end(&told), expected, "HT-8");
}
