//! One request and its reply over one HTTP/1.1 connection.
//!
//! Here it is decided what a failure proves. HTTP/2 stands beside this module.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, StatusCode, response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::{self, Answer, Kept};
use crate::connect::Dialled;
use crate::expect::{Gate, Held};
use crate::failure::{Failure, FailureKind, Sent};
use crate::tls;
use crate::wire::{Unread, Wire};

/// Bytes of an over-long body that are read to save the connection, and the time for it.
const DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// How long a connection may take to be ready again once its reply is read; longer means that
/// the partner answered before it had read the request, and such a connection is given up.
const READY_TIME: Duration = Duration::from_millis(20);

/// A connection and the task that drives it. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Held>,
    driver: JoinHandle<()>,
    wire: Wire,
    pub(crate) remote: SocketAddr,
    /// Whether a reply came over it: a TLS alert is then no longer one of the handshake.
    answered: bool,
}

impl Connection {
    pub(crate) async fn open(dialled: Dialled, max_head: usize) -> Result<Self, Failure> {
        let Dialled {
            transport,
            wire,
            remote,
            ..
        } = dialled;
        let (sender, connection) = Builder::new()
            .max_buf_size(max_head)
            .max_header_size(max_head)
            .handshake(TokioIo::new(transport))
            .await
            .map_err(|error| Failure::not_sent(FailureKind::Unreachable, error.to_string()))?;
        let driver = tokio::spawn(async move {
            // Its error reaches the sender, where there is a request to answer for.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            driver,
            wire,
            remote,
            answered: false,
        })
    }

    /// Whether a request may be tried: open, ready, and nothing unread.
    pub(crate) fn is_idle(&self) -> bool {
        self.sender.is_ready() && self.wire.unread() == Unread::Nothing
    }

    /// Waits for the end of the connection.
    #[cfg(test)]
    pub(crate) async fn ended(&self) {
        while !self.driver.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    /// Sends the request and reads the reply, both before `deadline`; a body with an expectation
    /// waits for its 100 at most `wait`. With the reply comes the connection, where another
    /// request may follow.
    pub(crate) async fn exchange(
        mut self,
        request: Request<Bytes>,
        max_body: usize,
        wait: Duration,
        deadline: Instant,
    ) -> Result<(Answer, Option<Self>), Failure> {
        let before = self.wire.written();
        // A timer may be late by its tick; nothing may begin when the time is over.
        if Instant::now() >= deadline {
            return Err(self.timed_out(before).await);
        }
        let sent_at = SystemTime::now();
        let sending = self.sender.try_send_request(held(request, wait));
        let response = match timeout_at(deadline, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(mut failed)) => {
                let returned = failed.take_message().is_some();
                return Err(self.broken(failed.into_error(), returned, before).await);
            }
            Err(_) => return Err(self.timed_out(before).await),
        };
        let replied_at = SystemTime::now();
        let (head, body) = response.into_parts();
        if head.status.is_informational() {
            let message = format!("the final reply has status {}, which is none", head.status);
            return Err(self.failed(FailureKind::Malformed, message, before).await);
        }
        let read = match timeout_at(deadline, read(body, max_body)).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                let message = format!("the reply's body broke off: {}", chain(&error));
                return Err(self
                    .cut(FailureKind::Truncated, message, head, before)
                    .await);
            }
            Err(_) => {
                let message = "the time was over within the reply's body".to_owned();
                return Err(self.cut(FailureKind::Timeout, message, head, before).await);
            }
        };
        let answer = Answer {
            status: head.status,
            headers: head.headers,
            body: read.body,
            body_limit_hit: read.rest.is_some(),
            sent_at,
            replied_at,
        };
        Ok((answer, self.settle(read.rest).await))
    }

    /// The connection again, if the reply is read to its end and the partner keeps it open.
    async fn settle(mut self, rest: Option<Incoming>) -> Option<Self> {
        if let Some(rest) = rest {
            timeout(DRAIN_TIME, drain(rest)).await.ok()??;
        }
        timeout(READY_TIME, self.sender.ready()).await.ok()?.ok()?;
        self.answered = true;
        Some(self)
    }

    async fn broken(self, error: hyper::Error, returned: bool, before: u64) -> Failure {
        let (kind, what) = classify(&error, self.answered);
        let remote = self.remote;
        let message = format!("{what} ({}): {}", remote, chain(&error));
        let mut failure = self.failed(kind, message, before).await;
        failure.sent = match returned {
            true => Sent::NotSent,
            false => failure.sent.min(proof(kind)),
        };
        failure
    }

    async fn timed_out(self, before: u64) -> Failure {
        let message = format!("no reply from {} in time", self.remote);
        self.failed(FailureKind::Timeout, message, before).await
    }

    async fn cut(
        self,
        kind: FailureKind,
        message: String,
        head: response::Parts,
        before: u64,
    ) -> Failure {
        answer::cut(self.failed(kind, message, before).await, head)
    }

    /// Closes the connection, then counts: a count taken before could grow behind our back.
    async fn failed(mut self, kind: FailureKind, message: String, before: u64) -> Failure {
        self.driver.abort();
        let _ = (&mut self.driver).await;
        let written = self.wire.written() - before;
        let sent = if written == 0 {
            Sent::NotSent
        } else {
            Sent::MaybeProcessed
        };
        let mut failure = Failure::new(kind, sent, message).at(self.remote);
        failure.bytes_written = written;
        failure
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The request as hyper takes it, its body behind a gate where it expects a 100.
fn held(request: Request<Bytes>, wait: Duration) -> Request<Held> {
    let gate = Gate::of(request.headers(), wait);
    let mut request = request.map(|body| Held::new(body, gate.clone()));
    if let Some(gate) = gate {
        hyper::ext::on_informational(&mut request, move |interim| {
            if interim.status() == StatusCode::CONTINUE {
                gate.open();
            }
        });
    }
    request
}

#[derive(Debug)]
struct Read {
    body: Bytes,
    /// What is left of the body after the limit.
    rest: Option<Incoming>,
}

async fn read(mut body: Incoming, limit: usize) -> Result<Read, hyper::Error> {
    let mut kept = Kept::new(limit);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if !kept.add(&data) {
            return Ok(Read {
                body: kept.freeze(),
                rest: Some(body),
            });
        }
    }
    Ok(Read {
        body: kept.freeze(),
        rest: None,
    })
}

/// `Some` when the body came to its end within the bound.
async fn drain(mut body: Incoming) -> Option<()> {
    if body.size_hint().lower() > DRAIN_BYTES as u64 {
        return None;
    }
    let mut drained = 0;
    while let Some(frame) = body.frame().await {
        drained += frame.ok()?.data_ref().map_or(0, Bytes::len);
        if drained > DRAIN_BYTES {
            return None;
        }
    }
    Some(())
}

/// What kind of end this was, before a reply's head was there. It says nothing about processing:
/// a reset reads the same whether the partner saw nothing or did everything.
pub(crate) fn classify(error: &hyper::Error, answered: bool) -> (FailureKind, &'static str) {
    match tls::refusal(error).filter(|_| !answered) {
        Some(FailureKind::Certificate) => {
            return (
                FailureKind::Certificate,
                "the partner refused our certificate",
            );
        }
        Some(kind) => return (kind, "the partner refused the TLS handshake"),
        None => {}
    }
    if error.is_parse_too_large() {
        return (FailureKind::Malformed, "the reply's head is over the limit");
    }
    if error.is_parse() {
        return (
            FailureKind::Malformed,
            "what came back is no HTTP/1.1 reply",
        );
    }
    if error.is_incomplete_message() {
        return (FailureKind::Eof, "the connection ended before the reply");
    }
    match io_kind(error) {
        Some(io::ErrorKind::UnexpectedEof) => {
            (FailureKind::Eof, "the connection ended before the reply")
        }
        Some(_) => (
            FailureKind::Reset,
            "the connection was reset before the reply",
        ),
        None if error.is_canceled() || error.is_closed() => (
            FailureKind::Eof,
            "the connection had ended before the request",
        ),
        None => (FailureKind::Reset, "the connection broke before the reply"),
    }
}

/// What that kind of end proves, if bytes of the request went out: TLS says more than the connection.
pub(crate) fn proof(kind: FailureKind) -> Sent {
    match kind {
        FailureKind::Certificate | FailureKind::Tls => Sent::NotProcessed,
        _ => Sent::MaybeProcessed,
    }
}

fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        next = error.source();
    }
    None
}

/// The error with its causes. hyper's texts are fixed phrases: they quote nothing of a message.
pub(crate) fn chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
