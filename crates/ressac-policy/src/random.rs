//! Draws from the caller's generator: one 64-bit word each, so that equal words give equal decisions.

use rand_core::Rng;

/// Uniform in `0..=span`, from exactly one word. The bias is below `span / 2^64`.
pub(crate) fn up_to<R: Rng + ?Sized>(rng: &mut R, span: u64) -> u64 {
    scale(rng.next_u64(), span)
}

/// `word / 2^64` of the numbers `0..=span`.
#[inline]
pub(crate) const fn scale(word: u64, span: u64) -> u64 {
    match span.checked_add(1) {
        Some(numbers) => ((word as u128 * numbers as u128) >> 64) as u64,
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_can_be_drawn() {
        assert_eq!(scale(0, 10), 0);
        assert_eq!(scale(u64::MAX, 10), 10);
        assert_eq!(scale(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(scale(u64::MAX, 0), 0);
    }
}
