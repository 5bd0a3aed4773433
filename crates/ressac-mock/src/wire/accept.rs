//! The accept loop of one listener, which also opens and closes the port for `down`.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::closing::Closing;
use super::conn::Conn;
use super::end::{cut_fin, finish_fin, finish_rst};
use super::hello::{self, Secured};
use super::peer::at;
use super::slot::Slot;
use super::tape::Tape;
use super::tunnel;
use crate::exchange;
use crate::journal::Connection;
use crate::scenario::AcceptAction;
use crate::state::{Shared, ended};

/// Accepts until the mock shuts down; then every connection is closed.
pub(crate) async fn run(shared: Arc<Shared>, slot: Arc<Slot>) {
    let mut tasks = JoinSet::new();
    let mut shutdown = shared.shutdown.subscribe();
    let mut moved = shared.clocks_moved.subscribe();
    loop {
        let (down, edge) = slot.down_state(&shared);
        if down {
            slot.close();
        } else if let Err(e) = slot.reopen() {
            tracing::warn!(listener = %slot.name, error = %e, "cannot listen again, will retry");
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        let listener = slot.listener();
        tokio::select! {
            () = ended(&mut shutdown) => break,
            _ = moved.changed() => {}
            () = at(edge.map(|ns| shared.clock.instant(ns))) => {}
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            got = accept(listener.as_deref()) => match got {
                Ok(stream) => admit(&shared, &slot, stream, &mut tasks),
                // Closed from outside: the loop looks again.
                Err(_) if slot.listener().is_none() => tokio::task::yield_now().await,
                Err(e) => {
                    // Out of descriptors, most likely: some connection must end first.
                    tracing::warn!(listener = %slot.name, error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
    slot.close();
    tasks.shutdown().await;
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<TcpStream> {
    match listener {
        Some(l) => Ok(l.accept().await?.0),
        None => std::future::pending().await,
    }
}

fn admit(shared: &Arc<Shared>, slot: &Arc<Slot>, stream: TcpStream, tasks: &mut JoinSet<()>) {
    let (number, action, t_accept) = shared.connection(slot);
    let mut conn = Conn::new(stream, number, t_accept);
    let Ok(place) = Arc::clone(&shared.slots).try_acquire_owned() else {
        // Too many connections: this one is reset, as by a partner that is full.
        if let Some(tcp) = conn.stream.tcp() {
            let _ = tcp.set_zero_linger();
        }
        shared.connection_ended(slot, number, "limit");
        return;
    };
    if let Some(tcp) = conn.stream.tcp() {
        let _ = tcp.set_nodelay(true);
    }
    let closing = Closing::new(Arc::clone(&slot.name));
    conn.closing = Some(Arc::clone(&closing));
    shared.conns().insert(number, Arc::clone(&closing));
    let registered = Registered(Arc::clone(shared), number);
    let (shared, slot) = (Arc::clone(shared), Arc::clone(slot));
    tasks.spawn(async move {
        let end = tokio::select! {
            end = serve(&shared, &slot, conn, action) => end,
            () = closing.asked() => "control",
        };
        shared.connection_ended(&slot, number, end);
        drop((registered, place));
    });
}

/// Takes a connection out of the list when its task ends, however it ends.
struct Registered(Arc<Shared>, u64);

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.conns().remove(&self.1);
    }
}

/// Of so many connections of a mock the first bytes are kept.
const TAPED: u64 = 64;

/// Serves a connection as its accept script says; how it ended, for journal and metrics.
async fn serve(
    shared: &Arc<Shared>,
    slot: &Arc<Slot>,
    mut conn: Conn,
    action: AcceptAction,
) -> &'static str {
    match action {
        AcceptAction::Ok => {}
        AcceptAction::Fin => {
            cut_fin(conn).await;
            return "fin@accept";
        }
        AcceptAction::Rst => {
            finish_rst(conn).await;
            return "rst@accept";
        }
        AcceptAction::Stall => {
            shared.silent(&mut conn).await;
            finish_fin(conn).await;
            return "stall@accept";
        }
        _ => return hello::fail(shared, conn, action).await,
    }
    if let Some(spec) = &slot.spec.tcp {
        return tunnel::run(shared, spec, conn).await;
    }
    if slot.spec.certificate.is_some() {
        conn = match hello::secure(shared, slot, conn).await {
            Secured::Yes(conn) => conn,
            Secured::No(end) => return end,
        };
    }
    shared.tape(&mut conn);
    exchange::serve(shared, slot, conn).await
}

impl Shared {
    /// Numbers a connection just accepted, journals it, and tells what it meets.
    fn connection(&self, slot: &Slot) -> (u64, AcceptAction, u64) {
        let mut core = self.core();
        // Read inside the lock: times rise with the numbers.
        let now = self.clock.now();
        let n = core.accepted.entry(slot.index).or_default();
        *n += 1;
        let n = *n;
        let listeners = &core.scenario.listeners;
        let action = listeners
            .get(slot.index)
            .map_or(AcceptAction::Ok, |l| l.accept.action_for(n));
        core.connections += 1;
        let number = core.connections;
        core.journal.connected(Connection {
            seq: 0,
            kind: "connection",
            conn: number,
            listener: slot.name.to_string(),
            n,
            accept: action.to_string(),
            t_accept: now,
            tls: None,
            tls_error: None,
            requests: 0,
            raw: None,
            end: None,
            t_end: None,
        });
        drop(core);
        self.changed.send_replace(());
        (number, action, now)
    }

    /// Keeps the first bytes of a connection, if it is one of the first.
    fn tape(&self, conn: &mut Conn) {
        if self.raw_bytes == 0 || conn.number > TAPED {
            return;
        }
        let tape = Arc::new(Tape::new(self.raw_bytes));
        // What came with the handshake was read before.
        tape.receive(&conn.buf);
        conn.stream.tape(Arc::clone(&tape));
        let mut core = self.core();
        core.journal
            .disconnected(conn.number, |c| c.raw = Some(tape));
    }

    fn connection_ended(&self, slot: &Slot, number: u64, end: &'static str) {
        let now = self.clock.now();
        let mut core = self.core();
        let key = (slot.name.to_string(), end);
        *core.metrics.connections.entry(key).or_default() += 1;
        core.journal.disconnected(number, |c| {
            c.end = Some(end);
            c.t_end = Some(now);
        });
        drop(core);
        self.changed.send_replace(());
    }
}
