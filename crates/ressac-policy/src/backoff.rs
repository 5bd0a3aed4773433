//! The wait before a retry: a ceiling that grows, and a draw below it.

use core::time::Duration;

use rand_core::Rng;

use crate::random;
use crate::time::nanos;

/// How the wait is drawn below the ceiling `c(r)`.
///
/// Jitter spreads clients that fail together; it does not reduce their number (see
/// [`crate::Budget`] for what does).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Exactly `c(r)`. The bad example: all who fail together come back together.
    None,
    /// Uniform in `[0, c(r)]`.
    #[default]
    Full,
    /// `c(r)/2` and uniform in `[0, c(r)/2]` on top.
    Equal,
    /// Uniform in `[base, 3 × previous wait]`, at most the cap; the first previous is the base.
    /// The state is the operation's.
    Decorrelated,
}

impl Jitter {
    /// The word of configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Jitter::None => "none",
            Jitter::Full => "full",
            Jitter::Equal => "equal",
            Jitter::Decorrelated => "decorrelated",
        }
    }
}

/// Exponential backoff, capped before it is jittered, so that no backoff ever passes the cap.
///
/// Retry number `r` counts from 0: the wait before the first retry has the ceiling `base`.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::Backoff;
///
/// let backoff = Backoff::default();
/// assert_eq!(backoff.ceiling(0), Duration::from_millis(500));
/// assert_eq!(backoff.ceiling(2), Duration::from_secs(2));
/// // No overflow: every later ceiling is the cap.
/// assert_eq!(backoff.ceiling(u32::MAX), backoff.cap);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first ceiling; more than zero. Default 500 ms.
    pub base: Duration,
    /// What the ceiling grows by with each retry; finite, at least 1. Default 2.
    pub factor: f64,
    /// No ceiling is above it. Default 30 s.
    pub cap: Duration,
    /// Default [`Jitter::Full`].
    pub jitter: Jitter,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            base: Duration::from_millis(500),
            factor: 2.0,
            cap: Duration::from_secs(30),
            jitter: Jitter::Full,
        }
    }
}

impl Backoff {
    /// `c(r) = min(cap, base × factor^r)`, for every `r`, without overflow.
    #[must_use]
    pub fn ceiling(&self, retry: u32) -> Duration {
        Duration::from_nanos(self.ceiling_nanos(retry))
    }

    fn ceiling_nanos(&self, retry: u32) -> u64 {
        self.ceiling_of(nanos(self.base), nanos(self.cap), retry)
    }

    /// The ceiling, with base and cap in nanoseconds.
    #[inline]
    pub(crate) fn ceiling_of(&self, base: u64, cap: u64, retry: u32) -> u64 {
        if retry == 0 {
            return base.min(cap);
        }
        let grown = base as f64 * power(self.factor, retry);
        // Not `grown >= cap`: what is not a number must be capped too.
        if grown < cap as f64 {
            (grown as u64).min(cap)
        } else {
            cap
        }
    }

    /// The shortest wait that retry `retry` can draw.
    #[must_use]
    pub fn shortest(&self, retry: u32) -> Duration {
        Duration::from_nanos(self.range(retry, nanos(self.base)).0)
    }

    /// The shortest wait and the span above it, in nanoseconds.
    pub(crate) fn range(&self, retry: u32, previous: u64) -> (u64, u64) {
        let ceiling = self.ceiling_nanos(retry);
        match self.jitter {
            Jitter::None => (ceiling, 0),
            Jitter::Full => (0, ceiling),
            Jitter::Equal => (ceiling - ceiling / 2, ceiling / 2),
            Jitter::Decorrelated => {
                let base = nanos(self.base).min(nanos(self.cap));
                (base, previous.max(base).saturating_mul(3) - base)
            }
        }
    }

    /// Draws the wait before retry number `retry`. `previous` is what the last call of this
    /// operation returned (`base` before the first); only [`Jitter::Decorrelated`] looks at it.
    pub fn draw<R: Rng + ?Sized>(&self, retry: u32, previous: Duration, rng: &mut R) -> Duration {
        let (floor, span) = self.range(retry, nanos(previous));
        let wait = floor.saturating_add(random::up_to(rng, span));
        Duration::from_nanos(wait.min(nanos(self.cap)))
    }
}

/// `factor^exponent` by squaring: at most 64 multiplications for any exponent, each exact to half a
/// unit in the last place and the same on every platform.
fn power(factor: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, factor);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn rng() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(42)
    }

    #[test]
    fn bo_1_and_bo_2_overflow_yields_the_cap() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            ..Backoff::default()
        };
        for retry in [30, 63, 64, 1_023, 1_024, u32::MAX] {
            assert_eq!(backoff.ceiling(retry), backoff.cap);
        }
        let huge = Backoff {
            base: Duration::MAX,
            cap: Duration::MAX,
            ..backoff
        };
        assert_eq!(huge.ceiling(u32::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn bo_3_and_bo_7_base_above_the_cap_is_capped_from_the_first_wait() {
        for jitter in [
            Jitter::None,
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
        ] {
            let cap = Duration::from_millis(10);
            let backoff = Backoff {
                base: Duration::from_secs(1),
                cap,
                jitter,
                factor: 2.0,
            };
            let (mut rng, mut previous) = (rng(), backoff.base);
            for retry in 0..100 {
                previous = backoff.draw(retry, previous, &mut rng);
                assert!(previous <= cap);
            }
        }
    }

    #[test]
    fn bo_4_decorrelated_stays_finite_and_below_the_cap() {
        let backoff = Backoff {
            jitter: Jitter::Decorrelated,
            ..Backoff::default()
        };
        let (mut rng, mut previous) = (rng(), backoff.base);
        for retry in 0..100_000 {
            previous = backoff.draw(retry, previous, &mut rng);
            assert!(previous >= backoff.base && previous <= backoff.cap);
        }
    }

    #[test]
    fn bo_5_and_bo_6_jitter_lives_at_the_cap_and_scales_with_the_ceiling() {
        for jitter in [Jitter::Full, Jitter::Equal] {
            let backoff = Backoff {
                jitter,
                ..Backoff::default()
            };
            let mut rng = rng();
            let draws: Vec<_> = (0..1_000)
                .map(|_| backoff.draw(40, backoff.base, &mut rng))
                .collect();
            let (low, high) = (draws.iter().min().unwrap(), draws.iter().max().unwrap());
            assert!(*high <= backoff.cap);
            assert!(
                *high - *low > backoff.cap.mul_f64(0.45),
                "{jitter:?} {low:?}..{high:?}"
            );
        }
    }

    #[test]
    fn bo_8_and_bo_9_the_ceiling_depends_on_the_retry_alone() {
        let backoff = Backoff {
            base: Duration::from_millis(50),
            ..Backoff::default()
        };
        let ceilings: Vec<_> = (0..4).map(|r| backoff.ceiling(r).as_millis()).collect();
        assert_eq!(ceilings, [50, 100, 200, 400]);
    }

    #[test]
    fn a_factor_that_is_not_a_number_is_capped() {
        let backoff = Backoff {
            factor: f64::NAN,
            ..Backoff::default()
        };
        assert_eq!(backoff.ceiling(3), backoff.cap);
    }
}
