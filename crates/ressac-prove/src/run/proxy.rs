//! Proxy mode: the command is a proxy, and the suite's own client sends through it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::client::{Event, Said, Stage};
use super::courier::{Leave, Parcel, carry};
use super::lines::drain;
use super::process::{Running, spawn};
use crate::plan::PlannedOp;

/// How often it is tried whether the proxy accepts connections.
const KNOCK: Duration = Duration::from_millis(10);

/// Ports from here to below the range from which systems take ports by themselves: what is found
/// free there is still free a moment later.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// The proxy of a part, and what is on its way through it.
pub(super) struct Proxy {
    stage: Stage,
    listen: SocketAddr,
    pub(super) running: Running,
    on_the_way: JoinSet<()>,
    callers: BTreeMap<String, oneshot::Sender<Leave>>,
}

impl Proxy {
    /// Starts it; [`Event::Ready`] follows once it accepts connections.
    pub(super) fn start(stage: Stage) -> Result<Self, String> {
        let listen = free_address().ok_or("no free port between 20000 and 32000")?;
        let mut environment = stage.teller.environment();
        environment.extend(stage.teller.of_proxy(listen));
        let (mut child, running) = spawn(&stage.command, &environment, Stdio::null())?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reader = stage.clone();
        let output = tokio::spawn(async move {
            if let Some(out) = out {
                drain(out, |bytes| Said::add(&mut reader.said().out, bytes)).await;
            }
        });
        stage.keep_errors(err);
        stage.tell_end(child, running.clone(), output);
        let mut on_the_way = JoinSet::new();
        let (knocker, state) = (stage.clone(), running.clone());
        on_the_way.spawn(async move {
            while state.is_alive() {
                if TcpStream::connect(listen).await.is_ok() {
                    knocker.tell(Event::Ready);
                    return;
                }
                tokio::time::sleep(KNOCK).await;
            }
        });
        Ok(Self {
            stage,
            listen,
            running,
            on_the_way,
            callers: BTreeMap::new(),
        })
    }

    pub(super) fn begin(&mut self, op: &PlannedOp, body: Option<&Path>) -> Result<(), String> {
        let key_header = &self.stage.teller.key_header;
        let parcel = Parcel::new(op, body, self.listen, key_header)?;
        let (leave, left) = oneshot::channel();
        self.callers.insert(op.id.clone(), leave);
        let (stage, listen) = (self.stage.clone(), self.listen);
        // Those that have arrived need no place any more.
        while self.on_the_way.try_join_next().is_some() {}
        self.on_the_way.spawn(async move {
            let result = carry(parcel, listen, &stage.mock, left).await;
            stage.tell(Event::Result(result));
        });
        Ok(())
    }

    /// The caller of this operation goes away.
    pub(super) fn leave(&mut self, op: &str, how: Leave) {
        if let Some(caller) = self.callers.remove(op) {
            // It may have had its answer a moment ago.
            let _ = caller.send(how);
        }
    }
}

/// A loopback address that nobody listens on, and that is not given out twice by this process.
fn free_address() -> Option<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    if NEXT.load(Ordering::Relaxed) == 0 {
        let mut raw = [0; 2];
        // Without chance two processes would only try the same ports in the same order.
        let _ = getrandom::fill(&mut raw);
        let start = u16::from_le_bytes(raw) % PORTS + 1;
        let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    }
    (0..PORTS).find_map(|_| {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed).max(1);
        let port = FIRST_PORT + turn % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        TcpListener::bind(address).ok().map(|_| address)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_is_free_and_given_out_once() {
        let first = free_address().unwrap();
        let held = TcpListener::bind(first).unwrap();
        let mut seen = std::collections::BTreeSet::from([first]);
        for _ in 0..100 {
            let next = free_address().unwrap();
            assert!(next.ip().is_loopback() && seen.insert(next), "{next}");
        }
        drop(held);
    }
}
