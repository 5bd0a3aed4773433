//! Does a sample follow the claimed law? One-sample Kolmogorov-Smirnov.

use crate::claims::Jitter;
use crate::plan::Pace;

/// A uniform law between two waits, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Shortest.
    pub lo: f64,
    /// Longest.
    pub hi: f64,
}

impl Law {
    /// The law that is claimed for the first retry, or for one at the cap.
    #[must_use]
    pub fn claimed(pace: &Pace, at_cap: bool) -> Option<Self> {
        let c = if at_cap { pace.cap } else { pace.ceiling(0)? };
        Some(match pace.jitter {
            Jitter::None => return None,
            Jitter::Full => Self { lo: 0.0, hi: c },
            Jitter::Equal => Self { lo: c / 2.0, hi: c },
            Jitter::Up(x) => Self {
                lo: c,
                hi: c * (1.0 + x),
            },
            // At the cap it piles up by its own formula: no law is claimed there.
            Jitter::Decorrelated if at_cap => return None,
            Jitter::Decorrelated => {
                let base = pace.base?;
                Self {
                    lo: base,
                    hi: (3.0 * base).min(pace.cap),
                }
            }
        })
    }

    /// The gaps as shares of the width, the client's constant overhead taken off: the smallest
    /// gap less what is expected of it, at most 20 ms and 5 % of the ceiling.
    #[must_use]
    pub fn shares(self, gaps: &[f64], ceiling: f64) -> Vec<f64> {
        let width = self.hi - self.lo;
        let smallest = gaps.iter().copied().fold(f64::INFINITY, f64::min) - self.lo;
        let expected = width / (gaps.len() as f64 + 1.0);
        let delta = (smallest - expected).min(20.0).min(0.05 * ceiling).max(0.0);
        gaps.iter().map(|g| (g - self.lo - delta) / width).collect()
    }
}

/// The largest distance between the sample and the uniform law on `[0, 1]`.
///
/// ```
/// use ressac_prove::kolmogorov_smirnov;
///
/// let even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
/// assert!(kolmogorov_smirnov(&even) < 0.006);
/// let constant = vec![1.0; 100];
/// assert_eq!(kolmogorov_smirnov(&constant), 1.0);
/// ```
#[must_use]
pub fn kolmogorov_smirnov(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    sorted
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let at = x.clamp(0.0, 1.0);
            (at - i as f64 / n).max((i as f64 + 1.0) / n - at)
        })
        .fold(0.0, f64::max)
}

/// Above this distance a sample of n is rejected, α = 0.001.
#[must_use]
pub(crate) fn critical(n: usize) -> f64 {
    // Stephens' correction: within 0.2 % of the exact values for the sizes used here.
    let n = n as f64;
    1.9495 / (n.sqrt() + 0.12 + 0.11 / n.sqrt())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn the_limits_are_those_of_the_tables() {
        for (n, d) in [(400, 0.0970), (240, 0.1250), (60, 0.2476)] {
            assert!((critical(n) - d).abs() < 0.0007, "{n}: {}", critical(n));
        }
    }

    fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
        (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn rejected(n: usize, draw: impl Fn(f64) -> f64) -> usize {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let law = Law { lo: 0.0, hi: 400.0 };
        let samples = (0..500).map(|_| {
            let gaps: Vec<f64> = (0..n).map(|_| 400.0 * draw(uniform(&mut rng))).collect();
            kolmogorov_smirnov(&law.shares(&gaps, 400.0)) > critical(n)
        });
        samples.filter(|r| *r).count()
    }

    /// What is caught and what is not, by simulation.
    #[test]
    fn the_ideal_client_passes_and_other_laws_are_caught() {
        assert!(rejected(400, |u| u) <= 4);
        assert!(rejected(400, |u| u + 3.0 / 400.0) <= 5, "3 ms of overhead");
        assert!(rejected(400, |u| 0.9 * u) >= 250, "[0, 0.9c]");
        assert!(rejected(60, |u| 0.5 + 0.5 * u) >= 495, "equal, called full");
        assert_eq!(rejected(60, |_| 1.0), 500, "constant");
    }
}
