//! The simulator: see the storm before it happens.

mod core;
pub mod occ;
mod stats;

pub use crate::core::{EventQueue, Stream};
pub use stats::{Reference, Sample};
