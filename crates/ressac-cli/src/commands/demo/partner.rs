//! The partner of the demo: down for a while, with a journal of everything that reached it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ressac_mock::{Effect, Entry, Kind, Mock, Options, Scenario};

use super::Args;
use crate::exit::Stop;

/// How long the partner takes for an answer, up or down.
const LATENCY: Duration = Duration::from_millis(150);
/// What was on its way when the partner named a time could not have known.
const FLIGHT: Duration = Duration::from_millis(100);

/// A mock with an outage.
#[derive(Clone)]
pub(super) struct FaultyPartner {
    mock: Arc<Mock>,
    outage: Duration,
    /// When the outage began, on the mock's clock.
    down_at: Arc<AtomicU64>,
}

/// What the live view shows of the partner.
pub(super) struct Seen {
    pub(super) times: Vec<u64>,
    pub(super) start: u64,
    pub(super) delivered: u64,
    pub(super) down: bool,
}

impl FaultyPartner {
    pub(super) async fn start(args: &Args) -> Result<FaultyPartner, Stop> {
        let text = format!(
            r#"
version = 1
outage = [{{ from = "0s", to = "{outage}ms", clock = "armed", do = "503 ra={hint} hold={latency}ms" }}]
idempotency = {{ header = "Idempotency-Key", max_keys = 20000 }}
[[route]]
name = "inbox"
method = ["POST"]
path = "/inbox"
scope = "global"
script = "201 create hold={latency}ms x*"
resource = {{ id = "doc_{{n}}" }}
"#,
            outage = args.outage.as_millis(),
            hint = args.retry_after,
            latency = LATENCY.as_millis(),
        );
        let scenario = Scenario::parse(&text).map_err(Stop::fault)?;
        let options = Options {
            journal_entries: 1_000_000,
            ..Options::default()
        };
        let mock = Mock::start_with(scenario, options)
            .await
            .map_err(Stop::fault)?;
        Ok(FaultyPartner {
            mock: Arc::new(mock),
            outage: args.outage,
            down_at: Arc::default(),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("{}/inbox", self.mock.url())
    }

    /// The outage begins now.
    pub(super) fn go_down(&self) {
        self.down_at.store(self.mock.now(), Ordering::Release);
        self.mock.arm();
    }

    fn recovery(&self) -> u64 {
        let outage = u64::try_from(self.outage.as_nanos()).unwrap_or(u64::MAX);
        self.down_at.load(Ordering::Acquire).saturating_add(outage)
    }

    pub(super) fn look(&self) -> Seen {
        Seen {
            times: self.arrivals().iter().map(|entry| entry.t_head).collect(),
            start: self.down_at.load(Ordering::Acquire),
            delivered: self.effects().0,
            down: self.mock.now() < self.recovery(),
        }
    }

    /// What reached the partner, in the order of arrival.
    pub(super) fn arrivals(&self) -> Vec<Entry> {
        let mut entries = self.mock.journal();
        entries.retain(|entry| entry.kind == Kind::Request);
        entries.sort_by_key(|entry| entry.t_head);
        entries
    }

    /// Documents that took effect, and effects beyond one per key.
    pub(super) fn effects(&self) -> (u64, u64) {
        let by_key: BTreeMap<String, u64> = self.mock.effects_by_key();
        let doubled = by_key
            .values()
            .map(|effects| effects.saturating_sub(1))
            .sum();
        (by_key.len() as u64, doubled)
    }
}

/// The partner's journal in figures.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    pub(super) attempts: u64,
    /// Arrivals while any reply's Retry-After was still running.
    pub(super) early: u64,
    /// The most arrivals in any one second before the recovery, and after it.
    pub(super) peak_before: u64,
    pub(super) peak_after: u64,
    /// From the recovery to the last document's effect.
    pub(super) drain_seconds: f64,
    /// Arrivals per whole second from the first one on.
    pub(super) per_second: Vec<u64>,
}

impl FaultyPartner {
    /// Judges the journal.
    pub(super) fn figures(&self) -> Arrivals {
        let entries = self.arrivals();
        let recovery = self.recovery();
        let times: Vec<u64> = entries.iter().map(|entry| entry.t_head).collect();
        let split = times.partition_point(|time| *time < recovery);
        let last_effect = entries
            .iter()
            .filter(|entry| entry.effect == Effect::Created)
            .filter_map(|entry| entry.t_reply_after)
            .max();
        let drain = last_effect.unwrap_or(recovery).saturating_sub(recovery);
        Arrivals {
            attempts: entries.len() as u64,
            early: early(&entries),
            peak_before: peak(&times[..split]),
            peak_after: peak(&times[split..]),
            drain_seconds: drain as f64 / 1e9,
            per_second: per_second(&times, self.down_at.load(Ordering::Acquire)),
        }
    }
}

/// Arrivals inside a hold: after a reply that named a time had left, and before that time.
fn early(entries: &[Entry]) -> u64 {
    let mut holds: Vec<(u64, u64)> = entries
        .iter()
        .filter_map(|entry| {
            let told = entry.t_reply_after? + FLIGHT.as_nanos() as u64;
            Some((told, entry.retry_at?))
        })
        .collect();
    holds.sort_unstable();
    let (mut next, mut held_until, mut early) = (0, 0, 0);
    for entry in entries {
        while next < holds.len() && holds[next].0 <= entry.t_head {
            held_until = held_until.max(holds[next].1);
            next += 1;
        }
        early += u64::from(entry.t_head < held_until);
    }
    early
}

/// The most in any window of one second, wherever it begins.
fn peak(times: &[u64]) -> u64 {
    let (mut first, mut most) = (0, 0);
    for (index, time) in times.iter().enumerate() {
        while time - times[first] >= 1_000_000_000 {
            first += 1;
        }
        most = most.max(index + 1 - first);
    }
    most as u64
}

pub(super) fn per_second(times: &[u64], start: u64) -> Vec<u64> {
    let mut counts = Vec::new();
    for time in times {
        let second = (time.saturating_sub(start) / 1_000_000_000) as usize;
        if counts.len() <= second {
            counts.resize(second + 1, 0);
        }
        counts[second] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_peak_is_found_wherever_its_second_begins() {
        assert_eq!(peak(&[]), 0);
        let times = [
            0,
            SECOND * 8 / 10,
            SECOND * 12 / 10,
            SECOND * 15 / 10,
            SECOND * 3,
        ];
        assert_eq!(peak(&times), 3);
        assert_eq!(per_second(&times, 0), [2, 2, 0, 1]);
    }
}
