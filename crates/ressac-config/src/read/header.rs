//! Names of headers that a file may set.

use toml::de::DeValue;

use super::text;
use crate::settings::Fault;

/// Set by the HTTP client itself, or good for one connection only.
const RESERVED: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers with a meaning of their own: none can carry a key.
const TAKEN: &[&str] = &[
    "accept",
    "authorization",
    "content-encoding",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "proxy-authorization",
    "range",
    "user-agent",
];

/// The name of a header that can carry a key.
pub(super) fn key_header(value: &DeValue<'_>) -> Result<String, Fault> {
    let name = text(value, "write a header's name, e.g. \"Idempotency-Key\"")?;
    check_name(name)?;
    if TAKEN.iter().any(|taken| name.eq_ignore_ascii_case(taken)) {
        return Err(Fault::value(
            "this header says something else, and the key would take its place",
            "write the header that the partner reads keys from, e.g. \"Idempotency-Key\"",
        ));
    }
    Ok(name.to_owned())
}

/// Is it a header's name as HTTP allows it, and one that a file may set?
pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    const FIX: &str = "write letters, digits and `-`, e.g. \"X-Api-Key\"";
    if name.len() > 256 || http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(Fault::value("not a header's name", FIX));
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED.contains(&lower.as_str()) || lower.starts_with("ressac-") {
        return Err(Fault::value(
            "Ressac sets this header itself",
            "leave it out",
        ));
    }
    Ok(())
}
