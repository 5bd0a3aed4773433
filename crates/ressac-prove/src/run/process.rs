//! A process of the client, in a group of its own.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::process::{Child, Command};

/// How long after SIGTERM a process is killed.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Which signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Term,
    Kill,
}

/// Whether a process still runs, and whether it was this side that ended it.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pid: u32,
    alive: Arc<AtomicBool>,
    by_us: Arc<AtomicBool>,
}

impl Running {
    /// Signals its whole group, if it still runs.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.alive.load(Ordering::Acquire) {
            return;
        }
        self.by_us.store(true, Ordering::Release);
        send(self.pid, signal);
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub(super) fn ended_by_us(&self) -> bool {
        self.by_us.load(Ordering::Acquire)
    }

    /// From now on its number may belong to somebody else.
    pub(super) fn gone(&self) {
        // What it started may still run; the group outlives its leader.
        send(self.pid, Signal::Kill);
        self.alive.store(false, Ordering::Release);
    }
}

#[cfg(unix)]
fn send(pid: u32, signal: Signal) {
    use rustix::process::{Pid, Signal as Sig, kill_process_group};
    let signal = match signal {
        Signal::Term => Sig::TERM,
        Signal::Kill => Sig::KILL,
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The group may have ended a moment ago, which is what was wanted.
        let _ = kill_process_group(pid, signal);
    }
}

#[cfg(not(unix))]
fn send(_: u32, _: Signal) {}

/// Starts the command with this environment.
pub(super) fn spawn(
    command: &[OsString],
    environment: &[(String, String)],
    input: Stdio,
) -> Result<(Child, Running), String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("there is no command".to_owned());
    };
    let mut start = Command::new(program);
    start
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    start.kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROVE") {
            start.env_remove(name);
        }
    }
    start.envs(environment.iter().map(|(n, v)| (n, v)));
    #[cfg(unix)]
    start.process_group(0);
    let child = start
        .spawn()
        .map_err(|e| format!("cannot start {}: {e}", program.to_string_lossy()))?;
    let running = Running {
        pid: child.id().unwrap_or(0),
        alive: Arc::new(AtomicBool::new(true)),
        by_us: Arc::new(AtomicBool::new(false)),
    };
    Ok((child, running))
}
