//! Frames of HTTP/2 (RFC 9113, 4 and 6), read and written by hand.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a client sends first.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest frame that is taken, and sent: the size that needs no agreement.
pub(crate) const MAX_FRAME: usize = 16_384;
/// Bytes of a frame's head.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Data {
        stream: u32,
        end: bool,
        data: Bytes,
        /// What flow control counts: the padding too.
        counted: u32,
    },
    Headers {
        stream: u32,
        end: bool,
        block: Bytes,
        whole: bool,
    },
    Continuation {
        stream: u32,
        block: Bytes,
        whole: bool,
    },
    Reset {
        stream: u32,
    },
    Settings {
        ack: bool,
        values: Vec<(u16, u32)>,
    },
    Ping {
        ack: bool,
        data: [u8; 8],
    },
    Goaway,
    WindowUpdate {
        stream: u32,
        by: u32,
    },
    /// One that has no meaning here, or none at all.
    Other,
}

/// What is wrong with a frame: the code of a GOAWAY, and in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameError(pub(crate) u32, pub(crate) &'static str);

const PROTOCOL: u32 = 1;
const SIZE: u32 = 6;

impl Frame {
    /// Takes a frame off the buffer, or says that more bytes are needed.
    pub(crate) fn parse(buf: &mut BytesMut) -> Result<Option<Self>, FrameError> {
        let Some(head) = buf.get(..HEAD) else {
            return Ok(None);
        };
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        if len > MAX_FRAME {
            return Err(FrameError(SIZE, "a frame larger than 16384 bytes"));
        }
        if buf.len() < HEAD + len {
            return Ok(None);
        }
        buf.advance(HEAD);
        let body = buf.split_to(len).freeze();
        Self::read(kind, flags, stream, body).map(Some)
    }

    fn read(kind: u8, flags: u8, stream: u32, body: Bytes) -> Result<Self, FrameError> {
        let on_stream = matches!(kind, DATA | HEADERS | RST_STREAM | CONTINUATION);
        let on_connection = matches!(kind, SETTINGS | PING | GOAWAY);
        if (on_stream && stream == 0) || (on_connection && stream != 0) {
            return Err(FrameError(PROTOCOL, "a frame on the wrong stream"));
        }
        match kind {
            DATA => Ok(Self::Data {
                stream,
                end: flags & END_STREAM != 0,
                counted: u32::try_from(body.len()).unwrap_or(u32::MAX),
                data: unpadded(body, flags)?,
            }),
            HEADERS => {
                let mut block = unpadded(body, flags)?;
                if flags & PRIORITY != 0 {
                    if block.len() < 5 {
                        return Err(FrameError(SIZE, "a priority that is cut short"));
                    }
                    block.advance(5);
                }
                Ok(Self::Headers {
                    stream,
                    end: flags & END_STREAM != 0,
                    block,
                    whole: flags & END_HEADERS != 0,
                })
            }
            CONTINUATION => Ok(Self::Continuation {
                stream,
                block: body,
                whole: flags & END_HEADERS != 0,
            }),
            RST_STREAM => exact(&body, 4).map(|()| Self::Reset { stream }),
            SETTINGS => settings(flags & ACK != 0, body),
            PUSH_PROMISE => Err(FrameError(PROTOCOL, "a push from a client")),
            PING => {
                exact(&body, 8)?;
                let mut data = [0; 8];
                data.copy_from_slice(&body);
                let ack = flags & ACK != 0;
                Ok(Self::Ping { ack, data })
            }
            GOAWAY => Ok(Self::Goaway),
            WINDOW_UPDATE => {
                exact(&body, 4)?;
                let by = u32::from_be_bytes([body[0], body[1], body[2], body[3]]) & 0x7fff_ffff;
                if by == 0 {
                    return Err(FrameError(PROTOCOL, "a window that grows by nothing"));
                }
                Ok(Self::WindowUpdate { stream, by })
            }
            _ => Ok(Self::Other),
        }
    }
}

fn exact(body: &Bytes, len: usize) -> Result<(), FrameError> {
    match body.len() == len {
        true => Ok(()),
        false => Err(FrameError(SIZE, "a frame of the wrong size")),
    }
}

fn unpadded(mut body: Bytes, flags: u8) -> Result<Bytes, FrameError> {
    if flags & PADDED == 0 {
        return Ok(body);
    }
    let Some(pad) = body.first().copied().map(usize::from) else {
        return Err(FrameError(SIZE, "a padded frame without its length"));
    };
    body.advance(1);
    match body.len().checked_sub(pad) {
        Some(rest) => Ok(body.slice(..rest)),
        None => Err(FrameError(PROTOCOL, "more padding than frame")),
    }
}

fn settings(ack: bool, mut body: Bytes) -> Result<Frame, FrameError> {
    if !body.len().is_multiple_of(6) || (ack && !body.is_empty()) {
        return Err(FrameError(SIZE, "settings of the wrong size"));
    }
    let mut values = Vec::with_capacity(body.len() / 6);
    while body.remaining() >= 6 {
        values.push((body.get_u16(), body.get_u32()));
    }
    Ok(Frame::Settings { ack, values })
}

fn put(out: &mut BytesMut, len: usize, kind: u8, flags: u8, stream: u32) {
    // The callers keep below MAX_FRAME.
    let len = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    out.put_slice(&[len[1], len[2], len[3], kind, flags]);
    out.put_u32(stream);
}

/// HEADERS, and CONTINUATION as far as needed.
pub(crate) fn headers(stream: u32, block: &[u8], end: bool) -> BytesMut {
    let mut out = BytesMut::with_capacity(block.len() + HEAD);
    let mut pieces = block.chunks(MAX_FRAME).peekable();
    let mut kind = HEADERS;
    let mut flags = if end { END_STREAM } else { 0 };
    if pieces.peek().is_none() {
        put(&mut out, 0, HEADERS, flags | END_HEADERS, stream);
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            flags |= END_HEADERS;
        }
        put(&mut out, piece.len(), kind, flags, stream);
        out.put_slice(piece);
        (kind, flags) = (CONTINUATION, 0);
    }
    out
}

/// DATA, of at most [`MAX_FRAME`] bytes.
pub(crate) fn data(stream: u32, bytes: &[u8], end: bool) -> BytesMut {
    let mut out = BytesMut::with_capacity(bytes.len() + HEAD);
    put(
        &mut out,
        bytes.len(),
        DATA,
        if end { END_STREAM } else { 0 },
        stream,
    );
    out.put_slice(bytes);
    out
}

pub(crate) fn rst_stream(stream: u32, code: u32) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + 4);
    put(&mut out, 4, RST_STREAM, 0, stream);
    out.put_u32(code);
    out
}

pub(crate) fn goaway(last: u32, code: u32) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + 8);
    put(&mut out, 8, GOAWAY, 0, 0);
    out.put_u32(last);
    out.put_u32(code);
    out
}

pub(crate) fn window_update(stream: u32, by: u32) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + 4);
    put(&mut out, 4, WINDOW_UPDATE, 0, stream);
    out.put_u32(by);
    out
}

pub(crate) fn ping_ack(data: [u8; 8]) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + 8);
    put(&mut out, 8, PING, ACK, 0);
    out.put_slice(&data);
    out
}

pub(crate) fn settings_ack() -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD);
    put(&mut out, 0, SETTINGS, ACK, 0);
    out
}

/// Our own settings: how many streams at once, and how large a head.
pub(crate) fn own_settings(streams: u32, head: u32) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + 12);
    put(&mut out, 12, SETTINGS, 0, 0);
    out.put_u16(3);
    out.put_u32(streams);
    out.put_u16(6);
    out.put_u32(head);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_bytes_are_frames_or_refused(bytes: Vec<u8>) {
            let mut buf = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = Frame::parse(&mut buf) {}
        }
    }

    #[test]
    fn a_long_block_goes_into_continuations() {
        let block = vec![7; MAX_FRAME + 5];
        let mut out = headers(3, &block, true);
        let first = Frame::parse(&mut out).unwrap().unwrap();
        let second = Frame::parse(&mut out).unwrap().unwrap();
        assert!(matches!(
            first,
            Frame::Headers {
                stream: 3,
                end: true,
                whole: false,
                ..
            }
        ));
        assert!(
            matches!(second, Frame::Continuation { whole: true, block, .. } if block.len() == 5)
        );
        assert!(out.is_empty());
    }

    #[test]
    fn padding_is_taken_off_and_counted() {
        let mut raw = BytesMut::from(
            &[
                0,
                0,
                6,
                0,
                PADDED | END_STREAM,
                0,
                0,
                0,
                1,
                3,
                b'h',
                b'i',
                0,
                0,
                0,
            ][..],
        );
        let got = Frame::parse(&mut raw).unwrap().unwrap();
        let data = Bytes::from_static(b"hi");
        assert_eq!(
            got,
            Frame::Data {
                stream: 1,
                end: true,
                data,
                counted: 6
            }
        );
        let mut raw = BytesMut::from(&[0, 0, 1, 0, PADDED, 0, 0, 0, 1, 3][..]);
        assert!(Frame::parse(&mut raw).is_err());
    }
}
