//! The real binary, run to its end within a limit.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any run here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Stdout as one JSON value on one line.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.trim_end().lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// `ressac` with these arguments, and none of the caller's environment that it heeds.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ressac"));
    for name in ["RESSAC_URL", "RESSAC_LOG", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn ressac(args: &[&str]) -> Ran {
    finish(command(args).spawn().unwrap())
}

/// Runs it to its end, with this on stdin.
pub(crate) fn ressac_with(args: &[&str], stdin: &[u8]) -> Ran {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    finish(child)
}

/// Waits for the end, at most [`LIMIT`].
pub(crate) fn finish(mut child: Child) -> Ran {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let out = std::thread::spawn(move || text(out));
    let err = std::thread::spawn(move || text(err));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("did not end: {:?} {:?}", out.join(), err.join());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ran {
        code: status.code().unwrap_or(-1),
        out: out.join().unwrap(),
        err: err.join().unwrap(),
    }
}

fn text(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}

/// A folder with a `ressac.toml` of this text; and `FILE:p`.
pub(crate) fn policy(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ressac.toml");
    std::fs::write(&file, format!("[policy.p]\n{text}")).unwrap();
    let spec = format!("{}:p", file.display());
    (folder, spec)
}

/// A file beside the tests.
pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// Compares with a golden file; `RESSAC_UPDATE=1` writes it.
pub(crate) fn assert_golden(name: &str, got: &str) {
    let path = golden(name);
    if std::env::var_os("RESSAC_UPDATE").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{name} differs (RESSAC_UPDATE=1 writes it)\n--- is\n{got}\n--- should be\n{want}"
    );
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}
