//! The seven bad habits, each with the number that shows the harm.

mod partner;
mod policy;

use crate::config::Config;
use crate::diagnostic::{Diagnostic, sort};

/// A bad habit that a configuration has: a [`Diagnostic`] of severity *warning*.
pub type Warning = Diagnostic;

/// Warns of the seven bad habits, in the order of the files.
///
/// | code | habit |
/// |---|---|
/// | `no-jitter` | all clients that fail together come back together |
/// | `small-jitter` | jitter much smaller than the wait |
/// | `no-cap`, `no-end` | no cap on a wait, or no end to an operation |
/// | `permanent-retried` | retries of failures that no retry can mend |
/// | `unsafe-writes` | retries of writes without a key |
/// | `no-breaker` | nothing keeps attempts away from a dead partner |
/// | `short-window` | a window shorter than one attempt |
/// | `forgotten-key` | a window longer than the partner remembers keys |
///
/// ```
/// use ressac_config::{Config, Environment, lints};
///
/// let text = "[policy.payments]\njitter = \"none\"\n";
/// let config = Config::parse("ressac.toml", text, &Environment::process()).unwrap();
/// let warnings = lints(&config);
/// assert_eq!(warnings[0].code(), "no-jitter");
/// assert!(lints(&Config::default()).is_empty());
/// ```
#[must_use]
pub fn lints(config: &Config) -> Vec<Warning> {
    let mut found = Vec::new();
    // Who says it comes before who inherits it.
    for inherited in [false, true] {
        for named in config.policies() {
            policy::lint(named, inherited, &mut found);
        }
    }
    partner::lint(config, &mut found);
    sort(&mut found);
    // What a policy inherits is said once, where it stands.
    let mut once: Vec<Diagnostic> = Vec::new();
    for warning in found {
        let twice =
            |other: &Diagnostic| other.code() == warning.code() && other.same_place(&warning);
        if !once.iter().any(twice) {
            once.push(warning);
        }
    }
    once
}
