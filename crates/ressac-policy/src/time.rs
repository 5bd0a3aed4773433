//! The engine's only notion of time: a moment handed in by the caller.

use core::fmt;
use core::time::Duration;

/// A moment: whole nanoseconds since the Unix epoch (1970-01-01T00:00:00Z), up to the year 2554.
///
/// The engine never reads a clock. A shell hands in *its* now: the gateway the wall time at its
/// start plus a monotonic clock's progress since, a test or the simulator any number it likes.
/// Only differences matter, except where a partner names a calendar date in `Retry-After`.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::Timestamp;
///
/// let t = Timestamp::from_secs(10) + Duration::from_millis(1);
/// assert_eq!(t.since(Timestamp::from_secs(10)), Duration::from_millis(1));
/// // A difference never goes below zero: clocks step back, waits do not.
/// assert_eq!(Timestamp::from_secs(1).since(t), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Later than every other moment: "never".
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The moment this many nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Timestamp(nanos)
    }

    /// The moment this many milliseconds after the epoch; saturates at [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Timestamp(millis.saturating_mul(1_000_000))
    }

    /// The moment this many seconds after the epoch; saturates at [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Timestamp(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch, rounded up, so that a wait kept in milliseconds never
    /// ends before the moment it stands for.
    #[must_use]
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Is this [`Timestamp::MAX`], the moment that does not come?
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    /// Nanoseconds from now until then; zero if it is past.
    pub(crate) const fn nanos_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) const fn plus_nanos(self, nanos: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(nanos))
    }
}

/// Saturates: nothing comes after [`Timestamp::MAX`].
impl core::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, rhs: Duration) -> Timestamp {
        self.plus_nanos(nanos(rhs))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return f.write_str("never");
        }
        write!(
            f,
            "{}.{:03}",
            self.0 / 1_000_000_000,
            self.0 / 1_000_000 % 1_000
        )
    }
}

/// A duration in nanoseconds, saturated at 584 years.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

/// As [`Duration::from_nanos`], without its division below a second.
#[inline]
pub(crate) const fn duration(nanos: u64) -> Duration {
    if nanos < 1_000_000_000 {
        Duration::new(0, nanos as u32)
    } else {
        Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addition_saturates() {
        assert_eq!(Timestamp::from_secs(1) + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
    }

    #[test]
    fn milliseconds_round_up() {
        assert_eq!(Timestamp::from_nanos(1_000_001).as_millis_ceil(), 2);
        assert_eq!(Timestamp::from_nanos(1_000_000).as_millis_ceil(), 1);
    }
}
