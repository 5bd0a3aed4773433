//! What an HTTP reply means.

#[cfg(feature = "reqwest")]
use http::header::CONTENT_TYPE;
use http::header::{HeaderMap, HeaderName};
use ressac_policy::{Hint, Outcome, Reason};

use super::{Classify, Context};

/// Says in a reply why an inner Ressac ended the operation.
pub(crate) const REASON: HeaderName = HeaderName::from_static("ressac-reason");

/// The title of the idempotency draft's 409 (draft-ietf-httpapi-idempotency-key-header-07 §2.7).
/// Its `type` in the draft is an example only, the same for all three errors, so the title tells.
#[cfg(feature = "reqwest")]
const IN_FLIGHT_TITLE: &str = "A request is outstanding for this Idempotency-Key";

/// Its status, what it asks for (`Retry-After` and the relatives that the policy believes), and
/// whether a layer in between gave up (`Ressac-Reason`).
impl<B> Classify for http::Response<B> {
    fn outcome(&self, context: &Context) -> Outcome {
        of_head(self.status().as_u16(), self.headers(), context)
    }
}

#[inline]
pub(crate) fn of_head(status: u16, headers: &HeaderMap, context: &Context) -> Outcome {
    let outcome = Outcome::status(status);
    if outcome.is_success() {
        return outcome;
    }
    of_failed_head(outcome, headers, context)
}

#[cold]
fn of_failed_head(outcome: Outcome, headers: &HeaderMap, context: &Context) -> Outcome {
    let fields = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let gave_up = headers
        .get_all(REASON)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter_map(|word| Reason::from_word(word.trim()))
        // `delivered` is no giving up; any other word is somebody else's header.
        .any(|reason| reason != Reason::Delivered);
    outcome
        .with_hint(Hint::from_headers(fields, context.now, context.vendors))
        .gave_up(gave_up)
}

/// Is the body a problem description (RFC 9457)?
#[cfg(feature = "reqwest")]
pub(crate) fn is_problem(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/problem+json"))
}

/// Whether a problem description says that the first request with this key is still being worked on.
#[cfg(feature = "reqwest")]
pub(crate) fn says_in_flight(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Problem {
        title: String,
    }
    serde_json::from_slice::<Problem>(body)
        .is_ok_and(|problem| problem.title.trim().eq_ignore_ascii_case(IN_FLIGHT_TITLE))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ressac_policy::{OutcomeKind, Timestamp, VendorHints};

    use super::*;

    fn outcome(status: u16, name: &'static str, value: &'static str) -> Outcome {
        let reply = http::Response::builder()
            .status(status)
            .header(name, value)
            .body(())
            .unwrap();
        reply.outcome(&Context::new(
            Timestamp::from_secs(1_796_040_000),
            VendorHints::NONE,
        ))
    }

    #[test]
    fn ra_3_a_hint_is_read_on_every_status_that_is_no_success() {
        let told = outcome(429, "retry-after", "120");
        assert_eq!(told.kind, OutcomeKind::Status(429));
        assert_eq!(told.hint.unwrap().wait, Duration::from_secs(120));
        assert_eq!(outcome(200, "retry-after", "120").hint, None);
        assert_eq!(outcome(429, "retry-after-ms", "120").hint, None);
    }

    #[test]
    fn vr_5_an_inner_layer_that_gave_up_is_heard() {
        assert!(outcome(503, "ressac-reason", "exhausted").gave_up);
        assert!(!outcome(503, "ressac-reason", "delivered").gave_up);
        assert!(!outcome(503, "ressac-reason", "something else").gave_up);
    }
}
