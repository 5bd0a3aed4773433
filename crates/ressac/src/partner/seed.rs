//! Random numbers of a partner's own, so that no two clients wait alike.

use std::hash::{BuildHasher, RandomState};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A generator seeded by the operating system.
pub(super) fn from_system() -> Xoshiro256PlusPlus {
    let mut seed = [0; 32];
    if getrandom::fill(&mut seed).is_err() {
        // The standard library keeps random words for its hash maps.
        for (index, word) in seed.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&RandomState::new().hash_one(index).to_le_bytes());
        }
    }
    Xoshiro256PlusPlus::from_seed(seed)
}
