//! Which header lines go through a proxy: RFC 9110 section 7.6.1.

use http::header::{CONNECTION, EXPECT, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// Says why a proxy gave up.
pub(crate) const REASON: HeaderName = HeaderName::from_static("ressac-reason");

/// Without what belongs to one connection.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut out = headers.clone();
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        out.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        out.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authorization"] {
        out.remove(name);
    }
    out
}

/// Of a request, for the upstream. `Expect` is answered here, by reading the body.
pub(crate) fn for_upstream(headers: &HeaderMap, authority: HeaderValue) -> HeaderMap {
    let mut out = end_to_end(headers);
    out.remove(EXPECT);
    out.insert(HOST, authority);
    out
}
