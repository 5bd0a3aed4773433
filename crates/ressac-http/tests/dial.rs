//! Connections for callers that speak HTTP themselves: made as a client makes them, and with its
//! proofs.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use ressac_http::{
    ClientConfig, Dialler, Failure, FailureKind, Http2, Sent, TlsConfig, Version, parse_url,
};
use ressac_mock::Mock;
use support::tls::{Authority, tls_partner, tls_partner_speaking};
use support::{OK, PATIENCE, Partner, answer_once, read_request, reset};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn dialler(version: Version, tls: TlsConfig) -> Dialler {
    Dialler::new(&ClientConfig {
        version,
        tls,
        ..ClientConfig::default()
    })
    .unwrap()
}

fn plain(version: Version) -> Dialler {
    dialler(version, TlsConfig::default())
}

fn assert_is(failure: &Failure, kind: FailureKind, sent: Sent) {
    assert_eq!((failure.kind, failure.sent), (kind, sent), "{failure:?}");
}

/// A request over HTTP/1.1, and what its end proves.
async fn exchange(dialler: &Dialler, url: &str) -> Result<Response<()>, Failure> {
    let dialled = dialler.dial(&parse_url(url).unwrap(), PATIENCE).await?;
    let io = TokioIo::new(dialled);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("/").header("host", "x");
    let request = request.body(Full::new(Bytes::from_static(b"a"))).unwrap();
    match sender.send_request(request).await {
        Ok(reply) => Ok(reply.map(drop)),
        Err(error) => Err(Failure::of_http1(&error, false)),
    }
}

#[tokio::test]
async fn a_dialled_connection_is_read_and_written_and_watched() {
    let partner = Partner::new(|_, mut socket| async move {
        answer_once(&mut socket, OK).await;
    })
    .await;
    let url = parse_url(&partner.url("/")).unwrap();
    let mut dialled = plain(Version::Auto).dial(&url, PATIENCE).await.unwrap();
    let watch = dialled.watch();
    assert_eq!(dialled.remote(), partner.address);
    assert!(!dialled.is_http2());
    assert_eq!(watch.written(), 0);

    let request = b"GET / HTTP/1.1\r\n\r\n";
    dialled.write_all(request).await.unwrap();
    assert_eq!(watch.written(), request.len() as u64);
    let mut reply = [0; OK.len()];
    dialled.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply, OK);
    assert_eq!(dialled.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn the_version_is_the_one_that_was_agreed_on() {
    let authority = Authority::new();
    let leaf = authority.leaf("localhost", false);
    let both = ["h2", "http/1.1"];
    let partner = tls_partner_speaking(&both, leaf, None, |_, mut stream| async move {
        let _ = stream.read(&mut [0; 1]).await;
    })
    .await;
    let secure = format!("https://localhost:{}/", partner.address.port());
    let secure = parse_url(&secure).unwrap();
    let clear = parse_url(&partner.url("/")).unwrap();
    for (version, over_tls, in_clear) in [
        (Version::Auto, true, false),
        (Version::Http1, false, false),
        (Version::Http2, true, true),
    ] {
        let dialler = dialler(version, authority.trust(None));
        let dialled = dialler.dial(&secure, PATIENCE).await.unwrap();
        assert_eq!(dialled.is_http2(), over_tls, "{version:?}");
        let dialled = dialler.dial(&clear, PATIENCE).await.unwrap();
        assert_eq!(dialled.is_http2(), in_clear, "{version:?}");
    }
}

#[tokio::test]
async fn ht_7_what_fails_in_dialling_was_not_sent() {
    let trust = Authority::new();
    let stranger = Authority::new().leaf("localhost", false);
    let partner = tls_partner(stranger, None, |_, _| async {}).await;
    let url = format!("https://localhost:{}/", partner.address.port());
    let dialler = dialler(Version::Http1, trust.trust(None));
    let failure = exchange(&dialler, &url).await.unwrap_err();
    assert_is(&failure, FailureKind::Certificate, Sent::NotSent);

    let cutting = Partner::new(|_, mut socket| async move {
        let _ = socket.read(&mut [0; 64]).await;
        reset(socket);
    })
    .await;
    let url = format!("https://localhost:{}/", cutting.address.port());
    let failure = exchange(&dialler, &url).await.unwrap_err();
    assert_is(&failure, FailureKind::Tls, Sent::NotSent);

    let silent = Partner::new(|_, socket| async move {
        tokio::time::sleep(PATIENCE).await;
        drop(socket);
    })
    .await;
    let url = parse_url(&format!("https://localhost:{}/", silent.address.port())).unwrap();
    let limit = Duration::from_millis(50);
    let failure = dialler.dial(&url, limit).await.unwrap_err();
    assert_is(&failure, FailureKind::ConnectTimeout, Sent::NotSent);

    let odd = "/no-scheme".parse().unwrap();
    let failure = dialler.dial(&odd, PATIENCE).await.unwrap_err();
    assert_is(&failure, FailureKind::Invalid, Sent::NotSent);
}

#[tokio::test]
async fn vr_4_an_end_over_http1_proves_nothing_but_for_a_refusal_by_tls() {
    let ending = Partner::new(|_, mut socket| async move {
        let _ = read_request(&mut socket).await;
    })
    .await;
    let url = ending.url("/");
    let failure = exchange(&plain(Version::Http1), &url).await.unwrap_err();
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);

    let authority = Authority::new();
    let leaf = authority.leaf("localhost", false);
    let asking = tls_partner(leaf, Some(&authority), |_, _| async {}).await;
    let url = format!("https://localhost:{}/", asking.address.port());
    let dialler = dialler(Version::Http1, authority.trust(None));
    let failure = exchange(&dialler, &url).await.unwrap_err();
    assert_is(&failure, FailureKind::Certificate, Sent::NotProcessed);
}

/// A POST over HTTP/2 that fails.
async fn failing(script: &str) -> (Failure, Http2) {
    let mock = Mock::start().await;
    let pay = mock.script("POST", script);
    let url = parse_url(&pay.url()).unwrap();
    let dialled = plain(Version::Http2).dial(&url, PATIENCE).await.unwrap();
    let connection = Http2::open(dialled, 64 * 1024).await.unwrap();
    assert!(connection.is_usable());
    let request = Request::post(url).body(()).unwrap();
    let begun = connection.begin(request, true).unwrap();
    let error = begun.response.await.unwrap_err();
    (connection.broken(&error, begun.counts).await, connection)
}

#[tokio::test]
async fn vr_3_the_end_of_a_stream_says_whether_it_was_processed() {
    let (failure, connection) = failing("refused-stream").await;
    assert_is(&failure, FailureKind::RefusedStream, Sent::NotProcessed);
    assert!(failure.bytes_written > 0);
    // The stream was refused, not the connection.
    assert!(connection.is_usable());

    let (failure, connection) = failing("goaway=below").await;
    assert_is(&failure, FailureKind::RefusedStream, Sent::NotProcessed);
    assert!(!connection.is_usable());

    let (failure, connection) = failing("201 create goaway=covers").await;
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
    assert!(failure.message.contains("covers"), "{failure}");
    // What it takes no more it did not send.
    let request = Request::post("http://x/").body(()).unwrap();
    let failure = connection.begin(request, true).unwrap_err();
    assert_is(&failure, FailureKind::Eof, Sent::NotSent);
}
