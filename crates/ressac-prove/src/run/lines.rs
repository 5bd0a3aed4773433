//! Lines mode: one process, operations as lines on its input, results as lines on its output.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

use super::client::{Event, Said, Stage};
use super::process::{Running, spawn};
use crate::plan::PlannedOp;
use crate::record::OpResult;

/// The longest line taken from a client.
const LONGEST: usize = 1024 * 1024;

/// The process of a part.
pub(super) struct Lines {
    input: Option<ChildStdin>,
    pub(super) running: Running,
    stage: Stage,
}

impl Lines {
    pub(super) fn start(stage: Stage) -> Result<Self, String> {
        let environment = stage.teller.environment();
        let (mut child, running) = spawn(&stage.command, &environment, Stdio::piped())?;
        let input = child.stdin.take();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reader = stage.clone();
        let output = tokio::spawn(async move {
            if let Some(out) = out {
                listen(out, &reader).await;
            }
        });
        stage.keep_errors(err);
        stage.tell_end(child, running.clone(), output);
        Ok(Self {
            input,
            running,
            stage,
        })
    }

    pub(super) async fn hello(&mut self) {
        let hello = self.stage.teller.hello();
        self.say(&hello).await;
    }

    pub(super) async fn begin(
        &mut self,
        op: &PlannedOp,
        body: Option<&Path>,
    ) -> Result<(), String> {
        let line = self.stage.teller.line(op, body);
        self.say(&line).await;
        Ok(())
    }

    /// Writes a line; a client that has gone away is told by its end.
    pub(super) async fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let text = format!("{line}\n");
            let said = async {
                input.write_all(text.as_bytes()).await?;
                input.flush().await
            };
            if !matches!(
                tokio::time::timeout(super::process::GRACE, said).await,
                Ok(Ok(()))
            ) {
                self.input = None;
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.input = None;
    }
}

/// Reads lines until the end; what is no JSON object is noise, and kept.
async fn listen(mut out: ChildStdout, stage: &Stage) {
    let mut line = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let n = match out.read(&mut chunk).await {
            Ok(n) if n > 0 => n,
            _ => return,
        };
        Said::add(&mut stage.said().out, &chunk[..n]);
        let t = stage.mock.now();
        for byte in &chunk[..n] {
            match byte {
                b'\n' => {
                    if let Some(event) = read(&line, t) {
                        stage.tell(event);
                    }
                    line.clear();
                }
                _ if line.len() < LONGEST => line.push(*byte),
                _ => {}
            }
        }
    }
}

fn read(line: &[u8], t: u64) -> Option<Event> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
    if object.contains_key("ready") {
        return Some(Event::Ready);
    }
    let result = result(serde_json::Value::Object(object), t)?;
    (!result.op.is_empty()).then_some(Event::Result(result))
}

/// A result line; an operation's id may be a number, and what is not understood is left out.
pub(super) fn result(mut value: serde_json::Value, t: u64) -> Option<OpResult> {
    let object = value.as_object_mut()?;
    if let Some(n) = object.get("op").and_then(serde_json::Value::as_u64) {
        object.insert("op".to_owned(), n.to_string().into());
    }
    object.get("ok")?.as_bool()?;
    object.retain(|name, value| fits(name, value));
    let mut result: OpResult = serde_json::from_value(value).ok()?;
    (result.t, result.bare) = (t, false);
    Some(result)
}

fn fits(name: &str, value: &serde_json::Value) -> bool {
    match name {
        "ok" => value.is_boolean(),
        "status" => value.as_u64().is_some_and(|n| n < 1000),
        "attempts" | "body_len" => value.is_u64(),
        "hint_ms" => value.is_number(),
        "op" | "reason" | "key" | "body_sha256" | "error" => value.is_string(),
        _ => false,
    }
}

/// Reads to the end.
pub(super) async fn drain(mut from: impl AsyncRead + Unpin, mut take: impl FnMut(&[u8])) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(n) = from.read(&mut chunk).await {
        if n == 0 {
            return;
        }
        take(&chunk[..n]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn noise_is_no_result_and_odd_fields_prove_nothing() {
        for noise in [
            "",
            "ok",
            "[1]",
            "{\"op\":\"1\"}",
            "{\"op\":\"1\",\"ok\":1}",
            "{\"ok\":true}",
        ] {
            assert!(
                !matches!(read(noise.as_bytes(), 0), Some(Event::Result(_))),
                "{noise}"
            );
        }
        assert!(matches!(
            read(b"{\"ready\":1,\"name\":\"x\"}", 0),
            Some(Event::Ready)
        ));
        let line = br#"{"op":7,"ok":false,"status":503,"attempts":-1,"x":[],"body_len":"3"}"#;
        let Some(Event::Result(result)) = read(line, 9) else {
            panic!()
        };
        assert_eq!(
            (result.op.as_str(), result.ok, result.status),
            ("7", false, Some(503))
        );
        assert_eq!(
            (result.attempts, result.body_len, result.t),
            (None, None, 9)
        );
    }
}
