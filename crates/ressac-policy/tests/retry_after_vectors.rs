//! Every row of the vector file, one case a line (RA-1 to RA-10).
#![allow(missing_docs)]

use std::time::Duration;

use ressac_policy::{Hint, Timestamp, VendorHints};

/// `\xHH` stands for one byte.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).expect("two hex digits"));
        rest = &rest[at + 4..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// RFC 3339 in UTC, with milliseconds at most, by way of the oracle crate.
fn moment(text: &str) -> Timestamp {
    let (whole, fraction) = text
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((text.trim_end_matches('Z'), "0"));
    let (date, time) = whole.split_once('T').expect("a T");
    let mut parts = date.split('-').map(|p| p.parse::<u64>().expect("a number"));
    let (year, month, day) = (
        parts.next().expect("year"),
        parts.next().expect("month"),
        parts.next().expect("day"),
    );
    let names = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = names[month as usize - 1];
    // The asctime form leaves the weekday out of the oracle's checks.
    let parsed = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        .iter()
        .find_map(|d| {
            httpdate::parse_http_date(&format!("{d}, {day:02} {month} {year} {time} GMT")).ok()
        })
        .expect("a date the oracle reads");
    let since = parsed
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after the epoch");
    let millis: u64 = format!("{fraction:0<3}").parse().expect("digits");
    Timestamp::from_nanos((since + Duration::from_millis(millis)).as_nanos() as u64)
}

#[test]
fn every_row_of_the_vector_file() {
    let file = include_str!("retry-after.tsv");
    let mut rows = 0;
    for line in file
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, value, date, now, expected, why] = fields[..] else {
            panic!("not six fields: {line}")
        };
        let (value, date) = (unescape(value), unescape(date));
        let mut headers = vec![(name, &value[..])];
        if !date.is_empty() {
            headers.push(("Date", &date));
        }
        if why.starts_with("Age:") {
            headers.push(("Age", b"60"));
        }
        let got = Hint::from_headers(headers, moment(now), VendorHints::ALL).map(|hint| hint.wait);
        let expected = match expected {
            "absent" => None,
            "max" => Some(Duration::MAX),
            millis => Some(Duration::from_millis(millis.parse().expect("milliseconds"))),
        };
        assert_eq!(got, expected, "{line}");
        rows += 1;
    }
    assert!(rows >= 60, "only {rows} rows were run");
}
