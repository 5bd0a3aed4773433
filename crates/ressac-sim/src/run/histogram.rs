//! Times in buckets whose width grows with the time: bounded memory for any number of them.

/// Buckets for each doubling: a bucket is at most 3 % wide.
const PER_OCTAVE: u64 = 32;
/// Below this, in microseconds, each has a bucket of its own.
const EXACT: u64 = PER_OCTAVE;

/// A distribution of times, exact in number and sum, to 3 % in its quantiles.
///
/// ```
/// use ressac_sim::Histogram;
///
/// let mut times = Histogram::default();
/// for ms in 1..=1_000 {
///     times.add(ms * 1_000_000);
/// }
/// assert_eq!((times.count(), times.mean_seconds()), (1_000, 0.5005));
/// let p95 = times.quantile_seconds(0.95);
/// assert!((0.92..0.98).contains(&p95), "{p95}");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
}

impl Histogram {
    /// Adds a time in nanoseconds.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        let index = index(nanos / 1_000);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
    }

    /// Adds all that another has.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum in nanoseconds, exact.
    #[must_use]
    pub fn sum_nanos(&self) -> u128 {
        self.sum
    }

    /// The mean in seconds; NaN of nothing.
    #[must_use]
    pub fn mean_seconds(&self) -> f64 {
        self.sum as f64 / 1e9 / self.count as f64
    }

    /// The time that this share stays at or below, in seconds; NaN of nothing.
    #[must_use]
    pub fn quantile_seconds(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return middle(index);
            }
        }
        f64::NAN
    }

    /// The distribution function at each bucket that has any: seconds and share.
    #[must_use]
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let mut seen = 0;
        let filled = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        filled
            .map(|(index, count)| {
                seen += count;
                (middle(index), seen as f64 / self.count as f64)
            })
            .collect()
    }
}

fn index(micros: u64) -> usize {
    if micros < EXACT {
        return micros as usize;
    }
    let octave = u64::from(micros.ilog2() - EXACT.ilog2());
    let within = (micros >> octave) - EXACT;
    (EXACT + octave * PER_OCTAVE + within) as usize
}

/// The middle of a bucket, in seconds.
fn middle(index: usize) -> f64 {
    let index = index as u64;
    if index < EXACT {
        return index as f64 / 1e6;
    }
    let (octave, within) = ((index - EXACT) / PER_OCTAVE, (index - EXACT) % PER_OCTAVE);
    ((EXACT + within) as f64 + 0.5) * (1u64 << octave) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_within_three_percent_of_its_bucket() {
        for micros in [0, 31, 32, 33, 1_000, 123_456, 3_600_000_000] {
            let seconds = micros as f64 / 1e6;
            let error = (middle(index(micros)) - seconds).abs();
            assert!(error <= seconds * 0.03 + 1e-9, "{micros}: {error}");
        }
    }
}
