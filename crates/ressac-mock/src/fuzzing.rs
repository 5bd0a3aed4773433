//! The parsers that a stranger reaches, opened to the fuzz targets.

use bytes::BytesMut;

use crate::arrive::Origin;
use crate::scenario::{Scenario, ScenarioError};
use crate::state::Reset;
use crate::wire::{BodyKind, RequestHead};
use crate::{Mock, control, exchange};

/// Reads a scenario without reading any file that it names.
///
/// # Errors
///
/// As [`Scenario::parse`].
pub fn scenario(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::read(text, None)
}

/// Parses HTTP/1 request heads one after another; how many there were.
pub fn request_heads(bytes: &[u8]) -> usize {
    let mut buf = BytesMut::from(bytes);
    let mut count = 0;
    while let Ok(Some(head)) = RequestHead::parse(&mut buf) {
        // What the routes look at must hold for any head.
        let _ = (
            head.path().len(),
            head.wants_close(),
            head.expects_continue(),
        );
        count += 1;
    }
    count
}

/// Parses HTTP/2 frames one after another, and decodes the fields of each; how many there were.
pub fn frames(bytes: &[u8]) -> usize {
    crate::exchange::fuzz_frames(bytes)
}

/// A mock whose requests come without a connection, one after another in the same bytes: calls of
/// the control API, and arrivals between them, which meet what the calls have set.
#[derive(Debug)]
pub struct Unplugged(Mock);

impl Default for Unplugged {
    fn default() -> Self {
        Self::new()
    }
}

impl Unplugged {
    /// Starts one, with sockets that nobody uses.
    pub fn new() -> Self {
        Self(Mock::start_blocking())
    }

    /// Forgets all that was, and takes in what the bytes ask; how many requests they were.
    ///
    /// # Panics
    ///
    /// If the control API does not answer afterwards.
    pub fn talk(&self, bytes: &[u8]) -> usize {
        let (shared, context) = self.0.insides();
        shared.replace(Scenario::default());
        shared.reset(&Reset::ALL);
        let mut buf = BytesMut::from(bytes);
        let mut count = 0;
        while let Ok(Some(head)) = RequestHead::parse(&mut buf) {
            let length = match head.body {
                BodyKind::Length(n) => usize::try_from(n).unwrap_or(usize::MAX),
                BodyKind::Chunked => usize::MAX,
            };
            let body = buf.split_to(length.min(buf.len()));
            if head.path().starts_with("/__ressac/") {
                assert!(!control::call(context, &head, &body).is_empty());
            } else {
                let origin = Origin {
                    conn: 1,
                    stream: None,
                    listener: "plain",
                    t_accept: 0,
                    t_first: 0,
                    tls: None,
                    early: false,
                };
                let arrival = shared.arrive(&head, &origin);
                let _ = exchange::fuzz::reply(shared, &head, &arrival);
            }
            count += 1;
        }
        let health = BytesMut::from(&b"GET /__ressac/v1/health HTTP/1.1\r\n\r\n"[..]);
        if let Ok(Some(head)) = RequestHead::parse(&mut { health }) {
            let answer = control::call(context, &head, b"");
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "it answers no more");
        }
        count
    }
}
