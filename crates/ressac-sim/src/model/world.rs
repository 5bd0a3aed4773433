//! The whole: a partner, its clients, their work, and for how long.

use std::time::Duration;

use super::{Arrivals, ServerConfig};

/// One point of a scenario, all but the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The end of the run. What is under way then is neither done nor lost.
    pub horizon: Duration,
    /// Nothing before this moment counts.
    pub warm_up: Duration,
    /// The width of the bins that figures over time are kept in; it divides a second.
    pub bin: Duration,
    /// From client to server and back, without service.
    pub round_trip: Duration,
    /// The partner.
    pub server: ServerConfig,
    /// Who calls it.
    pub clients: Clients,
    /// What they are asked to do.
    pub arrivals: Arrivals,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many there are. Each has a budget, a breaker and a limiter of its own; one is a shared
    /// gateway.
    pub instances: u32,
    /// Retrying layers above one another, each with as many instances; 1 calls the server itself.
    pub layers: u32,
    /// Does a layer that gives up say so (`Ressac-Reason`)?
    pub marks: bool,
    /// Do they heed `Retry-After`? Ressac does; without, to compare.
    pub hears_hints: bool,
    /// Does a durable retry that succeeds give its token back? Ressac's does; without, to compare.
    pub gives_back: bool,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            instances: 1,
            layers: 1,
            marks: true,
            hears_hints: true,
            gives_back: true,
        }
    }
}
