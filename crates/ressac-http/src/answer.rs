//! What both versions of HTTP have in common: the reply, read as far as it will be.

use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response};

use crate::failure::{Failure, ReplyHead, Sent};

/// A reply that was read as far as it will be.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) body_limit_hit: bool,
    pub(crate) sent_at: SystemTime,
    pub(crate) replied_at: SystemTime,
}

/// A body as it comes, up to a limit.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: BytesMut,
    limit: usize,
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// Keeps what there is room for; `false` if that was not all.
    #[must_use]
    pub(crate) fn add(&mut self, data: &[u8]) -> bool {
        let room = self.limit - self.bytes.len();
        self.bytes
            .extend_from_slice(data.get(..room).unwrap_or(data));
        data.len() <= room
    }

    pub(crate) fn freeze(self) -> Bytes {
        self.bytes.freeze()
    }
}

/// The same failure of a reply whose head had come.
pub(crate) fn cut(mut failure: Failure, head: response::Parts) -> Failure {
    failure.sent = Sent::ProcessedInPart;
    failure.reply = Some(Box::new(ReplyHead {
        status: head.status,
        headers: head.headers,
    }));
    failure
}
