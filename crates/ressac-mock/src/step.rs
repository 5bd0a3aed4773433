//! The model of a script: what a step does, independent of how it was written down.
//!
//! Both the short notation ([`crate::notation`]) and the long form of a scenario file end here.

use std::time::Duration;

/// The most arrivals one step may be told to serve (`xN`).
pub(crate) const MAX_TIMES: u64 = 1_000_000_000;

/// A sequence of steps, served one arrival after another, by index and never by content.
///
/// `script = step ("," step)*`, `step = action word* [xN | x*]`. After the last step every arrival
/// gets a loud 599. Durations are `20ms 2s 10m 1h`; a comma or space inside quotes, braces,
/// brackets or parentheses does not separate.
///
/// | word | effect |
/// |---|---|
/// | `503` | the status, 200 to 999; left out: 200, or nothing where the end comes first |
/// | `h=Name:Value` | a header line; duplicates and order are kept; quote a value with spaces |
/// | `body=N` `text=".."` `json=..` | N pattern bytes (`4k`, `1M`), or this content |
/// | `ra=2` `ra="1.5"` `ra=auto` | Retry-After: seconds, raw text, until the outage ends |
/// | `ra=@+3s` `ra=@850+3s` `ra=@asc+3s` | Retry-After as a date, in each of its three forms |
/// | `date=+10m` `date=none` | a `Date` that is wrong, or missing |
/// | `hold=T` | silence before the reply; `*` for ever, `a..b` drawn from the seed |
/// | `cl=N` | announces N bytes whatever is sent; ends in FIN if fewer were |
/// | `fin@P` `rst@P` | the connection ends at `head`, `req`, `hdr`, `body+N` or `end` |
/// | `close` `stall` | whole reply, `Connection: close`, FIN; or open and silent |
/// | `create` | an effect, through the idempotency store; `=slow:T`, `=abandon` |
/// | `barrier=N` `barrier=N:T` | withheld until N arrivals wait, or T (10 s) has passed |
/// | `pick(0.2:503, else:200)` | by chance; arrival n draws the same in every run |
/// | `xN` `x*` | serves N arrivals, or all that follow |
///
/// Order inside one step: read as the end demands, barrier, effect, hold, head, body, end.
///
/// ```
/// use ressac_mock::Script;
///
/// let script: Script = "503 ra=2 x2, 201 create".parse().unwrap();
/// assert_eq!(script.steps.len(), 2);
/// assert_eq!(script.to_string(), "503 ra=2 x2, 201 create");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The steps in order; never empty.
    pub steps: Vec<Step>,
}

impl Script {
    /// The index of the step that serves arrival `n` (from 1), or `None` past the end.
    pub fn step_for(&self, n: u64) -> Option<usize> {
        let mut left = n.checked_sub(1)?;
        for (i, step) in self.steps.iter().enumerate() {
            match step.times {
                Times::Forever => return Some(i),
                Times::N(k) if left < k => return Some(i),
                Times::N(k) => left -= k,
            }
        }
        None
    }

    /// How many arrivals the finite steps serve together.
    pub fn finite_len(&self) -> u64 {
        self.steps
            .iter()
            .map(|s| match s.times {
                Times::N(n) => n,
                Times::Forever => 0,
            })
            .fold(0, u64::saturating_add)
    }

    /// Every reply the script can give, the arms of a `pick` included.
    pub(crate) fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.steps.iter().flat_map(Step::replies)
    }
}

/// One step: what happens, and how many arrivals it serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the arrival meets.
    pub action: Action,
    /// How many arrivals it serves.
    pub times: Times,
}

impl Step {
    pub(crate) fn replies(&self) -> impl Iterator<Item = &Reply> {
        let (one, many) = match &self.action {
            Action::Reply(r) => (Some(r.as_ref()), None),
            Action::Pick(p) => (None, Some(p)),
        };
        let arms = many.into_iter().flat_map(|p| {
            p.arms
                .iter()
                .map(|(_, r)| r)
                .chain(std::iter::once(p.otherwise.as_ref()))
        });
        one.into_iter().chain(arms)
    }
}

/// How many arrivals a step serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// `xN`, 1 to 10⁹; 1 where nothing is written.
    N(u64),
    /// `x*`: all that follow.
    Forever,
}

/// What an arrival meets.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Always the same.
    Reply(Box<Reply>),
    /// By chance, drawn from the seed and the arrival's identity.
    Pick(Pick),
}

/// `pick(0.2:503, 0.1:rst@req, else:200)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// Probability (above 0, at most 1, together at most 1) and what then happens.
    pub arms: Vec<(f64, Reply)>,
    /// What happens otherwise.
    pub otherwise: Box<Reply>,
}

impl Pick {
    /// The arm for a draw `u` in `[0, 1)`.
    pub fn arm(&self, u: f64) -> &Reply {
        let mut edge = 0.0;
        for (p, reply) in &self.arms {
            edge += p;
            if u < edge {
                return reply;
            }
        }
        &self.otherwise
    }
}

/// What is sent, when, and how the connection ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// 200 to 999. Absent: 200, or nothing at all where the end comes before the reply.
    pub status: Option<u16>,
    /// Header lines added, in order, duplicates kept.
    pub headers: Vec<(String, String)>,
    /// The content; absent: JSON for 2xx, else empty.
    pub body: Option<Body>,
    /// The Retry-After line (RFC 9110, 10.2.3).
    pub retry_after: Option<RetryAfter>,
    /// A `Date` that is shifted or left out.
    pub date: Option<DateWord>,
    /// Silence between reading the request and the first byte of the reply.
    pub hold: Option<Hold>,
    /// Announced length, whatever is sent.
    pub content_length: Option<u64>,
    /// How the exchange ends; absent: a whole reply on a connection kept alive.
    pub end: Option<End>,
    /// Whether the arrival has an effect.
    pub create: Option<Create>,
    /// Replies withheld until enough arrivals wait.
    pub barrier: Option<Barrier>,
}

impl Reply {
    /// A plain reply with this status.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// The status that goes out if anything does.
    pub(crate) fn effective_status(&self) -> u16 {
        self.status.unwrap_or(200)
    }

    /// Whether not one byte of a reply is sent.
    pub(crate) fn sends_nothing(&self) -> bool {
        match self.end {
            Some(End::At(_, Point::Head | Point::Req)) => true,
            Some(End::Stall) => self.status.is_none(),
            _ => false,
        }
    }

    /// Whether the end comes before the request's body is read.
    pub(crate) fn ends_at_head(&self) -> bool {
        matches!(self.end, Some(End::At(_, Point::Head)))
    }
}

/// Content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `body=N`: N pattern bytes (byte i is base64 letter number (i + i div 64) mod 64).
    Pattern(u64),
    /// `text=".."`, sent as `text/plain`.
    Text(String),
    /// `json=..`, sent as `application/json`, as written.
    Json(String),
}

/// The Retry-After line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// The text as it goes out: `ra=2`, `ra="1.5"`.
    Text(String),
    /// `ra=auto`: whole seconds, rounded up, until the outage ends.
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
    /// `stall`: what the other words say, then an open and silent connection.
    Stall,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mo_9_steps_are_found_by_index() {
        let s: Script = "503 x2, 503, 200".parse().unwrap();
        let got: Vec<_> = (0..=5).map(|n| s.step_for(n)).collect();
        assert_eq!(got, [None, Some(0), Some(0), Some(1), Some(2), None]);
        let s: Script = "503, 200 x*".parse().unwrap();
        assert_eq!(s.step_for(u64::MAX), Some(1));
        assert_eq!(s.finite_len(), 1);
    }
}
