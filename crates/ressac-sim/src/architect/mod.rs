//! What an architect asks before the outage: which of my policies, and which settings.

mod compare;
mod suggest;

pub use compare::{Answer, Question, compare};
pub use suggest::{Bounds, Candidate, Sensitivity, Suggestion, suggest};
