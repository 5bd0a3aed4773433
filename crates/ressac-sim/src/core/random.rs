//! Random numbers: one stream for each client and each purpose, all from one seed.

use rand_core::{Rng, SeedableRng, TryRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers, named by seed, purpose and index.
///
/// Each client has its own, so that what one draws never moves what another draws: two policies
/// in the same scenario and seed meet the same arrivals and the same service times, and their
/// difference is their own.
///
/// ```
/// use ressac_sim::Stream;
///
/// let draw = |index| Stream::new(1, "client", index).below(1_000_000);
/// assert_eq!(draw(3), draw(3));
/// assert_ne!(draw(3), draw(4));
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of this seed, purpose and index.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, index: u64) -> Self {
        let mut key = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        for byte in purpose.bytes() {
            key = mix(key ^ u64::from(byte));
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(key ^ mix(index))))
    }

    /// Uniform in `0..bound`; 0 where `bound` is 0. The bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `(0, 1]`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Exponential with this mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        let one: f64 = Exp1.sample(&mut self.0);
        one * mean
    }

    /// Normal with mean 0 and standard deviation 1.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }
}

impl TryRng for Stream {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// The output function of SplitMix64: a bijection in which every bit depends on every other.
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_never_change() {
        let mut stream = Stream::new(42, "arrivals", 0);
        let drawn: Vec<u64> = (0..3).map(|_| stream.below(1_000_000)).collect();
        assert_eq!(drawn, FIRST_NUMBERS);
    }

    const FIRST_NUMBERS: [u64; 3] = [68_832, 111_903, 327_116];

    #[test]
    fn the_laws_have_their_means() {
        let mut stream = Stream::new(1, "laws", 0);
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / n as f64;
        let exponential = mean(&mut || stream.exponential(3.0));
        assert!((exponential - 3.0).abs() < 0.035, "{exponential}");
        let square = mean(&mut || stream.normal().powi(2));
        assert!((square - 1.0).abs() < 0.015, "{square}");
        let unit = mean(&mut || stream.unit());
        assert!((unit - 0.5).abs() < 0.003, "{unit}");
    }

    #[test]
    fn streams_of_neighbours_are_unrelated() {
        let n = 20_000;
        let mut product = 0.0;
        for index in 0..n {
            let a = Stream::new(1, "client", index).unit() - 0.5;
            let b = Stream::new(1, "client", index + 1).unit() - 0.5;
            product += a * b;
        }
        // The correlation of n pairs has the standard deviation 1/sqrt(n).
        assert!((product * 12.0 / n as f64).abs() < 5.0 / (n as f64).sqrt());
    }
}
