//! What an attempt means to the engine: its outcome.

use http::header::{CONTENT_TYPE, HeaderMap};
use http::{HeaderName, StatusCode};
use ressac_policy::{Hint, Outcome, OutcomeKind, Processed, Reason, Timestamp, VendorHints};

use crate::failure::{Failure, FailureKind, Sent};
use crate::reply::Reply;

/// Says in a reply why an inner Ressac ended the operation.
const REASON: HeaderName = HeaderName::from_static("ressac-reason");

/// A problem description is short; nothing longer is looked into.
const LONGEST_PROBLEM: usize = 64 * 1024;

/// The title of the idempotency draft's 409 (draft-ietf-httpapi-idempotency-key-header-07 §2.7).
/// Its `type` in the draft is an example only, the same for all three errors, so the title tells.
const IN_FLIGHT_TITLE: &str = "A request is outstanding for this Idempotency-Key";

impl Reply {
    /// What this reply means: its status, what it asks for, and whether an inner layer gave up.
    /// `now` is the moment of receipt; `vendors` are the hints believed besides `Retry-After`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(client: ressac_http::Client, request: http::Request<bytes::Bytes>) {
    /// use ressac_policy::{Timestamp, VendorHints};
    ///
    /// let now = || Timestamp::from_secs(1_796_040_000);
    /// let outcome = match client.send(request, Duration::from_secs(10)).await {
    ///     Ok(reply) => reply.outcome(now(), VendorHints::NONE),
    ///     Err(failure) => failure.outcome(now(), VendorHints::NONE),
    /// };
    /// # drop(outcome);
    /// # }
    /// ```
    pub fn outcome(&self, now: Timestamp, vendors: VendorHints) -> Outcome {
        let mut outcome = of_head(self.status, &self.headers, now, vendors).took(self.elapsed);
        outcome.key_in_flight = self.status == StatusCode::CONFLICT
            && !self.body_limit_hit
            && says_in_flight(&self.headers, &self.body);
        outcome
    }
}

impl Failure {
    /// What this failure means, with `processed` set where it is proven.
    ///
    /// A reply that is cut in its body is its status where that is no success: a 429 need not be
    /// whole to be obeyed. Cut after a success status it is that failure, never a success.
    /// `now` and `vendors` are those of [`Reply::outcome`].
    pub fn outcome(&self, now: Timestamp, vendors: VendorHints) -> Outcome {
        if let Some(head) = &self.reply
            && !head.status.is_success()
        {
            return of_head(head.status, &head.headers, now, vendors).took(self.elapsed);
        }
        let outcome = Outcome::new(outcome_kind(self.kind)).took(self.elapsed);
        match self.sent {
            Sent::NotSent | Sent::NotProcessed => outcome.proving(Processed::No),
            Sent::MaybeProcessed => outcome,
            Sent::ProcessedInPart => outcome.proving(Processed::Yes),
        }
    }
}

fn outcome_kind(kind: FailureKind) -> OutcomeKind {
    match kind {
        FailureKind::AddressNotAllowed | FailureKind::Invalid => OutcomeKind::Invalid,
        FailureKind::Certificate => OutcomeKind::Certificate,
        FailureKind::ConnectTimeout => OutcomeKind::ConnectTimeout,
        FailureKind::Dns => OutcomeKind::Dns,
        FailureKind::Eof | FailureKind::Malformed => OutcomeKind::Eof,
        FailureKind::Refused | FailureKind::Unreachable => OutcomeKind::Refused,
        FailureKind::RefusedStream => OutcomeKind::RefusedStream,
        FailureKind::Reset => OutcomeKind::Reset,
        FailureKind::Timeout => OutcomeKind::Timeout,
        FailureKind::Tls => OutcomeKind::Tls,
        FailureKind::Truncated => OutcomeKind::Truncated,
    }
}

fn of_head(
    status: StatusCode,
    headers: &HeaderMap,
    now: Timestamp,
    vendors: VendorHints,
) -> Outcome {
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
    Outcome::status(status.as_u16())
        .with_hint(Hint::from_headers(fields, now, vendors))
        .gave_up(gave_up)
}

/// Whether a 409 says that the first request with this key is still being worked on.
fn says_in_flight(headers: &HeaderMap, body: &[u8]) -> bool {
    let is_problem = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/problem+json"));
    if !is_problem || body.len() > LONGEST_PROBLEM {
        return false;
    }
    serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|problem| Some(problem.get("title")?.as_str()?.trim().to_owned()))
        .is_some_and(|title| title.eq_ignore_ascii_case(IN_FLIGHT_TITLE))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, SystemTime};

    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;
    use crate::failure::ReplyHead;

    const NOW: Timestamp = Timestamp::from_secs(1_796_040_000);

    fn reply(status: u16, headers: &[(&'static str, &[u8])], body: &'static str) -> Reply {
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: head(headers),
            body: Bytes::from_static(body.as_bytes()),
            body_limit_hit: false,
            reused_connection: false,
            elapsed: Duration::from_millis(7),
            sent_at: SystemTime::UNIX_EPOCH,
            replied_at: SystemTime::UNIX_EPOCH,
            remote: "127.0.0.1:80".parse().unwrap(),
        }
    }

    fn head(headers: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    fn judged(reply: &Reply) -> Outcome {
        reply.outcome(NOW, VendorHints::NONE)
    }

    #[test]
    fn a_reply_is_its_status_its_hint_and_its_time() {
        let outcome = judged(&reply(
            503,
            &[("retry-after", b"120"), ("x-odd", b"caf\xe9")],
            "",
        ));
        assert_eq!(outcome.kind, OutcomeKind::Status(503));
        assert_eq!(outcome.hint.unwrap().wait, Duration::from_secs(120));
        assert_eq!(
            (outcome.took, outcome.processed),
            (Duration::from_millis(7), None)
        );
        assert!(judged(&reply(200, &[], "")).is_success());
    }

    #[test]
    fn vendor_hints_are_believed_on_request_only() {
        let reply = reply(429, &[("retry-after-ms", b"120")], "");
        assert_eq!(judged(&reply).hint, None);
        let believed = reply.outcome(NOW, VendorHints::ALL).hint.unwrap();
        assert_eq!(believed.wait, Duration::from_millis(120));
    }

    #[test]
    fn vr_5_an_inner_layer_that_gave_up_is_heard() {
        for reason in Reason::ALL
            .into_iter()
            .filter(|reason| *reason != Reason::Delivered)
        {
            let word = reason.as_str().as_bytes();
            assert!(judged(&reply(503, &[("ressac-reason", word)], "")).gave_up);
        }
        for other in [&b"delivered"[..], b"", b"EXHAUSTED", b"caf\xe9"] {
            assert!(
                !judged(&reply(503, &[("ressac-reason", other)], "")).gave_up,
                "{other:?}"
            );
        }
    }

    const PROBLEM: (&str, &[u8]) = ("content-type", b"application/problem+json; charset=utf-8");
    const OUTSTANDING: &str = r#"{"type":"https://developer.example.com/idempotency",
        "title":"A request is outstanding for this Idempotency-Key"}"#;

    #[test]
    fn a_409_with_the_drafts_problem_says_that_the_key_is_in_flight() {
        assert!(judged(&reply(409, &[PROBLEM], OUTSTANDING)).key_in_flight);
        for other in [
            reply(422, &[PROBLEM], OUTSTANDING),
            reply(409, &[("content-type", b"application/json")], OUTSTANDING),
            reply(409, &[], OUTSTANDING),
            reply(409, &[PROBLEM], r#"{"title":"Edit conflict"}"#),
            reply(409, &[PROBLEM], r#"{"title":7}"#),
            reply(409, &[PROBLEM], "[[["),
        ] {
            assert!(!judged(&other).key_in_flight, "{other:?}");
        }
    }

    fn failure(kind: FailureKind, sent: Sent) -> Failure {
        Failure::new(kind, sent, "x")
    }

    #[test]
    fn only_what_is_proven_is_said_about_processing() {
        use FailureKind as F;
        use OutcomeKind as O;
        for (kind, sent, expected, processed) in [
            (
                F::AddressNotAllowed,
                Sent::NotSent,
                O::Invalid,
                Some(Processed::No),
            ),
            (
                F::Certificate,
                Sent::NotProcessed,
                O::Certificate,
                Some(Processed::No),
            ),
            (
                F::Unreachable,
                Sent::NotSent,
                O::Refused,
                Some(Processed::No),
            ),
            (F::Eof, Sent::NotSent, O::Eof, Some(Processed::No)),
            (F::Eof, Sent::MaybeProcessed, O::Eof, None),
            (F::Malformed, Sent::MaybeProcessed, O::Eof, None),
            (F::Reset, Sent::MaybeProcessed, O::Reset, None),
            (
                F::RefusedStream,
                Sent::NotProcessed,
                O::RefusedStream,
                Some(Processed::No),
            ),
            (F::Timeout, Sent::MaybeProcessed, O::Timeout, None),
            (
                F::Timeout,
                Sent::ProcessedInPart,
                O::Timeout,
                Some(Processed::Yes),
            ),
            (
                F::Truncated,
                Sent::ProcessedInPart,
                O::Truncated,
                Some(Processed::Yes),
            ),
        ] {
            let outcome = failure(kind, sent).outcome(NOW, VendorHints::NONE);
            assert_eq!(
                (outcome.kind, outcome.processed),
                (expected, processed),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_cut_reply_is_its_status_unless_that_is_success() {
        let cut = |status| {
            let mut failure = failure(FailureKind::Truncated, Sent::ProcessedInPart);
            let status = StatusCode::from_u16(status).unwrap();
            let headers = head(&[("retry-after", b"9")]);
            failure.reply = Some(Box::new(ReplyHead { status, headers }));
            failure.outcome(NOW, VendorHints::NONE)
        };
        assert_eq!(cut(200).kind, OutcomeKind::Truncated);
        assert!(!cut(200).is_success());
        assert_eq!(cut(429).kind, OutcomeKind::Status(429));
        assert_eq!(cut(429).hint.unwrap().wait, Duration::from_secs(9));
    }
}
