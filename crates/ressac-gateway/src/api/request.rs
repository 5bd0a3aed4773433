//! What a caller says in headers, checked before anything is stored.

use http::{HeaderMap, HeaderName, Method};
use ressac_policy::{Timestamp, parse_http_date};

use super::problem::Problem;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const METHOD: HeaderName = HeaderName::from_static("ressac-method");
const PATH: HeaderName = HeaderName::from_static("ressac-path");
const DELIVER_BY: HeaderName = HeaderName::from_static("ressac-deliver-by");

const MAX_KEY: usize = 255;
const MAX_PATH: usize = 2_048;

/// The headers that concern the gateway, and those that travel along.
#[derive(Debug)]
pub(super) struct Instructions {
    pub(super) key: Option<String>,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) deliver_by: Option<Timestamp>,
    pub(super) travelling: Vec<(String, Vec<u8>)>,
}

impl Instructions {
    pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Result<Self, Problem> {
        refuse_unknown(headers)?;
        Ok(Instructions {
            key: single(headers, &KEY)?.map(key).transpose()?,
            method: single(headers, &METHOD)?.map_or(Ok(Method::POST), method)?,
            path: single(headers, &PATH)?.map_or(Ok(String::new()), path)?,
            deliver_by: single(headers, &DELIVER_BY)?
                .map(|text| moment(text, now))
                .transpose()?,
            travelling: travelling(headers),
        })
    }
}

/// The moment kept with a message, where its sender gave one.
pub(super) fn stored_deliver_by(
    headers: &[(String, Vec<u8>)],
    now: Timestamp,
) -> Option<Timestamp> {
    let (_, value) = headers
        .iter()
        .find(|(name, _)| name == DELIVER_BY.as_str())?;
    parse_moment(std::str::from_utf8(value).ok()?, now)
}

/// A header that is meant for us and that we do not know was meant to do something.
fn refuse_unknown(headers: &HeaderMap) -> Result<(), Problem> {
    let known = [METHOD, PATH, DELIVER_BY];
    let stranger = headers
        .keys()
        .find(|name| name.as_str().starts_with("ressac-") && !known.contains(name));
    stranger.map_or(Ok(()), |name| {
        Err(Problem::bad_request(
            "unknown-header",
            format!("{name} is not known; there are Ressac-Method, Ressac-Path, Ressac-Deliver-By"),
        ))
    })
}

/// The header's value, if it came once and is ASCII.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Problem::bad_request(
            "header-twice",
            format!("{name} came more than once"),
        ));
    }
    let text = value.to_str().map_err(|_| {
        Problem::bad_request(
            "header-not-ascii",
            format!("{name} has bytes that are not ASCII"),
        )
    })?;
    Ok(Some(text))
}

/// Bare, or a structured string in quotes: `"abc"` and `abc` are one key.
fn key(text: &str) -> Result<String, Problem> {
    let refuse = |detail: &str| Err(Problem::bad_request("key-not-valid", detail));
    let bare = match text.strip_prefix('"') {
        Some(rest) => match rest.strip_suffix('"') {
            Some(inner) => inner,
            None => return refuse("Idempotency-Key opens a quote and does not close it"),
        },
        None => text,
    };
    if bare.is_empty() || bare.len() > MAX_KEY {
        return refuse("Idempotency-Key must have 1 to 255 characters");
    }
    if !bare
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    {
        return refuse(
            "Idempotency-Key takes visible ASCII without spaces, quotes and backslashes",
        );
    }
    Ok(bare.to_owned())
}

fn method(text: &str) -> Result<Method, Problem> {
    const ALLOWED: [Method; 6] = [
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::GET,
        Method::HEAD,
    ];
    ALLOWED
        .into_iter()
        .find(|method| method.as_str() == text)
        .ok_or_else(|| {
            Problem::bad_request(
                "method-not-valid",
                "Ressac-Method must be POST, PUT, PATCH, DELETE, GET or HEAD",
            )
        })
}

/// A path and query behind the partner's own, which it must not leave.
fn path(text: &str) -> Result<String, Problem> {
    let refuse = |detail: &str| Err(Problem::bad_request("path-not-valid", detail));
    if text.len() > MAX_PATH {
        return refuse("Ressac-Path is longer than 2048 bytes");
    }
    if !text.starts_with('/') {
        return refuse("Ressac-Path must begin with a slash");
    }
    let (path, _query) = text.split_once('?').unwrap_or((text, ""));
    let lower = path.to_ascii_lowercase();
    let decoded = lower
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "\\");
    if decoded.contains('\\') || path.starts_with("//") {
        return refuse(
            "Ressac-Path must stay below the partner's URL: no backslash, no // at its start",
        );
    }
    if decoded
        .split('/')
        .any(|segment| segment == ".." || segment == ".")
    {
        return refuse("Ressac-Path must stay below the partner's URL: no . or .. segments");
    }
    if text
        .bytes()
        .any(|byte| !byte.is_ascii_graphic() || byte == b'#')
    {
        return refuse("Ressac-Path takes visible ASCII without # (percent-encode the rest)");
    }
    Ok(text.to_owned())
}

/// RFC 3339 or an HTTP-date; in the future.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    let refuse = |detail: &str| Problem::bad_request("deliver-by-not-valid", detail);
    let moment = parse_moment(text, now).ok_or_else(|| {
        refuse("Ressac-Deliver-By must be RFC 3339 (2026-12-24T18:00:00Z) or an HTTP-date")
    })?;
    if moment <= now {
        return Err(refuse(
            "Ressac-Deliver-By has passed: nothing could be sent any more",
        ));
    }
    Ok(moment)
}

fn parse_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_nanos(
            u64::try_from(moment.as_nanosecond()).unwrap_or(0),
        ));
    }
    let date = parse_http_date(text.as_bytes(), now)?;
    Some(Timestamp::from_secs(
        u64::try_from(date.unix_seconds).unwrap_or(0),
    ))
}

/// End-to-end headers, in order. Those of this connection, those that framing sets, and those that
/// were meant for the gateway stay here (RFC 9110 §7.6.1).
fn travelling(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    const STAY: [&str; 15] = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "expect",
        "idempotency-key",
        "origin",
        "user-agent",
    ];
    let named: Vec<String> = headers
        .get_all(http::header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            !STAY.contains(&name)
                // It stays with the message, for a replay; nothing of ours goes on the wire.
                && (!name.starts_with("ressac-") || name == DELIVER_BY.as_str())
                && !named.iter().any(|other| other == name)
        })
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_796_040_000);

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Instructions, Problem> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        Instructions::read(&headers, NOW)
    }

    #[test]
    fn a_path_cannot_leave_the_partners() {
        for good in ["/", "/v1/x", "/v1/x?next=../y", "/a..b/c", "/%20"] {
            assert!(read(&[("ressac-path", good)]).is_ok(), "{good}");
        }
        for bad in [
            "",
            "v1",
            "//evil.example/x",
            "/../x",
            "/a/%2e%2E/x",
            "/a/..",
            "/a/%2f../x",
            "/a\\..\\x",
            "/a/%5c..",
            "/a#b",
            "/a b",
            "/./x",
            "https://evil.example/",
        ] {
            assert!(read(&[("ressac-path", bad)]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_one_key_bare_or_quoted() {
        assert_eq!(
            read(&[("idempotency-key", "\"abc\"")])
                .unwrap()
                .key
                .as_deref(),
            Some("abc")
        );
        assert_eq!(
            read(&[("idempotency-key", "abc")]).unwrap().key.as_deref(),
            Some("abc")
        );
        for bad in ["", "\"\"", "\"abc", "a b", "a\"b"] {
            assert!(read(&[("idempotency-key", bad)]).is_err(), "{bad}");
        }
        assert!(read(&[("idempotency-key", "a"), ("idempotency-key", "b")]).is_err());
    }

    #[test]
    fn a_moment_that_has_passed_is_refused() {
        let at = |text| read(&[("ressac-deliver-by", text)]).map(|i| i.deliver_by);
        let due = Some(Timestamp::from_secs(1_796_040_060));
        assert_eq!(at("2026-11-30T12:01:00Z").unwrap(), due);
        assert_eq!(at("Mon, 30 Nov 2026 12:01:00 GMT").unwrap(), due);
        assert!(at("2026-11-30T11:59:59Z").is_err());
        assert!(at("tomorrow").is_err());
    }

    #[test]
    fn what_is_end_to_end_travels_and_the_rest_stays() {
        let read = read(&[
            ("content-type", "application/edifact"),
            ("x-request-id", "7"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("ressac-path", "/x"),
            ("host", "localhost"),
            ("idempotency-key", "k"),
        ]);
        let names: Vec<_> = read
            .unwrap()
            .travelling
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["content-type", "x-request-id"]);
    }

    #[test]
    fn only_methods_that_deliver_something() {
        assert_eq!(
            read(&[("ressac-method", "PUT")]).unwrap().method,
            Method::PUT
        );
        for bad in ["CONNECT", "TRACE", "put", "POST /x HTTP/1.1"] {
            assert!(read(&[("ressac-method", bad)]).is_err(), "{bad}");
        }
    }
}
