//! How close together many clients come back.

/// The largest share of these moments (ns) inside any window so long (ms).
pub(super) fn largest_share(times: &mut [u64], window_ms: f64) -> f64 {
    if times.is_empty() {
        return 0.0;
    }
    times.sort_unstable();
    let most = super::op::most_within(times, (window_ms * 1e6) as u64);
    most as f64 / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_1_a_herd_is_a_large_share_in_a_small_window() {
        let ms = 1_000_000;
        let mut even: Vec<u64> = (0..100).map(|i| i * 4 * ms).collect();
        assert!(largest_share(&mut even, 20.0) <= 0.06);
        let mut herd: Vec<u64> = (0..100).map(|i| i * ms / 10).collect();
        assert_eq!(largest_share(&mut herd, 20.0), 1.0);
        assert_eq!(largest_share(&mut [], 20.0), 0.0);
    }
}
