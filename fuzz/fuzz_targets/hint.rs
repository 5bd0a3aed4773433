//! What a partner can write into its reply's headers must never panic the parser, and where there
//! is a second opinion the two must agree.
//!
//! An input is header lines, `Name: value`, parted by line feeds. The first eight bytes are the
//! client's clock, so that two-digit years and dates without a `Date` are covered too.

#![no_main]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use ressac_policy::{Hint, HintSource, Timestamp, VendorHints, parse_http_date};

fuzz_target!(|data: &[u8]| {
    let Some((clock, lines)) = data.split_first_chunk::<8>() else {
        return;
    };
    let now = Timestamp::from_nanos(u64::from_le_bytes(*clock));
    let headers: Vec<(&str, &[u8])> = lines
        .split(|byte| *byte == b'\n')
        .filter_map(header)
        .collect();

    let alone = Hint::from_headers(headers.iter().copied(), now, VendorHints::NONE);
    let all = Hint::from_headers(headers.iter().copied(), now, VendorHints::ALL);
    if alone.is_some() {
        assert_eq!(alone, all, "Retry-After wins over its relatives");
    }

    let named = |wanted: &str| {
        let mut found = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        (
            found.next().map(|(_, value)| trim(value)),
            found.next().is_some(),
        )
    };
    let (retry_after, twice) = named("retry-after");
    match retry_after {
        Some(value) if !twice => agrees(value, alone, now, &headers),
        _ => assert_eq!(alone, None, "absent or a list"),
    }
    for (_, value) in &headers {
        date_agrees(trim(value), now);
    }
});

fn header(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((
        std::str::from_utf8(&line[..colon]).ok()?,
        &line[colon + 1..],
    ))
}

/// Optional white space is space and tab, and nothing else.
fn trim(value: &[u8]) -> &[u8] {
    let ows = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = value.iter().position(|b| !ows(b)).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|b| !ows(b))
        .map_or(start, |last| last + 1);
    &value[start..end]
}

/// The wait of one `Retry-After`, worked out another way.
fn agrees(value: &[u8], got: Option<Hint>, now: Timestamp, headers: &[(&str, &[u8])]) {
    if let Some(hint) = got {
        assert_eq!(hint.source, HintSource::RetryAfter);
    }
    let wait = got.map(|hint| hint.wait);
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        assert_eq!(wait, Some(seconds(value)), "{}", value.escape_ascii());
    } else if let (Some(target), Some(clock)) = (oracle(value), clock(now, headers)) {
        let expected = target.duration_since(clock).unwrap_or(Duration::ZERO);
        assert_eq!(wait, Some(expected), "{}", value.escape_ascii());
    }
}

/// By decimal strings: without leading zeros, longer than 2^64 or later in the alphabet.
fn seconds(digits: &[u8]) -> Duration {
    let significant = &digits[digits.iter().take_while(|digit| **digit == b'0').count()..];
    let most = u64::MAX.to_string();
    let beyond = (significant.len(), significant) > (most.len(), most.as_bytes());
    if beyond {
        return Duration::MAX;
    }
    let mut sum = 0u128;
    for digit in significant {
        sum = sum * 10 + u128::from(digit - b'0');
    }
    Duration::from_secs(u64::try_from(sum).expect("no more than 2^64"))
}

/// What a date is measured from: the reply's own `Date` where it has one and no `Age`, else now.
/// `None` where `httpdate` cannot say.
fn clock(now: Timestamp, headers: &[(&str, &[u8])]) -> Option<SystemTime> {
    let is = |wanted: &'static str| {
        headers
            .iter()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| trim(value))
    };
    if is("date").next().is_none() || is("age").next().is_some() {
        return Some(UNIX_EPOCH + Duration::from_nanos(now.as_nanos()));
    }
    let mut dates = is("date");
    let date = dates.next().and_then(oracle)?;
    dates.next().is_none().then_some(date)
}

/// What `httpdate` reads, but for two-digit years: it splits the century at 1970, RFC 9110 at
/// fifty years from now.
fn oracle(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value).ok()?;
    // It also takes white space that is none in a header: a form feed, say.
    if text.contains('-') || text.trim() != text {
        return None;
    }
    httpdate::parse_http_date(text).ok()
}

fn date_agrees(value: &[u8], now: Timestamp) {
    let ours = parse_http_date(value, now);
    if let Some(theirs) = oracle(value) {
        let theirs = theirs
            .duration_since(UNIX_EPOCH)
            .expect("it reads none before 1970");
        let ours = ours.map(|date| date.unix_seconds);
        assert_eq!(
            ours,
            Some(theirs.as_secs() as i64),
            "{}",
            value.escape_ascii()
        );
    }
}
