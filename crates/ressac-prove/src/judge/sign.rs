//! Signatures of Standard Webhooks: `webhook-id.webhook-timestamp.body`, HMAC-SHA256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::finding::{Finding, Outcome};
use super::op::OpView;
use crate::record::Arrival;

/// The timestamp may be so much older than the arrival, ms.
const OLDEST: f64 = 1500.0;

/// Each attempt signed for itself, with a timestamp of its own moment.
pub(super) fn signed(view: &OpView<'_>, rule: &str) -> Finding {
    let fault = view
        .attempts
        .iter()
        .enumerate()
        .find_map(|(i, a)| fault(view, a).map(|why| format!("attempt {}: {why}", i + 1)));
    Finding {
        outcome: match (&fault, view.attempts.is_empty()) {
            (_, true) => Outcome::Unknown,
            (Some(_), false) => Outcome::Fail,
            (None, false) => Outcome::Pass,
        },
        rule: rule.to_owned(),
        expected: "each attempt signed afresh, at most 1.5 s before its arrival".to_owned(),
        seen: fault.unwrap_or_else(|| "valid on every attempt".to_owned()),
        note: false,
    }
}

fn fault(view: &OpView<'_>, a: &Arrival) -> Option<String> {
    let header = |name: &str| a.header(name).ok_or_else(|| format!("no {name}"));
    let checked = || -> Result<(), String> {
        let (id, stamp) = (header("webhook-id")?, header("webhook-timestamp")?);
        let signature = header("webhook-signature")?;
        let seconds: f64 = stamp
            .parse()
            .map_err(|_| "the timestamp is no number".to_owned())?;
        let arrived = (view.record.anchor_unix_ns as f64 + a.t_first as f64) / 1e6;
        // Seconds are whole: the stamp may lie up to one before its own moment.
        let age = arrived - seconds * 1000.0;
        if !(-1000.0..=OLDEST + 1000.0).contains(&age) {
            return Err(format!(
                "its timestamp is {:.1} s from its arrival",
                age / 1000.0
            ));
        }
        let secret = view.op.secret.as_deref().unwrap_or_default();
        let key = STANDARD
            .decode(secret.trim_start_matches("whsec_"))
            .map_err(|_| "the secret is not base64".to_owned())?;
        let body = match &a.body_head {
            serde_json::Value::String(text) => text.clone().into_bytes(),
            _ => Vec::new(),
        };
        let mut text = format!("{id}.{stamp}.").into_bytes();
        text.extend_from_slice(&body);
        let right = format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &text)));
        match signature.split(' ').any(|s| s == right) {
            true => Ok(()),
            false => Err("the signature does not match".to_owned()),
        }
    };
    checked().err()
}

/// RFC 2104 over SHA-256.
pub(crate) fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0u8; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let keyed = |pad: u8, text: &[u8]| -> [u8; 32] {
        let mut h = Sha256::new();
        h.update(block.map(|b| b ^ pad));
        h.update(text);
        h.finalize().into()
    };
    keyed(0x5c, &keyed(0x36, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::body::hex;

    /// RFC 4231, test cases 2 and 6.
    #[test]
    fn hmac_is_that_of_the_vectors() {
        assert_eq!(
            hex(&hmac_sha256(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(
            hex(&hmac_sha256(&[0xaa; 131], long)),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
