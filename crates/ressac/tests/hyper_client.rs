//! Closures around hyper's client: its errors say themselves what they prove.
#![cfg(all(feature = "hyper-util", feature = "http"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::{Act, Server, partner};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ressac::{OutcomeKind, Processed, Reason};

fn client() -> Client<HttpConnector, Full<Bytes>> {
    // Its own repetitions go only where hyper hands the request back unsent.
    Client::builder(TokioExecutor::new()).build_http()
}

fn post(url: &str) -> http::Request<Full<Bytes>> {
    http::Request::post(url).body(Full::from("pay")).unwrap()
}

#[tokio::test]
async fn vr_4_a_post_in_doubt_goes_out_once() {
    for (act, kind) in [
        (Act::ReadAndClose, OutcomeKind::Eof),
        (Act::ReadAndReset, OutcomeKind::Reset),
        (Act::Reply(503, "", ""), OutcomeKind::Status(503)),
    ] {
        let (server, client) = (Server::start([act]).await, client());
        let op = |_| client.request(post(&server.url()));
        let told = partner().retry(op).replies().await.unwrap_err();
        assert_eq!(
            (told.reason(), told.last_outcome()),
            (Reason::Ambiguous, Some(kind))
        );
        assert_eq!(server.seen().len(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn a_closed_port_and_a_429_prove_that_nothing_was_done() {
    let (server, client) = (Server::start([Act::Reply(429, "", "")]).await, client());
    let op = |_| client.request(post(&server.url()));
    assert_eq!(partner().retry(op).replies().await.unwrap().status(), 200);

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", port.local_addr().unwrap());
    drop(port);
    let told = partner()
        .retry(|_| client.request(post(&url)))
        .replies()
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Exhausted, 4));
    assert_eq!(told.last_outcome(), Some(OutcomeKind::Refused));
    assert_eq!(told.processed(), Processed::No);
}
