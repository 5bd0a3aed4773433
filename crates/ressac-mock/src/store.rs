//! The idempotency store: what a key has come to.
//!
//! Check, mark and commit happen under the lock of the mock's state, so that for one key there is
//! no moment between them. A key is compared without the quotes of a structured string.

use std::collections::{HashMap, VecDeque};

use crate::clock::nanos;
use crate::reply::Content;
use crate::scenario::Idempotency;

/// SHA-256 over the parts of a request that a repetition must share.
pub(crate) type Fingerprint = [u8; 32];

/// What `create` finds.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Marked in flight; the ticket commits it.
    Fresh(u64),
    /// Finished before: this reply again.
    Replay(Content),
    /// In flight for so many seconds more, rounded up.
    InFlight(u64),
    /// The key was used for another request.
    Mismatch,
    /// Every place is held by a key in flight.
    Full,
}

#[derive(Debug)]
struct Record {
    fingerprint: Fingerprint,
    state: State,
    ticket: u64,
}

#[derive(Debug)]
enum State {
    InFlight { lease_end: u64 },
    Done { reply: Content, at: u64 },
}

/// Keys and what they came to.
#[derive(Debug, Default)]
pub(crate) struct Store {
    records: HashMap<String, Record>,
    /// Finished keys in order of their end; entries whose ticket has gone are stale.
    done: VecDeque<(String, u64)>,
    next_ticket: u64,
}

impl Store {
    /// Looks a key up and marks it in flight if it is new.
    pub(crate) fn begin(
        &mut self,
        cfg: &Idempotency,
        key: &str,
        fp: Fingerprint,
        now: u64,
    ) -> Begin {
        if let Some(record) = self.records.get(key) {
            let same = record.fingerprint == fp;
            match &record.state {
                State::Done { reply, at } if now < at.saturating_add(nanos(cfg.ttl)) => {
                    return if same {
                        Begin::Replay(reply.clone())
                    } else {
                        Begin::Mismatch
                    };
                }
                State::InFlight { lease_end } if now < *lease_end => {
                    let rest = (lease_end - now).div_ceil(1_000_000_000);
                    return if same {
                        Begin::InFlight(rest)
                    } else {
                        Begin::Mismatch
                    };
                }
                State::Done { .. } | State::InFlight { .. } => {}
            }
        } else if !self.make_room(cfg.max_keys) {
            return Begin::Full;
        }
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        let state = State::InFlight {
            lease_end: now.saturating_add(nanos(cfg.lease)),
        };
        self.records.insert(
            key.to_owned(),
            Record {
                fingerprint: fp,
                state,
                ticket,
            },
        );
        Begin::Fresh(ticket)
    }

    /// Stores the reply. `false` if the mark is no longer ours: the lease ran out and another try
    /// took the key, or the store was reset; then nothing may happen.
    pub(crate) fn commit(&mut self, key: &str, ticket: u64, reply: Content, now: u64) -> bool {
        match self.records.get_mut(key) {
            Some(record) if record.ticket == ticket => {
                record.state = State::Done { reply, at: now };
                self.done.push_back((key.to_owned(), ticket));
                true
            }
            _ => false,
        }
    }

    /// Whether a mark is still ours.
    pub(crate) fn holds(&self, key: &str, ticket: u64) -> bool {
        self.records.get(key).is_some_and(|r| r.ticket == ticket)
    }

    /// The oldest finished key goes; one in flight never does.
    fn make_room(&mut self, max: usize) -> bool {
        while self.records.len() >= max {
            let Some((key, ticket)) = self.done.pop_front() else {
                return false;
            };
            if self.holds(&key, ticket) {
                self.records.remove(&key);
            }
        }
        true
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.done.clear();
    }

    /// Key and whether it is finished, in order of the key.
    pub(crate) fn list(&self) -> Vec<(String, bool)> {
        let mut out: Vec<_> = self
            .records
            .iter()
            .map(|(k, r)| (k.clone(), matches!(r.state, State::Done { .. })))
            .collect();
        out.sort();
        out
    }
}

/// The key without the quotes of a structured string (RFC 8941, 3.3.3), and whether it had them.
pub(crate) fn normalize(raw: &str) -> (String, bool) {
    let trimmed = raw.trim();
    match trimmed
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .filter(|_| trimmed.len() > 1)
    {
        Some(inner) => (inner.replace("\\\"", "\"").replace("\\\\", "\\"), true),
        None => (trimmed.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    const S: u64 = 1_000_000_000;

    fn fresh(b: Begin) -> u64 {
        match b {
            Begin::Fresh(t) => t,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mo_5_the_table_of_keys() {
        let cfg = Idempotency {
            lease: Duration::from_secs(30),
            ..Idempotency::default()
        };
        let mut s = Store::default();
        let t = fresh(s.begin(&cfg, "k", [1; 32], 0));
        assert!(matches!(
            s.begin(&cfg, "k", [1; 32], S / 2),
            Begin::InFlight(30)
        ));
        assert!(matches!(s.begin(&cfg, "k", [2; 32], 1), Begin::Mismatch));
        assert!(s.commit("k", t, Content::default(), S));
        assert!(matches!(
            s.begin(&cfg, "k", [1; 32], 2 * S),
            Begin::Replay(_)
        ));
        assert!(matches!(
            s.begin(&cfg, "k", [2; 32], 2 * S),
            Begin::Mismatch
        ));
        let day = 24 * 3600 * S;
        fresh(s.begin(&cfg, "k", [2; 32], S + day));
    }

    #[test]
    fn a_lease_that_ran_out_is_taken_and_the_late_commit_refused() {
        let cfg = Idempotency {
            lease: Duration::from_secs(1),
            ..Idempotency::default()
        };
        let mut s = Store::default();
        let old = fresh(s.begin(&cfg, "k", [1; 32], 0));
        let new = fresh(s.begin(&cfg, "k", [1; 32], S));
        assert!(!s.commit("k", old, Content::default(), 2 * S));
        assert!(s.commit("k", new, Content::default(), 2 * S));
    }

    #[test]
    fn the_oldest_finished_key_goes_never_one_in_flight() {
        let cfg = Idempotency {
            max_keys: 2,
            ..Idempotency::default()
        };
        let mut s = Store::default();
        let a = fresh(s.begin(&cfg, "a", [0; 32], 0));
        fresh(s.begin(&cfg, "b", [0; 32], 0));
        assert!(matches!(s.begin(&cfg, "c", [0; 32], 0), Begin::Full));
        s.commit("a", a, Content::default(), 1);
        fresh(s.begin(&cfg, "c", [0; 32], 2));
        let keys: Vec<_> = s.list().into_iter().map(|(k, _)| k).collect();
        assert_eq!(keys, ["b", "c"]);
    }

    #[test]
    fn quoted_and_bare_are_one_key() {
        assert_eq!(normalize("\"abc\""), ("abc".to_owned(), true));
        assert_eq!(normalize("abc"), ("abc".to_owned(), false));
        assert_eq!(normalize("\"a\\\"b\""), ("a\"b".to_owned(), true));
        assert_eq!(normalize("\""), ("\"".to_owned(), false));
    }
}
