//! Hooks: what happens to each operation, for metrics, logs and tests.

mod metrics;
#[cfg(feature = "tracing")]
mod trace;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ressac_policy::{End, Outcome, Wait};

pub use self::metrics::{Metrics, MetricsSnapshot};
use crate::attempt::Attempt;
use crate::partner::Shared;
use crate::policy::Judgement;

/// Something that happened to an operation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt begins.
    #[non_exhaustive]
    Attempt {
        /// The partner's name.
        partner: &'a str,
        /// The attempt.
        attempt: &'a Attempt,
    },
    /// An attempt has ended.
    #[non_exhaustive]
    Outcome {
        /// The partner's name.
        partner: &'a str,
        /// The attempt's number.
        number: u32,
        /// What it came to, and how long it took.
        outcome: &'a Outcome,
        /// What that means: verdict, processed, blame.
        judgement: &'a Judgement,
    },
    /// The operation waits.
    #[non_exhaustive]
    Wait {
        /// The partner's name.
        partner: &'a str,
        /// What for, and the numbers that made it.
        wait: &'a Wait,
        /// How long from now.
        left: Duration,
    },
    /// The operation has ended.
    #[non_exhaustive]
    End {
        /// The partner's name.
        partner: &'a str,
        /// How.
        end: &'a End,
        /// From its start.
        elapsed: Duration,
    },
}

/// Is told of everything that happens to the operations of a partner.
///
/// It is called by the task or thread of the operation, outside the partner's lock: it may look at
/// the partner, and it should not block. [`Metrics`] is one that counts.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use ressac::{Event, Observer, Partner, Policy};
///
/// static GAVE_UP: AtomicU32 = AtomicU32::new(0);
///
/// struct Alarm;
/// impl Observer for Alarm {
///     fn on_event(&self, event: &Event<'_>) {
///         if let Event::End { partner, end, .. } = event
///             && end.reason != ressac::Reason::Delivered
///         {
///             eprintln!("{partner}: {end}");
///             GAVE_UP.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let partner = Partner::builder(Policy::sync()).observer(Alarm).build()?;
/// let lost = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
/// partner.retry_blocking(|_| Err::<(), _>(lost())).call().unwrap_err();
/// assert_eq!(GAVE_UP.load(Ordering::Relaxed), 1);
/// # Ok::<(), ressac::PartnerError>(())
/// ```
pub trait Observer: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &Event<'_>);
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_event(&self, event: &Event<'_>) {
        (**self).on_event(event);
    }
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Observer")
    }
}

/// Does anybody listen? Else nothing is put together for them.
#[inline]
pub(crate) fn is_heard(shared: &Shared) -> bool {
    #[cfg(feature = "tracing")]
    if trace::is_enabled() {
        return true;
    }
    shared.observer.is_some()
}

pub(crate) fn tell(shared: &Shared, event: &Event<'_>) {
    #[cfg(feature = "tracing")]
    trace::emit(event);
    if let Some(observer) = &shared.observer {
        observer.on_event(event);
    }
}

#[cfg(feature = "tracing")]
pub(crate) use self::trace::attempt_span;
