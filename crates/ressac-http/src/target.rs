//! What a request must be before anything is tried: where it goes, and what may stand in it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};

use crate::expect;

/// A request that cannot be sent as it is. The text never repeats a URL or a header's value.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRequest(String);

fn invalid(message: impl Into<String>) -> InvalidRequest {
    InvalidRequest(message.into())
}

/// Reads a URL as [`Client::send`](crate::Client::send) will: `http` or `https`, a host, no
/// user-info. For an early answer, when a partner is configured.
///
/// # Errors
///
/// Says what is wrong, without the URL.
///
/// ```
/// assert!(ressac_http::parse_url("https://api.acme.example/v1?dry=1").is_ok());
/// let error = ressac_http::parse_url("https://me:secret@acme.example/").unwrap_err();
/// assert!(error.to_string().contains("user-info") && !error.to_string().contains("secret"));
/// ```
pub fn parse_url(text: &str) -> Result<Uri, InvalidRequest> {
    let uri: Uri = text
        .parse()
        .map_err(|error| invalid(format!("the URL is not valid: {error}")))?;
    Origin::of(&uri)?;
    Ok(uri)
}

/// Reads a header as it may be sent: no space in the name, no line break in the value.
///
/// # Errors
///
/// Names the header where its name is valid; never shows the value.
///
/// ```
/// assert!(ressac_http::parse_header("X-Order", b"17").is_ok());
/// assert!(ressac_http::parse_header("X-Bad Name", b"17").is_err());
/// assert!(ressac_http::parse_header("X-Order", b"17\r\nX-Evil: 1").is_err());
/// ```
pub fn parse_header(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), InvalidRequest> {
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid("a header's name holds a character that names cannot have"))?;
    let value = HeaderValue::from_bytes(value).map_err(|_| {
        invalid(format!(
            "the value of header {name} holds a line break or another control byte"
        ))
    })?;
    Ok((name, value))
}

/// Scheme, host and port: what a connection is for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Origin {
    pub(crate) fn of(uri: &Uri) -> Result<Self, InvalidRequest> {
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(invalid("the URL's scheme is neither http nor https")),
            None => {
                return Err(invalid(
                    "the URL has no scheme; begin it with http:// or https://",
                ));
            }
        };
        let authority = uri
            .authority()
            .ok_or_else(|| invalid("the URL has no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid(
                "the URL holds user-info; send credentials in a header",
            ));
        }
        let host = Host::of(authority.host())?;
        let default = if tls { 443 } else { 80 };
        // `port()` is None for "host:99999" as for "host": only the text tells them apart.
        let port = match authority.as_str().get(authority.host().len()..) {
            None | Some("" | ":") => default,
            Some(_) => authority
                .port_u16()
                .filter(|port| *port != 0)
                .ok_or_else(|| invalid("the URL's port is no number from 1 to 65535"))?,
        };
        Ok(Self { tls, host, port })
    }

    fn host_header(&self) -> Result<HeaderValue, InvalidRequest> {
        let default = if self.tls { 443 } else { 80 };
        let text = if self.port == default {
            self.host.to_string()
        } else {
            self.to_string()
        };
        HeaderValue::from_str(&text).map_err(|_| invalid("the URL's host is not valid"))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Host {
    fn of(text: &str) -> Result<Self, InvalidRequest> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner
                .strip_suffix(']')
                .and_then(|inner| inner.parse().ok())
                .ok_or_else(|| invalid("the URL's host in brackets is no IPv6 address"))?;
            return Ok(Self::Ip(IpAddr::V6(address)));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Ip(IpAddr::V4(address)));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        if text.is_empty() || text.len() > 253 || !text.bytes().all(plain) {
            return Err(invalid(
                "the URL's host is no name of letters, digits, '-', '.' and '_' (write \
                 international names in their xn-- form)",
            ));
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Ip(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A request that may be sent, in the form it has on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) origin: Origin,
    /// Origin-form target, with `Host` and `Content-Length`.
    pub(crate) request: Request<Bytes>,
}

impl Prepared {
    pub(crate) fn new(request: Request<Bytes>) -> Result<Self, InvalidRequest> {
        let (mut parts, body) = request.into_parts();
        let origin = Origin::of(&parts.uri)?;
        if parts.method == Method::CONNECT {
            return Err(invalid("CONNECT opens a tunnel, it sends no request"));
        }
        check_headers(&parts.headers, body.len())?;

        let host = origin.host_header()?;
        if parts.headers.get(HOST).is_some_and(|given| *given != host) {
            return Err(invalid("the Host header contradicts the URL; leave it out"));
        }
        parts.headers.insert(HOST, host);
        if body.is_empty() {
            // There is nothing to wait for (RFC 9110 §10.1.1).
            parts.headers.remove(EXPECT);
        }
        let expects_body = matches!(parts.method, Method::POST | Method::PUT | Method::PATCH);
        if !body.is_empty() || expects_body {
            parts
                .headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let path = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        parts.version = Version::HTTP_11;
        Ok(Self {
            origin,
            request: Request::from_parts(parts, body),
        })
    }
}

/// The headers that frame the message or steer the connection are the client's own: a caller's
/// would let one request become two on the partner's side, or promise what is not kept.
fn check_headers(headers: &HeaderMap, length: usize) -> Result<(), InvalidRequest> {
    for name in [TRANSFER_ENCODING, UPGRADE, TE, TRAILER] {
        if headers.contains_key(&name) {
            return Err(invalid(format!(
                "header {name} is the client's to set; leave it out"
            )));
        }
    }
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(expect::CONTINUE);
    if !headers.get_all(EXPECT).iter().all(known) {
        return Err(invalid(
            "header expect may say no more than \"100-continue\"",
        ));
    }
    let close = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"close");
    if !headers.get_all(CONNECTION).iter().all(close) {
        return Err(invalid("header connection may say no more than \"close\""));
    }
    let agrees = |value: &HeaderValue| {
        value
            .to_str()
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            == Some(length)
    };
    if !headers.get_all(CONTENT_LENGTH).iter().all(agrees) {
        return Err(invalid(format!(
            "header content-length contradicts the body of {length} bytes; leave it out"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn get(url: &str) -> Result<Prepared, InvalidRequest> {
        Prepared::new(Request::get(url).body(Bytes::new()).unwrap())
    }

    #[test]
    fn host_and_target_come_from_the_url() {
        for (url, host, target) in [
            ("http://acme.example", "acme.example", "/"),
            ("http://ACME.example:80/a?b=c", "acme.example", "/a?b=c"),
            ("https://acme.example:443/", "acme.example", "/"),
            ("https://acme.example:8443/x", "acme.example:8443", "/x"),
            ("http://[::1]:8080/", "[::1]:8080", "/"),
            ("http://127.0.0.1?q", "127.0.0.1", "/?q"),
            ("http://acme.example:/", "acme.example", "/"),
        ] {
            let prepared = get(url).unwrap();
            assert_eq!(prepared.request.headers()[HOST], host, "{url}");
            assert_eq!(prepared.request.uri().to_string(), target, "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_being_repeated() {
        for (url, why) in [
            ("ftp://acme.example/secret", "scheme"),
            ("/secret", "no scheme"),
            ("http://me:secret@acme.example/", "user-info"),
            ("http://secret@acme.example/", "user-info"),
            ("http://acme.example:0/secret", "port"),
            ("http://acme.example:99999/secret", "port"),
            ("http://acme%2eexample/secret", "host"),
        ] {
            let text = match Request::get(url).body(Bytes::new()) {
                Ok(request) => Prepared::new(request).unwrap_err().to_string(),
                Err(_) => parse_url(url).unwrap_err().to_string(),
            };
            assert!(!text.contains("secret"), "{url}: {text}");
            assert!(
                text.contains(why) || text.contains("not valid"),
                "{url}: {text}"
            );
        }
    }

    #[test]
    fn ht_8_header_injection_is_refused_and_not_repeated() {
        for (name, value) in [
            ("X-Bad Name", "secret"),
            ("X-Bad\r\nName", "secret"),
            ("", "secret"),
            ("X-A", "secret\r\nX-Evil: 1"),
            ("X-A", "secret\nX-Evil: 1"),
            ("X-A", "secret\0"),
        ] {
            let text = parse_header(name, value.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(!text.contains("secret") && !text.contains("Evil"), "{text}");
        }
    }

    #[test]
    fn framing_headers_are_the_clients_own() {
        let send = |name: &str, value: &str| {
            let request = Request::post("http://acme.example/").header(name, value);
            Prepared::new(request.body(Bytes::from_static(b"abc")).unwrap())
        };
        assert!(send("transfer-encoding", "chunked").is_err());
        assert!(send("content-length", "4").is_err());
        assert!(send("content-length", "3").is_ok());
        assert!(send("expect", "200-ok").is_err());
        assert!(send("expect", "100-continue").is_ok());
        assert!(send("upgrade", "websocket").is_err());
        assert!(send("connection", "x-private").is_err());
        assert!(send("connection", "close").is_ok());
        assert!(send("host", "other.example").is_err());
        assert!(send("host", "acme.example").is_ok());
    }

    #[test]
    fn a_post_without_body_says_so() {
        let prepared = Prepared::new(
            Request::post("http://a.example/")
                .body(Bytes::new())
                .unwrap(),
        )
        .unwrap();
        assert_eq!(prepared.request.headers()[CONTENT_LENGTH], "0");
        assert!(
            !get("http://a.example/")
                .unwrap()
                .request
                .headers()
                .contains_key(CONTENT_LENGTH)
        );
    }
}
