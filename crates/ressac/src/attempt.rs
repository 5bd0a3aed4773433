//! One attempt, as the closure that makes it sees it.

use std::time::Duration;

use ressac_policy::{AttemptKind, OutcomeKind};

use crate::key::IdempotencyKey;

/// One try on the wire: what the closure is given each time it is called.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(crate) number: u32,
    pub(crate) kind: AttemptKind,
    pub(crate) timeout: Duration,
    pub(crate) key: IdempotencyKey,
    pub(crate) after: Option<OutcomeKind>,
}

impl Attempt {
    /// Its number, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What it costs: first, retry, probe or free.
    #[must_use]
    pub const fn kind(&self) -> AttemptKind {
        self.kind
    }

    /// The longest it may take: the policy's `attempt_timeout`, or what the window leaves. Async, the
    /// executor drops it then; a blocking closure must see to it itself.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The operation's idempotency key, the same on every attempt. It goes on the wire only if the
    /// closure puts it there; then say so with [`Retry::keyed`](crate::Retry::keyed).
    #[must_use]
    pub const fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    /// What the attempt before it came to; `None` for the first.
    #[must_use]
    pub const fn after(&self) -> Option<OutcomeKind> {
        self.after
    }
}
