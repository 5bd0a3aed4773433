//! The cases: one TOML file each, compiled into the binary.

mod model;
mod table;

pub use model::{Case, Interrupt, Level, OpSpec, OutageSpec, Part, PolicyWish, ProfileChange};
pub use table::{all, find};
