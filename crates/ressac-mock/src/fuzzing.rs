//! The parsers that a stranger reaches, opened to the fuzz targets.

use bytes::BytesMut;

use crate::scenario::{Scenario, ScenarioError};
use crate::wire::RequestHead;

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
