//! What is wrong with a scenario.

use ressac_config::ConfigError;

/// A scenario that cannot be run: what, where, and what to write instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// No built-in scenario, and no file.
    #[error("there is no scenario `{name}`; built in are {known}, or give a file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The built-in ones.
        known: String,
    },
    /// The file cannot be read.
    #[error("{path} cannot be read: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// Not TOML, an unknown key, or a value of the wrong kind.
    #[error("{name}: {why}")]
    Syntax {
        /// The scenario.
        name: String,
        /// What, and in which line.
        why: String,
    },
    /// A value that cannot be.
    #[error("{name}: {key}: {what}")]
    Value {
        /// The scenario.
        name: String,
        /// The key.
        key: String,
        /// What is wrong and what to write.
        what: String,
    },
    /// A policy is refused.
    #[error("{name}: a policy is refused\n{error}")]
    Policy {
        /// The scenario.
        name: String,
        /// Why, with its lines counted within the policies alone.
        error: ConfigError,
    },
}
