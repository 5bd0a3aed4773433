//! The simulator: see the storm before it happens.

mod architect;
mod core;
mod model;
pub mod occ;
mod plot;
mod run;
mod scenario;
mod stats;
mod study;

pub use crate::core::{EventQueue, Stream};
pub use architect::{
    Answer, Bounds, Candidate, Question, Sensitivity, Suggestion, compare, suggest,
};
pub use model::{
    Arrivals, Clients, Fault, FaultKind, Order, Rejection, ServerConfig, Service, World,
};
pub use plot::{Axis, Figure, Series, Shape, page, plots, svg};
pub use run::{Bin, Histogram, Phase, Record, Totals, simulate};
pub use scenario::{Point, Report, Scenario, ScenarioError, built_in, built_in_names};
pub use stats::{Reference, Sample};
pub use study::{
    Boundary, Cell, OccCell, Phases, Study, StudyOptions, Trace, boundary, columns, figures,
    phases, study,
};
