//! The request's body as the attempts send it: from memory as often as need be, or once.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use super::failure::BoxError;
use crate::sync::Mutex;

/// The body of a request as an attempt sends it. The service inside a
/// [`RetryLayer`](super::RetryLayer) takes requests of this body.
///
/// Attempts share the bytes, never a position in them (EX-3).
pub struct ReplayBody(Repr);

enum Repr {
    Whole(Whole),
    Once(Once),
}

/// All of a body.
#[derive(Clone, Default)]
pub(super) struct Whole {
    pub(super) chunks: VecDeque<Bytes>,
    pub(super) trailers: Option<HeaderMap>,
}

/// A body too long to keep: what was read of it, then the rest.
pub(super) struct Stream {
    pub(super) chunks: VecDeque<Bytes>,
    pub(super) rest: UnsyncBoxBody<Bytes, BoxError>,
}

struct Once {
    lent: Arc<Lent>,
    /// Here from the first poll on.
    taken: Option<Stream>,
}

/// A body that can be sent once: it stays here until an attempt begins to read it.
pub(super) struct Lent {
    stream: Mutex<Option<Stream>>,
    hint: SizeHint,
}

impl Lent {
    pub(super) fn new(stream: Stream) -> Arc<Self> {
        Arc::new(Lent {
            hint: stream.size_hint(),
            stream: Mutex::new(Some(stream)),
        })
    }
}

impl ReplayBody {
    pub(super) const fn whole(whole: Whole) -> Self {
        ReplayBody(Repr::Whole(whole))
    }

    pub(super) fn once(lent: &Arc<Lent>) -> Self {
        ReplayBody(Repr::Once(Once {
            lent: Arc::clone(lent),
            taken: None,
        }))
    }
}

impl Body for ReplayBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Repr::Whole(whole) => Poll::Ready(whole.next().map(Ok)),
            Repr::Once(once) => once.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Repr::Whole(whole) => whole.chunks.is_empty() && whole.trailers.is_none(),
            Repr::Once(once) => match &once.taken {
                Some(stream) => stream.chunks.is_empty() && stream.rest.is_end_stream(),
                None => false,
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Repr::Whole(whole) => SizeHint::with_exact(length(&whole.chunks)),
            Repr::Once(once) => match &once.taken {
                Some(stream) => stream.size_hint(),
                None => once.lent.hint,
            },
        }
    }
}

impl Whole {
    fn next(&mut self) -> Option<Frame<Bytes>> {
        match self.chunks.pop_front() {
            Some(chunk) => Some(Frame::data(chunk)),
            None => self.trailers.take().map(Frame::trailers),
        }
    }
}

impl Once {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.taken.is_none() {
            self.taken = self.lent.stream.lock().take();
        }
        let Some(stream) = &mut self.taken else {
            let gone = "an earlier attempt has begun to send this body, and it was not kept";
            return Poll::Ready(Some(Err(gone.into())));
        };
        match stream.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            None => Pin::new(&mut stream.rest).poll_frame(cx),
        }
    }
}

impl Stream {
    fn size_hint(&self) -> SizeHint {
        let (held, rest) = (length(&self.chunks), self.rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(held.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(held.saturating_add(upper));
        }
        hint
    }
}

fn length(chunks: &VecDeque<Bytes>) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

impl fmt::Debug for ReplayBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Repr::Whole(_) => "ReplayBody(kept)",
            Repr::Once(_) => "ReplayBody(once)",
        };
        f.write_str(kind)
    }
}

/// A request without a body.
impl Default for ReplayBody {
    fn default() -> Self {
        ReplayBody::whole(Whole::default())
    }
}
