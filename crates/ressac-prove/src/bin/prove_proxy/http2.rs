//! Requests over one HTTP/2 connection to the upstream, with bodies that are passed on as they come.
//!
//! `ressac-http` says when another request may go out on it and what its ends prove.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::uri::Scheme;
use http::{Method, Request, Response, Uri, Version};
use http_body_util::BodyExt;
use hyper::body::Body;
use ressac_http::Http2;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::body::Outgoing;
use crate::upstream::Unanswered;

/// A connection that one request uses. Dropping it stops what is still being sent.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Http2>,
    sending: Option<AbortHandle>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.abort();
        }
    }
}

impl Lease {
    pub(crate) fn new(connection: &Arc<Http2>) -> Self {
        Self {
            connection: Arc::clone(connection),
            sending: None,
        }
    }

    /// Lets the connection's task read what is already here, if no other request keeps it busy: it
    /// may be a GOAWAY.
    pub(crate) async fn settle(&self) {
        // The list's, and this one.
        if Arc::strong_count(&self.connection) <= 2 {
            self.connection.settle().await;
        }
    }

    /// Sends the request and reads the reply's head. The body may still be on its way then.
    pub(crate) async fn exchange(
        mut self,
        scheme: &Scheme,
        request: Request<Outgoing>,
        until: Instant,
    ) -> Result<(Response<RecvStream>, Self), Unanswered> {
        let connection = Arc::clone(&self.connection);
        let bodiless = request.body().is_end_stream();
        let begun = match connection.begin(head(scheme, &request), bodiless) {
            Ok(begun) => begun,
            Err(failure) => return Err(Unanswered::unsent(failure.message, request)),
        };
        if !bodiless {
            let sending = tokio::spawn(send(begun.body, request.into_body()));
            self.sending = Some(sending.abort_handle());
        }
        match timeout_at(until, begun.response).await {
            Ok(Ok(reply)) => {
                connection.answered();
                Ok((reply, self))
            }
            Ok(Err(error)) => Err(connection.broken(&error, begun.counts).await.into()),
            Err(_) => Err(connection.late("no reply in time", begun.counts).into()),
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
