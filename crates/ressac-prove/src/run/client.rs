//! The client as the schedule sees it, in every mode.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ressac_mock::Mock;
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::courier::Leave;
use super::exec::Exec;
use super::lines::{Lines, drain};
use super::process::{GRACE, Running, Signal};
use super::proxy::Proxy;
use super::tell::Teller;
use crate::claims::Mode;
use crate::plan::PlannedOp;
use crate::record::{OpResult, ProcessEnd};

/// What a client does.
#[derive(Debug)]
pub(super) enum Event {
    /// It says that it is ready.
    Ready,
    /// It says what an operation came to.
    Result(OpResult),
    /// A process has ended.
    End(ProcessEnd),
}

/// What the processes of a part print, the first bytes of each.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
}

/// The most that is kept of each.
const MOST_SAID: usize = 4 * 1024 * 1024;

impl Said {
    pub(super) fn add(into: &mut Vec<u8>, bytes: &[u8]) {
        let room = MOST_SAID.saturating_sub(into.len()).min(bytes.len());
        into.extend_from_slice(&bytes[..room]);
    }
}

/// What all processes of a part share.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) command: Arc<Vec<OsString>>,
    pub(super) teller: Arc<Teller>,
    pub(super) mock: Arc<Mock>,
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) said: Arc<std::sync::Mutex<Said>>,
    pub(super) folder: PathBuf,
}

impl Stage {
    pub(super) fn said(&self) -> std::sync::MutexGuard<'_, Said> {
        self.said
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps what a process that serves all operations says of its errors.
    pub(super) fn keep_errors(&self, err: Option<ChildStderr>) {
        let stage = self.clone();
        tokio::spawn(async move {
            if let Some(err) = err {
                drain(err, |bytes| Said::add(&mut stage.said().err, bytes)).await;
            }
        });
    }

    /// Tells of its end, and not before its last words: `words` is over when they were heard.
    pub(super) fn tell_end(&self, mut child: Child, running: Running, words: JoinHandle<()>) {
        let stage = self.clone();
        tokio::spawn(async move {
            let status = child.wait().await;
            let t = stage.mock.now();
            running.gone();
            let _ = tokio::time::timeout(GRACE, words).await;
            stage.tell(Event::End(ProcessEnd {
                op: None,
                code: status.ok().and_then(|s| s.code()),
                t,
                by_us: running.ended_by_us(),
            }));
        });
    }

    /// Nobody listens any more once the part is over.
    pub(super) fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// The client.
pub(super) enum Client {
    Lines(Lines),
    Exec(Exec),
    Proxy(Proxy),
}

impl Client {
    pub(super) fn start(mode: Mode, stage: Stage) -> Result<Self, String> {
        match mode {
            Mode::Lines => Lines::start(stage).map(Self::Lines),
            Mode::Exec => Ok(Self::Exec(Exec::new(stage))),
            Mode::Proxy => Proxy::start(stage).map(Self::Proxy),
        }
    }

    /// Does it tell when it is ready?
    pub(super) fn tells_ready(&self) -> bool {
        !matches!(self, Self::Exec(_))
    }

    /// Does it finish by itself once its input has ended?
    pub(super) fn finishes(&self) -> bool {
        matches!(self, Self::Lines(_))
    }

    /// Starts an operation; the moment was taken by the caller.
    pub(super) async fn begin(
        &mut self,
        op: &PlannedOp,
        body: Option<&Path>,
    ) -> Result<(), String> {
        match self {
            Self::Lines(lines) => lines.begin(op, body).await,
            Self::Exec(exec) => exec.begin(op, body),
            Self::Proxy(proxy) => proxy.begin(op, body),
        }
    }

    /// The caller gives an operation up: a line, a signal to its process, or its connection.
    pub(super) async fn cancel(&mut self, op: &str, how: Leave) {
        match self {
            Self::Lines(lines) => {
                lines
                    .say(&serde_json::json!({ "cancel": op }).to_string())
                    .await;
            }
            Self::Exec(exec) => exec.running.iter().for_each(|p| p.signal(Signal::Term)),
            Self::Proxy(proxy) => proxy.leave(op, how),
        }
    }

    /// End of input: finish and exit.
    pub(super) fn close(&mut self) {
        if let Self::Lines(lines) = self {
            lines.close();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.processes().iter().for_each(|p| p.signal(signal));
    }

    pub(super) fn any_alive(&self) -> bool {
        self.processes().iter().any(Running::is_alive)
    }

    fn processes(&self) -> &[Running] {
        match self {
            Self::Lines(lines) => std::slice::from_ref(&lines.running),
            Self::Exec(exec) => &exec.running,
            Self::Proxy(proxy) => std::slice::from_ref(&proxy.running),
        }
    }
}

impl Drop for Client {
    /// No process outlives its part.
    fn drop(&mut self) {
        self.signal(Signal::Kill);
    }
}
