//! One request as one operation.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use ressac_policy::is_idempotent;
use tower_service::Service;

use super::body::ReplayBody;
use super::capture::{Kept, capture};
use super::failure::{BoxError, Failure, no_body, not_ready, without_reply};
use super::grpc;
use super::judge::ByHttp;
use super::layer::{Idempotent, RetryLayer};
use crate::attempt::Attempt;
use crate::error::RetryError;
use crate::key::IdempotencyKey;
use crate::operation::Options;
use crate::partner::Partner;

/// A service behind a [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    layer: RetryLayer,
}

impl<S> Retry<S> {
    pub(super) const fn new(inner: S, layer: RetryLayer) -> Self {
        Retry { inner, layer }
    }
}

type Replied<B> = Result<Response<B>, RetryError<Failure>>;

/// The reply to come. Dropping it cancels the operation.
pub struct RetryFuture<B> {
    inner: Pin<Box<dyn Future<Output = Replied<B>> + Send>>,
}

impl<B> Future for RetryFuture<B> {
    type Output = Replied<B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Replied<B>> {
        self.inner.as_mut().poll(cx)
    }
}

impl<B> fmt::Debug for RetryFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Retry<S>
where
    S: Service<Request<ReplayBody>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Send,
{
    type Response = Response<R>;
    type Error = RetryError<Failure>;
    type Future = RetryFuture<R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let ready = self.inner.poll_ready(cx);
        ready.map_err(|error| not_ready(&self.layer.partner, error.into()))
    }

    fn call(&mut self, request: Request<B>) -> RetryFuture<R> {
        // The one that was polled ready goes; its clone has to be polled again.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let operation = operation(ready, request, self.layer.clone());
        RetryFuture {
            inner: Box::pin(operation),
        }
    }
}

async fn operation<S, B, R>(ready: S, request: Request<B>, layer: RetryLayer) -> Replied<R>
where
    S: Service<Request<ReplayBody>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Send,
{
    let (parts, body) = request.into_parts();
    let live = grpc::is_grpc(&parts.headers);
    let kept = match capture(body, layer.body_limit, live).await {
        Ok(kept) => kept,
        Err(error) => return Err(no_body(&layer.partner, error)),
    };
    let mut parcel = Parcel::new(parts, kept);
    let options = parcel.options(&layer);
    let (clone, mut ready) = (ready.clone(), Some(ready));
    let op = move |attempt: Attempt| {
        let request = parcel.request(&attempt);
        // Only the first was polled ready.
        let (mut service, is_ready) = match ready.take() {
            Some(service) => (service, true),
            None => (clone.clone(), false),
        };
        async move {
            if !is_ready {
                let ready = poll_fn(|cx| service.poll_ready(cx)).await;
                ready.map_err(|error| Failure::new(error.into(), false))?;
            }
            let reply = service.call(request).await;
            reply.map_err(|error| Failure::new(error.into(), true))
        }
    };
    let retry = layer.partner.retry(op).judge(ByHttp).options(options);
    let (mut reply, end) = match retry.detailed().await {
        Ok(delivered) => (delivered.value, delivered.end),
        Err(error) => {
            let end = *error.end();
            match error.into_reply() {
                Ok(reply) => (reply, end),
                Err(error) => return Err(without_reply(error)),
            }
        }
    };
    reply.extensions_mut().insert(end);
    Ok(reply)
}

/// The request as it is kept for each attempt.
struct Parcel {
    parts: Parts,
    kept: Kept,
    key_header: Option<KeyHeader>,
}

struct KeyHeader {
    name: HeaderName,
    quoted: bool,
}

impl Parcel {
    const fn new(parts: Parts, kept: Kept) -> Self {
        Parcel {
            parts,
            kept,
            key_header: None,
        }
    }

    /// Says of the operation what its method, its extensions and its key say.
    fn options(&mut self, layer: &RetryLayer) -> Options {
        let marked = self.parts.extensions.get::<Idempotent>().is_some();
        let said = layer.says.as_ref().is_some_and(|says| says(&self.parts));
        let mut options = Options {
            idempotent: marked || said || is_idempotent(self.parts.method.as_str()),
            key: self.parts.extensions.get::<IdempotencyKey>().cloned(),
            body_once: self.kept.is_once(),
            ..Options::default()
        };
        let honoured = layer.partner.idempotency().is_some();
        let name = key_header(&layer.partner);
        if self.parts.headers.contains_key(&name) {
            // The caller's own: the same bytes on every attempt, as it stands.
            options.keyed = honoured || options.key.is_some();
        } else if options.key.is_some() || honoured && !options.idempotent {
            options.keyed = true;
            let quoted = layer.partner.idempotency().is_some_and(|own| own.quoted);
            self.key_header = Some(KeyHeader { name, quoted });
        }
        options
    }

    fn request(&mut self, attempt: &Attempt) -> Request<ReplayBody> {
        if let Some(KeyHeader { name, quoted }) = self.key_header.take() {
            let key = attempt.key();
            let text = if quoted {
                key.quoted()
            } else {
                key.to_string()
            };
            // A key is visible ASCII, which every header may hold.
            if let Ok(value) = HeaderValue::try_from(text) {
                self.parts.headers.insert(name, value);
            }
        }
        Request::from_parts(self.parts.clone(), self.kept.body())
    }
}

fn key_header(partner: &Partner) -> HeaderName {
    let named = partner
        .idempotency()
        .and_then(|own| own.header.parse().ok());
    named.unwrap_or(const { HeaderName::from_static("idempotency-key") })
}
