//! `10MB`, `256KiB`.

use super::{UnitError, decimal};

const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

const FIX: &str = "write a number and B, KB, MB, GB, KiB, MiB or GiB, e.g. \"10MB\"";

/// Reads a size in bytes: `KB MB GB` count in thousands, `KiB MiB GiB` in 1024s.
///
/// # Errors
///
/// Says what is wrong: no unit, an unknown one, no whole number of bytes, too large.
///
/// ```
/// use ressac_config::parse_size;
///
/// assert_eq!(parse_size("10MB"), Ok(10_000_000));
/// assert_eq!(parse_size("256KiB"), Ok(262_144));
/// assert!(parse_size("10").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let fault = |what: String| UnitError { what, fix: FIX };
    // Nine decimals are enough for every byte of a gigabyte.
    let Some((parts, unit)) = decimal(text.trim(), PARTS) else {
        return Err(fault("not a number".into()));
    };
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(fault("a number without a unit".into()));
    }
    let Some((_, bytes)) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
    else {
        return Err(fault(format!("`{unit}` is no unit of size")));
    };
    let product = parts
        .checked_mul(u128::from(*bytes))
        .ok_or_else(|| fault("too large".into()))?;
    if !product.is_multiple_of(PARTS) {
        return Err(fault("not a whole number of bytes".into()));
    }
    u64::try_from(product / PARTS).map_err(|_| fault("too large".into()))
}

const PARTS: u128 = 1_000_000_000;

/// Writes a size so that [`parse_size`] reads the same one, in the largest unit that divides it.
///
/// ```
/// assert_eq!(ressac_config::format_size(10_000_000), "10MB");
/// ```
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let fits = |size: u64| bytes > 0 && bytes.is_multiple_of(size);
    UNITS.iter().find(|(_, size)| fits(*size)).map_or_else(
        || format!("{bytes}B"),
        |(name, size)| format!("{}{name}", bytes / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_refused() {
        for text in ["", "10", "MB", "-1MB", "0.5B", "1TB", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("1.5 kb"), Ok(1_500));
    }

    proptest! {
        #[test]
        fn sizes_make_the_round_trip(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }
}
