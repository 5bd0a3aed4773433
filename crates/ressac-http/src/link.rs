//! An HTTP/2 connection for many requests at once: when another may go out on it, and what its end
//! proves of one.
//!
//! h2 is driven directly: it tells a stream's own end from that of its connection, which is the
//! whole difference between *not processed* and *perhaps processed* (RFC 9113 §8.7).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use crate::connect::Dialled;
use crate::failure::{Failure, FailureKind, Sent};
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

/// An HTTP/2 connection and the task that drives it, for a caller that passes bodies on as they
/// come. A [`Client`](crate::Client) sends its requests over the same. Dropping it closes the
/// socket.
///
/// Head and body of a request are those of crate `h2` 0.4. Its errors of a stream, and no others,
/// go to [`Http2::broken`], which says what they prove: the connection's own error would read as a
/// proof after a GOAWAY that covers the stream.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use ressac_http::{ClientConfig, Dialler, Http2, Sent, Version, parse_url};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let partner = parse_url(&format!("http://{}/", listener.local_addr()?))?;
/// // A partner that refuses every stream.
/// tokio::spawn(async move {
///     let (socket, _) = listener.accept().await?;
///     let mut streams = h2::server::handshake(socket).await?;
///     while let Some(Ok((_, mut reply))) = streams.accept().await {
///         reply.send_reset(h2::Reason::REFUSED_STREAM);
///     }
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// });
///
/// let config = ClientConfig { version: Version::Http2, ..ClientConfig::default() };
/// let dialled = Dialler::new(&config)?.dial(&partner, Duration::from_secs(10)).await?;
/// let connection = Http2::open(dialled, 64 * 1024).await?;
/// let begun = connection.begin(Request::post(partner).body(())?, true)?;
/// let error = begun.response.await.unwrap_err();
/// let failure = connection.broken(&error, begun.counts).await;
/// assert_eq!(failure.sent, Sent::NotProcessed);
/// assert!(connection.is_usable());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Http2 {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<()>,
    wire: Wire,
    remote: SocketAddr,
    /// No further request goes out on it.
    retired: AtomicBool,
    /// Whether a reply came over it: a TLS alert is then no longer one of the handshake.
    answered: AtomicBool,
}

/// A request under way.
#[derive(Debug)]
#[non_exhaustive]
pub struct Begun {
    /// The reply's head, and its body.
    pub response: ResponseFuture,
    /// Where the request's body goes.
    pub body: SendStream<Bytes>,
    /// To be handed back with the request's end.
    pub counts: Counts,
}

/// The bytes of a connection when a request began.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    written: u64,
    received: u64,
}

impl Http2 {
    /// Opens it on a connection for which [`Dialled::is_http2`] holds. Reply heads may have up to
    /// `max_head` bytes. Needs a running Tokio runtime.
    ///
    /// # Errors
    ///
    /// The connection ended at once. Nothing of a request was sent.
    pub async fn open(dialled: Dialled, max_head: usize) -> Result<Self, Failure> {
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
        })
    }

    /// The address it leads to.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Whether another request may be tried: no GOAWAY came, no end, and no doubt.
    pub fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire)
            && !self.driver.is_finished()
            && self.wire.unread() != Unread::End
            && self.refusal().is_none()
    }

    /// Requests that may be under way at once.
    pub fn capacity(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_STREAMS)
    }

    /// Lets its task read what is already here, for up to 20 ms: it may be a GOAWAY. Only for a
    /// connection that no request keeps busy.
    pub async fn settle(&self) {
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

    /// Begins a request; without a body it is `complete` with its head.
    ///
    /// # Errors
    ///
    /// [`Sent::NotSent`]: the connection takes no more requests, and is not usable any more.
    pub fn begin(&self, head: Request<()>, complete: bool) -> Result<Begun, Failure> {
        let counts = Counts {
            written: self.wire.written(),
            received: self.wire.received(),
        };
        let opened = self.sender.clone().send_request(head, complete);
        let (response, body) = opened.map_err(|error| {
            self.retire();
            let message = format!(
                "the connection to {} takes no more requests: {}",
                self.remote,
                verdict::of_h2(&error).words
            );
            Failure::not_sent(FailureKind::Eof, message).at(self.remote)
        })?;
        Ok(Begun {
            response,
            body,
            counts,
        })
    }

    /// The head of a reply came.
    pub fn answered(&self) {
        self.answered.store(true, Ordering::Release);
    }

    /// What the `error` of a stream proves, before its reply's head was there (RFC 9113 §8.7):
    /// REFUSED_STREAM, a GOAWAY whose last stream lies below, or a refusal of the TLS handshake,
    /// that it was not processed; no byte written, that it was not sent; anything else nothing.
    pub async fn broken(&self, error: &h2::Error, counts: Counts) -> Failure {
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
        self.failed(kind, sent, words, counts)
    }

    /// What it proves that there is no reply in time: nothing, unless no byte was written. Where
    /// no byte came in since either, whoever comes next need not find out as slowly: the
    /// connection is not usable any more.
    pub fn late(&self, message: impl Into<String>, counts: Counts) -> Failure {
        if self.wire.received() == counts.received {
            self.retire();
        }
        let sent = Sent::MaybeProcessed;
        self.failed(FailureKind::Timeout, sent, message.into(), counts)
    }

    pub(crate) fn failed(
        &self,
        kind: FailureKind,
        sent: Sent,
        message: String,
        counts: Counts,
    ) -> Failure {
        let written = self.wire.written() - counts.written;
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

    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    async fn close(&self) {
        self.retire();
        self.driver.abort();
        while !self.driver.is_finished() {
            yield_now().await;
        }
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
