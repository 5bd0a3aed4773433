//! What is simulated: the partner, the clients, and what they are asked to do. Plain data.

mod arrivals;
mod server;
mod world;

pub use arrivals::Arrivals;
pub use server::{Fault, FaultKind, Order, Rejection, ServerConfig, Service};
pub use world::{Clients, World};

use std::time::Duration;

/// In nanoseconds, at most 2^62.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX)
        .min(1 << 62)
}
