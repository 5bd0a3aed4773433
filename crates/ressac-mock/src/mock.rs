//! The mock as a Rust value: start it, script it, read its journal, drop it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::control;
use crate::handle::ScriptHandle;
use crate::journal::Entry;
use crate::notation::NotationError;
use crate::scenario::{PathPattern, Route, Scenario, Scope, check_script};
use crate::state::{Reset, RouteState, Shared};
use crate::step::Script;
use crate::wire::{Port, run_listener};

/// How a mock is started, beside what it does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the first listener binds; the others take its address and a free port.
    /// Default `127.0.0.1:0`.
    pub bind: SocketAddr,
    /// Where the control API listens; loopback only. `None`: no control API.
    /// Default `127.0.0.1:0`.
    pub control: Option<SocketAddr>,
    /// The most entries of the journal; it also keeps below 64 MiB. Default 10 000.
    pub journal_entries: usize,
}

impl Default for Options {
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            bind: any,
            control: Some(any),
            journal_entries: 10_000,
        }
    }
}

/// Why a mock did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// A listener could not be opened.
    #[error("cannot listen on {addr}: {source}; choose another address or port 0")]
    Bind {
        /// Where.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The control API would be open to others.
    #[error("the control API cannot listen on {0}: without a token it stays on loopback")]
    ControlNotLoopback(SocketAddr),
    /// A blocking mock could not start its thread.
    #[error("cannot start a runtime: {0}")]
    Runtime(io::Error),
}

/// Why [`Mock::try_script`] refused a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad script {script:?}: {error}")]
pub struct ScriptError {
    script: String,
    error: NotationError,
}

/// A running faulty partner. Dropping it closes every socket.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::{Read, Write};
///
/// let mock = ressac_mock::Mock::start_blocking();
/// let pay = mock.script("POST", "503 ra=2, 201 create");
///
/// let mut socket = std::net::TcpStream::connect(mock.addr())?;
/// write!(socket, "POST {} HTTP/1.1\r\nConnection: close\r\n\r\n", pay.path())?;
/// let mut reply = String::new();
/// socket.read_to_string(&mut reply)?;
///
/// assert!(reply.starts_with("HTTP/1.1 503 "));
/// assert!(reply.contains("Retry-After: 2\r\n"));
/// assert_eq!(pay.attempts().len(), 1);
/// assert_eq!(pay.effects(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mock {
    shared: Arc<Shared>,
    listeners: Vec<(String, SocketAddr)>,
    control: Option<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
    /// Its own threads, when it was started for blocking code.
    runtime: Option<Runtime>,
}

impl Mock {
    /// Starts a mock without a scenario on free ports of 127.0.0.1. Runs on the runtime of the
    /// caller: in a single-threaded one, do not block.
    ///
    /// # Panics
    ///
    /// If no port can be had; [`Mock::start_with`] returns that as an error.
    pub async fn start() -> Self {
        match Self::start_with(Scenario::default(), Options::default()).await {
            Ok(mock) => mock,
            Err(e) => panic!("the mock did not start: {e}"),
        }
    }

    /// Starts a mock. When this returns, its ports are open.
    ///
    /// # Errors
    ///
    /// [`MockError`] if a port cannot be had, or the control API would not be on loopback.
    pub async fn start_with(scenario: Scenario, options: Options) -> Result<Self, MockError> {
        if let Some(addr) = options.control.filter(|a| !a.ip().is_loopback()) {
            return Err(MockError::ControlNotLoopback(addr));
        }
        let names: Vec<String> = scenario.listeners.iter().map(|l| l.name.clone()).collect();
        let shared = Shared::new(scenario, options.journal_entries.max(1));
        let mut open = Vec::new();
        for (i, name) in names.into_iter().enumerate() {
            let mut addr = options.bind;
            if i > 0 {
                addr.set_port(0);
            }
            let (port, listener) =
                Port::open(addr).map_err(|source| MockError::Bind { addr, source })?;
            open.push((name, port, listener));
        }
        let listeners: Vec<_> = open.iter().map(|(n, p, _)| (n.clone(), p.addr())).collect();
        let mut tasks = Vec::new();
        let mut control = None;
        if let Some(addr) = options.control {
            let (ctx, listener) = control::open(&shared, &listeners, addr)
                .await
                .map_err(|source| MockError::Bind { addr, source })?;
            control = Some(ctx.addr);
            tasks.push(tokio::spawn(control::run(ctx, listener)));
        }
        for (name, port, listener) in open {
            let run = run_listener(Arc::clone(&shared), name.into(), port, listener);
            tasks.push(tokio::spawn(run));
        }
        Ok(Self {
            shared,
            listeners,
            control,
            tasks,
            runtime: None,
        })
    }

    /// As [`Mock::start`], for tests without a runtime: the mock has a thread of its own.
    ///
    /// # Panics
    ///
    /// If no thread or no port can be had.
    pub fn start_blocking() -> Self {
        match Self::start_blocking_with(Scenario::default(), Options::default()) {
            Ok(mock) => mock,
            Err(e) => panic!("the mock did not start: {e}"),
        }
    }

    /// As [`Mock::start_with`], with a thread of its own. Not for use inside a runtime.
    ///
    /// # Errors
    ///
    /// As [`Mock::start_with`], or that no thread can be had.
    pub fn start_blocking_with(scenario: Scenario, options: Options) -> Result<Self, MockError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("ressac-mock")
            .enable_all()
            .build()
            .map_err(MockError::Runtime)?;
        let mut mock = runtime.block_on(Self::start_with(scenario, options))?;
        mock.runtime = Some(runtime);
        Ok(mock)
    }

    /// The address of the first listener.
    pub fn addr(&self) -> SocketAddr {
        self.listeners[0].1
    }

    /// `http://` and the address of the first listener, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Name and address of every listener.
    pub fn listeners(&self) -> &[(String, SocketAddr)] {
        &self.listeners
    }

    /// `http://` and the address of the control API; the prefix is `/__ressac/v1/`.
    pub fn control_url(&self) -> Option<String> {
        self.control.map(|a| format!("http://{a}"))
    }

    /// Where the mock can be reached, as one JSON object: the content of a ports file.
    pub fn ports_json(&self) -> String {
        control::ports_json(&self.listeners, self.control).to_string()
    }

    /// Adds a route of its own, with a fresh token as its path, for one operation of a test.
    /// `method` may be `*`.
    ///
    /// # Panics
    ///
    /// If the script is wrong; [`Mock::try_script`] returns that as an error.
    pub fn script(&self, method: &str, script: &str) -> ScriptHandle {
        match self.try_script(method, script) {
            Ok(handle) => handle,
            Err(e) => panic!("{e}"),
        }
    }

    /// As [`Mock::script`].
    ///
    /// # Errors
    ///
    /// That the script is wrong, where, and how to write it.
    pub fn try_script(&self, method: &str, script: &str) -> Result<ScriptHandle, ScriptError> {
        let wrong = |error| ScriptError {
            script: script.to_owned(),
            error,
        };
        let parsed: Script = script.parse().map_err(wrong)?;
        check_script(&parsed).map_err(|(what, fix)| wrong(NotationError::new(0, what, fix)))?;
        let pattern = PathPattern::parse("/{token}")
            .map_err(|(what, fix)| wrong(NotationError::new(0, what, fix)))?;
        let salt = self.shared.clock.anchor_unix_ns() & 0xff_ffff;
        let mut core = self.shared.core();
        let index = core.routes.len();
        let mut name = format!("script-{index}");
        // A route of the scenario may be called like this.
        while core.scenario.routes.iter().any(|r| r.name == name) {
            name.push('_');
        }
        let token = format!("op{index}-{salt:x}");
        core.by_path.insert(format!("/{token}"), index);
        core.routes.push(RouteState::new(Route {
            name: name.clone(),
            methods: if method == "*" {
                Vec::new()
            } else {
                vec![method.to_owned()]
            },
            path: pattern,
            scope: Scope::Token,
            token_header: None,
            listener: None,
            script: parsed.clone(),
            resource_id: None,
        }));
        drop(core);
        Ok(ScriptHandle::new(
            Arc::clone(&self.shared),
            self.url(),
            name,
            token,
            parsed,
        ))
    }

    /// All entries of the journal, oldest first.
    pub fn journal(&self) -> Vec<Entry> {
        self.journal_since(0)
    }

    /// Entries with a number above `seq`, oldest first.
    pub fn journal_since(&self, seq: u64) -> Vec<Entry> {
        self.shared.core().journal.since(seq).cloned().collect()
    }

    /// How many entries the journal has lost to its limit.
    pub fn journal_dropped(&self) -> u64 {
        self.shared.core().journal.dropped()
    }

    /// The wall-clock time at nanosecond 0 of the journal.
    pub fn anchor(&self) -> SystemTime {
        self.shared.clock.anchor()
    }

    /// Nanoseconds since the start, on the clock of the journal.
    pub fn now(&self) -> u64 {
        self.shared.clock.now()
    }

    /// Effects by token; routes without one count under the empty token.
    pub fn effects_by_token(&self) -> BTreeMap<String, u64> {
        let core = self.shared.core();
        core.resources
            .by_token
            .iter()
            .map(|(k, n)| (k.clone(), *n))
            .collect()
    }

    /// Effects by idempotency key. More than 1 is a double.
    pub fn effects_by_key(&self) -> BTreeMap<String, u64> {
        let core = self.shared.core();
        core.resources
            .by_key
            .iter()
            .map(|(k, n)| (k.clone(), *n))
            .collect()
    }

    /// Sets time zero of outages with `clock = "armed"`.
    pub fn arm(&self) {
        self.shared.arm();
    }

    /// Forgets what is named and cancels everything delayed; see [`Reset::ALL`].
    pub fn reset(&self, what: &[Reset]) {
        self.shared.reset(what);
    }

    /// Resolves when the control API was told to stop.
    pub async fn stopped(&self) {
        let mut stop = self.shared.stop.subscribe();
        // The sender lives in `self.shared`, so this cannot end early.
        let _ = stop.wait_for(|s| *s).await;
    }

    /// Closes everything and waits until it is closed.
    pub async fn shutdown(mut self) {
        self.shared.shutdown.send_replace(true);
        for task in self.tasks.drain(..) {
            // A task that panicked has closed its sockets too.
            let _ = task.await;
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.shutdown.send_replace(true);
        for task in &self.tasks {
            task.abort();
        }
        if let Some(runtime) = self.runtime.take() {
            // A plain drop would panic inside another runtime.
            runtime.shutdown_background();
        }
    }
}
