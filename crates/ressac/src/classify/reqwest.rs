//! What reqwest's errors prove.

use ressac_policy::{Outcome, OutcomeKind, Processed};

use super::{Classify, Context, chain, outcomes, reply};

/// Connecting comes first, as a connect timeout is a timeout too. A time limit that includes
/// connecting hides whether anything was sent: set `connect_timeout` strictly below it.
impl Classify for reqwest::Error {
    fn outcome(&self, _: &Context) -> Outcome {
        if self.is_connect() {
            let outcome = chain::of_connect_error(self);
            if self.is_timeout() && outcome.kind == OutcomeKind::Refused {
                return Outcome::new(OutcomeKind::ConnectTimeout).proving(Processed::No);
            }
            return outcome;
        }
        if self.is_timeout() {
            return outcomes::timed_out();
        }
        if let Some(status) = self.status() {
            return Outcome::status(status.as_u16());
        }
        if self.is_builder() {
            return Outcome::new(OutcomeKind::Invalid);
        }
        if self.is_redirect() {
            return outcomes::permanent();
        }
        // The reply's head was there.
        if self.is_decode() || self.is_body() {
            return Outcome::new(OutcomeKind::Truncated);
        }
        chain::of_error(self)
    }
}

impl Classify for reqwest::Response {
    fn outcome(&self, context: &Context) -> Outcome {
        reply::of_head(self.status().as_u16(), self.headers(), context)
    }
}
