//! Chance: a draw depends on the seed and the arrival's identity, never on the interleaving.

use sha2::{Digest, Sha256};

/// A number in `[0, 1)`: the top 53 bits of
/// SHA-256(seed ‖ route ‖ scope value ‖ n ‖ label), over 2^53.
///
/// Integers go in as 8 bytes big-endian, strings followed by one zero byte.
pub(crate) fn draw(seed: u64, route: &str, scope: &str, n: u64, label: &str) -> f64 {
    let digest = identity(seed, route, scope, n, label).finalize();
    let mut top = [0u8; 8];
    top.copy_from_slice(&digest[..8]);
    (u64::from_be_bytes(top) >> 11) as f64 / (1u64 << 53) as f64
}

/// So many bytes from the same identity: block i is SHA-256 over it and i.
pub(crate) fn bytes(
    seed: u64,
    route: &str,
    scope: &str,
    n: u64,
    label: &str,
    len: usize,
) -> Vec<u8> {
    let base = identity(seed, route, scope, n, label);
    let mut out = Vec::with_capacity(len + 32);
    for block in 0u64.. {
        if out.len() >= len {
            break;
        }
        let mut h = base.clone();
        h.update(block.to_be_bytes());
        out.extend_from_slice(&h.finalize());
    }
    out.truncate(len);
    out
}

fn identity(seed: u64, route: &str, scope: &str, n: u64, label: &str) -> Sha256 {
    let mut h = Sha256::new();
    h.update(seed.to_be_bytes());
    h.update(route.as_bytes());
    h.update([0]);
    h.update(scope.as_bytes());
    h.update([0]);
    h.update(n.to_be_bytes());
    h.update(label.as_bytes());
    h.update([0]);
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_draw_and_independence() {
        // Computed once with an independent implementation (Python hashlib).
        let u = draw(42, "pay", "t1", 1, "pick");
        assert!((u - KNOWN).abs() < 1e-15, "{u:.17}");
        assert!(u.to_bits() != draw(42, "pay", "t1", 2, "pick").to_bits());
        assert!(u.to_bits() != draw(42, "pay", "t1", 1, "delay").to_bits());
        assert!(u.to_bits() != draw(43, "pay", "t1", 1, "pick").to_bits());
    }

    #[test]
    fn draws_are_uniform_enough() {
        let n = 10_000;
        let mean = (1..=n).map(|i| draw(7, "r", "", i, "delay")).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    const KNOWN: f64 = 0.033475931726814734;
}
