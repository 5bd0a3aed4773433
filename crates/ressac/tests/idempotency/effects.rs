//! One effect for a key, whatever happens to requests and handlers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use bytes::Bytes;
use ressac::idempotency::{IdempotencyLayer, IdempotencyStore, MemoryStore};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

use crate::support::{Effects, Reply, pay, payments, serve};

/// Long enough for any machine; never waited for in a good run.
const PATIENCE: Duration = Duration::from_secs(30);

/// A handler that says when it runs, and ends when it is let.
struct Gated {
    effects: Effects,
    running: Arc<Notify>,
    go: Arc<Notify>,
    app: Router,
}

fn gated(keys: IdempotencyLayer) -> Gated {
    let (effects, running, go) = (
        Effects::default(),
        Arc::new(Notify::new()),
        Arc::new(Notify::new()),
    );
    let parts = (effects.clone(), Arc::clone(&running), Arc::clone(&go));
    let handler = move || async move {
        let (effects, running, go) = parts;
        running.notify_one();
        go.notified().await;
        format!("effect {}", effects.add())
    };
    let app = Router::new().route("/pay", post(handler)).layer(keys);
    Gated {
        effects,
        running,
        go,
        app,
    }
}

pub(crate) async fn one_of_64(store: impl IdempotencyStore) {
    let effects = Effects::default();
    let counted = effects.clone();
    let slow = post(move || async move {
        let number = counted.add();
        tokio::time::sleep(Duration::from_millis(100)).await;
        (StatusCode::CREATED, format!("payment {number}"))
    });
    let app = Router::new()
        .route("/pay", slow)
        .layer(IdempotencyLayer::new(store));
    let server = serve(app).await;
    let mut tasks = Vec::new();
    for _ in 0..64 {
        tasks.push(tokio::spawn(async move { pay("k").to(server).await }));
    }
    let mut fresh = 0;
    for task in tasks {
        let reply = task.await.unwrap();
        match reply.status {
            201 => {
                assert_eq!(reply.text(), "payment 1");
                fresh += usize::from(!reply.replayed());
            }
            409 => {
                assert_eq!(
                    reply.title(),
                    "A request is outstanding for this Idempotency-Key"
                );
                let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=30).contains(&wait), "{wait}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((fresh, effects.count()), (1, 1));
    let after = pay("k").to(server).await;
    assert_eq!((after.text(), after.replayed()), ("payment 1", true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ik_3_of_64_requests_at_once_one_has_an_effect() {
    one_of_64(MemoryStore::new()).await;
}

#[tokio::test]
async fn ik_7_while_the_first_runs_409_and_422() {
    let gated = gated(IdempotencyLayer::new(MemoryStore::new()));
    let server = serve(gated.app).await;
    let first = pay("k").begin(server).await;
    gated.running.notified().await;
    let second = pay("k").to(server).await;
    assert_eq!(second.status, 409);
    assert_eq!(
        second.title(),
        "A request is outstanding for this Idempotency-Key"
    );
    let other = pay("k").body("20 EUR").to(server).await;
    assert_eq!(other.status, 422);
    gated.go.notify_one();
    assert_eq!(Reply::read(first).await.text(), "effect 1");
    assert!(pay("k").to(server).await.replayed());
}

/// The caller hangs up while the handler runs. Its work goes on, its reply is kept, and the retry
/// gets it: no second effect, no stuck key.
#[tokio::test]
async fn a_caller_who_hangs_up_stops_nothing() {
    let keys = IdempotencyLayer::new(MemoryStore::new());
    let gated = gated(keys.clone());
    let server = serve(gated.app).await;
    let first = pay("k").begin(server).await;
    gated.running.notified().await;
    drop(first);
    // Both before and after the server has noticed.
    for _ in 0..5 {
        assert_eq!(pay("k").to(server).await.status, 409);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gated.go.notify_one();
    tokio::time::timeout(PATIENCE, keys.drain()).await.unwrap();
    let retry = pay("k").to(server).await;
    assert_eq!((retry.text(), retry.replayed()), ("effect 1", true));
    assert_eq!(gated.effects.count(), 1);
}

#[tokio::test]
async fn drain_waits_for_those_who_lost_their_caller() {
    let keys = IdempotencyLayer::new(MemoryStore::new());
    let gated = gated(keys.clone());
    let server = serve(gated.app).await;
    let first = pay("k").begin(server).await;
    gated.running.notified().await;
    drop(first);
    let waiting = tokio::time::timeout(Duration::from_millis(50), keys.drain()).await;
    assert!(waiting.is_err());
    gated.go.notify_one();
    tokio::time::timeout(PATIENCE, keys.drain()).await.unwrap();
    assert_eq!(gated.effects.count(), 1);
}

/// Answers with each of these in turn.
fn in_turn(turns: &'static [fn() -> axum::response::Response]) -> (Effects, Router) {
    let effects = Effects::default();
    let counted = effects.clone();
    let handler = move || async move { turns[counted.add() - 1]() };
    let keys = IdempotencyLayer::new(MemoryStore::new());
    (
        effects,
        Router::new().route("/pay", post(handler)).layer(keys),
    )
}

#[tokio::test]
async fn ik_5_what_failed_runs_again() {
    let (effects, app) = in_turn(&[
        || StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        || StatusCode::SERVICE_UNAVAILABLE.into_response(),
        || StatusCode::TOO_MANY_REQUESTS.into_response(),
        || StatusCode::CONFLICT.into_response(),
        || StatusCode::UNAUTHORIZED.into_response(),
        || StatusCode::OK.into_response(),
    ]);
    let server = serve(app).await;
    for status in [500, 503, 429, 409, 401, 200] {
        let reply = pay("k").to(server).await;
        assert_eq!((reply.status, reply.replayed()), (status, false));
    }
    assert!(pay("k").to(server).await.replayed());
    assert_eq!(effects.count(), 6);
}

#[tokio::test]
async fn a_refusal_for_good_is_kept() {
    let (effects, app) = in_turn(&[|| (StatusCode::PAYMENT_REQUIRED, "no funds").into_response()]);
    let server = serve(app).await;
    let first = pay("k").to(server).await;
    let again = pay("k").to(server).await;
    assert_eq!((again.status, again.replayed()), (402, true));
    assert_eq!(again.kept(), first.kept());
    assert_eq!(effects.count(), 1);
}

/// A panic reaches the server as if the layer were not there, and the key is let go.
#[tokio::test]
async fn ik_5_a_handler_that_panics_lets_its_key_go() {
    let (effects, app) = in_turn(&[|| panic!("as the test wants it"), || "done".into_response()]);
    let server = serve(app).await;
    let mut first = pay("k").begin(server).await;
    let mut read = Vec::new();
    let _ = first.read_to_end(&mut read).await;
    assert!(read.is_empty(), "{:?}", String::from_utf8_lossy(&read));
    assert_eq!(pay("k").to(server).await.text(), "done");
    assert!(pay("k").to(server).await.replayed());
    assert_eq!(effects.count(), 2);
}

/// A reply that breaks off after its head was done in part: it is noted, never run again.
#[tokio::test]
async fn a_reply_that_breaks_off_is_not_run_again() {
    let (effects, app) = in_turn(&[|| {
        let parts = [
            Ok("half"),
            Err(std::io::Error::other("as the test wants it")),
        ];
        Body::new(Parts(parts.into())).into_response()
    }]);
    let server = serve(app).await;
    let mut first = pay("k").begin(server).await;
    let _ = first.read_to_end(&mut Vec::new()).await;
    let note = loop {
        let reply = pay("k").to(server).await;
        if reply.replayed() {
            break reply;
        }
        assert_eq!(reply.status, 409);
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(
        note.title(),
        "The reply to this Idempotency-Key was not kept"
    );
    assert_eq!((note.status, note.header("retry-after")), (409, None));
    assert_eq!(effects.count(), 1);
}

struct Parts(VecDeque<Result<&'static str, std::io::Error>>);

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        let part = self.0.pop_front();
        Poll::Ready(part.map(|part| part.map(|text| http_body::Frame::data(text.into()))))
    }
}

#[tokio::test]
async fn twenty_keys_at_once_have_twenty_effects() {
    let effects = Effects::default();
    let server = serve(payments(
        &effects,
        IdempotencyLayer::new(MemoryStore::new()),
    ))
    .await;
    let mut tasks = Vec::new();
    for n in 0..20 {
        tasks.push(tokio::spawn(async move {
            let key = format!("k{n}");
            let first = pay(&key).to(server).await;
            let again = pay(&key).to(server).await;
            assert!(!first.replayed() && again.replayed());
            assert_eq!(first.kept(), again.kept());
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(effects.count(), 20);
}
