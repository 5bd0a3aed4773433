//! An observer that counts, by the closed lists of the engine.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Event, Observer};
use crate::policy::{AttemptKind, Because, Reason, Verdict};

const KINDS: [AttemptKind; 4] = [
    AttemptKind::First,
    AttemptKind::Retry,
    AttemptKind::Probe,
    AttemptKind::Free,
];

const WAITS: [Because; 12] = [
    Because::Turn,
    Because::Backoff,
    Because::RetryAfter,
    Because::Hold,
    Because::Breaker,
    Because::Probe,
    Because::Suspension,
    Because::Ramp,
    Because::Rate,
    Because::Concurrency,
    Because::Budget,
    Because::Reply,
];

/// Counts attempts by kind, failures, waits by what they are for, and operations by reason. The
/// labels are closed lists: no path and no host ever becomes a series.
///
/// ```
/// use ressac::{Metrics, Partner, Policy, Reason};
///
/// let metrics = Metrics::default();
/// let partner = Partner::builder(Policy::sync()).observer(metrics.clone()).build()?;
/// partner.retry_blocking(|_| Ok::<_, std::io::Error>(())).call()?;
/// let counts = metrics.snapshot();
/// assert_eq!(counts.ended(Reason::Delivered), 1);
/// assert!(counts.to_prometheus("acme").contains(
///     "ressac_operations_total{partner=\"acme\",reason=\"delivered\"} 1"
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    attempts: [AtomicU64; KINDS.len()],
    failures: AtomicU64,
    waits: [AtomicU64; WAITS.len()],
    ends: [AtomicU64; Reason::ALL.len()],
}

/// The counts of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsSnapshot {
    attempts: [u64; KINDS.len()],
    failures: u64,
    waits: [u64; WAITS.len()],
    ends: [u64; Reason::ALL.len()],
}

impl Metrics {
    /// The counts now.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MetricsSnapshot {
            attempts: std::array::from_fn(|index| read(&self.0.attempts[index])),
            failures: read(&self.0.failures),
            waits: std::array::from_fn(|index| read(&self.0.waits[index])),
            ends: std::array::from_fn(|index| read(&self.0.ends[index])),
        }
    }
}

impl Observer for Metrics {
    fn on_event(&self, event: &Event<'_>) {
        let counter = match event {
            Event::Attempt { attempt, .. } => &self.0.attempts[kind_index(attempt.kind())],
            Event::Outcome { judgement, .. } => match judgement.verdict {
                Verdict::Success | Verdict::AlreadyDone => return,
                Verdict::Retry | Verdict::Permanent => &self.0.failures,
            },
            Event::Wait { wait, .. } => &self.0.waits[wait_index(wait.because)],
            Event::End { end, .. } => &self.0.ends[reason_index(end.reason)],
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl MetricsSnapshot {
    /// Attempts of this kind.
    #[must_use]
    pub fn attempts(&self, kind: AttemptKind) -> u64 {
        self.attempts[kind_index(kind)]
    }

    /// Attempts that failed.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Waits for this.
    #[must_use]
    pub fn waits(&self, because: Because) -> u64 {
        self.waits[wait_index(because)]
    }

    /// Operations that ended so.
    #[must_use]
    pub fn ended(&self, reason: Reason) -> u64 {
        self.ends[reason_index(reason)]
    }

    /// The counts in the text format of Prometheus, with this partner as a label.
    #[must_use]
    pub fn to_prometheus(&self, partner: &str) -> String {
        let partner = partner
            .replace('\\', r"\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let mut out = String::new();
        let mut line = |name: &str, label: &str, word: &str, count: u64| {
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{name}{{partner=\"{partner}\",{label}=\"{word}\"}} {count}"
            );
        };
        for kind in KINDS {
            line(
                "ressac_attempts_total",
                "kind",
                kind.as_str(),
                self.attempts(kind),
            );
        }
        for because in WAITS {
            line(
                "ressac_waits_total",
                "because",
                because.as_str(),
                self.waits(because),
            );
        }
        for reason in Reason::ALL {
            line(
                "ressac_operations_total",
                "reason",
                reason.as_str(),
                self.ended(reason),
            );
        }
        let _ = writeln!(
            out,
            "ressac_attempt_failures_total{{partner=\"{partner}\"}} {}",
            self.failures
        );
        out
    }
}

const fn kind_index(kind: AttemptKind) -> usize {
    match kind {
        AttemptKind::First => 0,
        AttemptKind::Retry => 1,
        AttemptKind::Probe => 2,
        AttemptKind::Free => 3,
    }
}

fn wait_index(because: Because) -> usize {
    WAITS
        .iter()
        .position(|known| *known == because)
        .unwrap_or(0)
}

fn reason_index(reason: Reason) -> usize {
    Reason::ALL
        .iter()
        .position(|known| *known == reason)
        .unwrap_or(0)
}
