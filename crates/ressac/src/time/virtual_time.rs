//! Time that a test moves.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use ressac_policy::Timestamp;

use super::{Sleep, Sleeper};
use crate::sync::Mutex;

/// A clock that stands still until it is moved: for tests on any runtime, or none.
///
/// A future that sleeps by it is woken by [`VirtualTime::advance`]. A blocking operation never
/// blocks: its waits move the clock themselves. Under tokio `tokio::time::pause` does as well.
///
/// ```
/// use std::time::Duration;
/// use ressac::{outcomes, Partner, Policy, VirtualTime};
///
/// let time = VirtualTime::new();
/// let partner = Partner::builder(Policy::sync()).sleeper(time.clone()).build()?;
/// let end = partner
///     .retry_blocking(|_attempt| Err::<(), _>("not yet"))
///     .idempotent()
///     .classify(|_, _| outcomes::transient())
///     .call();
/// assert_eq!(end.unwrap_err().attempts(), 5); // five failures in a row open the breaker
/// # Ok::<(), ressac::PartnerError>(())
/// ```
#[derive(Clone, Debug)]
pub struct VirtualTime(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Timestamp,
    sleepers: Vec<(u64, Timestamp, Waker)>,
    next: u64,
}

impl VirtualTime {
    /// A clock at 30 November 2026, 12:00 UTC.
    #[must_use]
    pub fn new() -> Self {
        VirtualTime(Arc::new(Mutex::new(State {
            now: Timestamp::from_secs(1_796_040_000),
            sleepers: Vec::new(),
            next: 0,
        })))
    }

    /// Moves the clock, and wakes all whose time has come.
    pub fn advance(&self, by: Duration) {
        let mut due = Vec::new();
        {
            let mut state = self.0.lock();
            state.now = state.now + by;
            let now = state.now;
            state.sleepers.retain(|(_, until, waker)| {
                let over = *until <= now;
                if over {
                    due.push(waker.clone());
                }
                !over
            });
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// How many sleep now, and how long the first of them still has.
    #[must_use]
    pub fn sleepers(&self) -> (usize, Option<Duration>) {
        let state = self.0.lock();
        let first = state.sleepers.iter().map(|(_, until, _)| *until).min();
        (
            state.sleepers.len(),
            first.map(|until| until.since(state.now)),
        )
    }
}

impl Default for VirtualTime {
    fn default() -> Self {
        VirtualTime::new()
    }
}

impl Sleeper for VirtualTime {
    fn now(&self) -> Timestamp {
        self.0.lock().now
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let mut state = self.0.lock();
        state.next += 1;
        let mut sleeping = Sleeping {
            time: self.clone(),
            until: state.now + duration,
            number: state.next,
        };
        drop(state);
        Box::pin(std::future::poll_fn(move |cx| sleeping.poll(cx.waker())))
    }

    fn park(&self, duration: Duration) {
        self.advance(duration);
    }
}

struct Sleeping {
    time: VirtualTime,
    until: Timestamp,
    number: u64,
}

impl Sleeping {
    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        let mut state = self.time.0.lock();
        let number = self.number;
        state.sleepers.retain(|(own, ..)| *own != number);
        if state.now >= self.until {
            return Poll::Ready(());
        }
        state.sleepers.push((number, self.until, waker.clone()));
        Poll::Pending
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        let number = self.number;
        self.time
            .0
            .lock()
            .sleepers
            .retain(|(own, ..)| *own != number);
    }
}
