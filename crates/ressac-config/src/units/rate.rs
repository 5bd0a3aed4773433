//! `50/s`, `0.1/s`, `100/min`.

use std::time::Duration;

use ressac_policy::Rate;

use super::{UnitError, decimal, write_decimal};

const MILLION: u128 = 1_000_000;

/// The periods and their seconds; the first spelling of each is the one written.
const PERIODS: [(&str, u64); 5] = [
    ("s", 1),
    ("min", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("m", 60),
];

const FIX: &str = "write a number per s, min, h or d, e.g. \"50/s\", \"100/min\"";

/// Reads a rate: a number above zero, a slash and one of `s min h d`.
///
/// # Errors
///
/// Says what is wrong: no slash, an unknown period, zero, finer than a millionth, out of range
/// (one a year to a thousand million a second).
///
/// ```
/// use ressac_config::parse_rate;
/// use ressac_policy::Rate;
///
/// assert_eq!(parse_rate("50/s"), Ok(Rate::per_second(50)));
/// assert!(parse_rate("50").is_err());
/// ```
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    let fault = |what: String| UnitError { what, fix: FIX };
    let Some((number, period)) = text.trim().split_once('/') else {
        return Err(fault("no period: per what?".into()));
    };
    let period = period.trim();
    let Some((_, seconds)) = PERIODS.iter().find(|(name, _)| *name == period) else {
        return Err(fault(format!("`{period}` is no period")));
    };
    let millionths = match decimal(number.trim(), MILLION) {
        Some((millionths, "")) => millionths,
        _ => return Err(fault("not a number of at most six decimals".into())),
    };
    if millionths == 0 {
        return Err(fault("a rate of zero sends nothing, ever".into()));
    }
    u64::try_from(millionths)
        .ok()
        .and_then(|millionths| Rate::new(millionths, Duration::from_secs(*seconds)))
        .ok_or_else(|| fault("out of range: one a year to a thousand million a second".into()))
}

/// Writes a rate so that [`parse_rate`] reads the same one, if it is per second, minute, hour or
/// day; else the nearest per second.
///
/// ```
/// use ressac_config::{format_rate, parse_rate};
///
/// assert_eq!(format_rate(parse_rate("100/min").unwrap()), "100/min");
/// ```
#[must_use]
pub fn format_rate(rate: Rate) -> String {
    for (name, seconds) in &PERIODS[..4] {
        let millionths = (rate.per_second_f64() * *seconds as f64 * MILLION as f64).round() as u64;
        if Rate::new(millionths, Duration::from_secs(*seconds)) == Some(rate) {
            return format!("{}/{name}", write_decimal(u128::from(millionths), MILLION));
        }
    }
    rate.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_refused() {
        for text in [
            "",
            "50",
            "/s",
            "50/",
            "0/s",
            "0.0/s",
            "-1/s",
            "1/fortnight",
            "0.0000001/s",
            "99999999999999999999/s",
            "1/s/s",
            "1 2/s",
            "0.001/d",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(parse_rate("60/m"), parse_rate(" 60 / min "));
    }

    proptest! {
        #[test]
        fn rates_make_the_round_trip(
            millionths in 3_000u64..1_000_000_000_000,
            period in 0usize..4,
        ) {
            let rate = Rate::new(millionths, Duration::from_secs(PERIODS[period].1)).unwrap();
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", other in "[0-9./smhd]{0,40}") {
            let _ = (parse_rate(&text), parse_rate(&other));
        }
    }
}
