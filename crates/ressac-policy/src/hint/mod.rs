//! When the partner wants us back: `Retry-After` and its relatives.
//!
//! Parsing only. What a hint *does* (a floor under the wait, a hold on the partner) is decided in
//! [`crate::Operation`] and [`crate::Partner`]. A value that is malformed, negative or fractional
//! is no hint at all, and the ordinary backoff goes on.

mod date;
mod rate_limit;

use core::time::Duration;

use crate::time::Timestamp;

pub use date::{HttpDate, parse_http_date};

/// A wait that the partner asked for, counted from the receipt of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hint {
    /// How long, from the receipt of the reply. [`Duration::MAX`] stands for a number beyond
    /// 64 bits: the longest there is. The policy's maximum comes later.
    pub wait: Duration,
    /// Which field said so.
    pub source: HintSource,
}

/// The field a hint came from. Its name fixes the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum HintSource {
    /// `Retry-After` (RFC 9110 §10.2.3): seconds, or one of three date forms.
    RetryAfter,
    /// `retry-after-ms`: milliseconds.
    RetryAfterMs,
    /// `x-ms-retry-after-ms`: milliseconds.
    XMsRetryAfterMs,
    /// `RateLimit` (draft-ietf-httpapi-ratelimit-headers): a policy with nothing left.
    RateLimit,
    /// `RateLimit-Reset`: seconds from now.
    RateLimitReset,
    /// `X-RateLimit-Reset`: seconds from now, or from 1 000 000 000 up a Unix time.
    XRateLimitReset,
}

/// Which relatives of `Retry-After` are believed, besides `Retry-After` itself. A set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct VendorHints(u8);

const VENDORS: [(&str, HintSource); 5] = [
    ("retry-after-ms", HintSource::RetryAfterMs),
    ("x-ms-retry-after-ms", HintSource::XMsRetryAfterMs),
    ("ratelimit", HintSource::RateLimit),
    ("ratelimit-reset", HintSource::RateLimitReset),
    ("x-ratelimit-reset", HintSource::XRateLimitReset),
];

impl VendorHints {
    /// `Retry-After` alone.
    pub const NONE: VendorHints = VendorHints(0);
    /// All that are known.
    pub const ALL: VendorHints = VendorHints((1 << VENDORS.len()) - 1);

    /// The names that [`VendorHints::with`] takes.
    pub const NAMES: [&'static str; 5] = [
        "retry-after-ms",
        "x-ms-retry-after-ms",
        "RateLimit",
        "RateLimit-Reset",
        "X-RateLimit-Reset",
    ];

    /// With this field believed too; `None` for a name that is not in [`VendorHints::NAMES`]
    /// (upper or lower case does not matter).
    #[must_use]
    pub fn with(self, name: &str) -> Option<Self> {
        let index = VENDORS
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(VendorHints(self.0 | 1 << index))
    }

    const fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

/// A copy made part by part. What was written in parts a moment ago, as a hint of a reply just
/// read, costs a stall of the pipeline when it is copied as a block.
#[inline]
pub(crate) const fn by_parts(hint: &Option<Hint>) -> Option<Hint> {
    match hint {
        Some(Hint { wait, source }) => Some(Hint {
            wait: Duration::new(wait.as_secs(), wait.subsec_nanos()),
            source: *source,
        }),
        None => None,
    }
}

impl Hint {
    /// Reads the hint from a reply's header fields, given in any order, names in any case.
    ///
    /// `now` is the moment of receipt. A date is measured against the reply's own `Date` where
    /// there is one and no `Age` (a stored reply's `Date` is old), else against `now`, so that a
    /// wrong clock on this side does no harm. `Retry-After` wins over the `vendors`, which count
    /// in the order of [`VendorHints::NAMES`]. A field given twice is a list, which `Retry-After`
    /// is not: absent.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ressac_policy::{Hint, Timestamp, VendorHints};
    ///
    /// let read = |value: &str| {
    ///     let headers = [("Retry-After", value.as_bytes())];
    ///     Hint::from_headers(headers, Timestamp::from_secs(1_796_040_000), VendorHints::NONE)
    ///         .map(|hint| hint.wait)
    /// };
    /// assert_eq!(read("120"), Some(Duration::from_secs(120)));
    /// assert_eq!(read("Mon, 30 Nov 2026 12:02:00 GMT"), Some(Duration::from_secs(120)));
    /// assert_eq!(read("1.5"), None);
    /// ```
    pub fn from_headers<'a, I>(headers: I, now: Timestamp, vendors: VendorHints) -> Option<Hint>
    where
        I: IntoIterator<Item = (&'a str, &'a [u8])>,
    {
        let mut fields = Fields::default();
        for (name, value) in headers {
            fields.take(name, trim(value));
        }
        let clock = fields.clock(now);
        if let Once::One(value) = fields.retry_after
            && let Some(wait) = seconds(value).or_else(|| date_wait(value, &clock))
        {
            return Some(Hint {
                wait,
                source: HintSource::RetryAfter,
            });
        }
        VENDORS
            .iter()
            .enumerate()
            .filter(|(index, _)| vendors.has(*index))
            .find_map(|(index, (_, source))| {
                let Once::One(value) = fields.vendors[index] else {
                    return None;
                };
                let wait = vendor_wait(*source, value, &clock)?;
                Some(Hint {
                    wait,
                    source: *source,
                })
            })
    }
}

/// A field's value if it came exactly once.
#[derive(Clone, Copy, Default)]
enum Once<'a> {
    #[default]
    Absent,
    One(&'a [u8]),
    Many,
}

impl<'a> Once<'a> {
    fn take(&mut self, value: &'a [u8]) {
        *self = match self {
            Once::Absent => Once::One(value),
            Once::One(_) | Once::Many => Once::Many,
        };
    }
}

#[derive(Default)]
struct Fields<'a> {
    retry_after: Once<'a>,
    date: Once<'a>,
    aged: bool,
    vendors: [Once<'a>; VENDORS.len()],
}

impl<'a> Fields<'a> {
    fn take(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("retry-after") {
            self.retry_after.take(value);
        } else if name.eq_ignore_ascii_case("date") {
            self.date.take(value);
        } else if name.eq_ignore_ascii_case("age") {
            self.aged = true;
        } else if let Some(index) = VENDORS
            .iter()
            .position(|(known, _)| name.eq_ignore_ascii_case(known))
        {
            self.vendors[index].take(value);
        }
    }

    fn clock(&self, now: Timestamp) -> Clock {
        let date = match self.date {
            Once::One(value) if !self.aged => parse_http_date(value, now),
            _ => None,
        };
        Clock { now, date }
    }
}

/// The two moments a date can be measured from.
struct Clock {
    now: Timestamp,
    date: Option<HttpDate>,
}

impl Clock {
    /// From the reply's `Date`, or else from now, to this Unix second; zero if it is past.
    fn until(&self, unix_seconds: i64) -> Duration {
        match self.date {
            Some(date) => {
                Duration::from_secs(unix_seconds.saturating_sub(date.unix_seconds).max(0) as u64)
            }
            None => {
                let target = Duration::from_secs(unix_seconds.max(0) as u64);
                target.saturating_sub(Duration::from_nanos(self.now.as_nanos()))
            }
        }
    }
}

fn date_wait(value: &[u8], clock: &Clock) -> Option<Duration> {
    Some(clock.until(parse_http_date(value, clock.now)?.unix_seconds))
}

fn vendor_wait(source: HintSource, value: &[u8], clock: &Clock) -> Option<Duration> {
    /// From here up a reset is a Unix time: as a delta it would be 31 years.
    const EPOCH_FROM: u64 = 1_000_000_000;
    match source {
        HintSource::RetryAfter => seconds(value),
        HintSource::RetryAfterMs | HintSource::XMsRetryAfterMs => {
            digits(value).map(|ms| ms.map_or(Duration::MAX, Duration::from_millis))
        }
        HintSource::RateLimit => rate_limit::wait(value),
        HintSource::RateLimitReset => seconds(value),
        HintSource::XRateLimitReset => match digits(value)? {
            Some(unix) if unix >= EPOCH_FROM => {
                Some(clock.until(i64::try_from(unix).unwrap_or(i64::MAX)))
            }
            _ => seconds(value),
        },
    }
}

/// `1*DIGIT` as seconds; beyond 64 bits it is the longest wait.
fn seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(|secs| secs.map_or(Duration::MAX, Duration::from_secs))
}

/// `1*DIGIT`: `Some(None)` means digits all right, but more than 64 bits hold.
fn digits(value: &[u8]) -> Option<Option<u64>> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().try_fold(0u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    }))
}

/// Without the optional white space around a field value (RFC 9110 §5.5).
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_796_040_000);

    #[test]
    fn ra_11_retry_after_wins_over_its_relatives() {
        let headers = [("retry-after-ms", &b"120"[..]), ("retry-after", &b"1"[..])];
        let hint = Hint::from_headers(headers, NOW, VendorHints::ALL).unwrap();
        assert_eq!(hint.wait, Duration::from_secs(1));
        assert_eq!(hint.source, HintSource::RetryAfter);
    }

    #[test]
    fn ra_5_two_lines_are_a_list_and_a_list_is_absent() {
        let headers = [("Retry-After", &b"1"[..]), ("retry-after", &b"2"[..])];
        assert_eq!(Hint::from_headers(headers, NOW, VendorHints::ALL), None);
    }

    #[test]
    fn a_malformed_retry_after_leaves_room_for_a_relative() {
        let headers = [
            ("retry-after", &b"soon"[..]),
            ("RateLimit-Reset", &b"7"[..]),
        ];
        let hint = Hint::from_headers(headers, NOW, VendorHints::ALL).unwrap();
        assert_eq!(hint.source, HintSource::RateLimitReset);
    }

    #[test]
    fn relatives_are_believed_on_request_only() {
        let headers = [("retry-after-ms", &b"1500"[..])];
        assert_eq!(Hint::from_headers(headers, NOW, VendorHints::NONE), None);
        let only = VendorHints::NONE.with("Retry-After-MS").unwrap();
        assert!(Hint::from_headers(headers, NOW, only).is_some());
        assert_eq!(VendorHints::NONE.with("x-unheard-of"), None);
    }

    #[test]
    fn every_name_is_known() {
        let all = VendorHints::NAMES
            .iter()
            .fold(VendorHints::NONE, |set, name| set.with(name).unwrap());
        assert_eq!(all, VendorHints::ALL);
    }
}
