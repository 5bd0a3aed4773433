//! What a key and a request are to the store: two hashes.

use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use sha2::{Digest, Sha256};

/// Names the record of one key of one caller: a SHA-256 over namespace, caller and key.
///
/// A store never sees the key or anything made readable from the caller's credentials, and every
/// name has one size.
///
/// ```
/// use ressac::idempotency::RecordId;
///
/// let id = RecordId::new("payments", b"alice", "8e03978e");
/// assert_eq!(id, RecordId::new("payments", b"alice", "8e03978e"));
/// assert_ne!(id, RecordId::new("payments", b"bob", "8e03978e"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId([u8; 32]);

impl RecordId {
    /// The record of this key.
    #[must_use]
    pub fn new(namespace: &str, caller: &[u8], key: &str) -> Self {
        RecordId(hash(&[namespace.as_bytes(), caller, key.as_bytes()]))
    }

    /// As a store keeps it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordId({self})")
    }
}

/// The first eight hexadecimal digits, enough to find it in a log.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}

/// Tells "the same request again" from "another request with the same key" (draft §2.4): a SHA-256 over
/// method, path with query, content type and body.
///
/// Other headers do not count: a date or a trace id differs on every attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a request whose body is these chunks.
    pub(super) fn of<'a>(parts: &Parts, body: impl Iterator<Item = &'a Bytes> + Clone) -> Self {
        let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
        let kind = parts.headers.get(CONTENT_TYPE);
        // An absent content type must differ from an empty one.
        let marked = [u8::from(kind.is_some())];
        let kind = kind.map_or(&b""[..], |kind| kind.as_bytes());
        let mut hash = Sha256::new();
        for part in [
            parts.method.as_str().as_bytes(),
            path.as_bytes(),
            &marked,
            kind,
        ] {
            add(&mut hash, part);
        }
        // The body by its bytes: how they were cut into chunks is chance.
        let length: usize = body.clone().map(Bytes::len).sum();
        hash.update((length as u64).to_be_bytes());
        body.for_each(|chunk| hash.update(chunk));
        Fingerprint(hash.finalize().into())
    }

    /// A fingerprint that was kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Fingerprint(bytes)
    }

    /// As a store keeps it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        short(&self.0, f)?;
        f.write_str(")")
    }
}

/// Each part with its length before it, so that no two different lists run together.
pub(super) fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| add(&mut hash, part));
    hash.finalize().into()
}

fn add(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_be_bytes());
    hash.update(part);
}

fn short(bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes[..4]
        .iter()
        .try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::Request;

    use super::*;

    fn print(method: &str, path: &str, kind: Option<&str>, body: &[&'static str]) -> Fingerprint {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let chunks: Vec<_> = body
            .iter()
            .map(|part| Bytes::from_static(part.as_bytes()))
            .collect();
        Fingerprint::of(&parts, chunks.iter())
    }

    #[test]
    fn ik_7_every_part_counts_and_chunks_do_not() {
        let first = print("POST", "/pay?x=1", Some("text/plain"), &["ab", "c"]);
        assert_eq!(
            first,
            print("POST", "/pay?x=1", Some("text/plain"), &["a", "bc"])
        );
        for other in [
            print("PATCH", "/pay?x=1", Some("text/plain"), &["abc"]),
            print("POST", "/pay?x=2", Some("text/plain"), &["abc"]),
            print("POST", "/pay", Some("text/plain"), &["abc"]),
            print("POST", "/pay?x=1", Some("text/html"), &["abc"]),
            print("POST", "/pay?x=1", None, &["abc"]),
            print("POST", "/pay?x=1", Some("text/plain"), &["abd"]),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(
            print("POST", "/", Some(""), &[]),
            print("POST", "/", None, &[])
        );
    }

    #[test]
    fn namespace_caller_and_key_do_not_run_together() {
        let id = RecordId::new("a", b"b", "c");
        assert_ne!(id, RecordId::new("ab", b"", "c"));
        assert_ne!(id, RecordId::new("a", b"bc", ""));
        assert_eq!(format!("{id:?}").len(), "RecordId(12345678)".len());
    }
}
