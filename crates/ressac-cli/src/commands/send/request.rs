//! From arguments to a request, a client and what the engine must know.

use std::fs::File;
use std::io::{self, Read};

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request};
use ressac_http::{Client, ClientConfig, TlsConfig, Version, parse_header, parse_url};
use ressac_policy::OperationSpec;
use uuid::Uuid;

use super::Args;
use crate::exit::Stop;

/// The largest body, in bytes, sent or kept.
pub(super) const MAX_BODY: u64 = 1_000_000_000;
/// The largest file of certificate authorities, in bytes.
const MAX_PEM: u64 = 10_000_000;
/// The longest key: what partners and the gateway take.
const MAX_KEY: usize = 255;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("ressac/", env!("CARGO_PKG_VERSION")));

/// What is sent, the same bytes on every attempt, and what is known of it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) request: Request<Bytes>,
    pub(super) spec: OperationSpec,
    pub(super) key: Option<String>,
    /// Host and port: all of the URL that is ever shown. Paths and queries carry tokens.
    pub(super) host: String,
}

impl Prepared {
    pub(super) fn new(args: &Args) -> Result<Prepared, Stop> {
        let url = parse_url(&args.url).map_err(Stop::usage)?;
        let host = url.authority().map(ToString::to_string).unwrap_or_default();
        let method = match (&args.method, &args.data) {
            (Some(method), _) => method.clone(),
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        };
        let key = match args.make_key {
            true => Some(Uuid::now_v7().to_string()),
            false => args.key.clone(),
        };
        let mut spec = OperationSpec::new(method.as_str());
        spec.idempotent |= args.idempotent;
        spec.deliver_by = args.deliver_by;
        if key.is_some() {
            // For this process's life; how long the partner remembers is the caller's to know.
            spec = spec.with_honoured_key(None);
        }
        let mut request = Request::new(body(args.data.as_deref())?);
        *request.method_mut() = method;
        *request.uri_mut() = url;
        headers(args, key.as_deref(), &mut request)?;
        Ok(Prepared {
            request,
            spec,
            key,
            host,
        })
    }
}

fn headers(args: &Args, key: Option<&str>, request: &mut Request<Bytes>) -> Result<(), Stop> {
    for line in &args.headers {
        // The line is not repeated: it may be a password.
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| Stop::usage("a --header has no colon; write 'Name: value'"))?;
        let (name, value) =
            parse_header(name.trim(), value.trim().as_bytes()).map_err(Stop::usage)?;
        request.headers_mut().append(name, value);
    }
    if let Some(key) = key {
        let (name, value) = parse_header(&args.key_header, key.as_bytes()).map_err(Stop::usage)?;
        if request.headers().contains_key(&name) {
            return Err(Stop::usage(format_args!(
                "{name} stands in --header too: one operation has one key; leave one of them out"
            )));
        }
        request.headers_mut().insert(name, value);
    }
    request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
    Ok(())
}

/// Reads a method; those of RFC 9110 in lower case are refused, as they would be another method.
pub(super) fn method(text: &str) -> Result<Method, String> {
    const KNOWN: [&str; 8] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE",
    ];
    let upper = text.to_ascii_uppercase();
    if upper != text && KNOWN.contains(&upper.as_str()) {
        return Err(format!("methods are case-sensitive; write {upper}"));
    }
    if upper == "CONNECT" {
        return Err("CONNECT opens a tunnel, it sends no request".to_owned());
    }
    Method::from_bytes(text.as_bytes()).map_err(|_| "no HTTP method, e.g. GET or POST".to_owned())
}

/// Reads a key.
pub(super) fn key(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || text.len() > MAX_KEY || !plain {
        return Err(format!(
            "a key has 1 to {MAX_KEY} visible ASCII characters, without spaces"
        ));
    }
    Ok(text.to_owned())
}

fn body(data: Option<&str>) -> Result<Bytes, Stop> {
    let unreadable = |what: &str, error: io::Error| {
        Stop::usage(format_args!("the body cannot be read from {what}: {error}"))
    };
    match data.map(|data| (data, data.strip_prefix('@'))) {
        None => Ok(Bytes::new()),
        Some((text, None)) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Some((_, Some("-"))) => {
            limited(io::stdin().lock(), MAX_BODY).map_err(|error| unreadable("stdin", error))
        }
        Some((_, Some(path))) => File::open(path)
            .and_then(|file| limited(file, MAX_BODY))
            .map_err(|error| unreadable(path, error)),
    }
}

fn limited(from: impl Read, most: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("longer than {}", ressac_config::format_size(most));
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes.into())
}

/// The client, with the caller's authorities and limits.
pub(super) fn client(args: &Args) -> Result<Client, Stop> {
    let mut tls = TlsConfig::default();
    if let Some(path) = &args.cacert {
        tls.extra_ca_pem = File::open(path)
            .and_then(|file| limited(file, MAX_PEM))
            .map_err(|error| {
                Stop::usage(format_args!(
                    "--cacert {} cannot be read: {error}",
                    path.display()
                ))
            })?
            .to_vec();
    }
    let config = ClientConfig {
        max_response_body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        tls,
        version: match (args.http1, args.http2_prior_knowledge) {
            (true, _) => Version::Http1,
            (_, true) => Version::Http2,
            _ => Version::Auto,
        },
        ..ClientConfig::default()
    };
    Client::new(config).map_err(Stop::usage)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn methods_are_taken_as_written_and_typing_errors_are_not() {
        assert_eq!(method("PURGE").unwrap(), "PURGE");
        assert_eq!(method("POST").unwrap(), Method::POST);
        assert!(method("post").unwrap_err().contains("POST"));
        assert!(method("CONNECT").is_err());
        assert!(method("P OST").is_err());
    }

    #[test]
    fn keys_are_visible_ascii() {
        assert!(key("order-17").is_ok());
        assert!(key("\"quoted\"").is_ok());
        for bad in ["", "a b", "caf\u{e9}", &"x".repeat(256)] {
            assert!(key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_body_over_the_limit_is_refused_not_cut() {
        assert_eq!(limited(&b"12345"[..], 5).unwrap(), "12345");
        assert!(limited(&b"123456"[..], 5).is_err());
    }
}
