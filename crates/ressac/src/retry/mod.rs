//! The executor: it sends, sleeps and reports; the engine decides.

mod blocking;
mod builder;
mod drive;

use std::pin::Pin;
use std::task::{Context, Poll};

use ressac_policy::{End, Policy};

pub use self::blocking::BlockingRetry;
pub use self::builder::Retry;
pub use self::drive::Retrying;
use crate::attempt::Attempt;
use crate::partner::Partner;

/// What an operation that was done returned, and how it came to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivered<T> {
    /// What the last attempt returned.
    pub value: T,
    /// Attempts, and whether the partner says that an earlier attempt had done it.
    pub end: End,
}

/// Retries straight from a policy, for an operation that shares its partner with no other.
///
/// Each call is a partner of its own: no budget and no breaker knows of the others. Where a program
/// calls a system more than now and then, make a [`Partner`] and share it.
pub trait PolicyExt {
    /// As [`Partner::retry`], at a partner of its own.
    fn retry<F, Fut, T, E>(&self, op: F) -> Retry<F>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>;

    /// As [`Partner::retry_blocking`], at a partner of its own.
    fn retry_blocking<F, T, E>(&self, op: F) -> BlockingRetry<F>
    where
        F: FnMut(Attempt) -> Result<T, E>;
}

impl PolicyExt for Policy {
    fn retry<F, Fut, T, E>(&self, op: F) -> Retry<F>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Partner::new(self.clone()).retry(op)
    }

    fn retry_blocking<F, T, E>(&self, op: F) -> BlockingRetry<F>
    where
        F: FnMut(Attempt) -> Result<T, E>,
    {
        Partner::new(self.clone()).retry_blocking(op)
    }
}

/// A future that is never ready: nobody cancels.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Never;

impl Never {
    pub(crate) const fn new() -> Self {
        Never
    }
}

impl Future for Never {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
