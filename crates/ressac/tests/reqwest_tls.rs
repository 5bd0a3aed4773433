//! TLS and HTTP/2: a certificate that is refused, a handshake that is cut, a stream that was refused.
#![cfg(all(feature = "reqwest", feature = "rustls", feature = "http2"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::{Act, Server, partner, quick};
use ressac::reqwest::Client;
use ressac::{Blame, OutcomeKind, Partner, Policy, Processed, Reason};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;

/// A server whose certificate nobody has signed.
async fn self_signed() -> SocketAddr {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move { drop(acceptor.accept(socket).await) });
        }
    });
    addr
}

#[tokio::test]
async fn ht_7_a_certificate_that_is_refused_is_permanent_and_the_partner_s() {
    let addr = self_signed().await;
    let client = Client::new(partner()).unwrap();
    let url = format!("https://localhost:{}/", addr.port());
    let told = client.get(url).send().await.unwrap_err();
    assert_eq!(
        told.last_outcome(),
        Some(OutcomeKind::Certificate),
        "{told}"
    );
    assert_eq!((told.reason(), told.attempts()), (Reason::Permanent, 1));
    assert_eq!(
        (told.processed(), told.blame()),
        (Processed::No, Some(Blame::Partner))
    );
    assert!(told.advice().contains("certificate"));
}

#[tokio::test]
async fn ht_7_a_handshake_that_is_cut_was_not_sent_and_is_tried_again() {
    // Whatever is read of the handshake, no request is.
    let server = Server::start([Act::Close, Act::Close, Act::Close, Act::Close]).await;
    let client = Client::new(partner()).unwrap();
    let url = format!("https://{}/", server.addr);
    let told = client.post(url).send().await.unwrap_err();
    assert_eq!(
        (told.reason(), told.attempts()),
        (Reason::Exhausted, 4),
        "{told}"
    );
    assert_eq!(told.processed(), Processed::No);
    let kind = told.last_outcome().unwrap();
    assert!(
        matches!(kind, OutcomeKind::Tls | OutcomeKind::Refused),
        "{kind}"
    );
}

#[tokio::test]
async fn a_handshake_that_is_not_answered_is_a_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let policy = Policy {
        retries: 0,
        ..quick()
    };
    let client = Client::with(Partner::new(policy), |builder| {
        builder.connect_timeout(Duration::from_millis(200))
    })
    .unwrap();
    let told = client.post(url).send().await.unwrap_err();
    assert_eq!(
        told.last_outcome(),
        Some(OutcomeKind::ConnectTimeout),
        "{told}"
    );
    assert_eq!(told.processed(), Processed::No);
}

/// What an HTTP/2 server does with a request.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Refuse,
    InternalError,
    /// A GOAWAY that lies below the request.
    Goaway,
    /// The request is taken, the connection ends without an answer.
    TakeAndDrop,
}

/// Does this so often, then answers 200. Counts the requests it saw.
async fn h2_server(what: Stream, times: u32) -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicU32::new(0));
    let (own, left) = (seen.clone(), Arc::new(AtomicU32::new(times)));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (seen, left) = (own.clone(), left.clone());
            tokio::spawn(async move { h2_connection(socket, what, &seen, &left).await });
        }
    });
    (addr, seen)
}

async fn h2_connection(
    socket: tokio::net::TcpStream,
    what: Stream,
    seen: &AtomicU32,
    left: &AtomicU32,
) {
    let take = || {
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
            .is_ok()
    };
    if matches!(what, Stream::Goaway) && take() {
        return goaway(socket).await;
    }
    let Ok(mut connection) = h2::server::handshake(socket).await else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        seen.fetch_add(1, Ordering::SeqCst);
        if take() {
            match what {
                Stream::Refuse => respond.send_reset(h2::Reason::REFUSED_STREAM),
                Stream::InternalError => respond.send_reset(h2::Reason::INTERNAL_ERROR),
                Stream::Goaway => {}
                Stream::TakeAndDrop => return,
            }
            continue;
        }
        let mut body = respond
            .send_response(http::Response::new(()), false)
            .unwrap();
        body.send_data(Bytes::from_static(b"ok"), true).unwrap();
    }
}

/// Settings, and a GOAWAY with the last stream 0, by hand: h2 itself would serve what it has read.
async fn goaway(mut socket: tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut bytes = vec![0; 4096];
    let mut read = 0;
    // The preface, the settings and the request's head.
    while read < 24 + 9 {
        match socket.read(&mut bytes[read..]).await {
            Ok(0) | Err(_) => return,
            Ok(more) => read += more,
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let _ = socket.write_all(&settings).await;
    let _ = socket.write_all(&goaway).await;
    // Until the client closes.
    while matches!(socket.read(&mut bytes).await, Ok(1..)) {}
}

fn h2_client() -> Client {
    Client::with(partner(), reqwest::ClientBuilder::http2_prior_knowledge).unwrap()
}

/// VR-8, and RFC 9113 §8.7: it was not processed, so a POST goes again, at once.
#[tokio::test]
async fn vr_8_a_refused_stream_was_not_processed_and_goes_again_at_once() {
    let (addr, seen) = h2_server(Stream::Refuse, 1).await;
    let begun = std::time::Instant::now();
    let reply = h2_client()
        .post(format!("http://{addr}/"))
        .body("pay")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (reply.status().as_u16(), seen.load(Ordering::SeqCst)),
        (200, 2)
    );
    assert!(begun.elapsed() < Duration::from_secs(2));

    let (addr, seen) = h2_server(Stream::Refuse, u32::MAX).await;
    let told = h2_client()
        .post(format!("http://{addr}/"))
        .send()
        .await
        .unwrap_err();
    assert_eq!(told.last_outcome(), Some(OutcomeKind::RefusedStream));
    assert_eq!(
        (told.reason(), told.processed()),
        (Reason::Exhausted, Processed::No)
    );
    // reqwest's own two tries more would make it twelve.
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_goaway_below_the_request_proves_that_it_was_not_processed() {
    let (addr, seen) = h2_server(Stream::Goaway, 1).await;
    let reply = h2_client()
        .post(format!("http://{addr}/"))
        .body("pay")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (reply.status().as_u16(), seen.load(Ordering::SeqCst)),
        (200, 1)
    );
}

#[tokio::test]
async fn other_ends_of_a_stream_prove_nothing() {
    for what in [Stream::InternalError, Stream::TakeAndDrop] {
        let (addr, seen) = h2_server(what, 1).await;
        let told = h2_client()
            .post(format!("http://{addr}/"))
            .body("pay")
            .send()
            .await
            .unwrap_err();
        assert_eq!(told.reason(), Reason::Ambiguous, "{what:?}: {told}");
        assert_eq!(told.processed(), Processed::Maybe, "{what:?}");
        assert_eq!(seen.load(Ordering::SeqCst), 1, "{what:?}");
    }
}
