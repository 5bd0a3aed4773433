//! The model of a script: what a step does, independent of how it was written down.
//!
//! Both the short notation ([`crate::notation`]) and the long form of a scenario file end here.

mod words;

pub use words::{
    Barrier, Body, Create, Cut, DateForm, DateWord, Drip, End, Expect, FileBody, Framing, Goaway,
    H2Code, Hold, Point, RetryAfter,
};

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
/// | `body=N` `text=".."` `json=..` `file=..` | N pattern bytes (`4k`, `1M`), or this content |
/// | `ra=2` `ra="1.5"` `ra=auto` | Retry-After: seconds, raw text, until outage or quota ends |
/// | `ra=@+3s` `ra=@850+3s` `ra=@asc+3s` | Retry-After as a date, in each of its three forms |
/// | `date=+10m` `date=none` | a `Date` that is wrong, or missing |
/// | `hold=T` `gap=T` | silence before the reply, or between head and body; `*`, `a..b` |
/// | `drip=N/T` `drip-head=N/T` | body or head in pieces of N bytes, one every T |
/// | `cl=N` | announces N bytes whatever is sent; ends in FIN if fewer were |
/// | `chunked` `nolast` `badchunk` `until-close` | how the body is framed, and broken |
/// | `interim=103` | a 1xx head first; `fin@interim` and `rst@interim` end after it |
/// | `garbage=N` | N seeded bytes instead of a reply, then FIN |
/// | `early` | the reply after the request's head; the body is unread for 300 ms, then read slowly |
/// | `expect=V` | to `Expect: 100-continue`: `auto`, `late:T`, `never`, `417`, `final` |
/// | `fin@P` `rst@P` | the connection ends at `head`, `req`, `interim`, `hdr`, `body+N` or `end` |
/// | `close` `quiet-close` | whole reply, with or without `Connection: close`, then FIN |
/// | `idle=T` `idle-rst=T` | whole reply kept alive; FIN or RST once idle for T |
/// | `race=fin` `race=rst` | whole reply kept alive; the next request finds the end instead |
/// | `stall` | what the other words say, then open and silent |
/// | `pass` | the upstream's reply; end words hit it after its effect |
/// | `refused-stream` `rst-stream=CODE` | HTTP/2: RST_STREAM; the latter also `@hdr`, `@body+N` |
/// | `end-stream` | HTTP/2: END_STREAM after the bytes sent, even below `cl` |
/// | `goaway=below` `=covers` `=graceful` | HTTP/2: GOAWAY; `code=NAME` sets its error code |
/// | `create` | an effect, through the idempotency store; `=slow:T`, `=abandon` |
/// | `barrier=N` `barrier=N:T` | withheld until N arrivals wait, or T (10 s) has passed |
/// | `pick(0.2:503, else:200)` | by chance; arrival n draws the same in every run |
/// | `xN` `x*` | serves N arrivals, or all that follow |
///
/// Order inside one step: read as the end demands, barrier, effect, hold, interim, head, gap,
/// body, end.
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

    /// As [`Script::replies`], to fill them in.
    pub(crate) fn replies_mut(&mut self) -> impl Iterator<Item = &mut Reply> {
        self.steps.iter_mut().flat_map(|s| {
            let (one, many) = match &mut s.action {
                Action::Reply(r) => (Some(r.as_mut()), None),
                Action::Pick(p) => (None, Some(p)),
            };
            let arms = many.into_iter().flat_map(|p| {
                let arms = p.arms.iter_mut().map(|(_, r)| r);
                arms.chain(std::iter::once(p.otherwise.as_mut()))
            });
            one.into_iter().chain(arms)
        })
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
    /// Silence between the head of the reply and its body.
    pub gap: Option<Hold>,
    /// The body in pieces.
    pub drip: Option<Drip>,
    /// The head in pieces.
    pub drip_head: Option<Drip>,
    /// How the body is framed on HTTP/1.1; absent: by its length.
    pub framing: Option<Framing>,
    /// A 1xx head that goes before: 100 or 102 to 199.
    pub interim: Option<u16>,
    /// So many seeded bytes instead of a reply, the first never `H`; then FIN.
    pub garbage: Option<u32>,
    /// The reply is sent after the request's head, and the body left unread for a while.
    pub early: bool,
    /// The answer to `Expect: 100-continue`; absent: 100 at once.
    pub expect: Option<Expect>,
    /// The reply is that of the upstream.
    pub pass: bool,
    /// The error code of a GOAWAY; absent: `NO_ERROR`.
    pub code: Option<H2Code>,
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

    /// Whether no final reply is sent: at most an interim one.
    pub(crate) fn sends_nothing(&self) -> bool {
        match self.end {
            Some(End::At(_, Point::Head | Point::Req | Point::Interim)) => true,
            Some(End::RstStream(_, Point::Req) | End::RefusedStream) => true,
            Some(End::Goaway(Goaway::Below | Goaway::Covers)) => true,
            Some(End::Stall) => self.status.is_none() && !self.pass,
            _ => false,
        }
    }

    /// Whether the end comes before the request's body is read.
    pub(crate) fn ends_at_head(&self) -> bool {
        matches!(
            self.end,
            Some(End::At(_, Point::Head) | End::RefusedStream | End::Goaway(Goaway::Below))
        )
    }

    /// Whether the step means something on HTTP/2 only.
    pub(crate) fn needs_http2(&self) -> bool {
        matches!(
            self.end,
            Some(End::RefusedStream | End::RstStream(..) | End::EndStream | End::Goaway(_))
        )
    }
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
