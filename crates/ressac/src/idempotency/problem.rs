//! What the layer answers itself: problem details (RFC 9457).
//!
//! Status and title of the first three are the draft's (§2.7); clients tell them by the title, since
//! the draft's `type` is an example.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderValue, LINK, LOCATION, RETRY_AFTER,
};
use http::{HeaderName, Response, StatusCode};
use http_body::Body;

use super::body::IdempotencyBody;
use super::reply::StoredReply;

/// Says that a reply is a repetition.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A store or a place that is missing now may be there in a second.
const SOON: Duration = Duration::from_secs(1);

/// A problem, not yet a reply.
pub(super) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
    retry_after: Option<Duration>,
    close: bool,
}

impl Problem {
    fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Problem {
            status,
            title,
            detail: detail.into(),
            retry_after: None,
            close: false,
        }
    }

    const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The request was not read to its end, so the connection is of no use.
    const fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(super) fn missing(header: &HeaderName) -> Self {
        let detail = format!(
            "This operation is idempotent and needs the header {header}: a value that no other \
             operation has, the same on every attempt of this one."
        );
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Idempotency-Key is missing",
            detail,
        )
    }

    pub(super) fn invalid(header: &HeaderName, why: &str) -> Self {
        let detail = format!(
            "The header {header} is not a key: {why}. Send 1 to 255 characters, as a structured \
             string (RFC 9651) or bare."
        );
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Idempotency-Key is not valid",
            detail,
        )
    }

    pub(super) fn in_flight(rest: Duration) -> Self {
        Problem::new(
            StatusCode::CONFLICT,
            "A request is outstanding for this Idempotency-Key",
            "A request with the same key is being processed. Send it again later, with the same key.",
        )
        .retry_after(rest)
    }

    pub(super) fn mismatch() -> Self {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Idempotency-Key is already used",
            "The key was used with another method, path, content type or body. A new operation needs \
             a new key.",
        )
    }

    pub(super) fn body_too_long(limit: usize) -> Self {
        let detail = format!(
            "The request body is longer than {limit} bytes. Nothing was done, and the key is as it was."
        );
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Request body too long",
            detail,
        )
        .closing()
    }

    pub(super) fn body_too_slow(limit: Duration) -> Self {
        let detail = format!(
            "The request body was not here after {limit:?}. Nothing was done, and the key is as it was."
        );
        Problem::new(StatusCode::REQUEST_TIMEOUT, "Request body too slow", detail).closing()
    }

    pub(super) fn body_broken() -> Self {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Request body not readable",
            "The request body could not be read to its end. Nothing was done, and the key is as it was.",
        )
        .closing()
    }

    pub(super) fn store_failed() -> Self {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Idempotency keys cannot be looked up",
            "The store of idempotency keys does not answer. Nothing was done; send it again with the \
             same key.",
        )
        .retry_after(SOON)
    }

    pub(super) fn store_full() -> Self {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "No room for another Idempotency-Key",
            "Too many keys are in use. Nothing was done; send it again with the same key.",
        )
        .retry_after(SOON)
    }

    pub(super) fn too_many_running() -> Self {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many operations are running",
            "Nothing was done; send it again with the same key.",
        )
        .retry_after(SOON)
    }

    /// Nobody knows what it had done when it was dropped.
    pub(super) fn took_too_long(limit: Duration, lease: Duration) -> Self {
        let detail = format!(
            "The operation was given up after {limit:?}; what it had done is not known. With the same \
             key it runs again."
        );
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The operation took too long",
            detail,
        )
        .retry_after(lease)
    }

    pub(super) fn shutting_down() -> Self {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server is stopping",
            "What had been done is not known; send it again with the same key.",
        )
        .retry_after(SOON)
    }

    /// What is kept in place of a reply that could not be.
    fn not_kept(status: StatusCode, why: &str) -> Self {
        let detail = format!(
            "The operation was done before and answered with status {}. {why}, so that it cannot be \
             sent again; look at the resource instead.",
            status.as_u16()
        );
        Problem::new(
            StatusCode::CONFLICT,
            "The reply to this Idempotency-Key was not kept",
            detail,
        )
    }

    fn into_parts(self, docs: &str) -> (StatusCode, HeaderMap, Bytes) {
        let body = serde_json::json!({
            "type": docs,
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static("en"));
        let link = format!("<{docs}>; rel=\"describedby\"; type=\"text/html\"");
        if let Ok(link) = HeaderValue::try_from(link) {
            headers.insert(LINK, link);
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds_up(wait)));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        (self.status, headers, body.to_string().into())
    }

    pub(super) fn into_reply<B: Body>(self, docs: &str) -> Response<IdempotencyBody<B>> {
        let (status, headers, body) = self.into_parts(docs);
        reply(status, headers, body, None)
    }
}

/// What is kept of a reply that is too long, or broke: that it was done, and where the result is.
pub(super) fn note(docs: &str, status: StatusCode, headers: &HeaderMap, why: &str) -> StoredReply {
    let (at, mut kept, body) = Problem::not_kept(status, why).into_parts(docs);
    if let Some(location) = headers.get(LOCATION) {
        kept.insert(LOCATION, location.clone());
    }
    StoredReply::new(at, kept, body)
}

pub(super) fn replay<B: Body>(stored: StoredReply) -> Response<IdempotencyBody<B>> {
    let mut headers = stored.headers;
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    reply(stored.status, headers, stored.body, stored.trailers)
}

fn reply<B: Body>(
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: Option<HeaderMap>,
) -> Response<IdempotencyBody<B>> {
    let chunks = if body.is_empty() {
        VecDeque::new()
    } else {
        VecDeque::from([body])
    };
    let mut response = Response::new(IdempotencyBody::whole(chunks, trailers));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Rounded up: a client that comes back at the last second must not be too early (RFC 9110 §10.2.3
/// has whole seconds only).
fn seconds_up(wait: Duration) -> u64 {
    let up = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    up.max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn ra_7_the_rest_of_a_lease_is_rounded_up() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (29_999, 30)] {
            assert_eq!(
                seconds_up(Duration::from_millis(millis)),
                seconds,
                "{millis} ms"
            );
        }
    }

    #[test]
    fn ik_7_the_three_problems_of_the_draft() {
        let name = HeaderName::from_static("idempotency-key");
        for (problem, status, title) in [
            (Problem::missing(&name), 400, "Idempotency-Key is missing"),
            (Problem::mismatch(), 422, "Idempotency-Key is already used"),
            (
                Problem::in_flight(Duration::from_millis(1_500)),
                409,
                "A request is outstanding for this Idempotency-Key",
            ),
        ] {
            let (code, headers, body) = problem.into_parts("https://a.example/\"docs\"");
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((code.as_u16(), &body["status"]), (status, &status.into()));
            assert_eq!(body["title"], title);
            assert_eq!(body["type"], "https://a.example/\"docs\"");
            assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
            assert_eq!(headers.contains_key(RETRY_AFTER), status == 409);
        }
    }

    #[test]
    fn a_note_keeps_where_the_result_is() {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_static("/v1/payments/7"));
        headers.insert("x-other", HeaderValue::from_static("1"));
        let note = note(
            "about",
            StatusCode::CREATED,
            &headers,
            "It was longer than 9 bytes",
        );
        assert_eq!(note.status, StatusCode::CONFLICT);
        assert_eq!(note.headers[LOCATION], "/v1/payments/7");
        assert!(!note.headers.contains_key("x-other"));
        assert!(!note.headers.contains_key(RETRY_AFTER));
    }
}
