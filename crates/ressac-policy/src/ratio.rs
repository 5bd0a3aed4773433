//! Shares and tokens counted in millionths, so that no budget is ever rounded away.

use core::fmt;

/// A share in whole millionths: `0.1` is 100 000. May exceed one (a budget may allow 150 %).
///
/// Integers on purpose: a ratio kept as a truncated `1 / ratio` turns 60 % into 100 %.
///
/// ```
/// use ressac_policy::Ratio;
///
/// assert_eq!(Ratio::from_f64(0.6), Some(Ratio::from_millionths(600_000)));
/// assert_eq!(Ratio::from_f64(-1.0), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Ratio(u32);

/// One, in millionths.
pub(crate) const ONE: u64 = 1_000_000;

impl Ratio {
    /// Nothing.
    pub const ZERO: Ratio = Ratio(0);
    /// The whole.
    pub const ONE: Ratio = Ratio(ONE as u32);

    /// `parts` millionths.
    #[must_use]
    pub const fn from_millionths(parts: u32) -> Self {
        Ratio(parts)
    }

    /// The nearest number of millionths; `None` for what is negative, not a number, or above
    /// 4 294 (the largest a ratio holds).
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        let parts = value * ONE as f64 + 0.5;
        (value >= 0.0 && parts < f64::from(u32::MAX)).then_some(Ratio(parts as u32))
    }

    /// The share in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// The share as a floating-point number, for printing.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / ONE as f64
    }

    /// This share of `amount`, rounded down, saturating.
    #[must_use]
    pub const fn of(self, amount: u64) -> u64 {
        if self.0 as u64 == ONE {
            return amount;
        }
        // 128-bit division costs as much as all the rest of a decision.
        if let Some(product) = amount.checked_mul(self.0 as u64) {
            return product / ONE;
        }
        let share = amount as u128 * self.0 as u128 / ONE as u128;
        if share > u64::MAX as u128 {
            u64::MAX
        } else {
            share as u64
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// So many per period: a rate of arrivals, or of tokens.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::Rate;
///
/// let rate = Rate::per_second(50);
/// assert_eq!(rate.interval(), Duration::from_millis(20));
/// assert_eq!(Rate::new(100_000, Duration::from_secs(1)).map(|r| r.per_second_f64()), Some(0.1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "StoredRate"))]
pub struct Rate {
    millionths: u64,
    period_nanos: u64,
}

/// What stands in a store, before it is believed.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredRate {
    millionths: u64,
    period_nanos: u64,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredRate> for Rate {
    type Error = &'static str;

    fn try_from(stored: StoredRate) -> Result<Self, Self::Error> {
        if stored.millionths == 0 || stored.period_nanos == 0 {
            return Err("a rate of nothing: both millionths and period_nanos must be above zero");
        }
        Ok(Rate {
            millionths: stored.millionths,
            period_nanos: stored.period_nanos,
        })
    }
}

impl Rate {
    /// `count` in each second; zero is taken as one, since a rate of nothing is "off".
    #[must_use]
    pub const fn per_second(count: u32) -> Self {
        let count = if count == 0 { 1 } else { count };
        Rate {
            millionths: count as u64 * ONE,
            period_nanos: 1_000_000_000,
        }
    }

    /// `millionths` of one in each `period`; `None` unless both are above zero, the period at most
    /// a year and the rate between one a year and a thousand million a second.
    #[must_use]
    pub const fn new(millionths: u64, period: core::time::Duration) -> Option<Self> {
        const YEAR_SECS: u64 = 366 * 86_400;
        if millionths == 0 || period.as_nanos() == 0 || period.as_secs() > YEAR_SECS {
            return None;
        }
        let rate = Rate {
            millionths,
            period_nanos: period.as_nanos() as u64,
        };
        let interval = rate.interval_nanos_wide();
        if interval == 0 || interval > YEAR_SECS as u128 * 1_000_000_000 {
            return None;
        }
        Some(rate)
    }

    const fn interval_nanos_wide(self) -> u128 {
        self.period_nanos as u128 * ONE as u128 / self.millionths as u128
    }

    /// The time between two at this rate, rounded down to a nanosecond.
    #[must_use]
    pub const fn interval(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.interval_nanos())
    }

    pub(crate) const fn interval_nanos(self) -> u64 {
        self.interval_nanos_wide() as u64
    }

    /// The rate per second, for printing.
    #[must_use]
    pub fn per_second_f64(self) -> f64 {
        self.millionths as f64 / ONE as f64 / (self.period_nanos as f64 / 1e9)
    }

    /// Millionths that come in `elapsed` nanoseconds, and what is carried to the next call so that
    /// nothing is ever lost to rounding, however time is cut up.
    #[inline(always)]
    pub(crate) const fn accrued(self, elapsed: u64, carried: u64) -> (u64, u64) {
        if let Some(product) = elapsed.checked_mul(self.millionths)
            && let Some(product) = product.checked_add(carried)
        {
            // A busy client asks more often than a millionth comes: no division for it.
            if product < self.period_nanos {
                return (0, product);
            }
            return (product / self.period_nanos, product % self.period_nanos);
        }
        self.accrued_wide(elapsed, carried)
    }

    #[cold]
    const fn accrued_wide(self, elapsed: u64, carried: u64) -> (u64, u64) {
        let product = (elapsed as u128 * self.millionths as u128).saturating_add(carried as u128);
        let whole = product / self.period_nanos as u128;
        let rest = (product % self.period_nanos as u128) as u64;
        (
            if whole > u64::MAX as u128 {
                u64::MAX
            } else {
                whole as u64
            },
            rest,
        )
    }

    /// Nanoseconds until `millionths` have come, rounded up.
    pub(crate) const fn time_for(self, millionths: u64) -> u64 {
        if let Some(product) = millionths.checked_mul(self.period_nanos) {
            return product.div_ceil(self.millionths);
        }
        let product = millionths as u128 * self.period_nanos as u128;
        let nanos = product.div_ceil(self.millionths as u128);
        if nanos > u64::MAX as u128 {
            u64::MAX
        } else {
            nanos as u64
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.per_second_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn shares_are_exact_where_truncation_is_not() {
        // tower 0.5.3 grants 100 % where 60 % was asked.
        assert_eq!(Ratio::from_f64(0.6).unwrap().of(10_000), 6_000);
        assert_eq!(Ratio::from_f64(0.7).unwrap().of(10_000), 7_000);
        assert_eq!(Ratio::from_f64(f64::NAN), None);
        assert_eq!(Ratio::from_f64(f64::INFINITY), None);
    }

    #[test]
    fn accrual_loses_nothing_to_rounding() {
        let rate = Rate::new(100_000, Duration::from_secs(1)).unwrap();
        let (mut sum, mut carried) = (0, 0);
        for _ in 0..1_000 {
            let (whole, rest) = rate.accrued(1_000_003, carried);
            sum += whole;
            carried = rest;
        }
        assert_eq!((sum, carried), rate.accrued(1_000_003_000, 0));
    }

    #[test]
    fn the_short_way_and_the_long_way_agree() {
        let rate = Rate::new(u64::from(u32::MAX), Duration::from_secs(3_600)).unwrap();
        for elapsed in [0, 1, 999, u64::MAX >> 33, u64::MAX >> 31, u64::MAX] {
            let wide = u128::from(elapsed) * u128::from(rate.millionths) + 7;
            let period = u128::from(rate.period_nanos);
            let expected = (
                u64::try_from(wide / period).unwrap_or(u64::MAX),
                (wide % period) as u64,
            );
            assert_eq!(rate.accrued(elapsed, 7), expected, "{elapsed}");
            let nanos = (u128::from(elapsed) * period).div_ceil(u128::from(rate.millionths));
            let expected = u64::try_from(nanos).unwrap_or(u64::MAX);
            assert_eq!(rate.time_for(elapsed), expected, "{elapsed}");
            let ratio = Ratio::from_millionths(u32::MAX);
            let share = u128::from(elapsed) * u128::from(u32::MAX) / u128::from(ONE);
            assert_eq!(ratio.of(elapsed), u64::try_from(share).unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        assert_eq!(Rate::new(0, Duration::from_secs(1)), None);
        assert_eq!(Rate::new(ONE, Duration::ZERO), None);
        assert_eq!(Rate::new(u64::MAX, Duration::from_nanos(1)), None);
        assert_eq!(Rate::new(1, Duration::from_secs(366 * 86_400)), None);
    }
}
