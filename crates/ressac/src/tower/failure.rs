//! What the service inside said.

use std::error::Error;
use std::fmt;

use ressac_policy::{Blame, End, OutcomeKind, Processed, Reason};

use crate::classify::Context;
use crate::error::{Facts, Last, RetryError};
use crate::partner::Partner;

/// An error of any kind, as tower's services have it.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The error of the service inside a [`RetryLayer`](super::RetryLayer), whatever its type.
///
/// It shows as what is inside, which is also its source: who looks for a type along the chain of
/// errors finds it.
pub struct Failure {
    error: BoxError,
    /// The request was handed to the service.
    pub(super) handed_over: bool,
}

impl Failure {
    pub(super) const fn new(error: BoxError, handed_over: bool) -> Self {
        Failure { error, handed_over }
    }

    /// The error itself.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.error
    }

    /// The error itself, by value.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.error
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}

/// The same end without a reply that is not there.
pub(super) fn without_reply<R>(error: RetryError<Failure, R>) -> RetryError<Failure> {
    let facts = Facts {
        end: *error.end(),
        wait: error.wait().copied(),
        elapsed: error.elapsed(),
        partner: error.partner().into(),
        key: error.key().clone(),
    };
    let last = match error.into_last() {
        Last::Error(error) => Last::Error(error),
        Last::Reply(_) | Last::Nothing => Last::Nothing,
    };
    RetryError::new(facts, last)
}

/// Nothing was sent: the service was not ready.
pub(super) fn not_ready(partner: &Partner, error: BoxError) -> RetryError<Failure> {
    let policy = partner.policy();
    let context = Context::new(partner.now(), policy.retry_after.vendors);
    let failure = Failure::new(error, false);
    let outcome = super::judge::of_failure(&failure, &context);
    let judged = policy.rules.judge(&outcome, false, Processed::No);
    begun_nothing(partner, failure, judged.blame, outcome.kind)
}

/// Nothing was sent: the request's own body failed.
pub(super) fn no_body(partner: &Partner, error: BoxError) -> RetryError<Failure> {
    let failure = Failure::new(error, false);
    begun_nothing(partner, failure, Some(Blame::Ours), OutcomeKind::Invalid)
}

fn begun_nothing(
    partner: &Partner,
    failure: Failure,
    blame: Option<Blame>,
    kind: OutcomeKind,
) -> RetryError<Failure> {
    let end = End {
        reason: Reason::Permanent,
        blame,
        processed: Processed::No,
        attempts: 0,
        already_done: false,
        last: Some(kind),
        hint: None,
    };
    let facts = Facts {
        end,
        wait: None,
        elapsed: std::time::Duration::ZERO,
        partner: partner.name().into(),
        key: partner.make_key(),
    };
    RetryError::new(facts, Last::Error(failure))
}
