//! What the suite tells a proxy, in its environment.

use std::time::Duration;

/// The variables of the suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told;

impl Told {
    pub(crate) fn environment() -> Self {
        Self
    }

    /// A variable by its lower-case name without `PROVE_`.
    pub(crate) fn get(self, name: &str) -> Option<String> {
        std::env::var(format!("PROVE_{}", name.to_ascii_uppercase())).ok()
    }

    pub(crate) fn number(self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }

    pub(crate) fn millis(self, name: &str) -> Option<Duration> {
        Duration::try_from_secs_f64(self.number(name)? / 1000.0).ok()
    }

    /// A variable of the form `a=b,c=d`; `None` also where it says `off`.
    pub(crate) fn pairs(self, name: &str) -> Option<Vec<(String, String)>> {
        let text = self.get(name).filter(|text| text != "off")?;
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        Some(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}
