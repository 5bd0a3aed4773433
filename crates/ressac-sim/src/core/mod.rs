//! The event core: what any discrete-event model needs, and nothing about retries.

mod queue;
mod random;
mod room;

pub use queue::EventQueue;
pub use random::Stream;
pub(crate) use room::roomy;
