//! A study: every point of a scenario, replicated, in figures.

mod boundary;
mod figures;
mod json;
mod phases;
mod replicate;

pub use boundary::{Boundary, boundary};
pub use figures::{columns, figures};
pub use phases::{Phases, phases};
pub use replicate::{Cell, OccCell, Study, StudyOptions, Trace, study};
