//! What a journal adds up to: load over time, and who came back too early.

use std::collections::{BTreeMap, HashMap};

use super::{Effect, Entry, Kind};

/// A journal in numbers.
///
/// ```
/// use ressac_mock::{Mock, Summary};
///
/// let mock = Mock::start_blocking();
/// let summary = Summary::of(&mock.journal());
/// assert_eq!((summary.arrivals, summary.inside_hold), (0, 0));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Requests that arrived.
    pub arrivals: u64,
    /// Arrivals in each second, counted from the first arrival.
    pub per_second: Vec<u64>,
    /// Arrivals on a route for which an earlier reply, to anyone, had asked for more patience
    /// (Retry-After). A request that was under way when that reply left is not counted.
    pub inside_hold: u64,
    /// The same, but only where the earlier reply went to the same token.
    pub inside_own_hold: u64,
    /// Replies by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Effects committed, by key; more than 1 is a double. Without a key: not here.
    pub effects_by_key: BTreeMap<String, u64>,
    /// Effects committed, with or without a key.
    pub effects: u64,
    /// Replies that were stored ones.
    pub replays: u64,
}

/// The latest moment asked for, by route and by route and token.
#[derive(Default)]
struct Holds<'e> {
    by_route: HashMap<Option<&'e str>, u64>,
    by_token: HashMap<(Option<&'e str>, Option<&'e str>), u64>,
}

impl Summary {
    /// Adds the entries up. The longest stretch of time counted is a day; later arrivals fall
    /// into its last second.
    pub fn of(entries: &[Entry]) -> Self {
        const LAST_SECOND: u64 = 24 * 3600 - 1;
        let mut arrivals: Vec<&Entry> =
            entries.iter().filter(|e| e.kind == Kind::Request).collect();
        arrivals.sort_by_key(|e| e.t_head);
        let mut hints: Vec<(u64, u64, &Entry)> = arrivals
            .iter()
            .filter_map(|e| Some((e.t_reply_before?, e.retry_at?, *e)))
            .collect();
        hints.sort_by_key(|h| h.0);
        let mut hints = hints.into_iter().peekable();
        let mut holds = Holds::default();
        let mut out = Self {
            arrivals: arrivals.len() as u64,
            ..Self::default()
        };
        let start = arrivals.first().map_or(0, |e| e.t_head);
        for e in arrivals {
            let second = ((e.t_head - start) / 1_000_000_000).min(LAST_SECOND) as usize;
            if out.per_second.len() <= second {
                out.per_second.resize(second + 1, 0);
            }
            out.per_second[second] += 1;
            while let Some((_, until, from)) = hints.next_if(|h| h.0 < e.t_head) {
                holds.note(from, until);
            }
            out.inside_hold += u64::from(holds.route(e) > e.t_head);
            out.inside_own_hold += u64::from(holds.token(e) > e.t_head);
            out.count(e);
        }
        out
    }

    fn count(&mut self, e: &Entry) {
        if let Some(status) = e.status() {
            *self.by_status.entry(status).or_default() += 1;
        }
        match e.effect {
            Effect::Created => {
                self.effects += 1;
                if let Some(key) = &e.key {
                    *self.effects_by_key.entry(key.clone()).or_default() += 1;
                }
            }
            Effect::Replayed => self.replays += 1,
            Effect::None => {}
        }
    }

    /// The most arrivals in one second.
    pub fn peak_per_second(&self) -> u64 {
        self.per_second.iter().copied().max().unwrap_or(0)
    }

    /// Keys that had more than one effect.
    pub fn doubles(&self) -> impl Iterator<Item = (&str, u64)> {
        self.effects_by_key
            .iter()
            .filter(|(_, n)| **n > 1)
            .map(|(k, n)| (k.as_str(), *n))
    }
}

impl<'e> Holds<'e> {
    fn note(&mut self, e: &'e Entry, until: u64) {
        let route = e.route.as_deref();
        let slots = [
            self.by_route.entry(route).or_default(),
            self.by_token
                .entry((route, e.token.as_deref()))
                .or_default(),
        ];
        for slot in slots {
            *slot = (*slot).max(until);
        }
    }

    fn route(&self, e: &Entry) -> u64 {
        self.by_route.get(&e.route.as_deref()).copied().unwrap_or(0)
    }

    fn token(&self, e: &Entry) -> u64 {
        self.by_token
            .get(&(e.route.as_deref(), e.token.as_deref()))
            .copied()
            .unwrap_or(0)
    }
}
