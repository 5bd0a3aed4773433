//! The scenario: what a mock does, as plain data, from a TOML file or from code.

mod accept;
mod error;
mod files;
mod listener;
mod listeners;
mod outages;
mod parse;
mod path;
mod quota;
mod reader;
mod routes;
mod steps;
mod types;

pub use error::ScenarioError;
pub(crate) use files::read as read_file;
pub use listener::{AcceptAction, AcceptScript, Certificate, ListenerSpec, TcpFaults, TcpSpec};
pub(crate) use outages::plain_step;
pub use path::PathPattern;
pub use quota::{Quota, QuotaKind};
pub(crate) use routes::check_script;
pub use types::{
    FingerprintPart, Idempotency, Outage, OutageAction, OutageClock, Route, Scenario, Scope,
};
