//! The same rules for clients built with the `reqwest-middleware` crate.

use std::time::Duration;

use ::reqwest::{Request, Response};
use http::Extensions;
use reqwest_middleware::{Error, Middleware, Next, Result};
use ressac_policy::is_idempotent;

use crate::attempt::Attempt;
use crate::classify::{Classify, Context, Judge, outcomes};
use crate::error::Last;
use crate::operation::Options;
use crate::partner::Partner;
use crate::retry::{Never, Retry};
use crate::{Outcome, RetryError};

/// Sends each request through a [`Partner`].
///
/// As reqwest's users expect, a reply that is no success comes back as a reply; where there is none
/// the error is [`Error::Middleware`] around a [`RetryError`]. Build the client below from
/// [`Client::builder_for`](super::Client::builder_for): one that retries by itself, or takes as long
/// to connect as an attempt may, gets round the policy.
///
/// ```
/// use ressac::reqwest::{Client, RetryMiddleware};
/// use ressac::{Partner, Policy};
///
/// let partner = Partner::new(Policy::sync());
/// let client = Client::builder_for(&partner).build()?;
/// let client = reqwest_middleware::ClientBuilder::new(client)
///     .with(RetryMiddleware::new(partner))
///     .build();
/// # drop(client);
/// # Ok::<(), reqwest::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RetryMiddleware {
    partner: Partner,
}

impl RetryMiddleware {
    /// For all requests to this partner.
    #[must_use]
    pub const fn new(partner: Partner) -> Self {
        RetryMiddleware { partner }
    }
}

#[async_trait::async_trait]
impl Middleware for RetryMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let own = self.partner.idempotency();
        let keyed = own.is_some_and(|own| request.headers().contains_key(&*own.header));
        let own_timeout = request.timeout().copied().unwrap_or(Duration::MAX);
        // A stream goes out with the first attempt, and there is no other.
        let copy = request.try_clone();
        let options = Options {
            idempotent: is_idempotent(request.method().as_str()),
            keyed,
            body_once: copy.is_none(),
            own_limit: true,
            ..Options::default()
        };
        let mut original = Some(request);
        let op = |attempt: Attempt| {
            let request = copy
                .as_ref()
                .and_then(Request::try_clone)
                .or_else(|| original.take());
            let next = next.clone();
            let mut extensions = extensions.clone();
            async move {
                let Some(mut request) = request else {
                    return Err(Error::middleware(BodyGone));
                };
                *request.timeout_mut() = Some(attempt.timeout().min(own_timeout));
                next.run(request, &mut extensions).await
            }
        };
        let retry = Retry::new(self.partner.clone(), op, ByHttp, Never::new());
        retry
            .options(options)
            .await
            .or_else(|error| match error.into_reply() {
                Ok(reply) => Ok(reply),
                Err(error) => Err(Error::middleware(without_reply(error))),
            })
    }
}

#[derive(Clone, Copy, Debug)]
struct BodyGone;

impl std::fmt::Display for BodyGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body was a stream, and had been handed over with an earlier attempt")
    }
}

impl std::error::Error for BodyGone {}

struct ByHttp;

impl Judge<Response, Error> for ByHttp {
    type Reply = Response;

    fn outcome(&self, result: &Result<Response>, context: &Context) -> Outcome {
        match result {
            Ok(reply) => reply.outcome(context),
            Err(Error::Reqwest(error)) => error.outcome(context),
            Err(Error::Middleware(_)) => outcomes::permanent(),
        }
    }

    fn keep(&self, reply: Response) -> Option<Response> {
        Some(reply)
    }

    /// It holds a connection.
    fn keep_while_waiting(&self, _: Response) -> Option<Response> {
        None
    }
}

/// The error can be sent to another thread; a reply in it could not be shared.
fn without_reply(error: RetryError<Error, Response>) -> RetryError<Error> {
    let facts = error.facts();
    match error.into_last() {
        Last::Error(error) => RetryError::new(facts, Last::Error(error)),
        Last::Reply(_) | Last::Nothing => RetryError::new(facts, Last::Nothing),
    }
}
