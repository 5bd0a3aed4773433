//! The service: from a request to its key, and to the task that runs it.

use std::fmt;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::Instrument;

use super::body::IdempotencyBody;
use super::collect::{Collected, collect};
use super::key;
use super::layer::Shared;
use super::problem::Problem;
use super::record::{Fingerprint, RecordId};
use super::run::{Answer, Run, run};

/// A service behind an [`IdempotencyLayer`](super::IdempotencyLayer).
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    shared: Shared,
}

impl<S> Idempotency<S> {
    pub(super) const fn new(inner: S, shared: Shared) -> Self {
        Idempotency { inner, shared }
    }
}

type Answered<B, E> = Result<Response<IdempotencyBody<B>>, E>;

/// The reply to come. Dropping it stops no handler that runs for a key.
pub struct ResponseFuture<B: Body, E> {
    inner: Pin<Box<dyn Future<Output = Answered<B, E>> + Send>>,
}

impl<B: Body, E> Future for ResponseFuture<B, E> {
    type Output = Answered<B, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl<B: Body, E> fmt::Debug for ResponseFuture<B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body + Send + 'static,
    B::Error: Send,
    R: Body + Send + 'static,
    R::Error: Send,
{
    type Response = Response<IdempotencyBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was polled ready goes; its clone may have to be polled again.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let shared = self.shared.clone();
        let settings = &*shared.settings;
        let key = if settings.methods.contains(request.method()) {
            key::read(request.headers(), &settings.header)
        } else {
            return pass(ready, request);
        };
        let problem = match key {
            Ok(Some(key)) => {
                let inner = Box::pin(keyed(ready, request, key, shared));
                return ResponseFuture { inner };
            }
            Ok(None) if !settings.required => return pass(ready, request),
            Ok(None) => Problem::missing(&settings.header),
            Err(why) => Problem::invalid(&settings.header, why),
        };
        let reply = problem.into_reply(&settings.docs);
        ResponseFuture {
            inner: Box::pin(std::future::ready(Ok(reply))),
        }
    }
}

fn pass<S, B, R>(mut service: S, request: Request<B>) -> ResponseFuture<R, S::Error>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
    S::Future: Send + 'static,
    B: Body,
    R: Body,
{
    let reply = service.call(request.map(IdempotencyBody::pass));
    ResponseFuture {
        inner: Box::pin(async move { Ok(reply.await?.map(IdempotencyBody::pass)) }),
    }
}

/// Reads the body, then hands over to a task of its own, so that a caller who hangs up stops nothing
/// from there on, not even the look into the store.
async fn keyed<S, B, R>(
    service: S,
    request: Request<B>,
    key: String,
    shared: Shared,
) -> Answered<R, S::Error>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body + Send + 'static,
    B::Error: Send,
    R: Body + Send + 'static,
    R::Error: Send,
{
    let settings = &*shared.settings;
    let (parts, body) = request.into_parts();
    let read = collect(body, settings.request_limit);
    let (chunks, trailers) = match tokio::time::timeout(settings.request_time, read).await {
        Ok(Collected::Whole { chunks, trailers }) => (chunks, trailers),
        other => {
            let problem = match other {
                Ok(Collected::Broken { .. }) => Problem::body_broken(),
                Ok(_) => Problem::body_too_long(settings.request_limit),
                Err(_) => Problem::body_too_slow(settings.request_time),
            };
            return Ok(problem.into_reply(&settings.docs));
        }
    };
    let caller = (settings.caller)(&parts);
    let id = RecordId::new(&settings.namespace, &caller, &key);
    let fingerprint = Fingerprint::of(&parts, chunks.iter());
    let Ok(place) = shared.running.clone().try_acquire_owned() else {
        return Ok(Problem::too_many_running().into_reply(&settings.docs));
    };
    let (reply_to, reply) = oneshot::channel();
    let request = Request::from_parts(parts, IdempotencyBody::whole(chunks, trailers));
    let docs = settings.docs.clone();
    let work = Run {
        shared,
        id,
        fingerprint,
        place,
    };
    tokio::spawn(run(work, service, request, reply_to).in_current_span());
    match reply.await {
        Ok(Answer::Reply(reply)) => Ok(reply),
        Ok(Answer::Failed(error)) => Err(error),
        // As if the layer were not there: whoever catches panics outside gets this one.
        Ok(Answer::Panicked(panic)) => resume_unwind(panic),
        Err(_) => Ok(Problem::shutting_down().into_reply(&docs)),
    }
}
