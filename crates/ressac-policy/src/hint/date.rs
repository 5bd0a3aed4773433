//! The three forms of an HTTP-date (RFC 9110 §5.6.7), read strictly but for the weekday.
//!
//! Our own parser because five forms that the RFC lets a recipient read are refused elsewhere:
//! a wrong weekday, second 60, year 0000, and two-digit years across a century.

use crate::time::Timestamp;

/// An HTTP-date: whole seconds since the Unix epoch, negative before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpDate {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub unix_seconds: i64,
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const DAYS: [&[u8]; 7] = [
    b"Monday",
    b"Tuesday",
    b"Wednesday",
    b"Thursday",
    b"Friday",
    b"Saturday",
    b"Sunday",
];

/// Parses IMF-fixdate, the RFC 850 form or the asctime form; `None` for anything else.
///
/// A weekday that does not fit the date is accepted: the name adds nothing. `now` places the
/// two-digit year of RFC 850: a date more than 50 years ahead lies in the past (RFC 9110 §5.6.7).
///
/// ```
/// use ressac_policy::{Timestamp, parse_http_date};
///
/// let now = Timestamp::from_secs(1_796_040_000);
/// let forms = [
///     "Mon, 30 Nov 2026 12:02:00 GMT",
///     "Monday, 30-Nov-26 12:02:00 GMT",
///     "Mon Nov 30 12:02:00 2026",
/// ];
/// for form in forms {
///     let date = parse_http_date(form.as_bytes(), now).unwrap();
///     assert_eq!(date.unix_seconds, 1_796_040_120);
/// }
/// assert!(parse_http_date(b"mon, 30 nov 2026 12:02:00 gmt", now).is_none());
/// ```
#[must_use]
pub fn parse_http_date(value: &[u8], now: Timestamp) -> Option<HttpDate> {
    imf_fixdate(value)
        .or_else(|| rfc_850(value, now))
        .or_else(|| asctime(value))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(value: &[u8]) -> Option<HttpDate> {
    let mut text = Text(value);
    text.short_day()?;
    text.literal(b", ")?;
    let day = text.two_digits()?;
    text.literal(b" ")?;
    let month = text.month()?;
    text.literal(b" ")?;
    let year = text.four_digits()?;
    text.literal(b" ")?;
    let time = text.time_of_day()?;
    text.literal(b" GMT")?;
    text.end()?;
    civil(year, month, day, time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc_850(value: &[u8], now: Timestamp) -> Option<HttpDate> {
    let mut text = Text(value);
    DAYS.iter().find_map(|day| text.literal(day))?;
    text.literal(b", ")?;
    let day = text.two_digits()?;
    text.literal(b"-")?;
    let month = text.month()?;
    text.literal(b"-")?;
    let year_of_century = text.two_digits()?;
    text.literal(b" ")?;
    let time = text.time_of_day()?;
    text.literal(b" GMT")?;
    text.end()?;
    nearest_century(year_of_century, month, day, time, now)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(value: &[u8]) -> Option<HttpDate> {
    let mut text = Text(value);
    text.short_day()?;
    text.literal(b" ")?;
    let month = text.month()?;
    text.literal(b" ")?;
    let day = match text.literal(b" ") {
        Some(()) => text.digit()?,
        None => text.two_digits()?,
    };
    text.literal(b" ")?;
    let time = text.time_of_day()?;
    text.literal(b" ")?;
    let year = text.four_digits()?;
    text.end()?;
    civil(year, month, day, time)
}

/// The latest year with these last two digits whose date is at most 50 years ahead of now.
fn nearest_century(
    year_of_century: u32,
    month: u32,
    day: u32,
    time: u32,
    now: Timestamp,
) -> Option<HttpDate> {
    let now_seconds = (now.as_nanos() / 1_000_000_000) as i64;
    let now_days = now_seconds.div_euclid(86_400);
    let (now_year, now_month, now_day) = civil_from_days(now_days);
    let fifty_ahead = days_from_civil(now_year + 50, now_month, now_day) * 86_400
        + now_seconds.rem_euclid(86_400);
    let century = now_year.div_euclid(100) * 100;
    [century + 100, century, century - 100]
        .into_iter()
        .find_map(|hundreds| {
            let year = u32::try_from(hundreds + i64::from(year_of_century)).ok()?;
            civil(year, month, day, time).filter(|date| date.unix_seconds <= fifty_ahead)
        })
}

/// The moment, if there is such a day.
fn civil(year: u32, month: u32, day: u32, second_of_day: u32) -> Option<HttpDate> {
    let days = days_from_civil(i64::from(year), month, day);
    // A day beyond its month's end comes back as another: 31 February must not slip into March.
    if day == 0 || civil_from_days(days) != (i64::from(year), month, day) {
        return None;
    }
    Some(HttpDate {
        unix_seconds: days * 86_400 + i64::from(second_of_day),
    })
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counting years from March so that
/// the leap day comes last.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = i64::from((153 * month + 2) / 5 + day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse: year, month 1 to 12, day 1 to 31.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year_of_era + carry, month as u32, day)
}

/// What is left to read.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn digit(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first()?;
        let digit = first.is_ascii_digit().then(|| u32::from(first - b'0'))?;
        self.0 = rest;
        Some(digit)
    }

    fn two_digits(&mut self) -> Option<u32> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    fn four_digits(&mut self) -> Option<u32> {
        Some(self.two_digits()? * 100 + self.two_digits()?)
    }

    fn short_day(&mut self) -> Option<()> {
        DAYS.iter().find_map(|day| self.literal(&day[..3]))
    }

    fn month(&mut self) -> Option<u32> {
        let index = MONTHS
            .iter()
            .position(|month| self.0.starts_with(&month[..]))?;
        self.0 = &self.0[3..];
        Some(index as u32 + 1)
    }

    /// Seconds since midnight. Second 60 is in the grammar: a leap second, the next minute's first.
    fn time_of_day(&mut self) -> Option<u32> {
        let hour = self.two_digits()?;
        self.literal(b":")?;
        let minute = self.two_digits()?;
        self.literal(b":")?;
        let second = self.two_digits()?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_round_trips_over_a_thousand_years() {
        for days in (-719_528..400_000).step_by(1) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn no_such_day() {
        for bad in [
            "Wed, 31 Feb 2027 12:00:00 GMT",
            "Mon, 00 Nov 2026 12:00:00 GMT",
            "Mon, 29 Feb 2027 12:00:00 GMT",
            "Mon, 30 Nov 2026 24:00:00 GMT",
        ] {
            assert_eq!(
                parse_http_date(bad.as_bytes(), Timestamp::ZERO),
                None,
                "{bad}"
            );
        }
    }
}
