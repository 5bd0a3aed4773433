//! What stands behind the question mark.

use std::collections::HashMap;

use super::answer::Answer;

/// The parameters of a call.
pub(super) struct Query(HashMap<String, String>);

impl Query {
    /// Reads them; one that is not `known` is refused.
    pub(super) fn of(target: &str, known: &[&str]) -> Result<Self, Answer> {
        let query = target.split_once('?').map_or("", |(_, q)| q);
        let params: HashMap<String, String> = query
            .split('&')
            .filter(|p| !p.is_empty())
            .map(|p| p.split_once('=').unwrap_or((p, "")))
            .map(|(k, v)| (decode(k), decode(v)))
            .collect();
        match params.keys().find(|k| !known.contains(&k.as_str())) {
            Some(other) => {
                let known = known.join(", ");
                let detail = format!("unknown parameter {other:?}; there are {known}");
                Err(Answer::problem(400, &detail))
            }
            None => Ok(Self(params)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str, default: u64) -> Result<u64, Answer> {
        match self.text(name).map(|t| (t, t.parse())) {
            None => Ok(default),
            Some((_, Ok(n))) => Ok(n),
            Some((t, Err(_))) => {
                let detail = format!("`{name}` is not a number: {t:?}");
                Err(Answer::problem(400, &detail))
            }
        }
    }
}

/// Percent-decoding; what is no escape stays as it is.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = text
            .get(i + 1..i + 3)
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match (bytes[i], hex) {
            (b'%', Some(b)) => {
                out.push(b);
                i += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                i += 1;
            }
            (b, _) => {
                out.push(b);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
