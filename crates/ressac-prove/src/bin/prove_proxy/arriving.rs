//! Bodies of replies as they come, over either version of HTTP.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::{Response, response};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::passed::BrokeOff;

/// A body that is still to come.
#[derive(Debug)]
pub(crate) enum Arriving {
    Http1(Incoming),
    Http2(Stream),
}

/// The body of a stream. h2 holds it to the length that was announced.
#[derive(Debug)]
pub(crate) struct Stream {
    body: RecvStream,
    /// What is still to come of the length that was announced.
    left: Option<u64>,
}

impl Arriving {
    pub(crate) fn over_http1(reply: Response<Incoming>) -> (response::Parts, Self) {
        let (head, body) = reply.into_parts();
        (head, Self::Http1(body))
    }

    pub(crate) fn over_http2(reply: Response<RecvStream>) -> (response::Parts, Self) {
        let (head, body) = reply.into_parts();
        let announced = head.headers.get(CONTENT_LENGTH);
        let left = match body.is_end_stream() {
            // A reply to HEAD announces what does not come.
            true => Some(0),
            false => announced.and_then(|value| value.to_str().ok()?.parse().ok()),
        };
        (head, Self::Http2(Stream { body, left }))
    }

    /// The fault: the end of the stream is taken for the end of the body. Whether there is one.
    pub(crate) fn forget_length(&mut self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(stream) => stream.left.take().is_some(),
        }
    }
}

impl Stream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        let Some(data) = ready!(self.body.poll_data(cx)) else {
            return Poll::Ready(None);
        };
        let data = data.map_err(|_| BrokeOff)?;
        let length = data.len();
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(length as u64);
        }
        // Downstream has room for it, so the upstream may send as much again. Of a stream that is
        // over nobody needs to know.
        let _ = self.body.flow_control().release_capacity(length);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BrokeOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|_| BrokeOff))),
            Self::Http2(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            // What was announced has come, whether or not the stream has ended already.
            Self::Http2(stream) => stream.left == Some(0) || stream.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(Stream { left, .. }) => {
                left.map_or_else(SizeHint::new, SizeHint::with_exact)
            }
        }
    }
}
