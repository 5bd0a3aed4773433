//! The event core: what any discrete-event model needs, and nothing about retries.

mod queue;
mod random;

pub use queue::EventQueue;
pub use random::Stream;
