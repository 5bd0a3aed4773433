//! How first attempts, retries and replays share a partner: 70 / 20 / 10, and none starves.

use ressac_store::Class;

pub(super) const CLASSES: [Class; 3] = [Class::First, Class::Retry, Class::Replay];
const WEIGHTS: [i32; 3] = [70, 20, 10];

/// Smooth weighted round robin over the classes that have something to send. A class that has
/// nothing saves nothing up.
#[derive(Debug, Default)]
pub(super) struct Shares([i32; 3]);

impl Shares {
    /// The index of the class whose turn it is; `None` where none is available.
    pub(super) fn pick(&mut self, available: [bool; 3]) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for index in 0..3 {
            if !available[index] {
                self.0[index] = 0;
                continue;
            }
            total += WEIGHTS[index];
            self.0[index] += WEIGHTS[index];
            if best.is_none_or(|best| self.0[index] > self.0[best]) {
                best = Some(index);
            }
        }
        if let Some(best) = best {
            self.0[best] -= total;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(available: [bool; 3], picks: usize) -> [usize; 3] {
        let (mut shares, mut counts) = (Shares::default(), [0; 3]);
        for _ in 0..picks {
            counts[shares.pick(available).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn pa_3_live_first_and_replay_has_its_share() {
        assert_eq!(counts([true, true, true], 100), [70, 20, 10]);
        assert_eq!(counts([false, true, true], 90), [0, 60, 30]);
        assert_eq!(counts([false, false, true], 5), [0, 0, 5]);
        assert_eq!(Shares::default().pick([false; 3]), None);
    }

    #[test]
    fn a_class_that_was_away_has_saved_nothing_up() {
        let mut shares = Shares::default();
        for _ in 0..1_000 {
            shares.pick([true, false, false]);
        }
        let next: Vec<_> = (0..10)
            .map(|_| shares.pick([true, true, true]).unwrap())
            .collect();
        assert!(
            next.iter().filter(|index| **index == 0).count() >= 6,
            "{next:?}"
        );
    }
}
