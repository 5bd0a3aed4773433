//! The mock as a Rust value: start it, script it, read its journal, drop it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::control;
use crate::fault::Fault;
use crate::handle::ScriptHandle;
use crate::journal::{Connection, Entry};
use crate::notation::NotationError;
use crate::scenario::{PathPattern, Route, Scenario, Scope, check_script, read_file};
use crate::state::{Reset, RouteState, Shared};
use crate::step::{Cut, Script};
use crate::upstream::Upstream;
use crate::wire::{Port, Slot, run_listener};

/// How a mock is started, beside what it does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the first listener binds; the others take its address and a free port.
    /// Default `127.0.0.1:0`.
    pub bind: SocketAddr,
    /// Where the control API listens; beyond loopback it needs `control_token`. `None`: no control
    /// API of its own. Default `127.0.0.1:0`.
    pub control: Option<SocketAddr>,
    /// What a caller of the control API must show, as `Authorization: Bearer`. Default: nothing.
    pub control_token: Option<String>,
    /// Whether listeners without TLS answer `/__ressac/` too, never faulted. Default: no.
    pub control_on_plain: bool,
    /// The most entries of the journal; it also keeps below 64 MiB. Default 10 000.
    pub journal_entries: usize,
    /// Where requests go that no route takes: an `http://` URL. Default: nowhere.
    pub upstream: Option<String>,
    /// Where the certificate of the mock's authority is written, as PEM. Default: nowhere.
    pub ca_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            bind: any,
            control: Some(any),
            control_token: None,
            control_on_plain: false,
            journal_entries: 10_000,
            upstream: None,
            ca_file: None,
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
    /// The upstream is no URL.
    #[error("{0}")]
    Upstream(String),
    /// A step says `pass`, and there is nowhere to.
    #[error("route {0} says `pass`, and there is no upstream; give its URL")]
    NoUpstream(String),
    /// The authority could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// The authority's certificate could not be written.
    #[error("cannot write {}: {source}", path.display())]
    CaFile {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why a listener did not do as it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// There is none of that name.
    #[error("no listener is named {0:?}")]
    Unknown(String),
    /// A port cannot be kept while nobody listens on it.
    #[error("`down` needs SO_REUSEPORT to keep its port, which is not used on this system")]
    Unsupported,
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
    control: Arc<control::Context>,
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
    /// [`MockError`] if a port cannot be had, the control API would be open to others, or the
    /// upstream is no URL.
    pub async fn start_with(scenario: Scenario, options: Options) -> Result<Self, MockError> {
        let shared = prepare(scenario, &options)?;
        open_listeners(&shared, options.bind)?;
        let slots = shared.listeners();
        let listeners = slots.iter().map(|s| (s.spec.name.clone(), s.addr()));
        let mut ports = control::Ports {
            listeners: slots
                .iter()
                .map(|s| (s.spec.name.clone(), s.addr(), s.url()))
                .collect(),
            control: None,
            ca: None,
        };
        if let Some(path) = &options.ca_file {
            write_ca(&shared, path)?;
            ports.ca = Some(path.clone());
        }
        let listeners = listeners.collect();
        let mut control_listener = None;
        if let Some(addr) = options.control {
            let (addr, listener) = control::open(addr)
                .await
                .map_err(|source| MockError::Bind { addr, source })?;
            ports.control = Some(addr);
            control_listener = Some(listener);
        }
        let control = Arc::new(control::Context {
            shared: Arc::clone(&shared),
            ports,
            token: options.control_token,
        });
        if options.control_on_plain {
            // Set once, here.
            let _ = shared.control.set(Arc::downgrade(&control));
        }
        let mut tasks = Vec::new();
        if let Some(listener) = control_listener {
            tasks.push(tokio::spawn(control::run(Arc::clone(&control), listener)));
        }
        for slot in shared.listeners() {
            let run = run_listener(Arc::clone(&shared), Arc::clone(slot));
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

    /// The URL of the first listener, without a slash at the end.
    pub fn url(&self) -> String {
        self.shared.listeners()[0].url()
    }

    /// The URL of the first listener with TLS, without a slash at the end.
    ///
    /// # Panics
    ///
    /// If the scenario has none; the default one has.
    pub fn tls_url(&self) -> String {
        match self
            .shared
            .listeners()
            .iter()
            .find(|s| s.spec.certificate.is_some())
        {
            // A certificate names hosts; an address in a URL is one too.
            Some(slot) => slot.url(),
            None => panic!("the scenario has no listener with TLS"),
        }
    }

    /// The URL of a listener, without a slash at the end.
    pub fn listener_url(&self, name: &str) -> Option<String> {
        let mut all = self.shared.listeners().iter();
        Some(all.find(|s| s.spec.name == name)?.url())
    }

    /// The certificate of the mock's own authority, as PEM: what a client has to trust.
    ///
    /// # Panics
    ///
    /// If no key can be made, which takes a broken system.
    pub fn ca_pem(&self) -> String {
        match self.shared.tls() {
            Ok(tls) => tls.ca_pem().to_owned(),
            Err(e) => panic!("cannot make a certificate: {e}"),
        }
    }

    /// Name and address of every listener.
    pub fn listeners(&self) -> &[(String, SocketAddr)] {
        &self.listeners
    }

    /// `http://` and the address of the control API; the prefix is `/__ressac/v1/`.
    pub fn control_url(&self) -> Option<String> {
        self.control.ports.control.map(|a| format!("http://{a}"))
    }

    /// Where the mock can be reached, as one JSON object: the content of a ports file.
    pub fn ports_json(&self) -> String {
        control::ports_json(&self.control.ports).to_string()
    }

    /// Lets a listener refuse connections, for a time or (`None`) until [`Mock::up`]: when this
    /// returns, a SYN is answered with RST. Connections that are open stay open.
    ///
    /// # Errors
    ///
    /// [`ListenerError`] if there is no such listener, or the system cannot keep its port.
    pub fn down(&self, listener: &str, time: Option<Duration>) -> Result<(), ListenerError> {
        if !cfg!(target_os = "linux") {
            return Err(ListenerError::Unsupported);
        }
        self.shared.set_down(self.slot(listener)?, Some(time));
        Ok(())
    }

    /// Ends what [`Mock::down`] began; the listener opens within milliseconds.
    ///
    /// # Errors
    ///
    /// [`ListenerError`] if there is no such listener.
    pub fn up(&self, listener: &str) -> Result<(), ListenerError> {
        self.shared.set_down(self.slot(listener)?, None);
        Ok(())
    }

    fn slot(&self, name: &str) -> Result<&Arc<Slot>, ListenerError> {
        let mut all = self.shared.listeners().iter();
        all.find(|s| s.spec.name == name)
            .ok_or_else(|| ListenerError::Unknown(name.to_owned()))
    }

    /// Ends open connections, of one listener or of all; `idle_only` spares those on which a
    /// request is being served. Returns how many were told.
    pub fn close_connections(&self, listener: Option<&str>, cut: Cut, idle_only: bool) -> usize {
        self.shared.close_connections(listener, cut, idle_only)
    }

    /// Adds a fault that goes by itself; its id.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn add_fault(&self, fault: Fault) -> Result<u64, String> {
        self.shared.add_fault(fault)
    }

    /// Removes a fault; whether it was there.
    pub fn remove_fault(&self, id: u64) -> bool {
        self.shared.core().faults.remove(id)
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
        let mut parsed: Script = script.parse().map_err(wrong)?;
        let bad = |(what, fix): (String, String)| wrong(NotationError::new(0, what, fix));
        check_script(&parsed).map_err(bad)?;
        for reply in parsed.replies_mut() {
            read_file(reply, Some(Path::new(""))).map_err(bad)?;
        }
        if parsed.replies().any(|r| r.pass) && self.shared.upstream.is_none() {
            let what = "`pass` needs an upstream".to_owned();
            return Err(bad((what, "start the mock with one".to_owned())));
        }
        if parsed.replies().any(|r| r.early) {
            self.shared
                .listeners()
                .iter()
                .for_each(|s| s.shrink_buffer());
        }
        let pattern = PathPattern::parse("/{token}").map_err(bad)?;
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
            quota: None,
        }));
        drop(core);
        let tls = self.shared.listeners().iter();
        let tls = tls
            .filter(|s| s.spec.certificate.is_some())
            .map(|s| s.url());
        Ok(ScriptHandle::new(
            Arc::clone(&self.shared),
            (self.url(), tls.take(1).next()),
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

    /// All connections of the journal, oldest first.
    pub fn connections(&self) -> Vec<Connection> {
        self.connections_since(0)
    }

    /// Connections with a number above `seq`, oldest first.
    pub fn connections_since(&self, seq: u64) -> Vec<Connection> {
        self.shared
            .core()
            .journal
            .connections(seq)
            .cloned()
            .collect()
    }

    /// Waits until what the journal holds fits, and tells whether it did before `timeout`.
    ///
    /// `fits` is asked at once and after every change.
    pub async fn wait_for(&self, timeout: Duration, mut fits: impl FnMut(&Self) -> bool) -> bool {
        let mut changed = self.shared.changed.subscribe();
        let wait = async {
            loop {
                changed.mark_unchanged();
                if fits(self) {
                    return;
                }
                // The sender lives in `self.shared`.
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(timeout, wait).await.is_ok()
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
        for slot in self.shared.listeners() {
            slot.retire();
        }
    }
}

/// Checks what does not depend on sockets.
fn prepare(scenario: Scenario, options: &Options) -> Result<Arc<Shared>, MockError> {
    let open = |a: &SocketAddr| !a.ip().is_loopback() && options.control_token.is_none();
    if let Some(addr) = options.control.filter(open) {
        return Err(MockError::ControlNotLoopback(addr));
    }
    if options.control_on_plain && open(&options.bind) {
        return Err(MockError::ControlNotLoopback(options.bind));
    }
    let upstream = match &options.upstream {
        Some(url) => Some(Upstream::parse(url).map_err(MockError::Upstream)?),
        None => None,
    };
    let passes = |r: &&Route| r.script.replies().any(|r| r.pass);
    if upstream.is_none()
        && let Some(route) = scenario.routes.iter().find(passes)
    {
        return Err(MockError::NoUpstream(route.name.clone()));
    }
    let entries = options.journal_entries.max(1);
    Ok(Shared::new(scenario, entries, upstream))
}

fn open_listeners(shared: &Arc<Shared>, bind: SocketAddr) -> Result<(), MockError> {
    let (specs, early) = {
        let core = shared.core();
        (core.scenario.listeners.clone(), core.scenario.has_early())
    };
    let mut slots = Vec::with_capacity(specs.len());
    for (i, spec) in specs.into_iter().enumerate() {
        let mut addr = bind;
        if i > 0 {
            addr.set_port(0);
        }
        let (port, listener) =
            Port::open(addr).map_err(|source| MockError::Bind { addr, source })?;
        let slot = Slot::new(i, spec, port, listener);
        if early {
            slot.shrink_buffer();
        }
        slots.push(Arc::new(slot));
    }
    // One that begins by refusing must do so before anybody knows its port.
    for slot in slots.iter().filter(|s| s.down_state(shared).0) {
        slot.close();
    }
    shared.set_listeners(slots);
    Ok(())
}

fn write_ca(shared: &Shared, path: &Path) -> Result<(), MockError> {
    let tls = shared.tls().map_err(MockError::Certificate)?;
    std::fs::write(path, tls.ca_pem()).map_err(|source| MockError::CaFile {
        path: path.to_owned(),
        source,
    })
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.shutdown.send_replace(true);
        for task in &self.tasks {
            task.abort();
        }
        for slot in self.shared.listeners() {
            slot.retire();
        }
        if let Some(runtime) = self.runtime.take() {
            // A plain drop would panic inside another runtime.
            runtime.shutdown_background();
        }
    }
}
