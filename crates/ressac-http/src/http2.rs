//! One HTTP/2 connection, shared by the requests to one origin, and what its ends prove.
//!
//! h2 is driven directly: it tells a stream's own end from that of its connection, which is the
//! whole difference between *not processed* and *perhaps processed* (RFC 9113 §8.7).

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::{Request, response};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::{self, Answer};
use crate::connect::Dialled;
use crate::expect::Gate;
use crate::failure::{Failure, FailureKind, Sent};
use crate::stream::{beside, for_stream, head, read, send};
use crate::target::Origin;
use crate::verdict::{self, Proof};
use crate::wire::{Unread, Wire};

/// Requests at once on one connection, if the partner allows as many. RFC 9113 §6.5.2 advises
/// partners to allow no fewer.
pub(crate) const MOST_STREAMS: usize = 100;

/// Bytes that a partner may send unasked on a stream, and on a connection: more than 64 KiB, so
/// that a large reply does not wait for us at every round trip.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// How long what a connection has already received may take to be read.
const READ_TIME: Duration = Duration::from_millis(20);

/// A connection and the task that drives it. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<()>,
    wire: Wire,
    pub(crate) remote: SocketAddr,
    /// No further request goes out on it.
    retired: AtomicBool,
    /// Whether a reply came over it: a TLS alert is then no longer one of the handshake.
    answered: AtomicBool,
    last_used: Mutex<Instant>,
}

/// A request under way.
struct Stream {
    response: ResponseFuture,
    body: Option<(SendStream<Bytes>, Bytes)>,
    gate: Option<Gate>,
    /// The counts when it began.
    written: u64,
    received: u64,
    sent_at: SystemTime,
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
            .enable_push(false)
            .initial_max_send_streams(MOST_STREAMS)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
            .handshake(transport)
            .await
            .map_err(|error| {
                Failure::not_sent(FailureKind::Unreachable, error.to_string()).at(remote)
            })?;
        let driver = tokio::spawn(async move {
            // Its error reaches the streams.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            driver,
            wire,
            remote,
            retired: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            last_used: Mutex::new(Instant::now()),
        })
    }

    /// Whether another request may be tried: no GOAWAY came, no end, and no doubt.
    pub(crate) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire)
            && !self.driver.is_finished()
            && self.wire.unread() != Unread::End
            && self.refusal().is_none()
    }

    /// Requests that may be under way at once.
    pub(crate) fn capacity(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_STREAMS)
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

    /// Lets its task read what is already here: it may be a GOAWAY.
    pub(crate) async fn settle(&self) {
        let reading = async {
            while self.wire.unread() == Unread::Bytes && !self.driver.is_finished() {
                yield_now().await;
            }
        };
        let _ = timeout(READ_TIME, reading).await;
    }

    /// Why h2 would refuse a new stream now: the connection's end, or a GOAWAY.
    fn refusal(&self) -> Option<h2::Error> {
        match self
            .sender
            .clone()
            .poll_ready(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Err(error)) => Some(error),
            _ => None,
        }
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
        // A timer may be late by its tick; nothing may begin when the time is over.
        if Instant::now() >= deadline {
            let message = format!("no time was left to send to {}", self.remote);
            return Err(Failure::not_sent(FailureKind::Timeout, message).at(self.remote));
        }
        let mut stream = self.begin(origin, request, wait)?;
        let (written, received) = (stream.written, stream.received);
        let late = |message: String| {
            // Not a byte came since: whoever comes next need not find out as slowly.
            if self.wire.received() == received {
                self.retired.store(true, Ordering::Release);
            }
            self.failed(FailureKind::Timeout, Sent::MaybeProcessed, message, written)
        };
        let mut sending = pin!(send(stream.body.take(), stream.gate.clone()));
        let head = head(stream.response, stream.gate);
        let response = match timeout_at(deadline, beside(head, sending.as_mut())).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.broken(&error, written).await),
            Err(_) => return Err(late(format!("no reply from {} in time", self.remote))),
        };
        let replied_at = SystemTime::now();
        self.answered.store(true, Ordering::Release);
        let (head, body) = response.into_parts();
        let reading = beside(read(body, max_body), sending.as_mut());
        let (body, body_limit_hit) = match timeout_at(deadline, reading).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return Err(self.cut_off(&error, head, written)),
            Err(_) => {
                let message = "the time was over within the reply's body".to_owned();
                return Err(answer::cut(late(message), head));
            }
        };
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
            body_limit_hit,
            sent_at: stream.sent_at,
            replied_at,
        })
    }

    /// Opens a stream. What fails here was not sent.
    fn begin(
        &self,
        origin: &Origin,
        request: Request<Bytes>,
        wait: Duration,
    ) -> Result<Stream, Failure> {
        let (head, body) = for_stream(origin, request);
        let gate = Gate::of(head.headers(), wait);
        let (written, received) = (self.wire.written(), self.wire.received());
        let sent_at = SystemTime::now();
        let opened = self.sender.clone().send_request(head, body.is_empty());
        let (response, sending) = opened.map_err(|error| {
            self.retired.store(true, Ordering::Release);
            let message = format!(
                "the connection to {} takes no more requests: {}",
                self.remote,
                verdict::of_h2(&error).words
            );
            Failure::not_sent(FailureKind::Eof, message).at(self.remote)
        })?;
        Ok(Stream {
            response,
            body: (!body.is_empty()).then_some((sending, body)),
            gate,
            written,
            received,
            sent_at,
        })
    }

    /// An end before the reply's head.
    async fn broken(&self, error: &h2::Error, written: u64) -> Failure {
        let Proof {
            mut kind,
            mut sent,
            words,
        } = verdict::of_h2(error);
        let mut words = format!("{words} ({}): {error}", self.remote);
        if error.is_io() {
            if let Some(refused) = self.refused_us() {
                (kind, sent) = (refused, Sent::NotProcessed);
                words = format!("the partner refused the TLS handshake ({})", self.remote);
            } else if self
                .refusal()
                .is_some_and(|e| e.is_go_away() && e.is_remote())
            {
                // Had the request been above its last stream, this would be its error.
                words = format!("{words}, after a GOAWAY that covers the request");
            }
        }
        if error.is_io() || error.is_go_away() && error.is_library() {
            self.close().await;
        }
        self.failed(kind, sent, words, written)
    }

    /// An end within the reply's body.
    fn cut_off(&self, error: &h2::Error, head: response::Parts, written: u64) -> Failure {
        let message = format!("the reply's body broke off ({}): {error}", self.remote);
        let kind = FailureKind::Truncated;
        answer::cut(
            self.failed(kind, Sent::ProcessedInPart, message, written),
            head,
        )
    }

    fn failed(&self, kind: FailureKind, sent: Sent, message: String, before: u64) -> Failure {
        let written = self.wire.written() - before;
        // Only what is closed writes no more behind our back.
        let sent = if written == 0 && self.driver.is_finished() {
            Sent::NotSent
        } else {
            sent
        };
        let mut failure = Failure::new(kind, sent, message).at(self.remote);
        failure.bytes_written = written;
        failure
    }

    /// The alert of a partner that did not accept us: with TLS 1.3 it comes after the request.
    fn refused_us(&self) -> Option<FailureKind> {
        self.wire
            .refusal()
            .filter(|_| !self.answered.load(Ordering::Acquire))
    }

    async fn close(&self) {
        self.retired.store(true, Ordering::Release);
        self.driver.abort();
        while !self.driver.is_finished() {
            yield_now().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
