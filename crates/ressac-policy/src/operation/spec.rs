//! What is known of an operation before its first attempt.

use core::time::Duration;

use crate::time::Timestamp;

/// Is the method safe or idempotent (RFC 9110 §9.2.2)? Then it may be repeated without a key.
/// Methods are case-sensitive.
///
/// ```
/// use ressac_policy::is_idempotent;
///
/// assert!(is_idempotent("PUT") && is_idempotent("GET"));
/// assert!(!is_idempotent("POST") && !is_idempotent("PATCH") && !is_idempotent("get"));
/// ```
#[must_use]
#[inline]
pub fn is_idempotent(method: &str) -> bool {
    matches!(
        method,
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
    )
}

/// What is known of an operation before its first attempt.
///
/// ```
/// use ressac_policy::{Operation, OperationSpec, Policy, Timestamp};
///
/// // A POST with a key that the partner is said to honour for a day.
/// let spec = OperationSpec::new("POST")
///     .with_honoured_key(Some(core::time::Duration::from_secs(86_400)));
/// let operation = Operation::new(&spec, &Policy::sync(), Timestamp::from_secs(0));
/// assert_eq!(operation.attempts(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSpec {
    /// Repeating the request does no harm by itself: its method says so, or its caller.
    pub idempotent: bool,
    /// It has a key that the partner is said to honour.
    pub keyed: bool,
    /// How long the partner remembers the key; `None` is for ever.
    pub key_ttl: Option<Duration>,
    /// Its body can be sent again.
    pub repeatable_body: bool,
    /// Nothing is sent from this moment on, whatever the window says.
    pub deliver_by: Option<Timestamp>,
}

impl OperationSpec {
    /// An operation with this method, without a key, with a body that is kept.
    #[must_use]
    #[inline]
    pub fn new(method: &str) -> Self {
        OperationSpec {
            idempotent: is_idempotent(method),
            keyed: false,
            key_ttl: None,
            repeatable_body: true,
            deliver_by: None,
        }
    }

    /// With a key that the partner is said to honour for so long (`None`: for ever).
    #[must_use]
    pub const fn with_honoured_key(mut self, ttl: Option<Duration>) -> Self {
        self.keyed = true;
        self.key_ttl = ttl;
        self
    }

    /// With a moment from which on nothing is sent.
    #[must_use]
    pub const fn deliver_by(mut self, moment: Timestamp) -> Self {
        self.deliver_by = Some(moment);
        self
    }
}
