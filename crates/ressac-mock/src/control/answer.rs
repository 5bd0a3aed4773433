//! The answer to a call, in bytes.

use bytes::BytesMut;
use serde::Serialize;

use crate::reply::head_bytes;

pub(super) struct Answer {
    status: u16,
    kind: &'static str,
    body: String,
}

impl Answer {
    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self {
                status: 200,
                kind: "application/json",
                body,
            },
            Err(e) => Self::problem(500, &e.to_string()),
        }
    }

    pub(super) fn text(body: String) -> Self {
        Self {
            status: 200,
            kind: "text/plain; version=0.0.4; charset=utf-8",
            body,
        }
    }

    /// As [`Answer::json`], with another status.
    pub(super) fn created(value: &impl Serialize) -> Self {
        Self {
            status: 201,
            ..Self::json(value)
        }
    }

    /// Done, and nothing to say.
    pub(super) fn done() -> Self {
        Self {
            status: 204,
            kind: "",
            body: String::new(),
        }
    }

    /// A problem document (RFC 9457).
    pub(super) fn problem(status: u16, detail: &str) -> Self {
        Self::problem_with(status, detail, serde_json::Map::new())
    }

    /// A problem document with members of its own.
    pub(super) fn problem_with(
        status: u16,
        detail: &str,
        mut more: serde_json::Map<String, serde_json::Value>,
    ) -> Self {
        let title = match status {
            401 => "Not allowed",
            404 => "Not found",
            405 => "Method not allowed",
            413 => "Too large",
            422 => "Not accepted",
            500 => "The mock failed",
            _ => "Bad request",
        };
        more.insert("title".into(), title.into());
        more.insert("status".into(), status.into());
        more.insert("detail".into(), detail.into());
        let body = serde_json::Value::Object(more).to_string();
        Self {
            status,
            kind: "application/problem+json",
            body,
        }
    }

    pub(super) fn bytes(&self, keep: bool) -> BytesMut {
        let mut lines = Vec::new();
        if self.status != 204 {
            lines.push(("Content-Type".to_owned(), self.kind.to_owned()));
            lines.push(("Content-Length".to_owned(), self.body.len().to_string()));
        }
        if !keep {
            lines.push(("Connection".to_owned(), "close".to_owned()));
        }
        let mut out = head_bytes(self.status, &lines);
        out.extend_from_slice(self.body.as_bytes());
        out
    }
}
