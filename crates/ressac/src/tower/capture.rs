//! Reading a request's body before its first attempt: up to a limit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use super::body::{Lent, ReplayBody, Stream, Whole};
use super::failure::BoxError;

/// What is kept of a body.
pub(super) enum Kept {
    Whole(Whole),
    Once(Arc<Lent>),
}

impl Kept {
    pub(super) fn body(&self) -> ReplayBody {
        match self {
            Kept::Whole(whole) => ReplayBody::whole(whole.clone()),
            Kept::Once(lent) => ReplayBody::once(lent),
        }
    }

    pub(super) const fn is_once(&self) -> bool {
        matches!(self, Kept::Once(_))
    }
}

/// Reads up to `limit` bytes. With `live` a body whose length is not known is read only as far as it
/// is there: its next part may hang on the reply to the first, as in a gRPC stream of both
/// directions.
///
/// # Errors
///
/// That of the body; nothing was sent.
pub(super) async fn capture<B>(body: B, limit: usize, live: bool) -> Result<Kept, BoxError>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let hint = body.size_hint();
    // One that says it is too long is not read at all.
    if hint.lower() > limit as u64 {
        return Ok(once(VecDeque::new(), body));
    }
    let known = hint.upper().is_some_and(|upper| upper <= limit as u64);
    let waits = known || !live;
    let mut body = Box::pin(body);
    let (mut whole, mut length) = (Whole::default(), 0_usize);
    loop {
        let next = std::future::poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Pending if !waits => Poll::Ready(Next::Later),
            poll => poll.map(|frame| frame.map_or(Next::End, Next::Frame)),
        });
        match next.await {
            Next::Frame(frame) => {
                length = length.saturating_add(keep(&mut whole, frame.map_err(Into::into)?));
                if length > limit {
                    return Ok(once(whole.chunks, body));
                }
            }
            Next::End => return Ok(Kept::Whole(whole)),
            Next::Later => return Ok(once(whole.chunks, body)),
        }
    }
}

enum Next<F> {
    Frame(F),
    /// Not there yet.
    Later,
    End,
}

/// Returns the bytes it has.
fn keep<D: Buf>(whole: &mut Whole, frame: Frame<D>) -> usize {
    match frame.into_data() {
        Ok(mut data) => {
            let length = data.remaining();
            if length > 0 {
                whole.chunks.push_back(data.copy_to_bytes(length));
            }
            length
        }
        Err(frame) => {
            if let Ok(trailers) = frame.into_trailers() {
                whole
                    .trailers
                    .get_or_insert_with(HeaderMap::new)
                    .extend(trailers);
            }
            0
        }
    }
}

fn once<B>(chunks: VecDeque<Bytes>, rest: B) -> Kept
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let rest = UnsyncBoxBody::new(Rest(Box::pin(rest)));
    Kept::Once(Lent::new(Stream { chunks, rest }))
}

/// What is left of a body; it says how long it is, as the body did.
struct Rest<B>(Pin<Box<B>>);

impl<B> Body for Rest<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        let poll = self.0.as_mut().poll_frame(cx);
        poll.map_ok(|frame| frame.map_data(bytes))
            .map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// For the tests of this module: a body of these frames, then pending for ever or at its end.
#[cfg(test)]
struct Frames {
    frames: VecDeque<Frame<Bytes>>,
    hangs: bool,
}

#[cfg(test)]
impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None if self.hangs => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;
    use http_body_util::BodyExt;

    use super::*;

    fn frames(parts: &[&'static str], hangs: bool) -> Frames {
        let frames = parts
            .iter()
            .map(|part| Frame::data(Bytes::from_static(part.as_bytes())));
        Frames {
            frames: frames.collect(),
            hangs,
        }
    }

    async fn read(body: ReplayBody) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    /// EX-1: the same bytes each time, and their trailers.
    #[tokio::test]
    async fn what_fits_is_sent_as_often_as_need_be() {
        let mut body = frames(&["ab", "", "c"], false);
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("7"));
        body.frames.push_back(Frame::trailers(trailers.clone()));
        let kept = capture(body, 3, false).await.unwrap();
        assert!(!kept.is_once());
        for _ in 0..3 {
            assert_eq!(kept.body().size_hint().exact(), Some(3));
            let sent = kept.body().collect().await.unwrap();
            assert_eq!(sent.trailers(), Some(&trailers));
            assert_eq!(sent.to_bytes(), "abc");
        }
    }

    /// EX-4, EX-1: what is too long is whole the first time and an error, never short, after that.
    #[tokio::test]
    async fn what_does_not_fit_is_sent_once() {
        let kept = capture(frames(&["ab", "cd", "ef"], false), 3, false)
            .await
            .unwrap();
        assert!(kept.is_once());
        // PX-5: one that was never read took nothing.
        drop(kept.body());
        assert_eq!(read(kept.body()).await, "abcdef");
        assert!(kept.body().collect().await.is_err());
        let announced = http_body_util::Full::new(Bytes::from_static(b"abcd"));
        let kept = capture(announced, 3, false).await.unwrap();
        assert_eq!(kept.body().size_hint().exact(), Some(4));
        assert_eq!(read(kept.body()).await, "abcd");
    }

    #[tokio::test]
    async fn a_live_stream_is_not_waited_for() {
        let kept = capture(frames(&["ab"], true), 100, true).await.unwrap();
        assert!(kept.is_once());
        let kept = capture(frames(&["ab"], false), 100, true).await.unwrap();
        assert!(!kept.is_once());
    }
}
