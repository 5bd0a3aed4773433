//! Chance that can be had again.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random numbers from a seed that is printed, and taken from `RESSAC_SEED` where that is set.
#[derive(Debug)]
pub struct Chance(SplitMix64);

impl Chance {
    /// Draws a seed, or takes the one that is given, and prints it.
    pub fn new() -> Self {
        let seed = match std::env::var("RESSAC_SEED") {
            Ok(text) => text.parse().unwrap(),
            Err(_) => getrandom::u64().unwrap(),
        };
        eprintln!("RESSAC_SEED={seed}");
        Chance(SplitMix64::seed_from_u64(seed))
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.next_u64() % (to - from + 1)
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}
