//! HTTP-dates in their three forms (RFC 9110, 5.6.7).

use crate::step::DateForm;

const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// The last second of the year 9999: a later one has no HTTP-date.
const LAST: i64 = 253_402_300_799;

/// Seconds that an HTTP-date can name.
pub(crate) fn clamp(unix: i64) -> i64 {
    unix.clamp(0, LAST)
}

/// Writes the date of a second since 1970, brought into the range 1970 to 9999.
pub(crate) fn format(unix: i64, form: DateForm) -> String {
    let unix = clamp(unix);
    let (days, secs) = (unix / 86_400, unix % 86_400);
    let (year, month, day) = civil(days);
    let weekday = DAYS[(days % 7) as usize];
    let short = &weekday[..3];
    let month = MONTHS[month - 1];
    let (h, m, s) = (secs / 3600, secs / 60 % 60, secs % 60);
    match form {
        DateForm::Imf => format!("{short}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} GMT"),
        DateForm::Rfc850 => {
            format!(
                "{weekday}, {day:02}-{month}-{:02} {h:02}:{m:02}:{s:02} GMT",
                year % 100
            )
        }
        DateForm::Asctime => format!("{short} {month} {day:2} {h:02}:{m:02}:{s:02} {year:04}"),
    }
}

/// Year, month (1 to 12) and day (from 1) of a day counted from 1970-01-01, which is day 0.
pub(crate) fn civil(mut days: i64) -> (i64, usize, i64) {
    // Whole 400-year cycles first, then at most 400 years one by one.
    let mut year = 1970 + days.div_euclid(146_097) * 400;
    days = days.rem_euclid(146_097);
    while days >= year_len(year) {
        days -= year_len(year);
        year += 1;
    }
    let mut month = 1;
    while days >= month_len(year, month) {
        days -= month_len(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn year_len(year: i64) -> i64 {
    if leap(year) { 366 } else { 365 }
}

fn month_len(year: i64, month: usize) -> i64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn the_three_forms_of_the_rfc() {
        let t = 784_111_777;
        assert_eq!(format(t, DateForm::Imf), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            format(t, DateForm::Rfc850),
            "Sunday, 06-Nov-94 08:49:37 GMT"
        );
        assert_eq!(format(t, DateForm::Asctime), "Sun Nov  6 08:49:37 1994");
        assert_eq!(format(-5, DateForm::Imf), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            format(i64::MAX, DateForm::Imf),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
    }

    proptest::proptest! {
        #[test]
        fn an_independent_parser_reads_the_same(t in 0i64..253_402_300_799) {
            // Two-digit years only mean what was meant within a century.
            let forms = [DateForm::Imf, DateForm::Asctime, DateForm::Rfc850];
            let n = if (784_111_777..1_900_000_000).contains(&t) { 3 } else { 2 };
            for form in &forms[..n] {
                let want = UNIX_EPOCH + Duration::from_secs(t as u64);
                proptest::prop_assert_eq!(httpdate::parse_http_date(&format(t, *form)).unwrap(), want);
            }
        }
    }
}
