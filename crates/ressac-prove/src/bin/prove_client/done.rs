//! The result line of an operation.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How it ended.
pub(crate) struct Done {
    pub(crate) ok: bool,
    pub(crate) status: Option<u16>,
    pub(crate) attempts: u32,
    pub(crate) reason: &'static str,
    pub(crate) hint: Option<Duration>,
    pub(crate) key: Option<String>,
    pub(crate) body: Option<(u64, String)>,
    pub(crate) error: Option<String>,
}

impl Done {
    pub(crate) fn line(self, id: &str) -> Value {
        let mut line = json!({
            "op": id,
            "ok": self.ok,
            "attempts": self.attempts,
            "reason": self.reason,
        });
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                line[name] = value;
            }
        };
        add("status", self.status.map(Value::from));
        add(
            "hint_ms",
            self.hint.map(|h| Value::from(h.as_secs_f64() * 1000.0)),
        );
        add("key", self.key.map(Value::from));
        add("error", self.error.map(Value::from));
        if let Some((len, hash)) = self.body {
            add("body_len", Some(len.into()));
            add("body_sha256", Some(hash.into()));
        }
        line
    }
}

/// As it stands in a result line.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
