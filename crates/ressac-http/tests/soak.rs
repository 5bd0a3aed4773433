//! A partner that ends connections wherever it likes: what the client claims must be so.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ressac_http::{FailureKind, Sent};
use support::{OK, Partner, client, post, reset};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How often each request's mark was read from a socket.
type Seen = Arc<Mutex<HashMap<String, u32>>>;

/// Reads whole requests and ends as the mark of the request says.
async fn serve(mut socket: TcpStream, seen: Seen) {
    loop {
        let mut bytes = Vec::new();
        let path = loop {
            if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            if bytes.ends_with(b"end") {
                let text = String::from_utf8(bytes).unwrap();
                break text.split(' ').nth(1).unwrap().to_owned();
            }
        };
        let number: u32 = path[1..].parse().unwrap();
        *seen.lock().unwrap().entry(path).or_default() += 1;
        match number % 7 {
            0 => return,
            1 => return reset(socket),
            2 => {
                socket.write_all(OK).await.unwrap();
                return;
            }
            3 => {
                socket.write_all(OK).await.unwrap();
                // Let the reply out of the send queue, or the reset would overtake it.
                tokio::time::sleep(Duration::from_millis(2)).await;
                return reset(socket);
            }
            _ => socket.write_all(OK).await.unwrap(),
        }
    }
}

/// VR-6, EX-3: no request is seen twice, none that is "not sent" is seen, and none that was
/// answered is missing.
async fn soak(rounds: u32, at_once: u32) {
    let seen = Seen::default();
    let told = Arc::clone(&seen);
    let partner = Partner::new(move |_, socket| serve(socket, Arc::clone(&told))).await;
    let client = client();
    let mut claims = Vec::new();
    for round in 0..rounds {
        let mut batch = tokio::task::JoinSet::new();
        for place in 0..at_once {
            let (client, path) = (client.clone(), format!("/{}", round * at_once + place));
            let url = partner.url(&path);
            batch.spawn(async move { (path, post(&client, url, b"end").await) });
        }
        while let Some(done) = batch.join_next().await {
            claims.push(done.unwrap());
        }
    }

    let seen = seen.lock().unwrap();
    let mut answered = 0;
    for (path, claim) in &claims {
        let times = seen.get(path).copied().unwrap_or(0);
        assert!(times <= 1, "{path} was seen {times} times");
        match claim {
            Ok(_) => {
                answered += 1;
                assert_eq!(times, 1, "{path} was answered unseen");
            }
            Err(failure) => {
                assert!(
                    matches!(failure.kind, FailureKind::Eof | FailureKind::Reset),
                    "{failure}"
                );
                assert!(
                    times == 0 || failure.sent == Sent::MaybeProcessed,
                    "{failure:?}"
                );
            }
        }
    }
    assert!(
        answered > claims.len() / 2,
        "{answered} of {} were answered",
        claims.len()
    );
}

#[tokio::test]
async fn claims_hold_on_one_thread() {
    soak(50, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_hold_on_two_threads() {
    soak(50, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_hold_one_after_the_other() {
    soak(500, 1).await;
}
