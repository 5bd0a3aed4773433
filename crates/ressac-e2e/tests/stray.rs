//! Partners that mislead, trickle or say nothing, and what that costs the others.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ressac_e2e::{Caller, Counts, Gateway, Site, partner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const POLICY: &str = "[policy.fast]\nmode = 'durable'\nretries = 3\nbase = '20ms'\ncap = '200ms'\n\
                      attempt_timeout = '1s'\n";

/// HT-3: a redirect is not followed, and not taken for a delivery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stray_ht_3_a_redirect_is_permanent() {
    let elsewhere = partner("script = '200 create x*'").await;
    let mut shown = Vec::new();
    for status in [301, 302, 303, 307, 308] {
        let script = format!(
            "script = '{status} h=Location:{}/there x*'",
            elsewhere.url()
        );
        let mock = partner(&script).await;
        let site = Site::new(&format!(
            "{POLICY}[partner.p]\nurl = '{}'\npolicy = 'fast'\n",
            mock.url()
        ));
        let gateway = Gateway::start(&site).await;
        let caller = Caller::new();
        let answer = caller
            .post(gateway.address(), "p", &[], "hello")
            .await
            .unwrap();
        let wait = Duration::from_secs(30);
        let message = caller
            .becomes(gateway.address(), &answer.id(), "dead", wait)
            .await;
        assert_eq!(message["reason"], "permanent", "{message:#}");
        assert_eq!(message["history"][0]["status"], status);
        let reply = message["history"][0]["reply"].as_str().unwrap();
        assert!(
            reply.contains("location: "),
            "where it pointed to is not told: {reply}"
        );
        assert_eq!(mock.journal().len(), 1);
        gateway.stop().await;
        shown.push(status.to_string());
    }
    assert_eq!(elsewhere.journal().len(), 0, "a redirect was followed");
    println!("stray, HT-3: {} permanent, 0 followed", shown.join(" "));
}

/// A partner that answers 200 and then a body without end, slowly; it counts its connections that are
/// open, and the bytes it could write.
async fn endless() -> (String, Arc<AtomicUsize>, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (open, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let counters = (Arc::clone(&open), Arc::clone(&written));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (open, written) = (Arc::clone(&open), Arc::clone(&written));
            open.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut request = [0; 4_096];
                let _ = socket.read(&mut request).await;
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                let _ = socket.write_all(head.as_bytes()).await;
                while socket.write_all(b"4\r\nmore\r\n").await.is_ok() {
                    written.fetch_add(4, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (url, counters.0, counters.1)
}

/// LA-8: a reply without end does not hold its place longer than an attempt may take. With one place for
/// all, the messages behind it get their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stray_la_8_a_reply_without_end_gives_its_place_back() {
    let (url, open, written) = endless().await;
    let site = Site::new(&format!(
        "{POLICY}limit = {{ concurrency = 1 }}\nbreaker = 'off'\n\
         [partner.p]\nurl = '{url}'\npolicy = 'fast'\n"
    ));
    let gateway = Gateway::start(&site).await;
    let (caller, begun) = (Caller::new(), Instant::now());
    for number in 0..3 {
        let body = format!("message {number}");
        let answer = caller
            .post(gateway.address(), "p", &[], body)
            .await
            .unwrap();
        assert_eq!(answer.status, 202);
    }
    let counts = caller
        .drained(gateway.address(), "p", Duration::from_secs(30))
        .await;
    let took = begun.elapsed();
    let messages = caller.messages(gateway.address()).await;
    let ends: Vec<_> = messages
        .iter()
        .map(|message| message["reason"].as_str().unwrap())
        .collect();
    let id = messages[0]["id"].as_str().unwrap();
    let message = caller
        .get(gateway.address(), &format!("/v1/messages/{id}"))
        .await;
    // Done, perhaps, and without a key not to be repeated.
    assert_eq!(counts.dead, 3, "{counts:?}");
    assert_eq!(ends, ["ambiguous"; 3]);
    // Three in a row, each cut after a second.
    assert!(
        took >= Duration::from_secs(2),
        "not one after another: {took:?}"
    );
    assert!(took < Duration::from_secs(15), "{took:?}");
    // A connection with bytes left is closed, and no message holds one.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(open.load(Ordering::SeqCst), 0, "connections are left open");
    println!(
        "stray, LA-8: 3 replies without end over one place in {:.1} s, {} bytes of them; all ambiguous; \
         {} ({})",
        took.as_secs_f64(),
        written.load(Ordering::SeqCst),
        message["history"][0]["outcome"],
        message["history"][0]["note"]
    );
    gateway.stop().await;
}

/// LA-7: two hundred messages to a partner that never answers, and each to the other one takes no longer
/// than without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stray_la_7_a_dead_partner_delays_no_other() {
    let dead = partner("script = '200 hold=* x*'").await;
    let healthy = partner("script = '201 create x*'").await;
    let site = Site::with_gateway(
        &format!(
            "[partner.dead]\nurl = '{}'\n[partner.healthy]\nurl = '{}'\n",
            dead.url(),
            healthy.url()
        ),
        "stop_timeout = '0s'",
    );
    let gateway = Gateway::start(&site).await;
    let caller = Caller::new();
    let alone = round(&caller, &gateway, 20).await;
    for number in 0..200 {
        let body = format!("to nobody {number}");
        let answer = caller
            .post(gateway.address(), "dead", &[], body)
            .await
            .unwrap();
        assert_eq!(answer.status, 202);
    }
    let begun = Instant::now();
    while dead.journal().len() < 8 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "nothing was sent to the dead one"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let beside = round(&caller, &gateway, 100).await;
    let counts = caller.counts(gateway.address(), "dead").await;
    // Its own limit holds: the rest waits in the store.
    let expected = Counts {
        waiting: 192,
        sending: 8,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    assert!(
        beside.iter().all(|time| *time < Duration::from_secs(2)),
        "delayed by another partner: {beside:?}"
    );
    println!(
        "stray, LA-7: from 202 to delivered, alone {}; beside 200 messages to a dead partner {}",
        told(alone),
        told(beside)
    );
    gateway.stop().await;
}

/// Hands messages to the healthy one, one after another, and takes the time until each is delivered.
async fn round(caller: &Caller, gateway: &Gateway, messages: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..messages {
        let begun = Instant::now();
        let body = format!("message {number}");
        let answer = caller
            .post(gateway.address(), "healthy", &[], body)
            .await
            .unwrap();
        assert_eq!(answer.status, 202);
        let wait = Duration::from_secs(30);
        caller
            .becomes(gateway.address(), &answer.id(), "delivered", wait)
            .await;
        times.push(begun.elapsed());
    }
    times
}

fn told(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    format!(
        "p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms",
        at(50),
        at(99),
        at(100)
    )
}
