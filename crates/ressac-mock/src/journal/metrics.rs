//! Counters in the text format of Prometheus. Never a token or a key as a label.

use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: BTreeMap<String, BTreeMap<u16, u64>>,
    pub(crate) connections: BTreeMap<(String, &'static str), u64>,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    pub(crate) overruns: BTreeMap<String, u64>,
    pub(crate) effects: BTreeMap<(String, &'static str), u64>,
    pub(crate) foreign: u64,
    pub(crate) in_flight: u64,
}

impl Metrics {
    /// Counts a reply.
    pub(crate) fn reply(&mut self, route: &str, status: u16) {
        // Only a new route allocates.
        if !self.requests.contains_key(route) {
            self.requests.insert(route.to_owned(), BTreeMap::new());
        }
        if let Some(by_status) = self.requests.get_mut(route) {
            *by_status.entry(status).or_default() += 1;
        }
    }

    /// The page that a scraper reads.
    pub(crate) fn render(&self, journal_dropped: u64) -> String {
        let mut out = String::new();
        let requests = self.requests.iter().flat_map(|(r, by_status)| {
            let row = move |(s, n): (&u16, &u64)| (format!("route=\"{r}\",status=\"{s}\""), *n);
            by_status.iter().map(row)
        });
        family(
            &mut out,
            "requests_total",
            "counter",
            "Replies by route and status.",
            requests,
        );
        let ends = pairs(&self.connections, "listener", "end");
        family(
            &mut out,
            "connections_total",
            "counter",
            "Connections by how they ended.",
            ends,
        );
        let faults = self
            .faults
            .iter()
            .map(|(k, n)| (format!("kind=\"{k}\""), *n));
        family(
            &mut out,
            "faults_total",
            "counter",
            "Faults carried out, by kind.",
            faults,
        );
        let overruns = self
            .overruns
            .iter()
            .map(|(r, n)| (format!("route=\"{r}\""), *n));
        family(
            &mut out,
            "overruns_total",
            "counter",
            "Arrivals after a script's end.",
            overruns,
        );
        let effects = pairs(&self.effects, "resource", "effect");
        family(
            &mut out,
            "effects_total",
            "counter",
            "What each create came to.",
            effects,
        );
        single(
            &mut out,
            "foreign_total",
            "counter",
            "Arrivals that no route takes.",
            self.foreign,
        );
        single(
            &mut out,
            "journal_dropped_total",
            "counter",
            "Entries dropped.",
            journal_dropped,
        );
        single(
            &mut out,
            "in_flight",
            "gauge",
            "Requests not yet answered.",
            self.in_flight,
        );
        out
    }
}

/// Rows with two labels.
fn pairs(
    map: &BTreeMap<(String, &'static str), u64>,
    first: &str,
    second: &str,
) -> impl Iterator<Item = (String, u64)> {
    map.iter()
        .map(move |((a, b), n)| (format!("{first}=\"{a}\",{second}=\"{b}\""), *n))
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, n: u64) {
    family(out, name, kind, help, [(String::new(), n)]);
}

fn family(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    rows: impl IntoIterator<Item = (String, u64)>,
) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "# HELP ressac_mock_{name} {help}");
    let _ = writeln!(out, "# TYPE ressac_mock_{name} {kind}");
    for (labels, n) in rows {
        let _ = match labels.is_empty() {
            true => writeln!(out, "ressac_mock_{name} {n}"),
            false => writeln!(out, "ressac_mock_{name}{{{labels}}} {n}"),
        };
    }
}
