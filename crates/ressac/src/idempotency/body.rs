//! A body of the layer's making: whole, begun, or passed through.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// The body of requests and replies that went through the layer.
///
/// What was read comes first, then what is left of the original.
pub struct IdempotencyBody<B: Body> {
    chunks: VecDeque<Bytes>,
    rest: Option<Pin<Box<B>>>,
    error: Option<B::Error>,
    trailers: Option<HeaderMap>,
}

impl<B: Body> IdempotencyBody<B> {
    /// The original, untouched.
    pub(super) fn pass(body: B) -> Self {
        Self::begun(VecDeque::new(), Box::pin(body))
    }

    pub(super) fn begun(chunks: VecDeque<Bytes>, rest: Pin<Box<B>>) -> Self {
        IdempotencyBody {
            chunks,
            rest: Some(rest),
            error: None,
            trailers: None,
        }
    }

    /// What was read before it broke, and how it broke.
    pub(super) fn broken(chunks: VecDeque<Bytes>, error: B::Error) -> Self {
        IdempotencyBody {
            chunks,
            rest: None,
            error: Some(error),
            trailers: None,
        }
    }

    pub(super) fn whole(chunks: VecDeque<Bytes>, trailers: Option<HeaderMap>) -> Self {
        IdempotencyBody {
            chunks,
            rest: None,
            error: None,
            trailers,
        }
    }
}

impl<B: Body> Body for IdempotencyBody<B>
where
    // Held, never pinned in place.
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        if let Some(chunk) = this.chunks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if let Some(rest) = &mut this.rest {
            let polled = rest.as_mut().poll_frame(cx);
            return polled
                .map_ok(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
        }
        if let Some(error) = this.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(
            this.trailers
                .take()
                .map(|trailers| Ok(Frame::trailers(trailers))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
            && self.error.is_none()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let rest = match &self.rest {
            Some(rest) => rest.size_hint(),
            // More was announced than will come: no exact length may be promised.
            None if self.error.is_some() => SizeHint::new(),
            None => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(held.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(held.saturating_add(upper));
        }
        hint
    }
}

impl<B: Body> fmt::Debug for IdempotencyBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyBody")
            .field("chunks", &self.chunks.len())
            .field("rest", &self.rest.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;
    use http_body_util::{BodyExt, Full};

    use super::*;

    fn chunks(parts: &[&'static str]) -> VecDeque<Bytes> {
        parts
            .iter()
            .map(|part| Bytes::from_static(part.as_bytes()))
            .collect()
    }

    #[tokio::test]
    async fn what_was_read_comes_before_the_rest() {
        let rest = Box::pin(Full::new(Bytes::from_static(b"cd")));
        let body = IdempotencyBody::begun(chunks(&["a", "b"]), rest);
        assert_eq!(body.size_hint().exact(), Some(4));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abcd");
    }

    #[tokio::test]
    async fn trailers_come_last() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let body = IdempotencyBody::<Full<Bytes>>::whole(chunks(&["a"]), Some(trailers.clone()));
        assert!(!body.is_end_stream());
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
        assert_eq!(collected.to_bytes(), "a");
    }
}
