#![cfg_attr(not(test), no_std)]
#![doc = include_str!("../README.md")]

extern crate alloc;

mod backoff;
mod hint;
mod outcome;
mod policy;
mod problems;
mod random;
mod ratio;
mod status;
mod time;

pub use backoff::{Backoff, Jitter};
pub use hint::{Hint, HintSource, HttpDate, VendorHints, parse_http_date};
pub use outcome::{Blame, Outcome, OutcomeKind, Processed};
pub use policy::{
    BreakerConfig, BudgetConfig, CallWindow, Deposit, LimitConfig, Mode, OverMax, Policy, Problem,
    RetryAfter, Rules,
};
pub use ratio::{Rate, Ratio};
pub use status::{RetryOn, StatusSet};
pub use time::Timestamp;
