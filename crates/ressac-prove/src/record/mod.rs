//! What is kept of a part that was run: all that the judge sees.

mod arrival;
mod event;

pub use arrival::{Arrival, SentLine};
pub use event::{OpResult, OpStart, PartRecord, ProcessEnd};
