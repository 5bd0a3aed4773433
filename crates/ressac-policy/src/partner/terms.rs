//! Times of a policy, worked out once.

use crate::policy::Policy;
use crate::time::nanos;

/// Times of the policy that every decision asks for, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) attempt_timeout: u64,
    pub(crate) base: u64,
    pub(crate) cap: u64,
    /// The longest hint that is obeyed; `None` is the window.
    pub(crate) longest_hint: Option<u64>,
}

impl Terms {
    pub(super) fn of(policy: &Policy) -> Self {
        Terms {
            attempt_timeout: nanos(policy.attempt_timeout),
            base: nanos(policy.backoff.base),
            cap: nanos(policy.backoff.cap),
            longest_hint: policy.retry_after.max.map(nanos),
        }
    }
}
