//! From what a closure returned to the engine's [`Outcome`].

mod chain;
#[cfg(feature = "hyper")]
mod hyper;
mod io;
mod judge;
pub mod outcomes;
#[cfg(feature = "http")]
pub(crate) mod reply;
#[cfg(feature = "reqwest")]
mod reqwest;

use ressac_policy::{Outcome, Timestamp, VendorHints};

pub use self::judge::{ByClosure, ByError, ByReply, Judge, NoReply, When};

/// What an error, or a reply that is a failure, means to the policy: its kind, what it proves about
/// processing, what the partner asked for.
///
/// The one trait to write for an error type of your own. Say only what is proven: whatever may have
/// reached the partner is [`outcomes::transient`], and the policy sees to it that it is repeated
/// only where that is safe.
///
/// ```
/// use ressac::{Classify, Context, Outcome, outcomes};
///
/// enum ApiError {
///     Busy,
///     Lost(std::io::Error),
///     WrongAccount,
/// }
///
/// impl Classify for ApiError {
///     fn outcome(&self, context: &Context) -> Outcome {
///         match self {
///             ApiError::Busy => Outcome::status(429),
///             ApiError::Lost(error) => error.outcome(context),
///             ApiError::WrongAccount => outcomes::permanent(),
///         }
///     }
/// }
/// ```
pub trait Classify {
    /// What it means. How long the attempt took is filled in by the executor.
    fn outcome(&self, context: &Context) -> Outcome;
}

impl<C: Classify + ?Sized> Classify for &C {
    fn outcome(&self, context: &Context) -> Outcome {
        (**self).outcome(context)
    }
}

impl<C: Classify + ?Sized> Classify for Box<C> {
    fn outcome(&self, context: &Context) -> Outcome {
        (**self).outcome(context)
    }
}

/// What is needed to read a hint.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The moment of receipt.
    pub now: Timestamp,
    /// The hints that the policy believes besides `Retry-After`.
    pub vendors: VendorHints,
}

impl Context {
    /// The context of a test of one's own [`Classify`].
    #[must_use]
    pub const fn new(now: Timestamp, vendors: VendorHints) -> Self {
        Context { now, vendors }
    }
}
