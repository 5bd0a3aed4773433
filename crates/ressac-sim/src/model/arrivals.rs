//! When operations begin.

use std::time::Duration;

/// When operations begin, over all clients together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// An open loop: so many a second, whatever becomes of them, each at a client drawn at random.
    Poisson {
        /// Operations a second.
        rate: f64,
        /// None begins from this moment on; `None` is the horizon.
        until: Option<Duration>,
    },
    /// A closed loop: each client thinks, does one operation, and thinks again.
    Closed {
        /// The mean of the exponential thinking time.
        think: Duration,
    },
    /// One operation of each client, at a moment drawn from `at..at + within`.
    Once {
        /// The first moment.
        at: Duration,
        /// Zero: all at one instant.
        within: Duration,
    },
    /// So many at one instant, again and again, each at a client drawn at random.
    Bursts {
        /// The time from one to the next.
        every: Duration,
        /// Operations in each.
        size: u32,
    },
}
