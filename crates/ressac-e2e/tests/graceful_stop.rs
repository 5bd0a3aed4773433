//! SIGTERM: what is on its way ends and is written down, nothing more is taken, and it does not last.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ressac_e2e::{Caller, Gateway, Site, partner};
use ressac_mock::Mock;
use tokio::net::TcpStream;

const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// What a machine that compiles meanwhile may add.
const SLACK: Duration = Duration::from_secs(3);

const POLICY: &str = "[policy.fast]\nmode = 'durable'\nbase = '20ms'\ncap = '200ms'\n\
                      attempt_timeout = '60s'\n";

async fn start(mock: &Mock, keyed: bool) -> (Site, Gateway) {
    let key = if keyed {
        "idempotency = { header = 'Idempotency-Key' }"
    } else {
        ""
    };
    let toml = format!(
        "{POLICY}[partner.p]\nurl = '{}'\npolicy = 'fast'\n{key}\n",
        mock.url()
    );
    let gateway = format!("stop_timeout = '{}s'", STOP_TIMEOUT.as_secs());
    let site = Site::with_gateway(&toml, &gateway);
    let gateway = Gateway::start(&site).await;
    (site, gateway)
}

/// Hands a message in and waits until it is with the partner.
async fn on_its_way(caller: &Caller, gateway: &Gateway, mock: &Mock) -> String {
    let answer = caller
        .post(gateway.address(), "p", &[], "hello")
        .await
        .unwrap();
    assert_eq!(answer.status, 202);
    let begun = Instant::now();
    while mock.journal().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never sent");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    answer.id()
}

/// New messages are refused in words, or there is nobody any more.
async fn takes_nothing(gateway: SocketAddr) -> &'static str {
    // The signal has to be noticed first.
    tokio::time::sleep(Duration::from_millis(200)).await;
    match Caller::new().post(gateway, "p", &[], "too late").await {
        Ok(answer) => {
            assert_eq!(
                (answer.status, answer.problem()),
                (503, "stopping"),
                "{}",
                answer.json
            );
            "503 stopping"
        }
        Err(failure) => {
            assert_eq!(failure.kind, ressac_http::FailureKind::Refused, "{failure}");
            "refused"
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_stop_an_attempt_in_flight_ends() {
    let mock = partner("script = '201 create hold=1s'").await;
    let (site, gateway) = start(&mock, false).await;
    let caller = Caller::new();
    let id = on_its_way(&caller, &gateway, &mock).await;
    let address = gateway.address();
    let begun = Instant::now();
    gateway.terminate();
    let late = takes_nothing(address).await;
    let ended = gateway.ended(Duration::from_secs(60)).await;
    let took = begun.elapsed();
    assert_eq!(ended.code(), Some(0), "{}", ended.log);
    assert!(took < Duration::from_secs(1) + SLACK, "{took:?}");
    assert!(
        ended.log.contains("everything is written down"),
        "{}",
        ended.log
    );

    let gateway = Gateway::start(&site).await;
    let message = caller
        .becomes(gateway.address(), &id, "delivered", SLACK)
        .await;
    assert_eq!(
        (message["attempts"].as_u64(), mock.journal().len()),
        (Some(1), 1)
    );
    assert_eq!(
        caller.messages(gateway.address()).await.len(),
        1,
        "the late one was stored"
    );
    gateway.stop().await;
    println!(
        "graceful_stop, 1 s left to do: exit 0 after {:.2} s, delivered; a new message: {late}",
        took.as_secs_f64()
    );
}

/// The first attempt is never answered; after the restart the message is in doubt, or sent again under
/// its key.
async fn held_for_ever(keyed: bool) {
    let mock = partner("scope = 'global'\nscript = '201 create hold=*, 201 create x*'").await;
    let (site, gateway) = start(&mock, keyed).await;
    let caller = Caller::new();
    let id = on_its_way(&caller, &gateway, &mock).await;
    let begun = Instant::now();
    gateway.terminate();
    let ended = gateway.ended(Duration::from_secs(60)).await;
    let took = begun.elapsed();
    assert_eq!(ended.code(), Some(0), "{}", ended.log);
    assert!(took >= STOP_TIMEOUT, "cut early: {took:?}");
    assert!(took < STOP_TIMEOUT + SLACK, "{took:?}");
    assert!(
        ended.log.contains("cut off and in doubt: 1 attempt"),
        "{}",
        ended.log
    );

    let gateway = Gateway::start(&site).await;
    let state = if keyed { "delivered" } else { "dead" };
    let message = caller
        .becomes(gateway.address(), &id, state, Duration::from_secs(30))
        .await;
    assert_eq!(message["history"][0]["outcome"], "crash", "{message:#}");
    if keyed {
        assert_eq!(mock.effects_by_key().get(&id), Some(&1));
    } else {
        assert_eq!(
            (&message["reason"], &message["processed"], &message["blame"]),
            (&"ambiguous".into(), &"maybe".into(), &"ours".into())
        );
        assert_eq!(mock.journal().len(), 1, "sent again in doubt");
    }
    gateway.stop().await;
    println!(
        "graceful_stop, held for ever, key honoured: {keyed}: exit 0 after {:.2} s of {} s, then {state}",
        took.as_secs_f64(),
        STOP_TIMEOUT.as_secs()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_stop_an_attempt_without_end_is_cut_and_in_doubt() {
    held_for_ever(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_stop_an_attempt_without_end_is_cut_and_sent_again_with_its_key() {
    held_for_ever(true).await;
}

/// The second signal is for the impatient: an end like a crash, said as such.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_stop_a_second_signal_ends_at_once() {
    let mock = partner("script = '201 create hold=*'").await;
    let (site, gateway) = start(&mock, false).await;
    let caller = Caller::new();
    let id = on_its_way(&caller, &gateway, &mock).await;
    let begun = Instant::now();
    gateway.terminate();
    tokio::time::sleep(Duration::from_millis(300)).await;
    gateway.terminate();
    let ended = gateway.ended(Duration::from_secs(60)).await;
    let took = begun.elapsed();
    assert_eq!(ended.code(), Some(70), "{}", ended.log);
    assert!(took < STOP_TIMEOUT, "{took:?}");

    let gateway = Gateway::start(&site).await;
    let message = caller.becomes(gateway.address(), &id, "dead", SLACK).await;
    assert_eq!(message["reason"], "ambiguous");
    gateway.stop().await;
    println!(
        "graceful_stop, twice: exit 70 after {:.2} s, then ambiguous",
        took.as_secs_f64()
    );
}

/// Callers who hold every connection that the gateway takes, and say nothing, do not keep it from
/// stopping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_stop_with_every_connection_taken() {
    let mock = partner("script = '201 create x*'").await;
    let (_site, gateway) = start(&mock, false).await;
    let mut idle = Vec::new();
    // More than it takes at a time: the rest waits in the kernel's queue.
    for _ in 0..1_100 {
        idle.push(TcpStream::connect(gateway.address()).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = Instant::now();
    gateway.terminate();
    let ended = gateway.ended(Duration::from_secs(60)).await;
    let took = begun.elapsed();
    assert_eq!(ended.code(), Some(0), "{}", ended.log);
    assert!(took < STOP_TIMEOUT + SLACK, "{took:?}");
    println!(
        "graceful_stop, {} silent connections: exit 0 after {:.2} s",
        idle.len(),
        took.as_secs_f64()
    );
}
