//! The partner that is called: capacity, queue, refusals, faults.

use std::time::Duration;

/// A partner.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// How many requests it serves at a time; 0 is without limit (no queue then).
    pub places: u32,
    /// How long one takes.
    pub service: Service,
    /// Places to wait in; `None` is without limit.
    pub queue: Option<u32>,
    /// Who of those who wait is served next.
    pub order: Order,
    /// What it answers where it does not serve.
    pub rejection: Rejection,
    /// Requests are dropped, unanswered, when their turn comes and the caller's time limit is
    /// nearer than this; `None` serves them all.
    pub drop_margin: Option<Duration>,
    /// The share of served requests that fail all the same.
    pub fail: f64,
    /// Outages and slow-downs, each after the other.
    pub faults: Vec<Fault>,
}

/// The law of the service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Exponential with this mean.
    Exponential(Duration),
    /// Always the same.
    Fixed(Duration),
}

/// The order of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest first.
    #[default]
    Fifo,
    /// The newest first.
    Lifo,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its status.
    pub status: u16,
    /// Its `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The service time that it takes from those who are served.
    pub cost: Duration,
}

/// A time in which the server is not itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Its first moment.
    pub from: Duration,
    /// The first moment after it.
    pub to: Duration,
    /// What it does.
    pub kind: FaultKind,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Everything is refused at once, what waited too.
    Refuse,
    /// Nothing is served; what comes waits, and work goes on afterwards.
    Stop,
    /// Service begun in it takes so many times as long.
    Slow(f64),
}

impl ServerConfig {
    /// One server with an exponential service time and an unlimited first-in, first-out queue.
    #[must_use]
    pub fn single(rate: f64) -> Self {
        ServerConfig {
            places: 1,
            service: Service::Exponential(Duration::from_secs_f64(1.0 / rate)),
            queue: None,
            order: Order::Fifo,
            rejection: Rejection {
                status: 503,
                retry_after: None,
                cost: Duration::ZERO,
            },
            drop_margin: None,
            fail: 0.0,
            faults: Vec::new(),
        }
    }

    /// A server that answers everything at once.
    #[must_use]
    pub fn instant() -> Self {
        ServerConfig {
            places: 0,
            service: Service::Fixed(Duration::ZERO),
            ..ServerConfig::single(1.0)
        }
    }

    /// Requests a second that it can serve; infinite for one without limit.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        let (Service::Exponential(mean) | Service::Fixed(mean)) = self.service;
        match self.places {
            0 => f64::INFINITY,
            places => f64::from(places) / mean.as_secs_f64(),
        }
    }

    /// The first fault's begin and end, in nanoseconds.
    #[must_use]
    pub fn outage(&self) -> Option<(u64, u64)> {
        let fault = self.faults.first()?;
        Some((super::nanos(fault.from), super::nanos(fault.to)))
    }
}
