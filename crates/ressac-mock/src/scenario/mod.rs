//! The scenario: what a mock does, as plain data, from a TOML file or from code.

mod error;
mod listeners;
mod outages;
mod parse;
mod path;
mod reader;
mod routes;
mod steps;
mod types;

pub use error::ScenarioError;
pub use path::PathPattern;
pub(crate) use routes::check_script;
pub use types::{
    FingerprintPart, Idempotency, ListenerSpec, Outage, OutageAction, OutageClock, Route, Scenario,
    Scope,
};
