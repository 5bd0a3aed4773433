//! What depends on time: leases, slow handlers, slow bodies. The layer and a clock, no sockets.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use ressac::idempotency::{
    Begin, Fingerprint, IdempotencyLayer, IdempotencyStore, Mark, MemoryStore, RecordId,
    StoreError, StoreFuture, StoredReply,
};
use tokio::sync::Notify;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::Effects;

const LEASE: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);

struct Handler {
    effects: Effects,
    /// What each effect waits for, in turn.
    gates: Vec<Arc<Notify>>,
    keys: IdempotencyLayer,
}

impl Handler {
    fn new(keys: IdempotencyLayer) -> Arc<Self> {
        Arc::new(Handler {
            effects: Effects::default(),
            gates: (0..3).map(|_| Arc::new(Notify::new())).collect(),
            keys,
        })
    }

    /// A request in a task of its own: its status, whether it is a replay, its body.
    fn send(self: &Arc<Self>, body: Body) -> tokio::task::JoinHandle<(u16, bool, String)> {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let handler = Arc::clone(&this);
            let service = this.keys.layer(service_fn(move |_request| {
                let this = Arc::clone(&handler);
                async move {
                    let number = this.effects.add();
                    this.gates[number - 1].notified().await;
                    Ok::<_, Infallible>(Response::new(Body::from(format!("effect {number}"))))
                }
            }));
            let request = Request::post("/pay")
                .header("idempotency-key", "k")
                .body(body)
                .unwrap();
            let reply = service.oneshot(request).await.unwrap();
            let (status, replayed) = (
                reply.status().as_u16(),
                reply.headers().contains_key("idempotent-replayed"),
            );
            let bytes = reply.into_body().collect().await.unwrap().to_bytes();
            (status, replayed, String::from_utf8(bytes.to_vec()).unwrap())
        })
    }

    async fn answer(self: &Arc<Self>) -> (u16, bool, String) {
        self.send(Body::from("10 EUR")).await.unwrap()
    }

    /// Until so many effects have begun.
    async fn begun(&self, effects: usize) {
        while self.effects.count() < effects {
            tokio::task::yield_now().await;
        }
    }
}

/// IK-6: the lease of a handler that is at work is renewed, so that slow is not taken for dead.
#[tokio::test(start_paused = true)]
async fn a_handler_may_take_many_leases() {
    let handler = Handler::new(IdempotencyLayer::new(MemoryStore::new()).lease(LEASE));
    let first = handler.send(Body::from("10 EUR"));
    handler.begun(1).await;
    for _ in 0..8 {
        tokio::time::sleep(MINUTE).await;
        assert_eq!(handler.answer().await.0, 409);
    }
    handler.gates[0].notify_one();
    assert_eq!(first.await.unwrap(), (200, false, "effect 1".into()));
    assert_eq!(handler.answer().await, (200, true, "effect 1".into()));
}

/// IK-6: one that hangs is given up; its key is marked until the lease ends, then runs again.
#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_given_up() {
    let keys = IdempotencyLayer::new(MemoryStore::new())
        .lease(LEASE)
        .max_run(MINUTE);
    let handler = Handler::new(keys);
    let start = tokio::time::Instant::now();
    let (status, _, body) = handler.answer().await;
    assert_eq!((status, start.elapsed()), (503, MINUTE));
    assert!(body.contains("took too long"), "{body}");
    assert_eq!(handler.answer().await.0, 409);
    tokio::time::sleep(LEASE).await;
    let second = handler.send(Body::from("10 EUR"));
    handler.begun(2).await;
    handler.gates[1].notify_one();
    assert_eq!(second.await.unwrap(), (200, false, "effect 2".into()));
    assert_eq!(handler.answer().await, (200, true, "effect 2".into()));
}

/// A store whose renewals fail, or whose replies it does not take at first.
#[derive(Debug)]
struct Faulty {
    inner: MemoryStore,
    renews: bool,
    refusals: std::sync::atomic::AtomicU32,
}

impl Faulty {
    fn new(renews: bool, refusals: u32) -> Self {
        Faulty {
            inner: MemoryStore::new(),
            renews,
            refusals: refusals.into(),
        }
    }
}

fn failed() -> StoreError {
    StoreError::Failed {
        detail: "as the test wants it".to_owned(),
    }
}

impl IdempotencyStore for Faulty {
    fn begin(&self, id: RecordId, print: Fingerprint, lease: Duration) -> StoreFuture<'_, Begin> {
        self.inner.begin(id, print, lease)
    }

    fn renew(&self, mark: Mark, lease: Duration) -> StoreFuture<'_, bool> {
        if self.renews {
            self.inner.renew(mark, lease)
        } else {
            Box::pin(async { Err(failed()) })
        }
    }

    fn complete(&self, mark: Mark, reply: StoredReply, ttl: Duration) -> StoreFuture<'_, bool> {
        use std::sync::atomic::Ordering::SeqCst;
        let less = |left: u32| left.checked_sub(1);
        if self.refusals.fetch_update(SeqCst, SeqCst, less).is_ok() {
            return Box::pin(async { Err(failed()) });
        }
        self.inner.complete(mark, reply, ttl)
    }

    fn release(&self, mark: Mark) -> StoreFuture<'_, ()> {
        self.inner.release(mark)
    }
}

/// LA-3: who ends after its lease cannot overwrite the reply of who took the key.
#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_after_its_lease_overwrites_nothing() {
    let handler = Handler::new(IdempotencyLayer::new(Faulty::new(false, 0)).lease(LEASE));
    let first = handler.send(Body::from("10 EUR"));
    handler.begun(1).await;
    tokio::time::sleep(LEASE).await;
    let second = handler.send(Body::from("10 EUR"));
    handler.begun(2).await;
    handler.gates[1].notify_one();
    assert_eq!(second.await.unwrap(), (200, false, "effect 2".into()));
    handler.gates[0].notify_one();
    assert_eq!(first.await.unwrap(), (200, false, "effect 1".into()));
    assert_eq!(handler.answer().await, (200, true, "effect 2".into()));
}

/// ST-2: the store fails just as the reply is to be kept. The caller has its reply; the store is
/// asked again until it takes it.
#[tokio::test(start_paused = true)]
async fn a_reply_that_was_not_stored_is_offered_again() {
    let handler = Handler::new(IdempotencyLayer::new(Faulty::new(true, 3)).lease(LEASE));
    handler.gates[0].notify_one();
    assert_eq!(handler.answer().await, (200, false, "effect 1".into()));
    assert_eq!(handler.answer().await.0, 409);
    tokio::time::timeout(MINUTE, handler.keys.drain())
        .await
        .unwrap();
    assert_eq!(handler.answer().await, (200, true, "effect 1".into()));
}

/// A store that cannot be asked: nothing runs.
#[tokio::test]
async fn ik_3_without_its_store_nothing_runs() {
    #[derive(Debug)]
    struct Down;
    impl IdempotencyStore for Down {
        fn begin(&self, _: RecordId, _: Fingerprint, _: Duration) -> StoreFuture<'_, Begin> {
            Box::pin(async { Err(failed()) })
        }
        fn renew(&self, _: Mark, _: Duration) -> StoreFuture<'_, bool> {
            Box::pin(async { Err(failed()) })
        }
        fn complete(&self, _: Mark, _: StoredReply, _: Duration) -> StoreFuture<'_, bool> {
            Box::pin(async { Err(failed()) })
        }
        fn release(&self, _: Mark) -> StoreFuture<'_, ()> {
            Box::pin(async { Err(failed()) })
        }
    }
    let handler = Handler::new(IdempotencyLayer::new(Down));
    let (status, _, body) = handler.answer().await;
    assert_eq!((status, handler.effects.count()), (503, 0));
    // What failed inside is for the log, not for strangers.
    assert!(!body.contains("as the test wants it"), "{body}");
}

/// A body that never ends holds no key.
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    struct Never;
    impl http_body::Body for Never {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }
    let store = MemoryStore::new();
    let handler = Handler::new(IdempotencyLayer::new(store.clone()).request_time(MINUTE));
    let start = tokio::time::Instant::now();
    let (status, ..) = handler.send(Body::new(Never)).await.unwrap();
    assert_eq!((status, start.elapsed()), (408, MINUTE));
    assert!(store.is_empty());
}

/// An error of the service itself reaches its caller, and the key is let go.
#[tokio::test]
async fn ik_5_a_service_that_fails_lets_its_key_go() {
    let effects = Effects::default();
    let counted = effects.clone();
    let inner = service_fn(move |_request| {
        let number = counted.add();
        async move {
            if number == 1 {
                Err("broken")
            } else {
                Ok(Response::new(Body::from("done")))
            }
        }
    });
    let service = IdempotencyLayer::new(MemoryStore::new()).layer(inner);
    let request = || {
        Request::post("/")
            .header("idempotency-key", "k")
            .body(Body::empty())
            .unwrap()
    };
    assert_eq!(
        service.clone().oneshot(request()).await.unwrap_err(),
        "broken"
    );
    let reply = service.oneshot(request()).await.unwrap();
    assert_eq!((reply.status(), effects.count()), (StatusCode::OK, 2));
}
