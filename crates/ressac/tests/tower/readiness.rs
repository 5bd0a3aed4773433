//! tower's contract: a service is called only after it was ready, and the one that was polled is the
//! one that is called.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use ressac::tower::{ReplayBody, RetryLayer};
use ressac::{End, Partner, Processed, Reason};
use tower::{Layer, Service, ServiceExt};

use crate::support::{full, policy};

/// Panics when called without having been ready; a clone has not been.
struct Strict {
    ready: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    calls: AtomicUsize,
    polls: AtomicUsize,
    /// The poll from which on readiness fails.
    fails_from: AtomicUsize,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Strict {
            ready: false,
            shared: Arc::clone(&self.shared),
        }
    }
}

type Reply = Result<Response<Full<Bytes>>, std::io::Error>;

impl Service<Request<ReplayBody>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        let poll = self.shared.polls.fetch_add(1, Ordering::SeqCst) + 1;
        let fails_from = self.shared.fails_from.load(Ordering::SeqCst);
        if fails_from > 0 && poll >= fails_from {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()));
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<ReplayBody>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        let call = self.shared.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let status = if call < 3 { 429 } else { 200 };
        Box::pin(async move {
            Ok(Response::builder()
                .status(status)
                .body(Full::default())
                .unwrap())
        })
    }
}

fn strict() -> (Arc<Shared>, ressac::tower::Retry<Strict>) {
    let shared = Arc::new(Shared::default());
    let inner = Strict {
        ready: false,
        shared: Arc::clone(&shared),
    };
    (shared, RetryLayer::new(Partner::new(policy())).layer(inner))
}

async fn ready(
    service: &mut ressac::tower::Retry<Strict>,
) -> Result<&mut ressac::tower::Retry<Strict>, ressac::RetryError<ressac::tower::Failure>> {
    ServiceExt::<Request<Full<Bytes>>>::ready(service).await
}

/// Repeated only where nothing was processed.
fn pay() -> Request<Full<Bytes>> {
    Request::post("http://acme.example/")
        .body(full("10 EUR"))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_attempt_calls_a_service_that_is_ready() {
    let (shared, mut service) = strict();
    let reply = ready(&mut service)
        .await
        .unwrap()
        .call(pay())
        .await
        .unwrap();
    assert_eq!(reply.extensions().get::<End>().unwrap().attempts, 3);
    // The caller's poll was used, not thrown away.
    assert_eq!(shared.polls.load(Ordering::SeqCst), 3);
    let again = ready(&mut service)
        .await
        .unwrap()
        .call(pay())
        .await
        .unwrap();
    assert_eq!(again.status(), 200);
}

/// What was not ready was given nothing, whatever its error says.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_was_sent_nothing() {
    let (shared, mut service) = strict();
    shared.fails_from.store(2, Ordering::SeqCst);
    let error = ready(&mut service)
        .await
        .unwrap()
        .call(pay())
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts()),
        (Reason::Exhausted, 3),
        "{error}"
    );
    assert_eq!(error.processed(), Processed::No);
    assert_eq!(shared.calls.load(Ordering::SeqCst), 1);

    let (shared, mut service) = strict();
    shared.fails_from.store(1, Ordering::SeqCst);
    let Err(error) = ready(&mut service).await else {
        panic!("it is not ready");
    };
    assert_eq!((error.processed(), error.attempts()), (Processed::No, 0));
    assert_eq!(shared.calls.load(Ordering::SeqCst), 0);
}
