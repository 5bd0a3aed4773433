//! `Expect: 100-continue`: a body that waits until the partner wants it (RFC 9110 §10.1.1).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Request};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The one expectation there is.
pub(crate) const CONTINUE: &[u8] = b"100-continue";

/// Whether the request asks for a 100 before its body.
pub(crate) fn is_expected(headers: &HeaderMap) -> bool {
    headers.contains_key(EXPECT)
}

/// The same request, without the expectation.
pub(crate) fn without(mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().remove(EXPECT);
    request
}

/// Closed until a 100 has come, or the time to wait for it is over.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    opened: Arc<Notify>,
    wait: Duration,
}

impl Gate {
    /// A gate, where the request asks for one.
    pub(crate) fn of(headers: &HeaderMap, wait: Duration) -> Option<Self> {
        is_expected(headers).then(|| Self {
            opened: Arc::default(),
            wait,
        })
    }

    pub(crate) fn open(&self) {
        self.opened.notify_one();
    }

    /// The time runs from the first poll: from when the head is on its way.
    pub(crate) async fn opened(self) {
        // Whichever it is, the body goes out.
        let _ = timeout(self.wait, self.opened.notified()).await;
    }
}

/// A body that is held back by a gate, where there is one.
pub(crate) struct Held {
    body: Full<Bytes>,
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Held {
    pub(crate) fn new(body: Bytes, gate: Option<Gate>) -> Self {
        Self {
            body: Full::new(body),
            gate: gate.map(|gate| Box::pin(gate.opened()) as _),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("body", &self.body)
            .field("is_held", &self.gate.is_some())
            .finish()
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
