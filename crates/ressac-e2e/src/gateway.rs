//! `ressac serve` as a child process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{Site, ressac};

/// Longer than a start takes, on a machine that compiles meanwhile.
const START: Duration = Duration::from_secs(60);
/// Lines of the log that are kept for a test that fails.
const KEPT: usize = 2_000;

/// A running gateway. Dropping it kills it.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    address: SocketAddr,
    log: Log,
}

/// A gateway that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it wrote to stderr.
    pub log: String,
}

impl Ended {
    /// Its exit code; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl Gateway {
    /// Starts the binary under test on this site, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn start(site: &Site) -> Self {
        Self::start_by(Self::command(ressac(), &site.config())).await
    }

    /// `ressac serve CONFIG`, to be wrapped or changed before it is started.
    pub fn command(program: &Path, config: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("serve").arg(config).args(["--log", "warn"]);
        command
    }

    /// Starts a command that ends up as a gateway, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn start_by(command: Command) -> Self {
        let (mut child, log) = spawn(command);
        let address = log.clone_address();
        match tokio::time::timeout(START, listens(address, &mut child)).await {
            Ok(Some(address)) => Gateway {
                child,
                address,
                log,
            },
            Ok(None) => panic!("the gateway ended at its start:\n{}", log.text()),
            Err(_) => panic!("the gateway does not listen:\n{}", log.text()),
        }
    }

    /// Runs a gateway that is expected not to start, to its end.
    ///
    /// # Panics
    ///
    /// If it has not ended after `limit`.
    pub async fn run(site: &Site, limit: Duration) -> Ended {
        let (child, log) = spawn(Self::command(ressac(), &site.config()));
        end(child, log, limit).await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// What it has written to stderr.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// `kill -9`; returns when the process is gone.
    pub async fn kill_nine(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks it to stop (SIGTERM).
    pub fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// If it has not ended after `limit`.
    pub async fn ended(self, limit: Duration) -> Ended {
        end(self.child, self.log, limit).await
    }

    /// Asks it to stop and waits until it has, without loss.
    ///
    /// # Panics
    ///
    /// If it does not stop, or not cleanly.
    pub async fn stop(self) -> Ended {
        self.terminate();
        let ended = self.ended(Duration::from_secs(60)).await;
        assert_eq!(ended.code(), Some(0), "{}", ended.log);
        ended
    }
}

fn spawn(mut command: Command) -> (Child, Log) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let log = Log::read(child.stderr.take().unwrap());
    (child, log)
}

async fn listens(
    mut address: watch::Receiver<Option<SocketAddr>>,
    child: &mut Child,
) -> Option<SocketAddr> {
    tokio::select! {
        found = address.wait_for(Option::is_some) => found.ok().and_then(|found| *found),
        _ = child.wait() => None,
    }
}

async fn end(mut child: Child, log: Log, limit: Duration) -> Ended {
    match tokio::time::timeout(limit, child.wait()).await {
        Ok(status) => {
            let status = status.unwrap();
            let log = log.whole().await;
            Ended { status, log }
        }
        Err(_) => panic!("the gateway has not ended after {limit:?}:\n{}", log.text()),
    }
}

/// What a gateway writes to stderr, and the address that it says there.
#[derive(Debug)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    address: watch::Receiver<Option<SocketAddr>>,
    reader: JoinHandle<()>,
}

impl Log {
    fn read(stderr: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (found, address) = watch::channel(None);
        let kept = Arc::clone(&lines);
        let reader = tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = stderr.next_line().await {
                if let Some(address) = line.strip_prefix("ressac listens on http://") {
                    found.send_replace(address.trim().parse().ok());
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < KEPT {
                    kept.push(line);
                }
            }
        });
        Log {
            lines,
            address,
            reader,
        }
    }

    fn clone_address(&self) -> watch::Receiver<Option<SocketAddr>> {
        self.address.clone()
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.join("\n")
    }

    /// All of it, once the process has ended.
    async fn whole(self) -> String {
        let lines = Arc::clone(&self.lines);
        // A grandchild may hold the pipe open; what came until now must do then.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.reader).await;
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.join("\n")
    }
}
