//! A listener of the mock: its port, whether it is open, and what it is told from outside.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::SockRef;
use tokio::net::TcpListener;

use super::socket::{Port, small_buffer};
use crate::clock::nanos;
use crate::scenario::ListenerSpec;
use crate::state::Shared;

/// A listener.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: Arc<str>,
    /// Its place in the scenario.
    pub(crate) index: usize,
    /// As the mock was started; the accept script is read from the scenario of the moment.
    pub(crate) spec: ListenerSpec,
    addr: SocketAddr,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// Gone once the mock has ended: handles of it may live on, its ports must not.
    port: Option<Port>,
    listener: Option<Arc<TcpListener>>,
    /// Refusing until this moment of the mock's clock, asked for from outside.
    down_until: Option<u64>,
    small_buffer: bool,
}

impl Slot {
    pub(crate) fn new(index: usize, spec: ListenerSpec, port: Port, listener: TcpListener) -> Self {
        let addr = port.addr();
        let open = Open {
            port: Some(port),
            listener: Some(Arc::new(listener)),
            down_until: None,
            small_buffer: false,
        };
        Self {
            name: spec.name.as_str().into(),
            index,
            spec,
            addr,
            open: Mutex::new(open),
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:8080`.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.spec.scheme(), self.addr())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket to accept from, if it is open.
    pub(super) fn listener(&self) -> Option<Arc<TcpListener>> {
        self.open().listener.clone()
    }

    /// Refuses from now on: a SYN is answered with RST once this returns.
    pub(crate) fn close(&self) {
        if let Some(listener) = self.open().listener.take() {
            // Who waits in `accept` still holds the socket; this takes it out of listening.
            let _ = SockRef::from(listener.as_ref()).shutdown(std::net::Shutdown::Both);
        }
    }

    /// Closes and gives the port away: the mock has ended.
    pub(crate) fn retire(&self) {
        self.close();
        self.open().port = None;
    }

    /// Listens again.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let mut open = self.open();
        if open.listener.is_none()
            && let Some(port) = &open.port
        {
            let listener = port.listen()?;
            if open.small_buffer {
                small_buffer(SockRef::from(&listener));
            }
            open.listener = Some(Arc::new(listener));
        }
        Ok(())
    }

    /// Connections accepted from now on have a small receive buffer.
    pub(crate) fn shrink_buffer(&self) {
        let mut open = self.open();
        open.small_buffer = true;
        if let Some(listener) = &open.listener {
            small_buffer(SockRef::from(listener.as_ref()));
        }
    }

    /// Refuses until a moment of the mock's clock, whatever the outages say.
    pub(crate) fn set_down(&self, until: Option<u64>) {
        self.open().down_until = until;
        if until.is_some() {
            self.close();
        }
    }

    /// Whether it refuses at this moment, and when that may change next.
    pub(crate) fn down_state(&self, shared: &Shared) -> (bool, Option<u64>) {
        let now = shared.clock.now();
        let (mut down, mut edge) = {
            let core = shared.core();
            match core.scenario.has_down() {
                true => core.clocks.down(&core.scenario.outages, now),
                false => (false, None),
            }
        };
        let tcp = self.spec.tcp.as_ref().filter(|t| t.down);
        let ends = [self.open().down_until, tcp.map(|t| nanos(t.ttl))];
        for end in ends.into_iter().flatten().filter(|e| *e > now) {
            down = true;
            edge = Some(edge.map_or(end, |e: u64| e.min(end)));
        }
        (down, edge)
    }
}
