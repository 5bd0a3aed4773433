//! The simulator: see the storm before it happens.

mod core;
mod model;
pub mod occ;
mod run;
mod scenario;
mod stats;
mod study;

pub use crate::core::{EventQueue, Stream};
pub use model::{
    Arrivals, Clients, Fault, FaultKind, Order, Rejection, ServerConfig, Service, World,
};
pub use run::{Bin, Histogram, Phase, Record, Totals, simulate};
pub use scenario::{Point, Report, Scenario, ScenarioError, built_in, built_in_names};
pub use stats::{Reference, Sample};
pub use study::{
    Boundary, Cell, OccCell, Study, StudyOptions, Trace, boundary, columns, figures, study,
};
