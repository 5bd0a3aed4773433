//! Outcomes for errors that are no HTTP and no socket.
//!
//! ```
//! use ressac::{Processed, outcomes};
//!
//! assert_eq!(outcomes::not_sent().processed, Some(Processed::No));
//! assert_eq!(outcomes::transient().processed, None); // nobody can know
//! ```

use ressac_policy::{Outcome, OutcomeKind, Processed};

pub use super::chain::of_error;

/// Worth another attempt, and nothing proves that the partner did not process this one: an
/// operation that may not be repeated ends as `ambiguous`.
#[must_use]
pub const fn transient() -> Outcome {
    Outcome::new(OutcomeKind::Eof)
}

/// It certainly did not reach the partner: any operation may go again.
#[must_use]
pub const fn not_sent() -> Outcome {
    Outcome::new(OutcomeKind::Refused).proving(Processed::No)
}

/// The partner took it and gave no answer in time.
#[must_use]
pub const fn timed_out() -> Outcome {
    Outcome::new(OutcomeKind::Timeout)
}

/// The partner is alive and asks for less. With what it asked for, where it said so:
/// [`Outcome::with_hint`].
#[must_use]
pub const fn throttled() -> Outcome {
    Outcome::status(429)
}

/// Another attempt cannot help.
#[must_use]
pub const fn permanent() -> Outcome {
    Outcome::new(OutcomeKind::Invalid).proving(Processed::Maybe)
}
