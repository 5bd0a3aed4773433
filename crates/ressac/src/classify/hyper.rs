//! What hyper's errors prove.

use ::hyper::Error;
use ressac_policy::{Outcome, OutcomeKind, Processed};

use super::{Classify, Context, chain, outcomes};

/// A *canceled* error is hyper's word that the request was never started; everything else that ends
/// a connection proves nothing.
impl Classify for Error {
    fn outcome(&self, _: &Context) -> Outcome {
        chain::of_error(self)
    }
}

#[cfg(feature = "hyper-util")]
impl Classify for hyper_util::client::legacy::Error {
    fn outcome(&self, _: &Context) -> Outcome {
        if self.is_connect() {
            chain::of_connect_error(self)
        } else {
            chain::of_error(self)
        }
    }
}

/// `None` where the cause below it says more.
pub(super) fn of_hyper(error: &Error) -> Option<Outcome> {
    if error.is_canceled() {
        Some(Outcome::new(OutcomeKind::Reset).proving(Processed::No))
    } else if error.is_incomplete_message() || error.is_parse() {
        Some(Outcome::new(OutcomeKind::Eof))
    } else if error.is_timeout() {
        Some(outcomes::timed_out())
    } else if error.is_user() {
        Some(outcomes::permanent())
    } else {
        None
    }
}
