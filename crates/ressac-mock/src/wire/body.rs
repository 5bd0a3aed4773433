//! The body of a request: by length or in chunks, hashed as it comes, never held whole.

use bytes::{Buf, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::conn::Conn;
use super::head::{BodyKind, MAX_BODY, MAX_HEAD};

/// The longest chunk-size line, extensions included.
const MAX_LINE: usize = 4096;
/// Body bytes read at once, at most.
const PIECE: usize = 16 * 1024;

/// SHA-256 of no bytes at all.
const EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A body that was read whole.
#[derive(Debug, Clone)]
pub(crate) struct BodyInfo {
    pub(crate) len: u64,
    pub(crate) sha256: [u8; 32],
    /// Its first bytes, as many as were asked for.
    pub(crate) head: Bytes,
}

impl BodyInfo {
    /// No body at all.
    pub(crate) fn empty() -> Self {
        Self {
            len: 0,
            sha256: EMPTY,
            head: Bytes::new(),
        }
    }
}

/// Why a body was not read whole.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The peer closed or fell silent.
    Incomplete,
    /// The framing is broken, or the body too large.
    Bad(&'static str),
}

/// What becomes of body bytes: counted, hashed, the first of them kept.
pub(crate) struct Sink {
    len: u64,
    hash: Sha256,
    head: BytesMut,
    keep: usize,
}

impl Sink {
    /// Keeps the first `keep` bytes.
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            len: 0,
            hash: Sha256::new(),
            head: BytesMut::new(),
            keep,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn done(self) -> BodyInfo {
        BodyInfo {
            len: self.len,
            sha256: self.hash.finalize().into(),
            head: self.head.freeze(),
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.hash.update(bytes);
        let room = self.keep.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
    }
}

impl Conn {
    /// Reads a body to its end, keeping the first `keep` bytes.
    pub(crate) async fn read_body(
        &mut self,
        kind: BodyKind,
        keep: usize,
    ) -> Result<BodyInfo, BodyError> {
        let mut sink = Sink::new(keep);
        self.read_into(kind, &mut sink).await?;
        Ok(sink.done())
    }

    /// As [`Conn::read_body`]; what came before an error is in the sink.
    pub(crate) async fn read_into(
        &mut self,
        kind: BodyKind,
        sink: &mut Sink,
    ) -> Result<(), BodyError> {
        match kind {
            BodyKind::Length(n) => self.read_exact(n, sink).await,
            BodyKind::Chunked => self.read_chunks(sink).await,
        }
    }

    async fn read_exact(&mut self, mut left: u64, sink: &mut Sink) -> Result<(), BodyError> {
        while left > 0 {
            let rest = usize::try_from(left).unwrap_or(usize::MAX);
            if self.buf.is_empty() {
                // Else it would be read in pieces as small as the head.
                self.buf.reserve(rest.min(PIECE));
                self.more().await?;
            }
            let take = rest.min(self.buf.len());
            sink.take(&self.buf[..take]);
            self.buf.advance(take);
            left -= take as u64;
        }
        Ok(())
    }

    async fn read_chunks(&mut self, sink: &mut Sink) -> Result<(), BodyError> {
        loop {
            let line = self.read_line(MAX_LINE).await?;
            let digits = line[..]
                .split(|b| *b == b';')
                .next()
                .unwrap_or(&[])
                .trim_ascii();
            let size = match std::str::from_utf8(digits)
                .ok()
                .filter(|d| !d.starts_with('+'))
            {
                Some(d) => u64::from_str_radix(d, 16).ok(),
                None => None,
            };
            let Some(size) = size else {
                return Err(BodyError::Bad("a chunk size that is no number"));
            };
            if size == 0 {
                break;
            }
            if sink.len.saturating_add(size) > MAX_BODY {
                return Err(BodyError::Bad("the body is larger than 64 MiB"));
            }
            self.read_exact(size, sink).await?;
            if !self.read_line(2).await?.is_empty() {
                return Err(BodyError::Bad("a chunk longer than its size"));
            }
        }
        let mut trailers = 0;
        loop {
            let line = self.read_line(MAX_HEAD).await?;
            trailers += line.len();
            if line.is_empty() {
                return Ok(());
            }
            if trailers > MAX_HEAD {
                return Err(BodyError::Bad("trailers larger than 64 KiB"));
            }
        }
    }

    /// A line without its CRLF.
    async fn read_line(&mut self, max: usize) -> Result<BytesMut, BodyError> {
        loop {
            if let Some(i) = self.buf.windows(2).position(|w| w == b"\r\n") {
                let line = self.buf.split_to(i);
                self.buf.advance(2);
                return Ok(line);
            }
            if self.buf.len() > max {
                return Err(BodyError::Bad("a line that is too long"));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), BodyError> {
        match self.fill().await {
            Ok(n) if n > 0 => Ok(()),
            _ => Err(BodyError::Incomplete),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_hash_to_what_is_written_down() {
        assert_eq!(Sink::new(0).done().sha256, EMPTY);
    }
}
