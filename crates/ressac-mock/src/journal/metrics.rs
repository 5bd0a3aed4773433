//! Counters in the text format of Prometheus. Never a token or a key as a label.

use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: BTreeMap<(String, u16), u64>,
    pub(crate) connections: BTreeMap<(String, &'static str), u64>,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    pub(crate) overruns: BTreeMap<String, u64>,
    pub(crate) effects: BTreeMap<(String, &'static str), u64>,
    pub(crate) in_flight: u64,
}

impl Metrics {
    /// The page that a scraper reads.
    pub(crate) fn render(&self, journal_dropped: u64) -> String {
        let mut out = String::new();
        family(
            &mut out,
            "requests_total",
            "counter",
            "Replies by route and status.",
            || {
                self.requests
                    .iter()
                    .map(|((r, s), n)| (format!("route=\"{r}\",status=\"{s}\""), *n))
            },
        );
        family(
            &mut out,
            "connections_total",
            "counter",
            "Connections by how they ended.",
            || {
                let one = |((l, e), n): (&(String, &str), &u64)| {
                    (format!("listener=\"{l}\",end=\"{e}\""), *n)
                };
                self.connections.iter().map(one)
            },
        );
        family(
            &mut out,
            "faults_total",
            "counter",
            "Faults carried out, by kind.",
            || {
                self.faults
                    .iter()
                    .map(|(k, n)| (format!("kind=\"{k}\""), *n))
            },
        );
        family(
            &mut out,
            "overruns_total",
            "counter",
            "Arrivals after a script's end.",
            || {
                self.overruns
                    .iter()
                    .map(|(r, n)| (format!("route=\"{r}\""), *n))
            },
        );
        family(
            &mut out,
            "effects_total",
            "counter",
            "What each create came to.",
            || {
                let one = |((r, e), n): (&(String, &str), &u64)| {
                    (format!("resource=\"{r}\",effect=\"{e}\""), *n)
                };
                self.effects.iter().map(one)
            },
        );
        family(
            &mut out,
            "journal_dropped_total",
            "counter",
            "Entries lost to the limit.",
            || std::iter::once((String::new(), journal_dropped)),
        );
        family(
            &mut out,
            "in_flight",
            "gauge",
            "Requests not yet answered.",
            || std::iter::once((String::new(), self.in_flight)),
        );
        out
    }
}

fn family<I: Iterator<Item = (String, u64)>>(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    rows: impl FnOnce() -> I,
) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "# HELP ressac_mock_{name} {help}");
    let _ = writeln!(out, "# TYPE ressac_mock_{name} {kind}");
    for (labels, n) in rows() {
        let _ = match labels.is_empty() {
            true => writeln!(out, "ressac_mock_{name} {n}"),
            false => writeln!(out, "ressac_mock_{name}{{{labels}}} {n}"),
        };
    }
}
