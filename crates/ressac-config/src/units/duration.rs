//! `500ms`, `10s`, `1h 30m`, `2d`.

use std::time::Duration;

use super::{UnitError, decimal, write_decimal};

const MILLI: u128 = 1_000_000;
const SECOND: u128 = 1_000 * MILLI;

/// The units, longest first: they must come in this order.
const UNITS: [(&str, u128); 5] = [
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", MILLI),
];

/// The longest duration taken: 366 days.
const LONGEST: u128 = 366 * 86_400 * SECOND;

const FIX: &str =
    "write a number and a unit of d, h, m, s or ms, e.g. \"500ms\", \"10s\", \"1h 30m\"";

/// Reads a duration: numbers with the units `d h m s ms`, longest first, at most 366 days.
///
/// # Errors
///
/// Says what is wrong: no unit, an unknown one, the wrong order, too long.
///
/// ```
/// use std::time::Duration;
/// use ressac_config::parse_duration;
///
/// assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5_400)));
/// assert_eq!(parse_duration("0.5s"), Ok(Duration::from_millis(500)));
/// assert!(parse_duration("10").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let fault = |what: String| UnitError { what, fix: FIX };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(fault("an empty text is no duration".into()));
    }
    let (mut total, mut next_unit) = (0u128, 0);
    while !rest.is_empty() {
        let Some((nanos_per_unit, after)) = decimal(rest, SECOND) else {
            return Err(fault("not a number".into()));
        };
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        if unit.is_empty() {
            return Err(fault("a number without a unit".into()));
        }
        let Some(index) = UNITS.iter().position(|(name, _)| *name == unit) else {
            return Err(fault(format!("`{unit}` is no unit of time")));
        };
        if index < next_unit {
            return Err(fault(format!(
                "`{unit}` out of order: longest unit first, each once"
            )));
        }
        next_unit = index + 1;
        let part = nanos_per_unit
            .checked_mul(UNITS[index].1)
            .map(|product| product / SECOND);
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LONGEST)
            .ok_or_else(|| fault("longer than 366 days".into()))?;
        rest = tail.trim_start();
    }
    // At most 366 days of nanoseconds: 64 bits are enough.
    Ok(Duration::from_nanos(
        u64::try_from(total).unwrap_or(u64::MAX),
    ))
}

/// Writes a duration so that [`parse_duration`] reads the same one: `1h 30m`, `500ms`.
///
/// ```
/// use std::time::Duration;
/// use ressac_config::format_duration;
///
/// assert_eq!(format_duration(Duration::from_secs(5_400)), "1h 30m");
/// assert_eq!(format_duration(Duration::ZERO), "0s");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    if rest == 0 {
        return "0s".into();
    }
    let mut parts = Vec::new();
    for (name, size) in &UNITS[..4] {
        if rest >= *size {
            parts.push(format!("{}{name}", rest / size));
            rest %= size;
        }
    }
    if rest > 0 {
        parts.push(format!("{}ms", write_decimal(rest, MILLI)));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("24h", 86_400_000),
            ("2d", 172_800_000),
            ("1.5 s", 1_500),
            (" 0s ", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_refused() {
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1x",
            "1s 1m",
            "1s 1s",
            "1..5s",
            ".5s",
            "5.s",
            "367d",
            "1e9s",
            "99999999999999999999999999999999s",
            "0.0000000001s",
            "1s,",
            "1µs",
            "١s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn durations_make_the_round_trip(nanos in 0..=LONGEST as u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", other in "[0-9.dhms ]{0,40}") {
            let _ = (parse_duration(&text), parse_duration(&other));
        }
    }
}
