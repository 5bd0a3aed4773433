//! The accept loop of one listener, which also opens and closes the port for `down`.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::conn::Conn;
use super::socket::Port;
use crate::exchange;
use crate::state::{Shared, ended};

/// Accepts until the mock shuts down; then every connection is closed.
pub(crate) async fn run(shared: Arc<Shared>, name: Arc<str>, port: Port, listener: TcpListener) {
    let mut listener = Some(listener);
    let mut tasks = JoinSet::new();
    let mut shutdown = shared.shutdown.subscribe();
    let mut moved = shared.clocks_moved.subscribe();
    loop {
        let (down, edge) = down_state(&shared);
        if down {
            listener = None;
        } else if listener.is_none() {
            match port.listen() {
                Ok(l) => listener = Some(l),
                Err(e) => {
                    tracing::warn!(listener = %name, error = %e, "cannot listen again, will retry");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            }
        }
        tokio::select! {
            () = ended(&mut shutdown) => break,
            _ = moved.changed() => {}
            () = until(&shared, edge) => {}
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            got = accept(listener.as_ref()) => match got {
                Ok(stream) => admit(&shared, &name, stream, &mut tasks),
                Err(e) => {
                    // Out of descriptors, most likely: some connection must end first.
                    tracing::warn!(listener = %name, error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
    drop(listener);
    tasks.shutdown().await;
}

fn down_state(shared: &Shared) -> (bool, Option<u64>) {
    let core = shared.core();
    if !core.scenario.has_down() {
        return (false, None);
    }
    core.clocks.down(&core.scenario.outages, shared.clock.now())
}

async fn until(shared: &Shared, edge: Option<u64>) {
    match edge {
        Some(ns) => tokio::time::sleep_until(shared.clock.instant(ns)).await,
        None => std::future::pending().await,
    }
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<TcpStream> {
    match listener {
        Some(l) => Ok(l.accept().await?.0),
        None => std::future::pending().await,
    }
}

fn admit(shared: &Arc<Shared>, name: &Arc<str>, stream: TcpStream, tasks: &mut JoinSet<()>) {
    let conn = Conn::new(stream, shared.next_connection(), shared.clock.now());
    let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else {
        // Too many connections: this one is reset, as by a partner that is full.
        let _ = conn.stream.set_zero_linger();
        shared.count_connection(name, "limit");
        return;
    };
    let _ = conn.stream.set_nodelay(true);
    let (shared, name) = (Arc::clone(shared), Arc::clone(name));
    tasks.spawn(async move {
        let end = exchange::serve(&shared, &name, conn).await;
        shared.count_connection(&name, end);
        drop(slot);
    });
}
