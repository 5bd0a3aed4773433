//! The bytes that the mock sends as `body=N`.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// SHA-256 of the mock's N pattern bytes: byte i is base64 letter number (i + i div 64) mod 64.
#[must_use]
pub fn pattern_sha256(len: u64) -> String {
    hex(&Sha256::digest(pattern(len)))
}

/// The pattern bytes themselves.
pub(crate) fn pattern(len: u64) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..len)
        .map(|i| LETTERS[((i + i / 64) % 64) as usize])
        .collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
