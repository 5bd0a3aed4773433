//! What the layer is told, and what it does untold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderName, Method, StatusCode};

use super::record::hash;

/// Where the draft stands: what the problem's `type` says unless the server has a page of its own.
pub(super) const DRAFT: &str =
    "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/";

/// Shorter leases are over before a busy machine renews them.
pub(super) const SHORTEST_LEASE: Duration = Duration::from_millis(10);

type Keep = Arc<dyn Fn(StatusCode) -> bool + Send + Sync>;
type Caller = Arc<dyn Fn(&Parts) -> Vec<u8> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) caller: Caller,
    pub(super) docs: Arc<str>,
    pub(super) header: HeaderName,
    pub(super) keep: Keep,
    pub(super) lease: Duration,
    pub(super) max_run: Duration,
    pub(super) max_running: usize,
    pub(super) methods: Vec<Method>,
    pub(super) namespace: Arc<str>,
    pub(super) reply_limit: usize,
    pub(super) request_limit: usize,
    pub(super) request_time: Duration,
    pub(super) required: bool,
    pub(super) ttl: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            caller: Arc::new(by_authorization),
            docs: DRAFT.into(),
            header: HeaderName::from_static("idempotency-key"),
            keep: Arc::new(keeps_by_default),
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(600),
            max_running: 1_024,
            methods: vec![Method::POST, Method::PATCH],
            namespace: "".into(),
            reply_limit: 1 << 20,
            request_limit: 2 << 20,
            request_time: Duration::from_secs(30),
            required: true,
            ttl: Duration::from_secs(86_400),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("header", &self.header)
            .field("methods", &self.methods)
            .field("required", &self.required)
            .field("lease", &self.lease)
            .field("max_run", &self.max_run)
            .field("max_running", &self.max_running)
            .field("ttl", &self.ttl)
            .field("request_limit", &self.request_limit)
            .field("request_time", &self.request_time)
            .field("reply_limit", &self.reply_limit)
            .field("namespace", &self.namespace)
            .field("docs", &self.docs)
            .finish_non_exhaustive()
    }
}

/// Only a hash: what a caller proves itself with is not kept, nor anything it can be read from.
fn by_authorization(parts: &Parts) -> Vec<u8> {
    match parts.headers.get(AUTHORIZATION) {
        Some(value) => hash(&[value.as_bytes()]).to_vec(),
        None => Vec::new(),
    }
}

/// Is a reply with this status kept for its key? 2xx, and those 4xx that another time cannot
/// change.
///
/// Not kept, so that a retry runs the handler again: 5xx, which failed; 3xx; and
/// 401, 403, 407 (another token may be right), 408, 409, 421, 423, 424, 425, 426, 428, 429 and 431 (another time or
/// another way may be right).
/// A server that answers a `POST` with 303 must keep it by
/// [`IdempotencyLayer::keep`](super::IdempotencyLayer::keep).
///
/// ```
/// use http::StatusCode;
/// use ressac::idempotency::keeps_by_default;
///
/// assert!(keeps_by_default(StatusCode::CREATED));
/// assert!(keeps_by_default(StatusCode::UNPROCESSABLE_ENTITY));
/// assert!(!keeps_by_default(StatusCode::TOO_MANY_REQUESTS));
/// assert!(!keeps_by_default(StatusCode::SERVICE_UNAVAILABLE));
/// ```
#[must_use]
pub fn keeps_by_default(status: StatusCode) -> bool {
    let passing = matches!(
        status.as_u16(),
        401 | 403 | 407 | 408 | 409 | 421 | 423 | 424 | 425 | 426 | 428 | 429 | 431
    );
    status.is_success() || status.is_client_error() && !passing
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn ik_5_only_what_is_done_or_refused_for_good_is_kept() {
        let kept: Vec<u16> = (100..600)
            .filter(|status| keeps_by_default(StatusCode::from_u16(*status).unwrap()))
            .filter(|status| *status >= 300)
            .collect();
        assert!(kept.iter().all(|status| (400..500).contains(status)));
        for status in [400, 402, 404, 405, 410, 412, 413, 415, 422, 451] {
            assert!(kept.contains(&status), "{status}");
        }
        for status in [401, 403, 408, 409, 425, 429] {
            assert!(!kept.contains(&status), "{status}");
        }
        assert!((200..300).all(|s| keeps_by_default(StatusCode::from_u16(s).unwrap())));
    }
}
