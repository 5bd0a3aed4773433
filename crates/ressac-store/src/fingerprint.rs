//! The fingerprint that tells "the same request again" from "another request with the same key".

use sha2::{Digest, Sha256};

/// SHA-256 over method, path, content type and body, each with its length before it, so that no two
/// different requests run together into the same bytes.
///
/// Headers other than the content type do not count: a date or a trace id differs on every call.
///
/// ```
/// use ressac_store::fingerprint;
///
/// let first = fingerprint("POST", "/v1/payments", Some(b"application/json"), b"{}");
/// assert_eq!(first, fingerprint("POST", "/v1/payments", Some(b"application/json"), b"{}"));
/// assert_ne!(first, fingerprint("POST", "/v1/payments", None, b"{}"));
/// ```
#[must_use]
pub fn fingerprint(method: &str, path: &str, content_type: Option<&[u8]>, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    // An absent content type must differ from an empty one.
    let marked = [u8::from(content_type.is_some())];
    for part in [
        method.as_bytes(),
        path.as_bytes(),
        &marked,
        content_type.unwrap_or_default(),
        body,
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(
            fingerprint("POST", "/a", None, b"b"),
            fingerprint("POST", "/ab", None, b"")
        );
        assert_ne!(
            fingerprint("POST", "/", Some(b""), b""),
            fingerprint("POST", "/", None, b"")
        );
    }
}
