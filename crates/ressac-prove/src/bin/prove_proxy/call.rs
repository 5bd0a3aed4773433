//! One operation: the engine decides, this sends and waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, request, response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_http::{Failure, FailureKind};
use ressac_policy::{
    Decision, End, Hint, Operation, OperationSpec, Outcome, OutcomeKind, Reason, VendorHints,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::arriving::Arriving;
use crate::body::{Held, Outgoing};
use crate::fault;
use crate::headers::{REASON, end_to_end, for_upstream};
use crate::passed::{Down, Kept, Passed};
use crate::proxy::Proxy;
use crate::upstream::{Answer, Link};

/// Of a reply that failed so much is kept: it goes downstream if it was the last.
const MOST_OF_A_FAILURE: usize = 64 * 1024;
/// The longest sleep at a time; then the engine is asked again.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// An operation of the engine, and its partner's place while it is under way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) proxy: Arc<Proxy>,
    operation: Operation,
    rng: Xoshiro256PlusPlus,
}

impl Drop for Call {
    /// Downstream went away: the engine hears of it, and its place is free again.
    fn drop(&mut self) {
        if self.operation.ended().is_none() {
            let now = self.proxy.now();
            let mut partner = self.proxy.partner();
            self.operation
                .cancel(now, Reason::Cancelled, &mut partner, &mut self.rng);
        }
    }
}

impl Call {
    fn new(proxy: Arc<Proxy>, spec: &OperationSpec) -> Self {
        let mut seed = [0; 32];
        // Without chance all waits would be drawn alike, and still be within their bounds.
        let _ = getrandom::fill(&mut seed);
        let operation = Operation::new(spec, proxy.partner().policy(), proxy.now());
        Self {
            proxy,
            operation,
            rng: Xoshiro256PlusPlus::from_seed(seed),
        }
    }

    fn poll(&mut self) -> Decision {
        let now = self.proxy.now();
        let mut partner = self.proxy.partner();
        self.operation.poll(now, &mut partner, &mut self.rng)
    }

    /// What an attempt came to.
    pub(crate) fn settle(&mut self, outcome: &Outcome) -> Decision {
        let now = self.proxy.now();
        let mut partner = self.proxy.partner();
        self.operation
            .on_outcome(now, outcome, &mut partner, &mut self.rng)
    }
}

/// What is sent, each time.
struct Outline {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Held,
}

impl Outline {
    fn new(proxy: &Proxy, head: &request::Parts, body: Held) -> Self {
        let mut headers = for_upstream(&head.headers, proxy.authority.clone());
        if body.repeatable {
            // Its length is known, however it came.
            headers.remove(CONTENT_LENGTH);
        }
        Self {
            method: head.method.clone(),
            target: head.uri.clone(),
            headers,
            body,
        }
    }

    fn spec(&self, proxy: &Proxy) -> OperationSpec {
        let mut spec = OperationSpec::new(self.method.as_str());
        if self.headers.contains_key("idempotency-key") {
            spec = spec.with_honoured_key(None);
        }
        spec.repeatable_body = self.body.repeatable || proxy.fault.is("stream-rest-only");
        spec.idempotent |= proxy.fault.is("retries-post");
        spec
    }

    fn request(&mut self) -> Request<Outgoing> {
        let spent = self.body.is_spent();
        let mut request = Request::new(self.body.take());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        if spent {
            // The fault that sends what is left has nothing left, and says so.
            request.headers_mut().remove(CONTENT_LENGTH);
        }
        request
    }
}

/// Carries one request out.
pub(crate) async fn forward(proxy: Arc<Proxy>, request: Request<Incoming>) -> Response<Down> {
    let (head, body) = request.into_parts();
    let Ok(body) = Held::read(body).await else {
        return bare(StatusCode::BAD_REQUEST, None);
    };
    let mut outline = Outline::new(&proxy, &head, body);
    let mut call = Call::new(Arc::clone(&proxy), &outline.spec(&proxy));
    let mut last: Option<Failed> = None;
    let mut lost = HeaderMap::new();
    let mut decision = call.poll();
    loop {
        decision = match decision {
            Decision::End(end) => {
                let mut reply = gave_up(&proxy, &end, last);
                mix(&proxy, &mut reply, &lost);
                return reply;
            }
            Decision::Wait(wait) => {
                if let Some(failed) = &mut last {
                    failed.let_go(&proxy);
                }
                let left = wait.until.since(proxy.now());
                sleep(left.min(LONGEST_SLEEP)).await;
                call.poll()
            }
            Decision::Send(attempt) => {
                let until = Instant::now() + attempt.timeout;
                match send(&proxy, &mut outline, until).await {
                    Came::Success(answer) => {
                        let again = passed_again(&proxy, &mut outline);
                        let mut reply = Passed::reply(call, answer, until, again);
                        mix(&proxy, &mut reply, &lost);
                        return reply;
                    }
                    Came::Failure(outcome, failed) => {
                        if let Some(failed) = &failed {
                            lost.extend(failed.head.headers.clone());
                        }
                        last = failed;
                        call.settle(&outcome)
                    }
                }
            }
        };
    }
}

/// What an attempt came to, before the engine is asked.
enum Came {
    Success(Answer),
    Failure(Outcome, Option<Failed>),
}

/// A reply that is no success, read as far as it is kept.
pub(crate) struct Failed {
    head: response::Parts,
    kept: Kept,
    link: Option<Link>,
}

impl Failed {
    /// Another attempt follows: what was not read of this one is of no use.
    fn let_go(&mut self, proxy: &Proxy) {
        let link = self.link.take();
        if let Some(link) = link
            && self.kept.is_whole()
        {
            proxy.upstream.keep(link);
        }
    }
}

async fn send(proxy: &Proxy, outline: &mut Outline, until: Instant) -> Came {
    let begun = Instant::now();
    let mut sent = proxy.upstream.send(outline.request(), until).await;
    for _ in 0..proxy.fault.uncounted() {
        if !matches!(&sent, Err(failure) if failure.kind == FailureKind::RefusedStream) {
            break;
        }
        sleep(Duration::from_millis(5)).await;
        sent = proxy.upstream.send(outline.request(), until).await;
    }
    let answer = match sent {
        Ok(answer) => answer,
        Err(failure) => {
            let (outcome, failed) = unanswered(proxy, outline, failure).await;
            return Came::Failure(outcome.took(begun.elapsed()), failed);
        }
    };
    let mut outcome = of_head(proxy, &answer.head).took(begun.elapsed());
    if outcome.is_success() {
        return Came::Success(answer);
    }
    if proxy.fault.is("ignores-reason") {
        outcome.gave_up = false;
    }
    let Answer { head, body, link } = answer;
    let mut failed = Failed {
        head,
        kept: keep(body, until).await,
        link: Some(link),
    };
    failed.let_go_if_whole(proxy);
    Came::Failure(outcome, Some(failed))
}

/// What a failure means, as `ressac-http` has it.
async fn unanswered(
    proxy: &Proxy,
    outline: &Outline,
    mut failure: Failure,
) -> (Outcome, Option<Failed>) {
    if proxy.fault.is("no-verify")
        && failure.kind == FailureKind::Certificate
        && fault::reached(&proxy.upstream.url_of(&outline.target)).await
    {
        let (head, ()) = Response::new(()).into_parts();
        let kept = Kept::Whole(Bytes::new());
        let reply = Failed {
            head,
            kept,
            link: None,
        };
        return (Outcome::status(200), Some(reply));
    }
    proxy.fault.mistake(&mut failure, &outline.method);
    (failure.outcome(proxy.now(), VendorHints::NONE), None)
}

impl Failed {
    fn let_go_if_whole(&mut self, proxy: &Proxy) {
        if self.kept.is_whole() {
            self.let_go(proxy);
        }
    }
}

/// Reads a failure's body as far as it is kept.
async fn keep(mut body: Arriving, until: Instant) -> Kept {
    let mut begin = BytesMut::new();
    loop {
        match timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                begin.extend_from_slice(&frame.into_data().unwrap_or_default());
                if begin.len() > MOST_OF_A_FAILURE {
                    return Kept::Part(begin.freeze(), Box::new(body));
                }
            }
            Ok(None) => return Kept::Whole(begin.freeze()),
            Ok(Some(Err(_))) | Err(_) => return Kept::Cut(begin.freeze()),
        }
    }
}

fn of_head(proxy: &Proxy, head: &response::Parts) -> Outcome {
    let vendors = proxy.partner().policy().retry_after.vendors;
    let lines = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let gave_up = head.headers.get_all(REASON).iter().any(|word| {
        let word = word.to_str().unwrap_or_default();
        Reason::from_word(word.trim()).is_some_and(|reason| reason != Reason::Delivered)
    });
    Outcome::status(head.status.as_u16())
        .with_hint(Hint::from_headers(lines, proxy.now(), vendors))
        .gave_up(gave_up)
}

/// The last reply, or one of our own where there is none; with the reason.
fn gave_up(proxy: &Proxy, end: &End, last: Option<Failed>) -> Response<Down> {
    let Some(Failed { head, kept, link }) = last else {
        let status = match (end.last, end.reason) {
            (Some(OutcomeKind::Timeout | OutcomeKind::ConnectTimeout), _)
            | (_, Reason::WindowClosed) => StatusCode::GATEWAY_TIMEOUT,
            (None, _) | (_, Reason::CircuitOpen | Reason::BudgetSpent) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::BAD_GATEWAY,
        };
        return bare(status, Some(end.reason));
    };
    let mut reply = Response::new(Down::kept(kept, link));
    *reply.status_mut() = match proxy.fault.is("says-500") {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => head.status,
    };
    *reply.headers_mut() = end_to_end(&head.headers);
    if end.reason != Reason::Delivered {
        let word = HeaderValue::from_static(end.reason.as_str());
        reply.headers_mut().insert(REASON, word);
    }
    reply
}

fn bare(status: StatusCode, reason: Option<Reason>) -> Response<Down> {
    let mut reply = Response::new(Down::kept(Kept::Whole(Bytes::new()), None));
    *reply.status_mut() = status;
    if let Some(reason) = reason {
        let word = HeaderValue::from_static(reason.as_str());
        reply.headers_mut().insert(REASON, word);
    }
    reply
}

/// The fault: header lines of attempts that failed reach downstream.
fn mix(proxy: &Proxy, reply: &mut Response<Down>, lost: &HeaderMap) {
    if proxy.fault.is("mixes-headers") {
        for (name, value) in &end_to_end(lost) {
            if ![CONTENT_LENGTH, CONTENT_TYPE, DATE].contains(name) {
                reply.headers_mut().append(name, value.clone());
            }
        }
    }
}

/// The fault: the attempt that is made after a reply broke off downstream.
fn passed_again(proxy: &Arc<Proxy>, outline: &mut Outline) -> Option<crate::passed::Again> {
    if !proxy.fault.is("replays-after-first-byte") {
        return None;
    }
    let (proxy, request) = (Arc::clone(proxy), outline.request());
    Some(Box::pin(async move {
        sleep(Duration::from_millis(100)).await;
        let until = Instant::now() + Duration::from_secs(30);
        proxy.upstream.send(request, until).await.ok()
    }))
}
