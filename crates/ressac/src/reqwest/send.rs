//! One request as one operation.

use std::sync::Arc;
use std::time::Duration;

use ::reqwest::{Request, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use ressac_policy::{Blame, End, Outcome, OutcomeKind, Processed, Reason, is_idempotent};

use super::body::Lent;
use super::client::Client;
use super::fresh::Fresh;
use super::hook::Hook;
use super::{Error, drain};
use crate::attempt::Attempt;
use crate::classify::{Classify, Context, Judge};
use crate::error::{Facts, Last};
use crate::key::IdempotencyKey;
use crate::operation::Options;
use crate::retry::{Never, Retry};

/// One request under way. Built here, before it is polled: each async block around it would hold a
/// copy of what it was made from.
pub(super) fn send(
    client: Client,
    request: Request,
    mut options: Options,
    hook: Option<Hook>,
    limit: Option<usize>,
) -> impl Future<Output = Result<Response, Error>> {
    let key_header = prepare(&client, &request, &mut options);
    let mut parcel = Parcel::new(request, key_header, hook);
    options.body_once = parcel.lent.is_some();
    // reqwest keeps the time, for the body too.
    options.own_limit = true;
    let Client {
        inner,
        fresh,
        partner,
        ..
    } = client;
    let judge = ByHttp {
        fresh: fresh.clone(),
    };
    let op = move |attempt: Attempt| {
        let fresh = fresh.as_ref().and_then(|fresh| fresh.client_for(&attempt));
        let sending = fresh
            .unwrap_or(&inner)
            .execute(parcel.request_for(&attempt));
        async move {
            let reply = sending.await?;
            match limit {
                None if reply.status().is_success() => Ok(reply),
                // Boxed: what is seldom needed is not carried by each call.
                Some(limit) if reply.status().is_success() => {
                    Box::pin(drain::whole(reply, limit)).await
                }
                _ => Ok(Box::pin(drain::failure(reply)).await),
            }
        }
    };
    Retry::new(partner, op, judge, Never::new())
        .options(options)
        .into_future()
}

/// A request that could not be built: nothing was asked of the partner.
pub(super) fn not_begun(
    client: &Client,
    key: Option<IdempotencyKey>,
    error: ::reqwest::Error,
) -> Error {
    let end = End {
        reason: Reason::Permanent,
        blame: Some(Blame::Ours),
        processed: Processed::No,
        attempts: 0,
        already_done: false,
        last: Some(OutcomeKind::Invalid),
        hint: None,
    };
    let facts = Facts {
        end,
        wait: None,
        elapsed: Duration::ZERO,
        partner: client.partner.name().into(),
        key: key.unwrap_or_else(|| client.partner.make_key()),
    };
    Error::new(facts, Last::Error(error))
}

/// By status and headers, or by what an error's chain proves.
#[derive(Debug)]
struct ByHttp {
    fresh: Option<Arc<Fresh>>,
}

impl Judge<Response, ::reqwest::Error> for ByHttp {
    type Reply = Response;

    fn outcome(&self, result: &Result<Response, ::reqwest::Error>, context: &Context) -> Outcome {
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => return error.outcome(context),
        };
        if let Some(fresh) = &self.fresh {
            fresh.hear(reply);
        }
        let mut outcome = reply.outcome(context);
        if reply.status() == StatusCode::CONFLICT {
            outcome.key_in_flight = drain::of(reply).is_some_and(|drained| drained.key_in_flight);
        }
        outcome
    }

    fn keep(&self, reply: Response) -> Option<Response> {
        Some(reply)
    }

    /// One that is not whole holds a connection (EX-5, EX-6).
    fn keep_while_waiting(&self, reply: Response) -> Option<Response> {
        drain::of(&reply)
            .is_some_and(|drained| drained.whole)
            .then_some(reply)
    }
}

/// Says of the operation what its method and its key say. Returns where its key goes, if one does.
fn prepare(client: &Client, request: &Request, options: &mut Options) -> Option<KeyHeader> {
    options.idempotent |= is_idempotent(request.method().as_str());
    let own = client.partner.idempotency();
    if request.headers().contains_key(&client.key_header) {
        // The caller's own header: the same bytes on every attempt, as it stands.
        options.keyed = own.is_some() || options.key.is_some();
        return None;
    }
    if options.key.is_none() && (options.idempotent || own.is_none()) {
        return None;
    }
    options.keyed = true;
    Some(KeyHeader {
        name: client.key_header.clone(),
        quoted: own.is_some_and(|own| own.quoted),
    })
}

struct KeyHeader {
    name: HeaderName,
    quoted: bool,
}

impl KeyHeader {
    fn value(&self, key: &IdempotencyKey) -> Option<HeaderValue> {
        let text = if self.quoted {
            key.quoted()
        } else {
            key.to_string()
        };
        HeaderValue::try_from(text).ok()
    }
}

/// The request as it is kept for each attempt.
struct Parcel {
    request: Request,
    /// A body that can be sent once.
    lent: Option<Arc<Lent>>,
    timeout: Option<Duration>,
    key_header: Option<KeyHeader>,
    hook: Option<Hook>,
}

impl Parcel {
    fn new(mut request: Request, key_header: Option<KeyHeader>, hook: Option<Hook>) -> Self {
        let streams = request.body().is_some_and(|body| body.as_bytes().is_none());
        let lent = if streams {
            request.body_mut().take().map(Lent::new)
        } else {
            None
        };
        // Set anew for each attempt; left in, each copy would carry it.
        let timeout = request.timeout_mut().take();
        Parcel {
            request,
            lent,
            timeout,
            key_header,
            hook,
        }
    }

    /// The request of one attempt.
    fn request_for(&mut self, attempt: &Attempt) -> Request {
        if let Some(header) = self.key_header.take()
            && let Some(value) = header.value(attempt.key())
        {
            self.request.headers_mut().insert(header.name, value);
        }
        let kept = self.copy();
        // The copy is the one that is kept: it has no room for the fields that are still to come.
        let mut request = std::mem::replace(&mut self.request, kept);
        let own = self.timeout.unwrap_or(Duration::MAX);
        *request.timeout_mut() = Some(attempt.timeout().min(own));
        if let Some(lent) = &self.lent {
            *request.body_mut() = Some(Lent::body(lent));
        }
        if let Some(hook) = &mut self.hook {
            hook.change(attempt, &mut request);
        }
        request
    }

    /// What is kept has no stream in it, so it can always be cloned.
    fn copy(&self) -> Request {
        self.request.try_clone().unwrap_or_else(|| {
            Request::new(self.request.method().clone(), self.request.url().clone())
        })
    }
}
