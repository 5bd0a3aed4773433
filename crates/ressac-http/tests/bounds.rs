//! What a partner controls has a limit, and what passes through stays as it was.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use ressac_http::{AddressPolicy, Client, ClientConfig, FailureKind, Sent};
use support::{OK, PATIENCE, Partner, answering, client, get, post, read_request};
use tokio::io::AsyncWriteExt;

fn small() -> Client {
    let config = ClientConfig {
        max_response_body: 1000,
        ..ClientConfig::default()
    };
    Client::new(config).unwrap()
}

#[tokio::test]
async fn ht_6_a_body_without_end_is_bounded_by_bytes() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffff\r\n",
    ] {
        let partner = Partner::new(move |_, mut socket| async move {
            read_request(&mut socket).await.unwrap();
            socket.write_all(head.as_bytes()).await.unwrap();
            while socket.write_all(&[b'x'; 4096]).await.is_ok() {}
        })
        .await;
        let client = small();
        for _ in 0..2 {
            let reply = post(&client, partner.url("/"), b"x").await.unwrap();
            assert!(reply.body_limit_hit && !reply.reused_connection, "{head}");
            assert_eq!(reply.body.len(), 1000);
            assert!(reply.elapsed < PATIENCE / 2);
        }
    }
}

#[tokio::test]
async fn la_8_a_body_that_drips_is_bounded_by_time() {
    let partner = Partner::new(|_, mut socket| async move {
        read_request(&mut socket).await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let limit = Duration::from_millis(300);
    let failure = get(&client(), partner.url("/"), limit).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Timeout, Sent::ProcessedInPart)
    );
    assert_eq!(failure.reply.unwrap().status, 200);
    assert!(failure.elapsed >= limit && failure.elapsed < PATIENCE / 2);
}

#[tokio::test]
async fn la_8_interim_replies_without_end_are_bounded_by_time() {
    let partner = Partner::new(|_, mut socket| async move {
        read_request(&mut socket).await.unwrap();
        while socket
            .write_all(b"HTTP/1.1 102 Processing\r\n\r\n")
            .await
            .is_ok()
        {}
    })
    .await;
    let limit = Duration::from_millis(300);
    let failure = get(&client(), partner.url("/"), limit).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Timeout, Sent::MaybeProcessed)
    );
    assert!(failure.elapsed < PATIENCE / 2);
}

#[tokio::test]
async fn a_head_without_end_is_bounded_by_bytes() {
    for line in ["x-one: 1\r\n", "x"] {
        let partner = Partner::new(move |_, mut socket| async move {
            read_request(&mut socket).await.unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            let block = line.repeat(500);
            while socket.write_all(block.as_bytes()).await.is_ok() {}
        })
        .await;
        let failure = post(&client(), partner.url("/"), b"x").await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.sent),
            (FailureKind::Malformed, Sent::MaybeProcessed)
        );
        assert!(failure.message.contains("limit"), "{failure}");
    }
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_whole() {
    let whole = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec(),
        vec![b'x'; 1000],
    ];
    let (partner, _) = answering(whole.concat()).await;
    let reply = post(&small(), partner.url("/"), b"x").await.unwrap();
    assert_eq!((reply.body.len(), reply.body_limit_hit), (1000, false));
}

#[tokio::test]
async fn ex_5_a_body_little_over_the_limit_is_drained_and_its_connection_kept() {
    let over = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_vec(),
        vec![b'x'; 1001],
    ];
    let (partner, _) = answering(over.concat()).await;
    let client = small();
    for _ in 0..3 {
        let reply = post(&client, partner.url("/"), b"x").await.unwrap();
        assert_eq!((reply.body.len(), reply.body_limit_hit), (1000, true));
    }
    assert_eq!(partner.connections(), 1);
}

#[tokio::test]
async fn ht_4_the_body_is_sent_byte_for_byte() {
    let (partner, mut seen) = answering(OK).await;
    let client = client();
    let every_byte: Vec<u8> = (0..=255).collect();
    let large = vec![0xff; 3 * 1024 * 1024];
    for body in [
        &b"{ \"b\":1.0,\r\n \"a\" : 1e2 }\n"[..],
        &every_byte,
        &large,
        b"",
    ] {
        post(&client, partner.url("/"), body).await.unwrap();
        let seen = seen.recv().await.unwrap();
        assert!(seen.body == body, "{} bytes came", seen.body.len());
        let line = format!("content-length: {}\r\n", body.len());
        assert_eq!(seen.head.matches("content-length").count(), 1);
        assert!(seen.head.contains(&line), "{}", seen.head);
    }
}

#[tokio::test]
async fn host_and_headers_are_sent_as_given() {
    let (partner, mut seen) = answering(OK).await;
    let request = Request::put(partner.url("/a%20b?c=%2F&d"))
        .header("Idempotency-Key", "\"0197\"")
        .header("X-Twice", "one")
        .header("X-Twice", "two")
        .body(Bytes::from_static(b"x"))
        .unwrap();
    client().send(request, PATIENCE).await.unwrap();
    let head = seen.recv().await.unwrap().head;
    assert!(
        head.starts_with("PUT /a%20b?c=%2F&d HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nhost: {}\r\n", partner.address)),
        "{head}"
    );
    assert!(head.contains("\r\nidempotency-key: \"0197\"\r\n"), "{head}");
    assert!(
        head.contains("\r\nx-twice: one\r\nx-twice: two\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn ht_9_a_header_that_is_no_utf_8_arrives_as_it_is() {
    let reply = b"HTTP/1.1 200 Caf\xe9\r\nx-name: caf\xe9\r\ncontent-length: 2\r\n\r\n\xe9\xff";
    let (partner, _) = answering(&reply[..]).await;
    let reply = post(&client(), partner.url("/"), b"x").await.unwrap();
    assert_eq!(reply.headers["x-name"].as_bytes(), b"caf\xe9");
    assert_eq!(&reply.body[..], b"\xe9\xff");
}

#[tokio::test]
async fn ht_3_a_redirect_is_an_answer_and_is_not_followed() {
    let reply = b"HTTP/1.1 307 Elsewhere\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    let (partner, mut seen) = answering(&reply[..]).await;
    assert_eq!(
        post(&client(), partner.url("/"), b"x")
            .await
            .unwrap()
            .status,
        307
    );
    assert!(seen.recv().await.unwrap().head.starts_with("POST / "));
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn replies_that_have_no_body_need_no_end() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    let (partner, _) = answering(&head[..]).await;
    let request = Request::builder()
        .method(Method::HEAD)
        .uri(partner.url("/"));
    let reply = client()
        .send(request.body(Bytes::new()).unwrap(), PATIENCE)
        .await
        .unwrap();
    assert_eq!((reply.status.as_u16(), reply.body.len()), (200, 0));

    for head in [
        &b"HTTP/1.1 204 None\r\n\r\n"[..],
        b"HTTP/1.1 304 Same\r\n\r\n",
    ] {
        let (partner, _) = answering(head).await;
        let client = client();
        assert!(
            post(&client, partner.url("/"), b"x")
                .await
                .unwrap()
                .body
                .is_empty()
        );
        assert!(
            post(&client, partner.url("/"), b"x")
                .await
                .unwrap()
                .reused_connection
        );
    }
}

#[tokio::test]
async fn ht_1_no_connection_is_made_to_an_inner_address() {
    let (partner, _) = answering(OK).await;
    let port = partner.address.port();
    let config = ClientConfig {
        address_policy: AddressPolicy::public_only([]),
        ..ClientConfig::default()
    };
    let guarded = Client::new(config).unwrap();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:7f00:1]",
    ] {
        let url = format!("http://{host}:{port}/?token=secret");
        let failure = post(&guarded, url, b"x").await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.sent),
            (FailureKind::AddressNotAllowed, Sent::NotSent),
            "{host}: {failure:?}"
        );
        assert!(!failure.message.contains("secret"));
    }
    assert_eq!(partner.connections(), 0);

    let config = ClientConfig {
        address_policy: AddressPolicy::public_only(["127.0.0.1".parse().unwrap()]),
        ..ClientConfig::default()
    };
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(
        post(&Client::new(config).unwrap(), url, b"x")
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test]
async fn ht_8_what_cannot_be_sent_is_refused_before_anything_is_tried() {
    let (partner, _) = answering(OK).await;
    let with_user = format!("http://me:secret@{}/", partner.address);
    let failure = post(&client(), with_user, b"x").await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Invalid, Sent::NotSent)
    );
    assert!(!failure.message.contains("secret"), "{failure}");

    let smuggled = Request::post(partner.url("/"))
        .header("transfer-encoding", "chunked")
        .body(Bytes::from_static(b"x"))
        .unwrap();
    let failure = client().send(smuggled, PATIENCE).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.sent),
        (FailureKind::Invalid, Sent::NotSent)
    );
    assert_eq!(partner.connections(), 0);
}

#[tokio::test]
async fn no_time_and_endless_time_are_both_fine() {
    let (partner, _) = answering(OK).await;
    let failure = get(&client(), partner.url("/"), Duration::ZERO)
        .await
        .unwrap_err();
    // A connection over loopback may stand at once, and the time is over all the same.
    assert!(matches!(
        failure.kind,
        FailureKind::ConnectTimeout | FailureKind::Timeout
    ));
    assert_eq!(failure.sent, Sent::NotSent, "{failure:?}");
    assert_eq!(
        get(&client(), partner.url("/"), Duration::MAX)
            .await
            .unwrap()
            .status,
        200
    );
}
