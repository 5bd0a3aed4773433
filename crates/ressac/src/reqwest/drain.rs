//! The body of a reply, read inside the attempt: up to a limit.
//!
//! The reply of a failed attempt is read so that its connection can be used again, and so that the
//! error can carry it (EX-5, EX-6). Of a longer one the rest stays a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::reqwest::{Body, Response, ResponseBuilderExt};
use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::classify::reply;

/// So much of a failed attempt's reply is read.
const LONGEST_FAILURE: usize = 64 * 1024;

/// What is known of a body that was read. Stands in the reply's extensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drained {
    /// To its end: the reply holds no connection.
    pub(super) whole: bool,
    /// A problem description that says that the key is in use.
    pub(super) key_in_flight: bool,
}

/// What is known of this reply's body.
pub(super) fn of(reply: &Response) -> Option<Drained> {
    reply.extensions().get::<Drained>().copied()
}

/// The reply with its body, up to a limit. One that breaks off is an error.
pub(super) async fn whole(mut reply: Response, limit: usize) -> Result<Response, ::reqwest::Error> {
    let mut chunks = Chunks::default();
    while chunks.bytes <= limit {
        match reply.chunk().await? {
            Some(chunk) => chunks.push(chunk),
            None => return Ok(rebuilt(reply, chunks, true)),
        }
    }
    Ok(rebuilt(reply, chunks, false))
}

/// A failed attempt's reply with as much of its body as came: a 503 need not be whole to be obeyed.
pub(super) async fn failure(mut reply: Response) -> Response {
    let mut chunks = Chunks::default();
    while chunks.bytes <= LONGEST_FAILURE {
        match reply.chunk().await {
            Ok(Some(chunk)) => chunks.push(chunk),
            // Cut: what is left of it holds nothing any more, and nobody reads it for whole.
            Ok(None) | Err(_) => return rebuilt(reply, chunks, true),
        }
    }
    rebuilt(reply, chunks, false)
}

#[derive(Default)]
struct Chunks {
    list: VecDeque<Bytes>,
    bytes: usize,
}

impl Chunks {
    fn push(&mut self, chunk: Bytes) {
        self.bytes += chunk.len();
        self.list.push_back(chunk);
    }

    fn joined(mut self) -> Bytes {
        if self.list.len() == 1 {
            return self.list.pop_front().unwrap_or_default();
        }
        let mut joined = BytesMut::with_capacity(self.bytes);
        self.list
            .iter()
            .for_each(|chunk| joined.extend_from_slice(chunk));
        joined.freeze()
    }
}

/// The reply again, with what was read of its body in front.
fn rebuilt(reply: Response, chunks: Chunks, whole: bool) -> Response {
    let url = reply.url().clone();
    let (mut parts, rest) = http::Response::<Body>::from(reply).into_parts();
    // reqwest keeps the URL in an extension of its own.
    if let Ok(with_url) = http::Response::builder().url(url).body(()) {
        parts.extensions.extend(with_url.into_parts().0.extensions);
    }
    let mut drained = Drained {
        whole,
        key_in_flight: false,
    };
    let body = if whole {
        let bytes = chunks.joined();
        drained.key_in_flight = reply::is_problem(&parts.headers) && reply::says_in_flight(&bytes);
        Body::from(bytes)
    } else {
        Body::wrap(Resumed {
            chunks: chunks.list,
            rest,
        })
    };
    parts.extensions.insert(drained);
    Response::from(http::Response::from_parts(parts, body))
}

/// What was read, then the rest.
struct Resumed {
    chunks: VecDeque<Bytes>,
    rest: Body,
}

impl HttpBody for Resumed {
    type Data = Bytes;
    type Error = ::reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
