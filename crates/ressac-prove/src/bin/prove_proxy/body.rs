//! Request bodies: kept whole up to a limit, and read through once above it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// A body that is longer than this is sent once.
pub(crate) const MOST_KEPT: usize = 8 * 1024 * 1024;

/// A body as it goes to the upstream.
pub(crate) type Outgoing = UnsyncBoxBody<Bytes, hyper::Error>;

/// The body of an operation.
#[derive(Debug)]
pub(crate) struct Held {
    begin: Bytes,
    rest: Option<Incoming>,
    pub(crate) repeatable: bool,
}

impl Held {
    /// Reads up to the limit. What announces more is not read at all.
    pub(crate) async fn read(mut body: Incoming) -> Result<Self, hyper::Error> {
        let mut begin = BytesMut::new();
        let announced = body.size_hint().lower();
        while announced <= MOST_KEPT as u64 && begin.len() <= MOST_KEPT {
            match body.frame().await {
                Some(frame) => {
                    let data = frame?.into_data().unwrap_or_default();
                    begin.extend_from_slice(&data);
                }
                None => {
                    return Ok(Self {
                        begin: begin.freeze(),
                        rest: None,
                        repeatable: true,
                    });
                }
            }
        }
        Ok(Self {
            begin: begin.freeze(),
            rest: Some(body),
            repeatable: false,
        })
    }

    /// Was it sent, and cannot be sent again?
    pub(crate) fn is_spent(&self) -> bool {
        !self.repeatable && self.rest.is_none()
    }

    /// For one attempt. What cannot be repeated is whole the first time only.
    pub(crate) fn take(&mut self) -> Outgoing {
        match self.rest.take() {
            Some(rest) => Through {
                begin: std::mem::take(&mut self.begin),
                rest,
            }
            .boxed_unsync(),
            None => Full::new(self.begin.clone())
                .map_err(|never| match never {})
                .boxed_unsync(),
        }
    }
}

/// What was read, and then the rest as it comes.
struct Through {
    begin: Bytes,
    rest: Incoming,
}

impl Body for Through {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if !self.begin.is_empty() {
            let begin = std::mem::take(&mut self.begin);
            return Poll::Ready(Some(Ok(Frame::data(begin))));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.begin.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let begin = self.begin.len() as u64;
        let mut all = SizeHint::new();
        all.set_lower(rest.lower().saturating_add(begin));
        if let Some(upper) = rest.upper() {
            all.set_upper(upper.saturating_add(begin));
        }
        all
    }
}
