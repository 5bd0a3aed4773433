//! `https`: certificate faults are told from cut handshakes, and the proofs hold under TLS.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use ressac_http::{Client, ClientConfig, Failure, FailureKind, Sent};
use support::tls::{Authority, Leaf, tls_partner};
use support::{OK, PATIENCE, Partner, post, read_request, reset};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

fn https(partner: &Partner) -> String {
    format!("https://localhost:{}/?token=secret", partner.address.port())
}

async fn serve_ok(_: usize, mut stream: TlsStream<TcpStream>) {
    while read_request(&mut stream).await.is_some() {
        if stream.write_all(OK).await.is_err() {
            return;
        }
    }
}

fn assert_is(failure: &Failure, kind: FailureKind, sent: Sent) {
    assert_eq!((failure.kind, failure.sent), (kind, sent), "{failure:?}");
    assert!(!failure.message.contains("secret"), "{failure}");
}

#[tokio::test]
async fn a_trusted_partner_is_reached_and_its_connection_kept() {
    let authority = Authority::new();
    let partner = tls_partner(authority.leaf("localhost", false), None, serve_ok).await;
    let client = authority.client(None);
    assert_eq!(
        post(&client, https(&partner), b"a").await.unwrap().status,
        200
    );
    assert!(
        post(&client, https(&partner), b"b")
            .await
            .unwrap()
            .reused_connection
    );
    assert_eq!(partner.connections(), 1);
}

#[tokio::test]
async fn an_address_can_be_certified_too() {
    let authority = Authority::new();
    let partner = tls_partner(authority.leaf("127.0.0.1", false), None, serve_ok).await;
    let url = format!("https://{}/", partner.address);
    assert_eq!(
        post(&authority.client(None), url, b"a")
            .await
            .unwrap()
            .status,
        200
    );
}

async fn refused(leaf: Leaf, client: &Client) -> Failure {
    let partner = tls_partner(leaf, None, serve_ok).await;
    post(client, https(&partner), b"x").await.unwrap_err()
}

#[tokio::test]
async fn ht_7_untrusted_expired_and_wrong_host_are_certificate_faults() {
    let authority = Authority::new();
    let client = authority.client(None);

    let stranger = refused(Authority::new().leaf("localhost", false), &client).await;
    assert_is(&stranger, FailureKind::Certificate, Sent::NotSent);
    assert!(stranger.message.contains("UnknownIssuer"), "{stranger}");

    let expired = refused(authority.leaf("localhost", true), &client).await;
    assert_is(&expired, FailureKind::Certificate, Sent::NotSent);
    assert!(expired.message.contains("expired"), "{expired}");

    let elsewhere = refused(authority.leaf("other.example", false), &client).await;
    assert_is(&elsewhere, FailureKind::Certificate, Sent::NotSent);
    assert!(elsewhere.message.contains("not valid for"), "{elsewhere}");
}

#[tokio::test]
async fn ht_7_a_cut_handshake_is_no_certificate_fault() {
    let authority = Authority::new();
    for by_reset in [false, true] {
        let partner = Partner::new(move |_, mut socket| async move {
            socket.read_exact(&mut [0; 16]).await.unwrap();
            if by_reset {
                reset(socket)
            } else {
                drop(socket)
            }
        })
        .await;
        let failure = post(&authority.client(None), https(&partner), b"x")
            .await
            .unwrap_err();
        assert_is(&failure, FailureKind::Tls, Sent::NotSent);
    }
}

#[tokio::test]
async fn tls_to_a_plain_port_is_not_sent() {
    let authority = Authority::new();
    let partner = Partner::new(|_, mut socket| async move {
        socket.read_exact(&mut [0; 16]).await.unwrap();
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = socket.read_u8().await;
    })
    .await;
    let failure = post(&authority.client(None), https(&partner), b"x")
        .await
        .unwrap_err();
    assert_is(&failure, FailureKind::Tls, Sent::NotSent);
}

#[tokio::test]
async fn a_handshake_never_answered_is_a_connect_timeout() {
    let partner = Partner::new(|_, socket| async move {
        tokio::time::sleep(PATIENCE).await;
        drop(socket);
    })
    .await;
    let limit = Duration::from_millis(200);
    let config = ClientConfig {
        connect_timeout: limit,
        tls: Authority::new().trust(None),
        ..ClientConfig::default()
    };
    let failure = post(&Client::new(config).unwrap(), https(&partner), b"x")
        .await
        .unwrap_err();
    assert_is(&failure, FailureKind::ConnectTimeout, Sent::NotSent);
    assert!(failure.elapsed >= limit && failure.elapsed < PATIENCE / 2);
}

#[tokio::test]
async fn our_certificate_is_shown_to_whom_asks() {
    let authority = Authority::new();
    let leaf = authority.leaf("localhost", false);
    let partner = tls_partner(leaf, Some(&authority), serve_ok).await;
    let client = authority.client(Some(authority.leaf("me.example", false)));
    assert_eq!(
        post(&client, https(&partner), b"x").await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn a_refusal_of_our_certificate_is_a_certificate_fault_and_not_processed() {
    let authority = Authority::new();
    for identity in [None, Some(Authority::new().leaf("me.example", false))] {
        let leaf = authority.leaf("localhost", false);
        let partner = tls_partner(leaf, Some(&authority), serve_ok).await;
        let client = authority.client(identity);
        let failure = post(&client, https(&partner), b"x").await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Certificate, "{failure:?}");
        assert!(failure.is_unprocessed(), "{failure:?}");
    }
}

/// The same authority by name, with another key: the alert (`decrypt_error`) names no certificate.
#[tokio::test]
async fn a_handshake_refused_late_is_not_processed() {
    let authority = Authority::named("one");
    let leaf = authority.leaf("localhost", false);
    let partner = tls_partner(leaf, Some(&authority), serve_ok).await;
    let client = authority.client(Some(Authority::named("one").leaf("me.example", false)));
    let failure = post(&client, https(&partner), b"x").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Tls, "{failure:?}");
    assert!(failure.is_unprocessed(), "{failure:?}");
}

#[tokio::test]
async fn reads_all_then_ends_is_maybe_with_and_without_close_notify() {
    let authority = Authority::new();
    for clean in [true, false] {
        let leaf = authority.leaf("localhost", false);
        let partner = tls_partner(leaf, None, move |_, mut stream| async move {
            read_request(&mut stream).await.unwrap();
            if clean {
                stream.shutdown().await.unwrap();
            }
        })
        .await;
        let failure = post(&authority.client(None), https(&partner), b"x")
            .await
            .unwrap_err();
        assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
        assert!(failure.bytes_written > 0);
    }
}

#[tokio::test]
async fn an_end_without_close_notify_never_makes_a_body_whole() {
    let authority = Authority::new();
    let leaf = authority.leaf("localhost", false);
    let partner = tls_partner(leaf, None, |_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf of")
            .await
            .unwrap();
        stream.flush().await.unwrap();
    })
    .await;
    let failure = post(&authority.client(None), https(&partner), b"x")
        .await
        .unwrap_err();
    assert_is(&failure, FailureKind::Truncated, Sent::ProcessedInPart);
}

#[tokio::test]
async fn vr_6_closed_while_idle_goes_out_once_on_a_fresh_connection() {
    let authority = Authority::new();
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let leaf = authority.leaf("localhost", false);
    let partner = tls_partner(leaf, None, move |number, mut stream| {
        let told = Arc::clone(&told);
        async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(OK).await.unwrap();
            if number == 0 {
                stream.shutdown().await.unwrap();
                drop(stream);
                told.notify_one();
            }
        }
    })
    .await;
    let client = authority.client(None);
    post(&client, https(&partner), b"first").await.unwrap();
    closed.notified().await;
    let reply = post(&client, https(&partner), b"second").await.unwrap();
    assert!(!reply.reused_connection);
    assert_eq!(partner.connections(), 2);
}

#[test]
fn pem_that_is_none_is_refused_without_showing_the_key() {
    let authority = Authority::new();
    let mut tls = authority.trust(None);
    tls.extra_ca_pem = b"not PEM".to_vec();
    let error = Client::new(ClientConfig {
        tls,
        ..ClientConfig::default()
    })
    .unwrap_err();
    assert!(error.to_string().contains("extra_ca_pem"), "{error}");

    let mut leaf = authority.leaf("me.example", false);
    leaf.key_pem = "-----BEGIN PRIVATE KEY-----\nhush!\n-----END PRIVATE KEY-----\n".to_owned();
    let config = ClientConfig {
        tls: authority.trust(Some(leaf)),
        ..ClientConfig::default()
    };
    let error = Client::new(config).unwrap_err().to_string();
    assert!(error.contains("key") && !error.contains("hush"), "{error}");

    let mut mixed = authority.leaf("me.example", false);
    mixed.key_pem = authority.leaf("me.example", false).key_pem;
    let config = ClientConfig {
        tls: authority.trust(Some(mixed)),
        ..ClientConfig::default()
    };
    assert!(Client::new(config).is_err());
}
