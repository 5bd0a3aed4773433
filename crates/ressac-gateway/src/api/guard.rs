//! Keeps web pages out. A browser on this machine can be made to call loopback; a page's request
//! names its origin, and one by a rebound name names that.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, StatusCode};

use super::problem::Problem;

pub(super) async fn same_origin(request: Request, next: Next) -> Response {
    match refuse(request.headers()) {
        Some(detail) => Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "Called by another site",
            detail,
        )
        .into_response(),
        None => next.run(request).await,
    }
}

fn refuse(headers: &HeaderMap) -> Option<&'static str> {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    if !is_local(host) {
        return Some("the Host header names neither an address nor localhost");
    }
    let origin = headers.get(ORIGIN)?.to_str().unwrap_or_default();
    let same = origin
        .split_once("://")
        .is_some_and(|(_, rest)| rest == host);
    (!same).then_some("the Origin header names another site")
}

/// An IP address, or `localhost`, with or without a port: a name can be rebound, these cannot.
fn is_local(host: &str) -> bool {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.is_empty() || bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &'static str, origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_this_machine_and_its_own_pages() {
        assert_eq!(refuse(&headers("127.0.0.1:7070", None)), None);
        assert_eq!(refuse(&headers("[::1]:7070", None)), None);
        assert_eq!(
            refuse(&headers("localhost:7070", Some("http://localhost:7070"))),
            None
        );
        assert!(refuse(&headers("rebound.example:7070", None)).is_some());
        assert!(refuse(&headers("127.0.0.1:7070", Some("http://evil.example"))).is_some());
        assert!(refuse(&headers("127.0.0.1:7070", Some("null"))).is_some());
    }
}
