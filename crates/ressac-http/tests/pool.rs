//! Kept connections: dead ones cost nothing, dirty ones are closed.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_http::{Client, ClientConfig, FailureKind, Sent};
use support::{OK, Partner, Seen, answer_once, answering, client, get, post, read_request, reset};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

#[tokio::test]
async fn a_connection_is_used_again() {
    let (partner, mut seen) = answering(OK).await;
    let client = client();
    assert!(
        !post(&client, partner.url("/1"), b"a")
            .await
            .unwrap()
            .reused_connection
    );
    assert!(
        post(&client, partner.url("/2"), b"b")
            .await
            .unwrap()
            .reused_connection
    );
    assert_eq!(partner.connections(), 1);
    assert!(
        seen.recv()
            .await
            .unwrap()
            .head
            .starts_with("POST /1 HTTP/1.1\r\n")
    );
    assert_eq!(seen.recv().await.unwrap().body, b"b");
}

/// The first connection answers once and then ends while idle; the second works.
async fn stale(by_reset: bool) {
    let (tell, mut seen) = mpsc::unbounded_channel::<Seen>();
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let partner = Partner::new(move |number, mut socket| {
        let (tell, told) = (tell.clone(), Arc::clone(&told));
        async move {
            tell.send(answer_once(&mut socket, OK).await.unwrap())
                .unwrap();
            if number == 0 {
                if by_reset {
                    reset(socket)
                } else {
                    drop(socket)
                }
                told.notify_one();
            } else {
                while let Some(seen) = answer_once(&mut socket, OK).await {
                    tell.send(seen).unwrap();
                }
            }
        }
    })
    .await;
    let client = client();
    assert_eq!(
        post(&client, partner.url("/"), b"first")
            .await
            .unwrap()
            .status,
        200
    );
    closed.notified().await;

    let reply = post(&client, partner.url("/"), b"second").await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(!reply.reused_connection);
    assert_eq!(partner.connections(), 2);
    assert_eq!(seen.recv().await.unwrap().body, b"first");
    assert_eq!(seen.recv().await.unwrap().body, b"second");
    assert!(seen.try_recv().is_err(), "a POST was doubled");
}

#[tokio::test]
async fn vr_6_closed_while_idle_goes_out_once_on_a_fresh_connection() {
    for _ in 0..20 {
        stale(false).await;
    }
}

#[tokio::test]
async fn vr_6_reset_while_idle_goes_out_once_on_a_fresh_connection() {
    for _ in 0..20 {
        stale(true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vr_6_the_same_with_threads() {
    for by_reset in [false, true] {
        for _ in 0..20 {
            stale(by_reset).await;
        }
    }
}

/// The kept connection takes the whole second request and ends: that one stays a failure.
#[tokio::test]
async fn ex_3_a_reused_connection_that_ends_after_the_request_is_not_sent_again() {
    let partner = Partner::new(|_, mut socket| async move {
        answer_once(&mut socket, OK).await.unwrap();
        read_request(&mut socket).await.unwrap();
    })
    .await;
    let client = client();
    post(&client, partner.url("/"), b"first").await.unwrap();
    let failure = post(&client, partner.url("/"), b"second")
        .await
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Eof, Sent::MaybeProcessed)
    );
    assert_eq!(partner.connections(), 1);
}

#[tokio::test]
async fn px_2_unread_input_closes_the_connection() {
    unread_input().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn px_2_unread_input_closes_the_connection_with_threads() {
    for _ in 0..20 {
        unread_input().await;
    }
}

async fn unread_input() {
    // A second reply nobody asked for must never become the answer to the next request.
    let partner = Partner::new(|_, mut socket| async move {
        let mut twice = OK.to_vec();
        twice.extend_from_slice(b"HTTP/1.1 500 Stale\r\ncontent-length: 0\r\n\r\n");
        answer_once(&mut socket, &twice).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    let client = client();
    for _ in 0..10 {
        assert_eq!(
            get(&client, partner.url("/"), support::PATIENCE)
                .await
                .unwrap()
                .status,
            200
        );
    }
    assert_eq!(partner.connections(), 10);
}

#[tokio::test]
async fn px_2_a_timeout_within_the_body_closes_the_connection() {
    let (tell, mut ended) = mpsc::unbounded_channel();
    let partner = Partner::new(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
            answer_once(&mut socket, reply).await.unwrap();
            tell.send(socket.read(&mut [0; 1]).await.map_or(0, |n| n))
                .unwrap();
        }
    })
    .await;
    let client = client();
    let failure = get(&client, partner.url("/"), Duration::from_millis(300))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Timeout, Sent::ProcessedInPart)
    );
    assert_eq!(failure.reply.unwrap().status, 200);
    assert_eq!(ended.recv().await, Some(0), "the partner must see the end");
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let (tell, mut ended) = mpsc::unbounded_channel();
    let (got, mut arrived) = mpsc::unbounded_channel();
    let partner = Partner::new(move |_, mut socket| {
        let (tell, got) = (tell.clone(), got.clone());
        async move {
            read_request(&mut socket).await.unwrap();
            got.send(()).unwrap();
            tell.send(socket.read(&mut [0; 1]).await.map_or(0, |n| n))
                .unwrap();
        }
    })
    .await;
    let client = client();
    let url = partner.url("/");
    let sending = tokio::spawn(async move { post(&client, url, b"x").await.map(|_| client) });
    arrived.recv().await.unwrap();
    sending.abort();
    assert_eq!(ended.recv().await, Some(0));
}

#[tokio::test]
async fn connection_close_is_honoured() {
    let (partner, _) =
        answering(&b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"[..])
            .await;
    let client = client();
    for _ in 0..2 {
        assert!(
            !post(&client, partner.url("/"), b"x")
                .await
                .unwrap()
                .reused_connection
        );
    }
    assert_eq!(partner.connections(), 2);
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_time() {
    let (tell, mut ended) = mpsc::unbounded_channel();
    let partner = Partner::new(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            answer_once(&mut socket, OK).await.unwrap();
            tell.send(socket.read(&mut [0; 1]).await.unwrap()).unwrap();
        }
    })
    .await;
    let config = ClientConfig {
        idle_timeout: Duration::from_millis(100),
        ..ClientConfig::default()
    };
    let client = Client::new(config).unwrap();
    post(&client, partner.url("/"), b"x").await.unwrap();
    let end = tokio::time::timeout(support::PATIENCE, ended.recv()).await;
    assert_eq!(end.unwrap(), Some(0));
    drop(client);
}

#[tokio::test]
async fn ex_5_failed_replies_cost_no_connection() {
    let reply = [
        b"HTTP/1.1 503 Busy\r\ncontent-length: 1000\r\n\r\n".to_vec(),
        vec![b'x'; 1000],
    ];
    let (partner, _) = answering(reply.concat()).await;
    let client = client();
    for _ in 0..20 {
        assert_eq!(
            post(&client, partner.url("/"), b"x").await.unwrap().status,
            503
        );
    }
    assert_eq!(partner.connections(), 1);
}

#[tokio::test]
async fn an_answer_before_the_request_is_read_is_kept_and_its_connection_is_not() {
    let partner = Partner::new(|_, mut socket| async move {
        socket.read_exact(&mut [0; 100]).await.unwrap();
        let reply = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n";
        socket.write_all(reply).await.unwrap();
        // Open, and reading no more.
        tokio::time::sleep(support::PATIENCE).await;
    })
    .await;
    let client = client();
    let body = Bytes::from(vec![b'x'; 16 * 1024 * 1024]);
    for _ in 0..2 {
        let request = Request::post(partner.url("/")).body(body.clone()).unwrap();
        let reply = client.send(request, support::PATIENCE).await.unwrap();
        assert_eq!(reply.status, 413);
    }
    assert_eq!(partner.connections(), 2);
}
