//! One request with a key, from the look into the store to the stored reply.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::JoinHandle;
use tower_service::Service;

use super::body::IdempotencyBody;
use super::collect::{Collected, collect, joined};
use super::layer::Shared;
use super::problem::{Problem, note, replay};
use super::record::{Fingerprint, RecordId};
use super::reply::StoredReply;
use super::store::{Begin, IdempotencyStore, Mark, StoreError};

/// What the caller, if it is still there, is given.
#[expect(clippy::large_enum_variant, reason = "moved once, then gone")]
pub(super) enum Answer<B: Body, E> {
    Reply(Response<IdempotencyBody<B>>),
    Failed(E),
    Panicked(Box<dyn Any + Send>),
}

pub(super) struct Run {
    pub(super) shared: Shared,
    pub(super) id: RecordId,
    pub(super) fingerprint: Fingerprint,
    /// What `drain` waits for.
    #[expect(dead_code, reason = "held to the end, never read")]
    pub(super) place: OwnedSemaphorePermit,
}

/// How often a reply that the store did not take is offered again, once for each third of a lease.
const OFFERS: u32 = 30;

pub(super) async fn run<S, B, R>(
    work: Run,
    service: S,
    request: Request<IdempotencyBody<B>>,
    reply_to: oneshot::Sender<Answer<R, S::Error>>,
) where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
    B: Body,
    R: Body,
{
    let lease = work.shared.settings.lease;
    let (id, docs) = (work.id, &work.shared.settings.docs);
    let begun = work.shared.store.begin(id, work.fingerprint, lease).await;
    let answer = match begun {
        Ok(Begin::Fresh(mark)) => return work.fresh(mark, service, request, reply_to).await,
        Ok(Begin::Replay(stored)) => replay(stored),
        Ok(Begin::InFlight { rest }) => Problem::in_flight(rest).into_reply(docs),
        Ok(Begin::Mismatch) => Problem::mismatch().into_reply(docs),
        Ok(Begin::Full) => {
            tracing::warn!("the store of idempotency keys is full");
            Problem::store_full().into_reply(docs)
        }
        Err(error) => {
            tracing::error!(%error, "an idempotency key could not be looked up");
            Problem::store_failed().into_reply(docs)
        }
    };
    // The caller may have gone.
    let _ = reply_to.send(Answer::Reply(answer));
}

/// What a handler came to.
enum Ended<B: Body> {
    Kept(Parts, Collected<B>),
    LetGo(Parts, B),
}

impl Run {
    async fn fresh<S, B, R>(
        self,
        mark: Mark,
        service: S,
        request: Request<IdempotencyBody<B>>,
        reply_to: oneshot::Sender<Answer<R, S::Error>>,
    ) where
        S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
        B: Body,
        R: Body,
    {
        let settings = &*self.shared.settings;
        let renewals = Renewals::start(self.shared.store.clone(), mark, settings.lease);
        let handled = caught(self.handle(service, request));
        let handled = tokio::time::timeout(settings.max_run, handled).await;
        renewals.stop().await;
        let answer = match handled {
            Ok(Ok(Ok(Ended::Kept(parts, body)))) => {
                return self.keep(mark, parts, body, reply_to).await;
            }
            Ok(Ok(Ok(Ended::LetGo(parts, body)))) => {
                self.release(mark).await;
                let body = IdempotencyBody::pass(body);
                Answer::Reply(Response::from_parts(parts, body))
            }
            Ok(Ok(Err(error))) => {
                self.release(mark).await;
                Answer::Failed(error)
            }
            Ok(Err(panic)) => {
                tracing::warn!(id = %mark.id, "a handler panicked; its idempotency key is let go");
                self.release(mark).await;
                Answer::Panicked(panic)
            }
            Err(_) => {
                let limit = settings.max_run;
                tracing::error!(id = %mark.id, ?limit, "a handler was given up; its key stays marked");
                Answer::Reply(
                    Problem::took_too_long(limit, settings.lease).into_reply(&settings.docs),
                )
            }
        };
        let _ = reply_to.send(answer);
    }

    async fn handle<S, B, R>(
        &self,
        mut service: S,
        request: Request<IdempotencyBody<B>>,
    ) -> Result<Ended<R>, S::Error>
    where
        S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
        B: Body,
        R: Body,
    {
        let (parts, body) = service.call(request).await?.into_parts();
        let settings = &*self.shared.settings;
        if !(settings.keep)(parts.status) {
            return Ok(Ended::LetGo(parts, body));
        }
        let body = collect(body, settings.reply_limit).await;
        Ok(Ended::Kept(parts, body))
    }

    /// A key that is not let go here is let go by its lease.
    async fn release(&self, mark: Mark) {
        if let Err(error) = self.shared.store.release(mark).await {
            tracing::warn!(id = %mark.id, %error, "an idempotency key stays marked until its lease ends");
        }
    }

    /// Stores the reply, then answers: who has read a reply gets the same again.
    async fn keep<B: Body, E>(
        &self,
        mark: Mark,
        parts: Parts,
        body: Collected<B>,
        reply_to: oneshot::Sender<Answer<B, E>>,
    ) {
        let settings = &*self.shared.settings;
        let (stored, body) = match body {
            Collected::Whole { chunks, trailers } => {
                let stored = stored(&parts, &chunks, trailers.clone());
                (stored, IdempotencyBody::whole(chunks, trailers))
            }
            Collected::Over { chunks, rest } => {
                let why = format!("Its reply was longer than {} bytes", settings.reply_limit);
                (
                    self.note(&parts, &why),
                    IdempotencyBody::begun(chunks, rest),
                )
            }
            Collected::Broken { chunks, error } => {
                let note = self.note(&parts, "Its reply broke off");
                (note, IdempotencyBody::broken(chunks, error))
            }
        };
        let kept = self.complete(mark, &parts, &stored).await;
        let _ = reply_to.send(Answer::Reply(Response::from_parts(parts, body)));
        if kept.is_err() {
            self.offer_again(mark, stored).await;
        }
    }

    fn note(&self, parts: &Parts, why: &str) -> StoredReply {
        note(
            &self.shared.settings.docs,
            parts.status,
            &parts.headers,
            why,
        )
    }

    /// `Err` where another try may help.
    async fn complete(
        &self,
        mark: Mark,
        parts: &Parts,
        reply: &StoredReply,
    ) -> Result<(), StoreError> {
        match self.complete_once(mark, reply.clone()).await {
            Err(StoreError::NoRoom { needed, limit }) => {
                tracing::warn!(id = %mark.id, needed, limit, "a reply does not fit into the store");
                let note = self.note(parts, "Its reply did not fit into the store");
                self.complete_once(mark, note).await
            }
            result => result,
        }
    }

    async fn complete_once(&self, mark: Mark, reply: StoredReply) -> Result<(), StoreError> {
        let completed = self
            .shared
            .store
            .complete(mark, reply, self.shared.settings.ttl)
            .await;
        match &completed {
            Ok(true) => {}
            Ok(false) => tracing::warn!(
                id = %mark.id,
                "a handler ended after its lease, and another had taken its key: its reply is not kept"
            ),
            Err(StoreError::NoRoom { .. }) => {}
            Err(error) => tracing::error!(id = %mark.id, %error, "a reply could not be stored"),
        }
        completed.map(|_| ())
    }

    /// The effect was had, so the reply is worth some patience.
    async fn offer_again(&self, mark: Mark, reply: StoredReply) {
        for _ in 0..OFFERS {
            tokio::time::sleep(self.shared.settings.lease / 3).await;
            if self.complete_once(mark, reply.clone()).await.is_ok() {
                return;
            }
        }
    }
}

fn stored(parts: &Parts, chunks: &VecDeque<Bytes>, trailers: Option<HeaderMap>) -> StoredReply {
    let mut stored = StoredReply::new(parts.status, parts.headers.clone(), joined(chunks));
    stored.trailers = trailers;
    stored
}

/// Turns a panic into a value, so that the key is let go.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(move |cx| {
        // After a panic the future is dropped, never polled again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// Renews a lease at a third of it, until dropped. A task of its own: a handler that blocks its
/// thread is slow, not dead.
struct Renewals(JoinHandle<()>);

impl Renewals {
    fn start(store: Arc<dyn IdempotencyStore>, mark: Mark, lease: Duration) -> Self {
        Renewals(tokio::spawn(async move {
            loop {
                tokio::time::sleep(lease / 3).await;
                match store.renew(mark, lease).await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::warn!(id = %mark.id, "a lease was lost while its handler runs");
                        return;
                    }
                    Err(error) => tracing::warn!(id = %mark.id, %error, "a lease was not renewed"),
                }
            }
        }))
    }
}

impl Renewals {
    /// No renewal is under way when this returns: none can come after the word that follows.
    async fn stop(mut self) {
        self.0.abort();
        // An error here is the abort.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Renewals {
    fn drop(&mut self) {
        self.0.abort();
    }
}
