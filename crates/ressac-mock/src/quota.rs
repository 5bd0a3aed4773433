//! Counting arrivals against a quota.

use std::collections::VecDeque;

use crate::clock::nanos;
use crate::scenario::{Quota, QuotaKind};

/// What one value of a quota's scope has used up.
#[derive(Debug, Clone)]
pub(crate) enum QuotaState {
    Fixed {
        begun: u64,
        used: u64,
    },
    Sliding(VecDeque<u64>),
    /// The theoretical arrival time of the generic cell rate algorithm.
    Gcra {
        tat: u64,
    },
}

/// What an arrival finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Whether there was a place.
    pub(crate) within: bool,
    /// Places that are left.
    pub(crate) left: u64,
    /// When the next place is free; in the past where one is left.
    pub(crate) free_at: u64,
    /// When all are.
    pub(crate) full_at: u64,
}

impl QuotaState {
    pub(crate) fn new(quota: &Quota) -> Self {
        match quota.kind {
            QuotaKind::Fixed => Self::Fixed { begun: 0, used: 0 },
            QuotaKind::Sliding => Self::Sliding(VecDeque::new()),
            QuotaKind::Gcra { .. } => Self::Gcra { tat: 0 },
        }
    }

    /// Takes a place, if there is one, at a moment that never goes back.
    pub(crate) fn take(&mut self, quota: &Quota, now: u64) -> Taken {
        let per = nanos(quota.per);
        match self {
            Self::Fixed { begun, used } => {
                if *used == 0 || now >= begun.saturating_add(per) {
                    (*begun, *used) = (now, 0);
                }
                let within = *used < quota.limit;
                *used += u64::from(within);
                let end = begun.saturating_add(per);
                let left = quota.limit - *used;
                Taken {
                    within,
                    left,
                    free_at: if left > 0 { now } else { end },
                    full_at: end,
                }
            }
            Self::Sliding(times) => {
                while times.front().is_some_and(|t| t.saturating_add(per) <= now) {
                    times.pop_front();
                }
                let within = (times.len() as u64) < quota.limit;
                if within {
                    times.push_back(now);
                }
                let left = quota.limit - times.len() as u64;
                let ends = |t: Option<&u64>| t.map_or(now, |t| t.saturating_add(per));
                Taken {
                    within,
                    left,
                    free_at: if left > 0 { now } else { ends(times.front()) },
                    full_at: ends(times.back()),
                }
            }
            Self::Gcra { tat } => gcra(tat, quota, now, per),
        }
    }
}

fn gcra(tat: &mut u64, quota: &Quota, now: u64, per: u64) -> Taken {
    let QuotaKind::Gcra { burst } = quota.kind else {
        return Taken {
            within: true,
            left: 0,
            free_at: now,
            full_at: now,
        };
    };
    // Rounded up: never more than the limit in the window.
    let step = per.div_ceil(quota.limit).max(1);
    let room = step.saturating_mul(burst);
    let within = (*tat).max(now).saturating_add(step) <= now.saturating_add(room);
    if within {
        *tat = (*tat).max(now).saturating_add(step);
    }
    let ahead = tat.saturating_sub(now);
    let left = room.saturating_sub(ahead) / step;
    Taken {
        within,
        left,
        free_at: tat.saturating_add(step).saturating_sub(room).max(now),
        full_at: (*tat).max(now),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Scenario;

    const S: u64 = 1_000_000_000;

    fn quota(words: &str) -> Quota {
        let text = format!(
            "version = 1\n[[route]]\nname = \"a\"\npath = \"/a\"\nscript = \"200 x*\"\n\
             quota = {{ limit = 2, per = \"1s\", {words} }}"
        );
        Scenario::parse(&text).unwrap().routes[0]
            .quota
            .clone()
            .unwrap()
    }

    /// Whether each arrival is let through, and when the next place is free.
    fn run(words: &str, at: &[u64]) -> Vec<(bool, u64)> {
        let q = quota(words);
        let mut s = QuotaState::new(&q);
        let take = |t: &u64| {
            let t = s.take(&q, *t);
            (t.within, t.free_at)
        };
        at.iter().map(take).collect()
    }

    #[test]
    fn fixed_windows_begin_with_an_arrival() {
        let got = run("kind = \"fixed\"", &[S, S + 1, S + 2, 2 * S - 1, 2 * S]);
        assert_eq!(
            got,
            [
                (true, S),
                (true, 2 * S),
                (false, 2 * S),
                (false, 2 * S),
                (true, 2 * S)
            ]
        );
    }

    #[test]
    fn a_sliding_window_frees_one_place_at_a_time() {
        let got = run("kind = \"sliding\"", &[0, S / 2, S - 1, S, S + 1]);
        let half = 3 * S / 2;
        assert_eq!(
            got,
            [
                (true, 0),
                (true, S),
                (false, S),
                (true, half),
                (false, half)
            ]
        );
    }

    #[test]
    fn gcra_spaces_after_the_burst() {
        let got = run("kind = \"gcra\", burst = 1", &[0, 1, S / 2, S / 2 + 1]);
        assert_eq!(got, [(true, S / 2), (false, S / 2), (true, S), (false, S)]);
        let got = run("kind = \"gcra\"", &[0, 0, 0]);
        assert_eq!(got, [(true, 0), (true, S / 2), (false, S / 2)]);
    }
}
