//! Reading a body to its end, or to a limit.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

/// What reading came to. Nothing that was read is lost in any of them.
pub(super) enum Collected<B: Body> {
    Whole {
        chunks: VecDeque<Bytes>,
        trailers: Option<HeaderMap>,
    },
    Over {
        chunks: VecDeque<Bytes>,
        rest: Pin<Box<B>>,
    },
    Broken {
        chunks: VecDeque<Bytes>,
        error: B::Error,
    },
}

pub(super) async fn collect<B: Body>(body: B, limit: usize) -> Collected<B> {
    let mut rest = Box::pin(body);
    let (mut chunks, mut length, mut trailers) = (VecDeque::new(), 0_usize, None);
    // One that says it is too long is not read at all.
    if rest.size_hint().lower() > limit as u64 {
        return Collected::Over { chunks, rest };
    }
    while let Some(frame) = rest.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Collected::Broken { chunks, error },
        };
        match frame.into_data() {
            Ok(mut data) => {
                length = length.saturating_add(data.remaining());
                if data.has_remaining() {
                    chunks.push_back(data.copy_to_bytes(data.remaining()));
                }
                if length > limit {
                    return Collected::Over { chunks, rest };
                }
            }
            Err(frame) => {
                if let Ok(more) = frame.into_trailers() {
                    trailers.get_or_insert_with(HeaderMap::new).extend(more);
                }
            }
        }
    }
    Collected::Whole { chunks, trailers }
}

/// One string of the chunks, without a copy where there is one only.
pub(super) fn joined(chunks: &VecDeque<Bytes>) -> Bytes {
    match chunks.len() {
        0 => Bytes::new(),
        1 => chunks[0].clone(),
        _ => {
            let mut all = Vec::with_capacity(chunks.iter().map(Bytes::len).sum());
            chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
            all.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn the_limit_is_what_may_be_read() {
        let body = || Full::new(Bytes::from_static(b"12345"));
        let whole = collect(body(), 5).await;
        assert!(matches!(whole, Collected::Whole { ref chunks, .. } if joined(chunks) == "12345"));
        let over = collect(body(), 4).await;
        assert!(matches!(over, Collected::Over { ref chunks, .. } if chunks.is_empty()));
    }

    /// A length that was not announced is found out while reading; what was read is kept.
    #[tokio::test]
    async fn a_body_of_unknown_length_stops_at_the_limit() {
        let parts = VecDeque::from([Bytes::from_static(b"123"), Bytes::from_static(b"456")]);
        let over = collect(Unannounced(parts), 4).await;
        assert!(matches!(over, Collected::Over { ref chunks, .. } if joined(chunks) == "123456"));
    }

    /// A body that says nothing of its length.
    struct Unannounced(VecDeque<Bytes>);

    impl Body for Unannounced {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Ready(
                self.0
                    .pop_front()
                    .map(|part| Ok(http_body::Frame::data(part))),
            )
        }
    }
}
