//! Errors as RFC 9457 problem details.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use ressac_store::{Refusal, StoreError};
use serde::Serialize;

/// What went wrong, and what to do.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    /// `slug` names the kind of problem for programs.
    pub(crate) fn new(
        status: StatusCode,
        slug: &str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Problem {
            kind: format!("urn:ressac:problem:{slug}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            retry_after: None,
        }
    }

    pub(crate) fn bad_request(slug: &str, detail: impl Into<String>) -> Self {
        Problem::new(
            StatusCode::BAD_REQUEST,
            slug,
            "The request is not valid",
            detail,
        )
    }

    pub(crate) fn unknown_partner(name: &str) -> Self {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        Problem::new(
            StatusCode::NOT_FOUND,
            "unknown-partner",
            "No such partner",
            format!("there is no partner {shown:?} in the configuration; see GET /v1/partners"),
        )
    }

    pub(crate) fn unknown_message() -> Self {
        Problem::new(
            StatusCode::NOT_FOUND,
            "unknown-message",
            "No such message",
            "no message has this id; a delivered one may have been pruned",
        )
    }

    pub(crate) fn no_such_path() -> Self {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no-such-path",
            "Nothing is here",
            "the API begins at /v1/partners and /v1/messages",
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "This path has another method",
            "messages are accepted by POST /v1/partners/{partner}/messages",
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            "The body is too large",
            format!("the limit is {limit} bytes: gateway.max_body in ressac.toml"),
        )
    }

    pub(crate) fn stopping() -> Self {
        Problem::unavailable("stopping", "the gateway is stopping; nothing was stored", 1)
    }

    pub(crate) fn unavailable(slug: &str, detail: impl Into<String>, retry_after: u32) -> Self {
        Problem {
            retry_after: Some(retry_after),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                slug,
                "Nothing was stored; try again later with the same key",
                detail,
            )
        }
    }

    /// The request was not over in its time. What it asked for may have been done.
    pub(crate) fn too_slow() -> Self {
        Problem {
            retry_after: Some(1),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too-slow",
                "The request took too long",
                "it may have been done all the same; repeat it with the same key",
            )
        }
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "A fault of the gateway",
            detail,
        )
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::Busy => Problem::unavailable("store-busy", detail, 1),
            StoreError::Full { .. } => Problem::unavailable("store-full", detail, 30),
            StoreError::Closed => Problem::unavailable("stopping", detail, 1),
            StoreError::Invalid { .. } => Problem::bad_request("not-valid", detail),
            StoreError::Refused(Refusal::NotFound) => Problem::unknown_message(),
            StoreError::Refused(_) => Problem::new(
                StatusCode::CONFLICT,
                "wrong-state",
                "The message's state does not allow it",
                detail,
            ),
            _ => Problem::unavailable("store-failing", detail, 5),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after;
        let mut response = (status, Json(self)).into_response();
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
