//! What the words of a step stand for.

use std::time::Duration;

use bytes::Bytes;

/// Content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `body=N`: N pattern bytes (byte i is base64 letter number (i + i div 64) mod 64).
    Pattern(u64),
    /// `text=".."`, sent as `text/plain`.
    Text(String),
    /// `json=..`, sent as `application/json`, as written.
    Json(String),
    /// `file=..`, sent as `application/octet-stream`.
    File(FileBody),
}

/// The content of a file, read when the scenario is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBody {
    /// Where it stands; a relative path starts at the folder of the scenario file.
    pub path: String,
    /// Its bytes; empty until it was read.
    pub(crate) content: Bytes,
}

impl FileBody {
    /// A file that is yet to be read.
    pub(crate) fn unread(path: String) -> Self {
        Self {
            path,
            content: Bytes::new(),
        }
    }
}

/// The Retry-After line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// The text as it goes out: `ra=2`, `ra="1.5"`.
    Text(String),
    /// `ra=auto`: whole seconds, rounded up, until the outage or the quota ends.
    Auto,
    /// An HTTP-date made when the head is sent, this far from the base, in milliseconds.
    Date {
        /// How it is written.
        form: DateForm,
        /// Signed distance from the base.
        offset_ms: i64,
    },
}

/// The three forms of an HTTP-date (RFC 9110, 5.6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateForm {
    /// IMF-fixdate, the one to send.
    Imf,
    /// RFC 850, with a two-digit year.
    Rfc850,
    /// asctime, with a space-padded day.
    Asctime,
}

/// `date=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateWord {
    /// `date=none`: no `Date` header.
    Omit,
    /// `date=+10m`: a clock that is wrong by this many milliseconds.
    Shift(i64),
}

/// `hold=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// This long.
    For(Duration),
    /// Drawn uniformly, both ends included.
    Between(Duration, Duration),
    /// `*`: for ever.
    Forever,
}

/// How an exchange ends other than by keeping the connection alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `fin@P`, `rst@P`.
    At(Cut, Point),
    /// `close`: whole reply with `Connection: close`, then FIN.
    Close,
    /// `quiet-close`: whole reply without that header, then FIN.
    QuietClose,
    /// `stall`: what the other words say, then an open and silent connection.
    Stall,
    /// `idle=T`, `idle-rst=T`: whole reply kept alive; if it is then idle for T, the end.
    Idle(Cut, Duration),
    /// `race=fin`, `race=rst`: whole reply kept alive; the next request on the connection is read
    /// to its head, takes no step and has no effect, and finds the end.
    Race(Cut),
    /// `refused-stream`: RST_STREAM with REFUSED_STREAM; nothing is processed (RFC 9113, 8.7).
    RefusedStream,
    /// `rst-stream=CODE[@P]`: RST_STREAM after the effect, at `req` (where nothing is written),
    /// `hdr` or `body+N`.
    RstStream(H2Code, Point),
    /// `end-stream`: END_STREAM after the bytes sent, even below `cl` (RFC 9113, 8.1.1).
    EndStream,
    /// `goaway=..` (RFC 9113, 6.8).
    Goaway(Goaway),
}

/// How a GOAWAY is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goaway {
    /// Its last id lies below this stream, which is not processed; then FIN.
    Below,
    /// Its last id is this stream; no reply; then FIN.
    Covers,
    /// The reply, GOAWAY 2^31-1, 100 ms later GOAWAY with this id, FIN.
    Graceful,
}

/// An error code of HTTP/2 (RFC 9113, 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct H2Code(pub u32);

impl H2Code {
    /// The names, by their number.
    pub const NAMES: [&'static str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];

    /// The code of a name.
    pub fn named(name: &str) -> Option<Self> {
        let i = Self::NAMES.iter().position(|n| *n == name)?;
        u32::try_from(i).ok().map(Self)
    }
}

impl std::fmt::Display for H2Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Self::NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// `drip=N/T`, `drip-head=N/T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drip {
    /// Bytes of a piece, from 1.
    pub bytes: u32,
    /// Time from one piece to the next.
    pub every: Duration,
}

/// How a body is framed, other than by its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `chunked`.
    Chunked,
    /// `nolast`: chunks without the last one, then FIN.
    NoLast,
    /// `badchunk`: chunks, a size line that is no number, then FIN.
    BadChunk,
    /// `until-close`: no length; FIN ends the body.
    UntilClose,
}

/// The answer to `Expect: 100-continue` (RFC 9110, 10.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// 100 at once.
    Auto,
    /// 100 after this long.
    Late(Duration),
    /// No 100; the body is waited for.
    Never,
    /// 417 at once.
    Fail,
    /// The step's status at once, without a 100.
    Final,
}

/// Which way a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// FIN, then read and discard: the peer reads an end of file.
    Fin,
    /// RST, after every byte was acknowledged: the peer reads a connection reset.
    Rst,
}

/// Where a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The request's head was read, its body was not.
    Head,
    /// The whole request was read.
    Req,
    /// The 1xx head was sent.
    Interim,
    /// The reply's head was sent.
    Hdr,
    /// Exactly this many body bytes were sent.
    Body(u64),
    /// The whole reply was sent, as if the connection were kept alive.
    End,
}

/// `create`: consult the idempotency store and commit the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// At once.
    Now,
    /// `create=slow:T`: the key stays in flight this long, then the effect is committed.
    Slow(Duration),
    /// `create=abandon`: the key is marked in flight and left so, without an effect.
    Abandon,
}

/// `barrier=N[:T]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// How many arrivals must wait.
    pub arrivals: u32,
    /// The longest wait, counted from the first of them; 10 s where nothing is written.
    pub timeout: Duration,
}

impl Barrier {
    /// The wait where nothing is written.
    pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
}
