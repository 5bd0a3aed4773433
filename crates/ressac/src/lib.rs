#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod attempt;
mod classify;
mod error;
mod key;
mod observe;
mod operation;
mod partner;
mod retry;
mod sync;
mod time;

#[cfg(feature = "idempotency")]
pub mod idempotency;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tower")]
pub mod tower;

/// The policy engine that this crate drives, whole.
pub use ressac_policy as policy;

pub use attempt::Attempt;
pub use classify::{
    ByClosure, ByError, ByReply, Classify, Context, Judge, NoReply, When, outcomes,
};
pub use error::{Last, RetryError};
pub use key::{IdempotencyKey, KeyError};
pub use observe::{Event, Metrics, MetricsSnapshot, Observer};
pub use partner::{Idempotency, Partner, PartnerBuilder, PartnerError};
pub use ressac_policy::{
    AttemptKind, Because, Blame, End, Hint, Outcome, OutcomeKind, Policy, Processed, Reason,
    Timestamp, Wait,
};
pub use retry::{BlockingRetry, Delivered, Never, PolicyExt, Retry, Retrying};
pub use time::{Sleep, Sleeper, VirtualTime};

/// The guide is tested: its examples are compiled and run with those of this crate.
#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../../../docs/library.md")]
mod guide {}
