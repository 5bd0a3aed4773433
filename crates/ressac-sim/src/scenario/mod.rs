//! Scenarios: a world, its policies and the points to run, as TOML.

mod built_in;
mod error;
mod file;
mod point;

pub use built_in::{built_in, built_in_names};
pub use error::ScenarioError;
pub use file::{Report, Scenario};
pub use point::Point;
