//! A body that can be sent once, lent to one attempt after the other until it has begun to leave.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::reqwest::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::sync::Mutex;

/// Kept here while connections are tried: a connection that is refused touches no body (PX-5).
#[derive(Debug)]
pub(super) struct Lent {
    body: Mutex<Option<Body>>,
    size: SizeHint,
}

impl Lent {
    pub(super) fn new(body: Body) -> Arc<Lent> {
        let size = body.size_hint();
        Arc::new(Lent {
            body: Mutex::new(Some(body)),
            size,
        })
    }

    /// The body for one attempt; it takes the stream when it is first read.
    pub(super) fn body(lent: &Arc<Lent>) -> Body {
        Body::wrap(Borrower {
            lent: Arc::clone(lent),
            taken: None,
        })
    }
}

struct Borrower {
    lent: Arc<Lent>,
    taken: Option<Body>,
}

/// The stream had begun to leave with an earlier attempt.
#[derive(Clone, Copy, Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body had begun to leave with an earlier attempt and cannot be sent again")
    }
}

impl std::error::Error for Gone {}

impl HttpBody for Borrower {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.taken.is_none() {
            let body = self.lent.body.lock().take();
            self.taken = body;
        }
        match &mut self.taken {
            Some(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            None => Poll::Ready(Some(Err(Box::new(Gone)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.taken.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.taken {
            Some(body) => body.size_hint(),
            None => self.lent.size,
        }
    }
}
