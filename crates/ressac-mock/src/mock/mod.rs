//! The mock as a Rust value: start it, script it, read its journal, drop it.

mod options;
mod script;
mod start;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::control;
use crate::fault::Fault;
use crate::journal::{Connection, Entry};
use crate::scenario::Scenario;
use crate::state::{Reset, Shared};
use crate::step::Cut;
use crate::wire::{Slot, run_listener};
pub use options::{ListenerError, MockError, Options};
pub use script::ScriptError;
use start::{open_listeners, prepare, write_ca};

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
    #[cfg(feature = "fuzzing")]
    pub(crate) fn insides(&self) -> (&Arc<Shared>, &control::Context) {
        (&self.shared, &self.control)
    }

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
