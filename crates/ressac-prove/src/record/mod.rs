//! What is kept of a part that was run: all that the judge sees.

mod arrival;
mod event;

pub use arrival::{Arrival, RawBytes, SentLine};
pub use event::{OpResult, OpStart, PartRecord, ProcessEnd};
