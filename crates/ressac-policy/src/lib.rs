#![cfg_attr(not(test), no_std)]
#![doc = include_str!("../README.md")]

extern crate alloc;

mod backoff;
mod budget;
mod decision;
mod gate;
mod hint;
mod limiter;
mod operation;
mod outcome;
mod partner;
mod policy;
mod problems;
mod random;
mod ratio;
mod status;
mod time;
mod verdict;
mod window;

pub use backoff::{Backoff, Jitter};
pub use budget::{Budget, amplification_bound};
pub use decision::{Attempt, AttemptKind, Because, Decision, End, Reason, Wait};
pub use gate::{Cause, GateState};
pub use hint::{Hint, HintSource, HttpDate, VendorHints, parse_http_date};
pub use operation::{Operation, OperationSpec, is_idempotent};
pub use outcome::{Blame, Outcome, OutcomeKind, Processed};
pub use partner::{Partner, PartnerState, PartnerView, Readiness};
pub use policy::{
    BreakerConfig, BudgetConfig, CallWindow, Deposit, LimitConfig, Mode, OverMax, Policy, Problem,
    RetryAfter, Rules,
};
pub use ratio::{Rate, Ratio};
pub use status::{RetryOn, StatusSet};
pub use time::Timestamp;
pub use verdict::{Health, Judgement, Verdict};
