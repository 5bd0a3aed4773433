//! What the runner tells: one set of names, from the environment or from JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// Fields by their lower-case name without `prove_`, all as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(BTreeMap<String, String>);

impl Told {
    /// From the environment.
    pub(crate) fn environment() -> Self {
        let fields = std::env::vars().filter_map(|(name, value)| {
            Some((name.strip_prefix("PROVE_")?.to_ascii_lowercase(), value))
        });
        Self(fields.collect())
    }

    /// From a line.
    pub(crate) fn line(line: &str) -> Option<Self> {
        let object: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Some(Self(
            object
                .into_iter()
                .map(|(name, value)| (name, text(value)))
                .collect(),
        ))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }

    pub(crate) fn millis(&self, name: &str) -> Option<Duration> {
        let ms = self.number(name)?;
        (ms >= 0.0).then(|| Duration::from_secs_f64(ms / 1000.0))
    }

    /// Header lines to send.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        self.get("headers")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }
}
