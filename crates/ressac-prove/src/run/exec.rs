//! Exec mode: one process is one operation and one client instance.

use std::path::Path;
use std::process::Stdio;

use super::client::{Event, Said, Stage};
use super::lines::{drain, result};
use super::process::{Running, spawn};
use crate::plan::PlannedOp;
use crate::record::{OpResult, ProcessEnd};

/// The processes of a part.
pub(super) struct Exec {
    stage: Stage,
    pub(super) running: Vec<Running>,
}

impl Exec {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            running: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, op: &PlannedOp, body: Option<&Path>) -> Result<(), String> {
        let result_file = self.stage.folder.join(format!("result-{}.json", op.id));
        let mut environment = self.stage.teller.environment();
        environment.extend(self.stage.teller.variables(op, body));
        environment.push((
            "PROVE_RESULT_FILE".to_owned(),
            result_file.display().to_string(),
        ));
        let (mut child, running) = spawn(&self.stage.command, &environment, Stdio::null())?;
        self.running.retain(Running::is_alive);
        self.running.push(running.clone());
        let (stage, id) = (self.stage.clone(), op.id.clone());
        tokio::spawn(async move {
            let mut out = Vec::new();
            let mut err = Vec::new();
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let reads = async {
                let read_out = async {
                    if let Some(from) = stdout {
                        drain(from, |bytes| Said::add(&mut out, bytes)).await;
                    }
                };
                let read_err = async {
                    if let Some(from) = stderr {
                        drain(from, |bytes| Said::add(&mut err, bytes)).await;
                    }
                };
                tokio::join!(read_out, read_err);
            };
            let ended = async {
                let status = child.wait().await;
                let t = stage.mock.now();
                running.gone();
                (status, t)
            };
            let (_, (status, t)) = tokio::join!(reads, ended);
            let code = status.ok().and_then(|s| s.code());
            let line = tokio::fs::read(&result_file).await.ok();
            let said = line.or_else(|| last_object(&out));
            {
                let mut all = stage.said();
                Said::add(&mut all.out, &out);
                Said::add(&mut all.err, &err);
            }
            if let Some(code @ (0 | 1)) = code {
                stage.tell(Event::Result(outcome(&id, code, said.as_deref(), t)));
            }
            let by_us = running.ended_by_us();
            stage.tell(Event::End(ProcessEnd {
                op: Some(id),
                code,
                t,
                by_us,
            }));
        });
        Ok(())
    }
}

/// Exit code 0 is success, 1 is failure, whatever the line says.
fn outcome(id: &str, code: i32, line: Option<&[u8]>, t: u64) -> OpResult {
    let told = line.and_then(|line| {
        let mut value: serde_json::Value = serde_json::from_slice(line.trim_ascii()).ok()?;
        value
            .as_object_mut()?
            .insert("ok".to_owned(), (code == 0).into());
        result(value, t)
    });
    let bare = told.is_none();
    OpResult {
        op: id.to_owned(),
        ok: code == 0,
        t,
        bare,
        ..told.unwrap_or_default()
    }
}

fn last_object(out: &[u8]) -> Option<Vec<u8>> {
    let mut lines = out.split(|b| *b == b'\n').rev();
    lines
        .find(|line| line.first() == Some(&b'{'))
        .map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_decides_and_the_line_tells_more() {
        let told = outcome(
            "3",
            1,
            Some(b"{\"op\":\"x\",\"ok\":true,\"status\":503}\n"),
            5,
        );
        assert_eq!(
            (told.op.as_str(), told.ok, told.status),
            ("3", false, Some(503))
        );
        let bare = outcome("3", 0, Some(b"done"), 5);
        assert!(bare.ok && bare.bare && bare.status.is_none());
        let out = b"hello\n{\"ok\":1}\n{\"ok\":2}\nbye\n";
        assert_eq!(last_object(out).as_deref(), Some(&b"{\"ok\":2}"[..]));
    }
}
