//! One HTTP/2 connection, shared by the requests to one origin, with replies read whole.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, response};
use tokio::time::{Instant, timeout_at};

use crate::answer::{self, Answer};
use crate::connect::Dialled;
use crate::expect::Gate;
use crate::failure::{Failure, FailureKind, Sent};
use crate::link::{Counts, Http2};
use crate::stream::{beside, for_stream, head, read, send};
use crate::target::Origin;

/// A connection, and when it was last used.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Http2,
    last_used: Mutex<Instant>,
}

impl Connection {
    pub(crate) async fn open(dialled: Dialled, max_head: usize) -> Result<Self, Failure> {
        Ok(Self {
            link: Http2::open(dialled, max_head).await?,
            last_used: Mutex::new(Instant::now()),
        })
    }

    pub(crate) fn idle_for(&self) -> Duration {
        let last = self.last_used.lock();
        last.unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub(crate) fn touch(&self) {
        let mut last = self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Instant::now();
    }

    /// Sends the request and reads the reply, both before `deadline`; a body with an expectation
    /// waits for its 100 at most `wait`.
    pub(crate) async fn exchange(
        &self,
        origin: &Origin,
        request: Request<Bytes>,
        max_body: usize,
        wait: Duration,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let (link, remote) = (&self.link, self.link.remote());
        // A timer may be late by its tick; nothing may begin when the time is over.
        if Instant::now() >= deadline {
            let message = format!("no time was left to send to {remote}");
            return Err(Failure::not_sent(FailureKind::Timeout, message).at(remote));
        }
        let (head_sent, body) = for_stream(origin, request);
        let gate = Gate::of(head_sent.headers(), wait);
        let sent_at = SystemTime::now();
        let begun = link.begin(head_sent, body.is_empty())?;
        let counts = begun.counts;
        let body = (!body.is_empty()).then_some((begun.body, body));
        let mut sending = pin!(send(body, gate.clone()));
        let head = head(begun.response, gate);
        let response = match timeout_at(deadline, beside(head, sending.as_mut())).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(link.broken(&error, counts).await),
            Err(_) => return Err(link.late(format!("no reply from {remote} in time"), counts)),
        };
        let replied_at = SystemTime::now();
        link.answered();
        let (head, body) = response.into_parts();
        let reading = beside(read(body, max_body), sending.as_mut());
        let (body, body_limit_hit) = match timeout_at(deadline, reading).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return Err(self.cut_off(&error, head, counts)),
            Err(_) => {
                let message = "the time was over within the reply's body";
                return Err(answer::cut(link.late(message, counts), head));
            }
        };
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
            body_limit_hit,
            sent_at,
            replied_at,
        })
    }

    /// An end within the reply's body.
    fn cut_off(&self, error: &h2::Error, head: response::Parts, counts: Counts) -> Failure {
        let message = format!(
            "the reply's body broke off ({}): {error}",
            self.link.remote()
        );
        let kind = FailureKind::Truncated;
        let failure = self
            .link
            .failed(kind, Sent::ProcessedInPart, message, counts);
        answer::cut(failure, head)
    }
}
