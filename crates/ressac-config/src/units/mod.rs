//! Durations, rates and sizes as people write them.

mod duration;
mod rate;
mod size;

use std::fmt;

pub use duration::{format_duration, parse_duration};
pub use rate::{format_rate, parse_rate};
pub use size::{format_size, parse_size};

/// A duration, rate or size that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// What is wrong with it.
    pub what: String,
    /// What to write instead.
    pub fix: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.fix)
    }
}

impl std::error::Error for UnitError {}

/// The longest number taken: more digits than any unit here can use.
const MAX_DIGITS: usize = 30;

/// A decimal number at the start of `text`, in whole `parts` of one (a power of ten), and the rest.
/// `None` where there is no number, where it is finer than a part, or where it does not fit.
fn decimal(text: &str, parts: u128) -> Option<(u128, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if number.len() > MAX_DIGITS {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let numerator = whole
        .parse::<u128>()
        .ok()?
        .checked_mul(scale)?
        .checked_add(fraction.parse::<u128>().ok()?)?
        .checked_mul(parts)?;
    numerator
        .is_multiple_of(scale)
        .then_some((numerator / scale, rest))
}

/// Writes `amount / parts` without trailing zeros.
fn write_decimal(amount: u128, parts: u128) -> String {
    let (whole, rest) = (amount / parts, amount % parts);
    if rest == 0 {
        return whole.to_string();
    }
    let width = parts.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}
