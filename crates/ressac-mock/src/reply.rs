//! Making a reply: content first (what may be stored and sent again), then bytes.

use bytes::{Bytes, BytesMut};

use crate::clock::unix_ns_now;
use crate::date;
use crate::step::{Body, DateForm, DateWord, Reply, RetryAfter};

/// What a reply says, without what belongs to the connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) status: u16,
    pub(crate) date: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Payload,
    pub(crate) length: Length,
    pub(crate) hint: Option<Hint>,
}

/// What a reply says of the length of its body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Length {
    /// That of the body beside it.
    #[default]
    OfBody,
    /// What an upstream told of a body that it did not send (RFC 9110, 8.6).
    AsTold(Option<u64>),
}

/// The earliest return that the Retry-After line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    /// Nanoseconds after the reply was sent, or since 1970 if `absolute`.
    pub(crate) ns: u64,
    pub(crate) absolute: bool,
    /// The date named, in seconds since 1970.
    pub(crate) date: Option<i64>,
}

/// Body bytes, real or by pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload {
    Bytes(Bytes),
    Pattern(u64),
}

impl Default for Payload {
    fn default() -> Self {
        Self::Bytes(Bytes::new())
    }
}

impl Payload {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(b) => b.len() as u64,
            Self::Pattern(n) => *n,
        }
    }

    /// The bytes from `from`, at most `max` of them.
    pub(crate) fn piece(&self, from: u64, max: usize) -> Bytes {
        let left = usize::try_from(self.len().saturating_sub(from)).unwrap_or(usize::MAX);
        let len = left.min(max);
        match self {
            // `from` lies within the bytes, or `len` is 0.
            Self::Bytes(b) if len > 0 => b.slice(from as usize..from as usize + len),
            Self::Bytes(_) => Bytes::new(),
            Self::Pattern(_) => (from..from + len as u64).map(pattern_byte).collect(),
        }
    }
}

fn pattern_byte(i: u64) -> u8 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    LETTERS[((i + i / 64) % 64) as usize]
}

/// What a default body and the `Ressac-Mock` line name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark {
    /// The value of `Ressac-Mock`.
    pub(crate) line: String,
    /// JSON for a 2xx without a body of its own.
    pub(crate) json: String,
    /// `Location`, for a resource just made.
    pub(crate) location: Option<String>,
    /// Seconds that `ra=auto` stands for.
    pub(crate) auto: Option<u64>,
}

impl Content {
    /// Makes the content of a step, with the dates of this moment.
    pub(crate) fn make(step: &Reply, mark: &Mark) -> Self {
        let now = unix_ns_now();
        let status = step.effective_status();
        let shift_ms = match step.date {
            Some(DateWord::Shift(ms)) => Some(ms),
            _ => None,
        };
        let sent_date = date::clamp(secs_floor(
            now + i128::from(shift_ms.unwrap_or(0)) * 1_000_000,
        ));
        let date = match step.date {
            Some(DateWord::Omit) => None,
            _ => Some(date::format(sent_date, DateForm::Imf)),
        };
        let mut headers = vec![("Ressac-Mock".to_owned(), mark.line.clone())];
        let base = shift_ms.map(|_| sent_date);
        let hint = step.retry_after.as_ref().and_then(|ra| {
            let (text, hint) = retry_after(ra, now, base, mark.auto);
            headers.push(("Retry-After".to_owned(), text));
            hint
        });
        let (kind, body) = body(step, status, mark);
        if let Some(kind) = kind {
            let given = step
                .headers
                .iter()
                .any(|(n, _)| n.eq_ignore_ascii_case("content-type"));
            if !given {
                headers.push(("Content-Type".to_owned(), kind.to_owned()));
            }
        }
        headers.extend(
            mark.location
                .iter()
                .map(|l| ("Location".to_owned(), l.clone())),
        );
        headers.extend(step.headers.iter().cloned());
        Self {
            status,
            date,
            headers,
            body,
            length: Length::OfBody,
            hint,
        }
    }

    /// Whether the status forbids a body (RFC 9110, 6.4.1).
    pub(crate) fn bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }

    /// The header lines as they go out.
    pub(crate) fn lines(
        &self,
        announced: Option<u64>,
        extra: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let mut out = Vec::with_capacity(self.headers.len() + extra.len() + 2);
        out.extend(self.date.iter().map(|d| ("Date".to_owned(), d.clone())));
        out.extend(announced.map(|n| ("Content-Length".to_owned(), n.to_string())));
        out.extend(self.headers.iter().cloned());
        out.extend(
            extra
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
        );
        out
    }
}

/// The head of a reply in bytes.
pub(crate) fn head_bytes(status: u16, lines: &[(String, String)]) -> BytesMut {
    let mut out = BytesMut::with_capacity(256);
    out.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason(status)).as_bytes());
    for (name, value) in lines {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The head of a 1xx reply in bytes.
pub(crate) fn interim_bytes(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} {}\r\n\r\n", reason(status)).into_bytes()
}

fn body(step: &Reply, status: u16, mark: &Mark) -> (Option<&'static str>, Payload) {
    match &step.body {
        Some(Body::Pattern(n)) => (Some("application/octet-stream"), Payload::Pattern(*n)),
        Some(Body::Text(t)) => (Some("text/plain; charset=utf-8"), text(t)),
        Some(Body::Json(j)) => (Some("application/json"), text(j)),
        Some(Body::File(f)) => (
            Some("application/octet-stream"),
            Payload::Bytes(f.content.clone()),
        ),
        None if (200..300).contains(&status) && status != 204 => {
            (Some("application/json"), text(&mark.json))
        }
        None => (None, Payload::default()),
    }
}

fn text(t: &str) -> Payload {
    Payload::Bytes(Bytes::copy_from_slice(t.as_bytes()))
}

fn secs_floor(ns: i128) -> i64 {
    i64::try_from(ns.div_euclid(1_000_000_000)).unwrap_or(0)
}

/// The text of the line, and what it asks for.
fn retry_after(
    ra: &RetryAfter,
    now: i128,
    base: Option<i64>,
    auto: Option<u64>,
) -> (String, Option<Hint>) {
    let after = |secs: u64, date| Hint {
        ns: secs.saturating_mul(1_000_000_000),
        absolute: false,
        date,
    };
    match ra {
        RetryAfter::Auto => {
            let secs = auto.unwrap_or(0);
            (secs.to_string(), Some(after(secs, None)))
        }
        RetryAfter::Text(t) => {
            let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            // More digits than fit mean for ever, not nothing.
            let hint = digits.then(|| after(t.parse().unwrap_or(u64::MAX), None));
            (t.clone(), hint)
        }
        RetryAfter::Date { form, offset_ms } => {
            let from = base.map_or(now, |b| i128::from(b) * 1_000_000_000);
            let exact = from + i128::from(*offset_ms) * 1_000_000;
            let named = date::clamp(secs_floor(exact + 999_999_999));
            let hint = match base {
                // Beside a Date that is wrong on purpose, only the distance means anything.
                Some(b) => after(u64::try_from(named - b).unwrap_or(0), Some(named)),
                None => {
                    let ns = u64::try_from(named)
                        .unwrap_or(0)
                        .saturating_mul(1_000_000_000);
                    Hint {
                        ns,
                        absolute: true,
                        date: Some(named),
                    }
                }
            };
            (date::format(named, *form), Some(hint))
        }
    }
}

/// The usual reason phrase; empty where there is none.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        208 => "Already Reported",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        599 => "Mock",
        _ => "",
    }
}
