//! One HTTP/2 connection, shared by the requests to the upstream, and what its ends prove.
//!
//! h2 is driven directly, as in `ressac-http`. hyper asks its connection once more after it has
//! opened a stream, and fails the stream with what it hears then: a GOAWAY that covers the stream
//! would look like one below it, and a POST be sent twice.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::uri::Scheme;
use http::{Method, Request, Response, Uri, Version};
use http_body_util::BodyExt;
use hyper::body::Body;
use ressac_http::{Dialled, Failure, FailureKind, Sent, Unread, Watch};
use tokio::task::{AbortHandle, JoinHandle, yield_now};
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::Outgoing;
use crate::upstream::Unanswered;

/// Requests at once on one connection, if the upstream allows as many.
const MOST_STREAMS: usize = 100;
/// Bytes that the upstream may send of a reply before downstream has taken any.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// How long what a connection has already received may take to be read.
const READ_TIME: Duration = Duration::from_millis(20);

/// A connection and the task that drives it. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<()>,
    watch: Watch,
    /// No further request goes out on it.
    retired: AtomicBool,
    /// A reply came over it: what TLS says from then on is no refusal of the handshake.
    answered: AtomicBool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A connection that one request uses. Dropping it stops what is still being sent.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Connection>,
    sending: Option<AbortHandle>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.abort();
        }
    }
}

impl Connection {
    pub(crate) async fn open(dialled: Dialled) -> Result<Self, Failure> {
        let watch = dialled.watch();
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_max_send_streams(MOST_STREAMS)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(dialled)
            .await
            .map_err(|error| {
                Failure::new(FailureKind::Unreachable, Sent::NotSent, error.to_string())
            })?;
        let driver = tokio::spawn(async move {
            // Its error reaches the streams.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            driver,
            watch,
            retired: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        })
    }

    /// Whether another request may be tried: no GOAWAY came, no end, and no doubt.
    pub(crate) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire)
            && !self.driver.is_finished()
            && self.watch.unread() != Unread::End
            && self.refusal().is_none()
    }

    /// Requests that may be under way at once.
    pub(crate) fn capacity(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_STREAMS)
    }

    /// Why h2 would refuse a new stream now: the connection's end, or a GOAWAY.
    fn refusal(&self) -> Option<h2::Error> {
        let mut sender = self.sender.clone();
        match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => Some(error),
            _ => None,
        }
    }

    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// An end before the reply's head.
    async fn broken(&self, error: &h2::Error, before: u64) -> Failure {
        let mut failure = Failure::of_http2(error);
        if error.is_io() {
            let answered = self.answered.load(Ordering::Acquire);
            let covered = |e: h2::Error| e.is_go_away() && e.is_remote();
            if let Some(kind) = self.watch.refusal().filter(|_| !answered) {
                let message = "the upstream refused the TLS handshake";
                failure = Failure::new(kind, Sent::NotProcessed, message);
            } else if self.refusal().is_some_and(covered) {
                // Had the request been above its last stream, this would be its error.
                failure.message += ", after a GOAWAY that covers the request";
            }
        }
        if error.is_io() || error.is_go_away() && error.is_library() {
            self.close().await;
        }
        self.counted(failure, before)
    }

    fn counted(&self, mut failure: Failure, before: u64) -> Failure {
        failure.bytes_written = self.watch.written() - before;
        // Only what is closed writes no more behind our back.
        if failure.bytes_written == 0 && self.driver.is_finished() {
            failure.sent = Sent::NotSent;
        }
        failure
    }

    async fn close(&self) {
        self.retire();
        self.driver.abort();
        while !self.driver.is_finished() {
            yield_now().await;
        }
    }
}

impl Lease {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            sending: None,
        }
    }

    /// Lets the connection's task read what is already here, if no other request keeps it busy: it
    /// may be a GOAWAY.
    pub(crate) async fn settle(&self) {
        // The list's, and this one.
        if Arc::strong_count(&self.connection) > 2 {
            return;
        }
        let reading = async {
            while self.connection.watch.unread() == Unread::Bytes
                && !self.connection.driver.is_finished()
            {
                yield_now().await;
            }
        };
        let _ = timeout(READ_TIME, reading).await;
    }

    /// Sends the request and reads the reply's head. The body may still be on its way then.
    pub(crate) async fn exchange(
        mut self,
        scheme: &Scheme,
        request: Request<Outgoing>,
        until: Instant,
    ) -> Result<(Response<RecvStream>, Self), Unanswered> {
        let connection = Arc::clone(&self.connection);
        let (written, received) = (connection.watch.written(), connection.watch.received());
        let mut sender = connection.sender.clone();
        let bodiless = request.body().is_end_stream();
        let response = match sender.send_request(head(scheme, &request), bodiless) {
            Ok((response, stream)) => {
                if !bodiless {
                    let sending = tokio::spawn(send(stream, request.into_body()));
                    self.sending = Some(sending.abort_handle());
                }
                response
            }
            Err(error) => {
                connection.retire();
                let message = format!("the connection takes no more requests: {error}");
                return Err(Unanswered::unsent(message, request));
            }
        };
        match timeout_at(until, response).await {
            Ok(Ok(reply)) => {
                connection.answered.store(true, Ordering::Release);
                Ok((reply, self))
            }
            Ok(Err(error)) => Err(connection.broken(&error, written).await.into()),
            Err(_) => {
                // Not a byte came since: whoever comes next need not find out as slowly.
                if connection.watch.received() == received {
                    connection.retire();
                }
                let message = "no reply in time";
                let late = Failure::new(FailureKind::Timeout, Sent::MaybeProcessed, message);
                Err(connection.counted(late, written).into())
            }
        }
    }
}

/// The head in the form of HTTP/2 (RFC 9113 section 8.3.1). What belongs to one connection of
/// HTTP/1.1 is not in it any more.
fn head(scheme: &Scheme, request: &Request<Outgoing>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = request.headers().clone();
    let mut uri = Uri::builder().scheme(scheme.clone());
    if let Some(authority) = head.headers_mut().remove(HOST) {
        uri = uri.authority(authority.as_bytes());
    }
    if let Some(path) = request.uri().path_and_query() {
        uri = uri.path_and_query(path.clone());
    }
    // Made of the parts of a URI; without one h2 refuses the request, and nothing is sent.
    *head.uri_mut() = uri.build().unwrap_or_default();
    let asks = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    if let Some(length) = request.body().size_hint().exact()
        && (length > 0 || asks)
    {
        let length = HeaderValue::from(length);
        head.headers_mut().insert(CONTENT_LENGTH, length);
    }
    head
}

/// Sends a body as far as the upstream takes it. Never returns, for a stream that is let go before
/// its body is whole is reset: the reply decides.
async fn send(mut stream: SendStream<Bytes>, mut body: Outgoing) {
    loop {
        let (data, last) = match body.frame().await {
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                (data, body.is_end_stream())
            }
            Some(Err(_)) => {
                // Downstream broke off: what was sent is no whole body.
                stream.send_reset(Reason::CANCEL);
                break;
            }
            None => (Bytes::new(), true),
        };
        // The stream may be over; what it came to, the reply's side hears.
        if !pieces(&mut stream, data, last).await || last {
            break;
        }
    }
    std::future::pending::<()>().await;
}

/// Sends data as there is room for it. `false` if the stream is over.
async fn pieces(stream: &mut SendStream<Bytes>, mut data: Bytes, last: bool) -> bool {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(Ok(room)) => room.min(data.len()),
            Some(Err(_)) | None => return false,
        };
        let piece = data.split_to(room);
        let ends = last && data.is_empty();
        if room > 0 && stream.send_data(piece, ends).is_err() {
            return false;
        }
        if ends {
            return true;
        }
    }
    !last || stream.send_data(Bytes::new(), true).is_ok()
}
