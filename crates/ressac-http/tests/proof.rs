//! What each kind of end proves about the request: one test for each row.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use ressac_http::{Client, ClientConfig, Failure, FailureKind, Sent};
use support::{PATIENCE, Partner, answer_once, client, get, post, read_request, reset};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A POST of 1 KiB to a partner that treats every connection with `serve`.
async fn post_to<F, S>(serve: F) -> Failure
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let partner = Partner::new(move |_, socket| serve(socket)).await;
    post(
        &client(),
        partner.url("/orders?token=secret"),
        &[b'x'; 1024],
    )
    .await
    .unwrap_err()
}

fn assert_is(failure: &Failure, kind: FailureKind, sent: Sent) {
    assert_eq!((failure.kind, failure.sent), (kind, sent), "{failure:?}");
    assert!(!failure.message.contains("secret"), "{failure}");
    assert_eq!(
        sent == Sent::NotSent,
        failure.bytes_written == 0,
        "{failure:?}"
    );
}

#[tokio::test]
async fn port_closed_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?token=secret", listener.local_addr().unwrap());
    drop(listener);
    let failure = post(&client(), url, b"x").await.unwrap_err();
    assert_is(&failure, FailureKind::Refused, Sent::NotSent);
}

#[tokio::test]
async fn name_without_address_is_not_sent() {
    let url = "http://no-such-host.invalid/?token=secret".to_owned();
    let failure = post(&client(), url, b"x").await.unwrap_err();
    assert_is(&failure, FailureKind::Dns, Sent::NotSent);
}

/// A listener whose queue is full: further SYNs are dropped, not refused.
fn deaf_listener() -> (
    socket2::Socket,
    std::net::SocketAddr,
    Vec<std::net::TcpStream>,
) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(
            &"127.0.0.1:0"
                .parse::<std::net::SocketAddr>()
                .unwrap()
                .into(),
        )
        .unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) =
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200))
    {
        queued.push(stream);
        assert!(queued.len() < 64, "the queue never filled");
    }
    (socket, address, queued)
}

#[tokio::test]
async fn syn_never_answered_is_not_sent_whichever_limit_ends_it() {
    let (_socket, address, _queued) = deaf_listener();
    let url = format!("http://{address}/?token=secret");
    let short = Duration::from_millis(200);

    let hasty = ClientConfig {
        connect_timeout: short,
        ..ClientConfig::default()
    };
    let failure = post(&Client::new(hasty).unwrap(), url.clone(), b"x")
        .await
        .unwrap_err();
    assert_is(&failure, FailureKind::ConnectTimeout, Sent::NotSent);
    assert!(failure.elapsed >= short && failure.elapsed < PATIENCE / 2);

    // Only the limit of the whole attempt runs out: known just as well.
    let failure = get(&client(), url, short).await.unwrap_err();
    assert_is(&failure, FailureKind::ConnectTimeout, Sent::NotSent);
}

#[tokio::test]
async fn accept_then_fin_cannot_be_known() {
    let failure = post_to(|socket| async move { drop(socket) }).await;
    // What goes out first, the request or the end, is up to the machine.
    assert!(
        matches!(failure.kind, FailureKind::Eof | FailureKind::Reset),
        "{failure:?}"
    );
    assert_is(&failure, failure.kind, sent_by_count(&failure));
}

#[tokio::test]
async fn accept_then_reset_cannot_be_known() {
    let failure = post_to(|socket| async move { reset(socket) }).await;
    assert!(
        matches!(
            failure.kind,
            FailureKind::Eof | FailureKind::Reset | FailureKind::Unreachable
        ),
        "{failure:?}"
    );
    assert_is(&failure, failure.kind, sent_by_count(&failure));
}

/// Nothing written proves that nothing was sent; anything else proves nothing.
fn sent_by_count(failure: &Failure) -> Sent {
    if failure.bytes_written == 0 {
        Sent::NotSent
    } else {
        Sent::MaybeProcessed
    }
}

#[tokio::test]
async fn vr_4_reads_all_then_fin_is_maybe() {
    let failure = post_to(|mut socket| async move {
        assert_eq!(read_request(&mut socket).await.unwrap().body.len(), 1024);
    })
    .await;
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
    assert!(failure.bytes_written > 1024);
    assert!(failure.reply.is_none());
}

#[tokio::test]
async fn vr_3_reads_all_then_reset_is_maybe() {
    let failure = post_to(|mut socket| async move {
        assert_eq!(read_request(&mut socket).await.unwrap().body.len(), 1024);
        reset(socket);
    })
    .await;
    assert_is(&failure, FailureKind::Reset, Sent::MaybeProcessed);
}

#[tokio::test]
async fn reset_within_a_large_body_is_maybe() {
    let partner = Partner::new(|_, mut socket| async move {
        socket.read_exact(&mut [0; 200]).await.unwrap();
        reset(socket);
    })
    .await;
    let body = vec![b'x'; 4 * 1024 * 1024];
    let failure = post(&client(), partner.url("/"), &body).await.unwrap_err();
    assert_is(&failure, FailureKind::Reset, Sent::MaybeProcessed);
    assert!(failure.bytes_written >= 200);
}

#[tokio::test]
async fn half_a_status_line_is_maybe() {
    let failure = post_to(|mut socket| async move {
        answer_once(&mut socket, b"HTTP/1.1 20").await.unwrap();
    })
    .await;
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
}

#[tokio::test]
async fn an_interim_reply_is_no_reply() {
    let failure = post_to(|mut socket| async move {
        answer_once(
            &mut socket,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
        )
        .await
        .unwrap();
    })
    .await;
    assert_is(&failure, FailureKind::Eof, Sent::MaybeProcessed);
}

#[tokio::test]
async fn px_10_the_final_reply_after_interim_ones_counts() {
    let reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\nx";
    let (partner, _) = support::answering(&reply[..]).await;
    let reply = post(&client(), partner.url("/"), b"x").await.unwrap();
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (201, &b"x"[..]));
}

#[tokio::test]
async fn switching_protocols_unasked_is_malformed() {
    let failure = post_to(|mut socket| async move {
        let reply =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
        answer_once(&mut socket, reply).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    assert_is(&failure, FailureKind::Malformed, Sent::MaybeProcessed);
}

#[tokio::test]
async fn what_is_no_http_is_malformed_and_maybe() {
    for reply in [
        &b"SSH-2.0-OpenSSH_9.9\r\n"[..],
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\0\0\x12\x04\0\0",
    ] {
        let failure = post_to(move |mut socket| async move {
            answer_once(&mut socket, reply).await.unwrap();
            let _ = socket.read_u8().await;
        })
        .await;
        assert_is(&failure, FailureKind::Malformed, Sent::MaybeProcessed);
    }
}

#[tokio::test]
async fn never_answers_is_maybe() {
    let partner = Partner::new(|_, mut socket| async move {
        read_request(&mut socket).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    let limit = Duration::from_millis(300);
    let failure = get(&client(), partner.url("/?token=secret"), limit)
        .await
        .unwrap_err();
    assert_is(&failure, FailureKind::Timeout, Sent::MaybeProcessed);
    assert!(failure.elapsed >= limit && failure.elapsed < PATIENCE / 2);
}

#[tokio::test]
async fn a_short_body_is_truncated_with_its_head() {
    for reply in [
        &b"HTTP/1.1 200 OK\r\nx-id: 7\r\ncontent-length: 100\r\n\r\nshort"[..],
        b"HTTP/1.1 200 OK\r\nx-id: 7\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"HTTP/1.1 200 OK\r\nx-id: 7\r\ntransfer-encoding: chunked\r\n\r\nff\r\nshort",
        b"HTTP/1.1 200 OK\r\nx-id: 7\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ] {
        for by_reset in [false, true] {
            let failure = post_to(move |mut socket| async move {
                answer_once(&mut socket, reply).await.unwrap();
                if by_reset {
                    // So that the reset does not overtake the head.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    reset(socket);
                }
            })
            .await;
            assert_is(&failure, FailureKind::Truncated, Sent::ProcessedInPart);
            let head = failure.reply.unwrap();
            assert_eq!(
                (head.status.as_u16(), &head.headers["x-id"]),
                (200, &"7".parse().unwrap())
            );
        }
    }
}

#[tokio::test]
async fn a_body_without_declared_length_ends_with_the_connection() {
    let partner = Partner::new(|_, mut socket| async move {
        answer_once(&mut socket, b"HTTP/1.1 200 OK\r\n\r\nall of it")
            .await
            .unwrap();
    })
    .await;
    let reply = post(&client(), partner.url("/"), b"x").await.unwrap();
    assert_eq!(&reply.body[..], b"all of it");
    assert!(!reply.body_limit_hit);
}
