//! Signatures of Standard Webhooks.

use sha2::{Digest, Sha256};

/// Over id, moment and body.
pub(crate) fn signature(secret: &str, id: &str, stamp: u64, body: &[u8]) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let key = STANDARD
        .decode(secret.trim_start_matches("whsec_"))
        .unwrap_or_default();
    let mut text = format!("{id}.{stamp}.").into_bytes();
    text.extend_from_slice(body);
    format!("v1,{}", STANDARD.encode(hmac(&key, &text)))
}

/// RFC 2104 over SHA-256, for keys of at most 64 bytes.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0u8; 64];
    let len = key.len().min(64);
    block[..len].copy_from_slice(&key[..len]);
    let keyed = |pad: u8, text: &[u8]| -> [u8; 32] {
        let mut h = Sha256::new();
        h.update(block.map(|b| b ^ pad));
        h.update(text);
        h.finalize().into()
    };
    keyed(0x5c, &keyed(0x36, text))
}
