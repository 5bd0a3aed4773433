//! Mean, standard deviation and confidence interval over replications.

/// Independent values of one figure, one from each replication.
///
/// ```
/// use ressac_sim::Sample;
///
/// let sample = Sample::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
/// assert_eq!((sample.mean(), sample.count()), (5.0, 8));
/// assert!((sample.sd() - 2.138).abs() < 1e-3);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
}

impl Sample {
    /// A sample of these values. What is not a number (a recovery that never came) is left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        Sample {
            values: values.into_iter().filter(|v| v.is_finite()).collect(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The mean; NaN of nothing.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation of one value; 0 of fewer than two.
    #[must_use]
    pub fn sd(&self) -> f64 {
        let n = self.values.len();
        if n < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|v| (v - mean).powi(2)).sum();
        (squares / (n - 1) as f64).sqrt()
    }

    /// Half the width of the 95 % confidence interval of the mean (Student's t).
    #[must_use]
    pub fn half_width(&self) -> f64 {
        let n = self.values.len();
        if n < 2 {
            return f64::INFINITY;
        }
        t95(n - 1) * self.sd() / (n as f64).sqrt()
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// A published mean with the standard deviation of one run, and of how many runs it is the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of one run.
    pub sd: f64,
    /// Runs that the mean was taken over.
    pub runs: u32,
}

impl Reference {
    /// How many standard errors the mean of `runs` runs lies from the reference. The rule of
    /// acceptance is |z| ≤ 4.
    #[must_use]
    pub fn z(&self, mean: f64, runs: usize) -> f64 {
        let error = self.sd * (1.0 / f64::from(self.runs) + 1.0 / runs as f64).sqrt();
        (mean - self.mean) / error
    }
}

/// The 97.5 % point of Student's t; within 0.1 % for every number of degrees of freedom.
fn t95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    if let Some(value) = TABLE.get(freedom.wrapping_sub(1)) {
        return *value;
    }
    // Cornish and Fisher's expansion about the normal law.
    let (z, v) = (1.959_964_f64, freedom as f64);
    let first = (z.powi(3) + z) / (4.0 * v);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
    let third =
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * v.powi(3));
    z + first + second + third
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_s_t_is_that_of_the_tables() {
        for (freedom, expected) in [(1, 12.706), (11, 2.201), (19, 2.093), (99, 1.984)] {
            assert!((t95(freedom) - expected).abs() < 2e-3, "{freedom}");
        }
    }

    #[test]
    fn a_recovery_that_never_came_is_no_number() {
        let sample = Sample::of([1.0, f64::NAN, 3.0]);
        assert_eq!((sample.count(), sample.mean()), (2, 2.0));
    }

    #[test]
    fn z_counts_standard_errors_of_both_means() {
        let reference = Reference {
            mean: 796.0,
            sd: 7.2,
            runs: 1_000,
        };
        assert!((reference.z(796.0 + 0.42 * 7.2, 100) - 4.0).abs() < 0.01);
    }
}
