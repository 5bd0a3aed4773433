//! Where the time comes from, and who sleeps.

mod nap;
mod thread;
mod virtual_time;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ressac_policy::Timestamp;

pub(crate) use self::nap::Nap;
pub use self::virtual_time::VirtualTime;

#[cfg(not(feature = "tokio"))]
use std::time::Instant;
#[cfg(feature = "tokio")]
use tokio::time::Instant;

/// The longest sleep at a time; a longer wait is slept in pieces.
pub(crate) const LONGEST_NAP: Duration = Duration::from_secs(24 * 60 * 60);

/// A sleep under way: ready when it is over.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clock, and a way to sleep by it: any runtime, or a time of a test's own.
///
/// Without one a [`Partner`](crate::Partner) uses tokio's timers inside a tokio runtime (its paused
/// clock too), and a timer thread of its own anywhere else.
///
/// ```
/// use std::time::Duration;
/// use ressac::{Sleep, Sleeper, Timestamp};
///
/// /// The timers of another runtime.
/// #[derive(Debug)]
/// struct Other(std::time::Instant);
///
/// impl Sleeper for Other {
///     fn now(&self) -> Timestamp {
///         // Of a calendar date in `Retry-After` only the distance from now matters.
///         Timestamp::from_secs(1_796_040_000) + self.0.elapsed()
///     }
///     fn sleep(&self, duration: Duration) -> Sleep {
///         # fn other_runtime_sleep(_: Duration) -> std::future::Ready<()> { std::future::ready(()) }
///         Box::pin(other_runtime_sleep(duration))
///     }
/// }
/// ```
pub trait Sleeper: fmt::Debug + Send + Sync + 'static {
    /// Now. It must not go back; only differences matter, except where a partner names a calendar
    /// date in `Retry-After` without a `Date` beside it.
    fn now(&self) -> Timestamp;

    /// Is ready after `duration`, not before. Dropping it must be harmless.
    fn sleep(&self, duration: Duration) -> Sleep;

    /// Blocks the thread for `duration`, for [`Partner::retry_blocking`](crate::Partner::retry_blocking).
    /// It may return early when the thread is unparked. By default the thread is parked.
    fn park(&self, duration: Duration) {
        std::thread::park_timeout(duration);
    }
}

/// The time a partner goes by.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The wall clock at the start, and a clock that does not jump since.
    Ambient {
        wall: Timestamp,
        begun: Instant,
    },
    Other(Arc<dyn Sleeper>),
}

impl Time {
    pub(crate) fn ambient() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Time::Ambient {
            wall: Timestamp::ZERO + wall.unwrap_or_default(),
            begun: Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Time::Ambient { wall, begun } => *wall + begun.elapsed(),
            Time::Other(sleeper) => sleeper.now(),
        }
    }

    /// Wakes after `duration`, or earlier if that is longer than a nap.
    pub(crate) fn nap(&self, duration: Duration) -> Nap {
        let duration = duration.min(LONGEST_NAP);
        match self {
            Time::Ambient { .. } => Nap::ambient(duration),
            Time::Other(sleeper) => Nap::boxed(sleeper.sleep(duration)),
        }
    }

    pub(crate) fn park(&self, duration: Duration) {
        let duration = duration.min(LONGEST_NAP);
        match self {
            Time::Ambient { .. } => std::thread::park_timeout(duration),
            Time::Other(sleeper) => sleeper.park(duration),
        }
    }
}
