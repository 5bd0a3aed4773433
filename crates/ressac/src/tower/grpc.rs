//! What a gRPC reply means.
//!
//! A gRPC call fails with HTTP status 200 and a `grpc-status`. Where the server has nothing else to
//! say, that field stands in the head of the reply (*trailers-only*), and the layer reads it there. A
//! reply that has begun is taken for an answer, as gRPC's own retries take it (gRFC A6: a call is
//! committed when its response headers arrive): a status in its trailers is the caller's.
//!
//! | status | taken for | processed | another attempt |
//! |---|---|---|---|
//! | `OK` | success | yes | |
//! | `UNAVAILABLE` | 503 | maybe | if replayable |
//! | `RESOURCE_EXHAUSTED` | 429 | maybe | if replayable |
//! | `DEADLINE_EXCEEDED` | 504 | maybe | if replayable |
//! | `ABORTED` | 409 | maybe | only with a push-back, under a key; what is to be repeated is larger than this call |
//! | `CANCELLED`, `UNKNOWN` | 499, 500 | maybe | never |
//! | `INTERNAL`, `DATA_LOSS`, `UNIMPLEMENTED` | 500, 500, 501 | yes | never |
//! | `INVALID_ARGUMENT`, `FAILED_PRECONDITION`, `OUT_OF_RANGE` | 400 | yes | never |
//! | `UNAUTHENTICATED`, `PERMISSION_DENIED`, `NOT_FOUND`, `ALREADY_EXISTS` | 401, 403, 404, 409 | yes | never |
//!
//! The numbers are those of google/rpc/code.proto, so that a policy's `retry_on` and `already_done` mean the same over
//! both. *Replayable*: every gRPC call is a `POST`, so the caller says which may be repeated
//! ([`RetryLayer::idempotent`](super::RetryLayer::idempotent)).
//!
//! `RESOURCE_EXHAUSTED` is no proof that nothing was done, unlike HTTP's 429: a library also says it
//! of a reply that is too large.
//!
//! `grpc-retry-pushback-ms` is a hint like `Retry-After`: the floor of the wait. Negative, or no number: the server
//! does not want to see the call again (gRFC A6), and the operation ends as `upstream_gave_up`.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap};
use ressac_policy::{Hint, HintSource, Outcome, Processed};

/// Is this the head of a gRPC request or reply?
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    const KIND: &[u8] = b"application/grpc";
    headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes();
        let rest = kind.strip_prefix(KIND);
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
    })
}

/// `None` where the reply has begun, and is taken for an answer.
pub(super) fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    let status = headers.get("grpc-status")?;
    let code = status
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok());
    let outcome = of_code(code);
    if outcome.is_success() {
        return Some(outcome);
    }
    Some(match headers.get("grpc-retry-pushback-ms") {
        None => outcome,
        Some(value) => match value
            .to_str()
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok())
        {
            Some(millis) => outcome.with_hint(Some(Hint {
                wait: Duration::from_millis(millis.into()),
                // The engine's word for a hint in milliseconds.
                source: HintSource::RetryAfterMs,
            })),
            None => outcome.gave_up(true),
        },
    })
}

/// `None`: no number.
fn of_code(code: Option<u32>) -> Outcome {
    let yes = |status| Outcome::status(status).proving(Processed::Yes);
    let maybe = |status| Outcome::status(status).proving(Processed::Maybe);
    match code {
        Some(0) => Outcome::success(),
        Some(1) => maybe(499),
        Some(3 | 9 | 11) => yes(400),
        Some(4) => maybe(504),
        Some(5) => yes(404),
        Some(6) => yes(409),
        Some(7) => yes(403),
        Some(8) => maybe(429),
        Some(10) => maybe(409),
        Some(12) => yes(501),
        Some(13 | 15) => yes(500),
        Some(14) => maybe(503),
        Some(16) => yes(401),
        // 2, and what is no code: taken for `UNKNOWN`.
        _ => maybe(500),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;
    use ressac_policy::{OutcomeKind, Rules, Verdict};

    use super::*;

    fn head(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter();
        fields
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    fn judged(fields: &[(&'static str, &'static str)]) -> (Verdict, Processed) {
        let outcome = outcome(&head(fields)).unwrap();
        let judged = Rules::default().judge(&outcome, true, Processed::No);
        (judged.verdict, judged.processed)
    }

    #[test]
    fn vr_7_one_table_for_every_code() {
        use Processed::{Maybe, Yes};
        let codes = [
            "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14",
        ];
        for code in codes.into_iter().chain(["15", "16", "17", "-1", "x", ""]) {
            let expected = match code {
                "0" => (Verdict::Success, Yes),
                "4" | "8" | "14" => (Verdict::Retry, Maybe),
                "1" | "2" | "10" | "17" | "-1" | "x" | "" => (Verdict::Permanent, Maybe),
                _ => (Verdict::Permanent, Yes),
            };
            assert_eq!(judged(&[("grpc-status", code)]), expected, "{code:?}");
        }
    }

    #[test]
    fn a_push_back_is_a_hint_and_a_negative_one_a_refusal() {
        let told = |millis| {
            outcome(&head(&[
                ("grpc-status", "14"),
                ("grpc-retry-pushback-ms", millis),
            ]))
            .unwrap()
        };
        let hint = told("1500").hint.unwrap();
        assert_eq!(
            (hint.wait, told("1500").gave_up),
            (Duration::from_millis(1_500), false)
        );
        assert_eq!(told("0").hint.unwrap().wait, Duration::ZERO);
        for refusal in ["-1", "soon", "99999999999"] {
            assert!(told(refusal).gave_up, "{refusal}");
            assert_eq!(told(refusal).hint, None);
        }
        assert_eq!(told("5").kind, OutcomeKind::Status(503));
        // A hint never makes a permanent failure retryable.
        let refused = judged(&[("grpc-status", "3"), ("grpc-retry-pushback-ms", "5")]);
        assert_eq!(refused.0, Verdict::Permanent);
        let aborted = judged(&[("grpc-status", "10"), ("grpc-retry-pushback-ms", "5")]);
        assert_eq!(aborted, (Verdict::Retry, Processed::Maybe));
    }

    #[test]
    fn grpc_is_known_by_its_content_type() {
        for (kind, grpc) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;x=1", true),
            ("application/grpc-web", false),
            ("application/json", false),
        ] {
            assert_eq!(is_grpc(&head(&[("content-type", kind)])), grpc, "{kind}");
        }
        assert!(outcome(&head(&[])).is_none());
    }
}
