//! The control API, on its own listener that never fails on purpose.

mod answer;
mod calls;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::state::{Shared, ended};
use crate::wire::{BodyError, Conn, RequestHead, finish_fin};
use answer::Answer;
pub(crate) use calls::ports_json;

/// The largest body of a call: a scenario.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The most connections at a time.
const MAX_CONNECTIONS: usize = 64;

/// What a call is answered from.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// Name and address of each listener.
    pub(crate) listeners: Vec<(String, SocketAddr)>,
    pub(crate) addr: SocketAddr,
}

/// Serves calls until the mock shuts down.
pub(crate) async fn run(ctx: Arc<Context>, listener: TcpListener) {
    let mut tasks = JoinSet::new();
    let mut shutdown = ctx.shared.shutdown.subscribe();
    loop {
        tokio::select! {
            () = ended(&mut shutdown) => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            got = listener.accept(), if tasks.len() < MAX_CONNECTIONS => match got {
                Ok((stream, _)) => {
                    tasks.spawn(serve(Arc::clone(&ctx), stream));
                }
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            },
        }
    }
    drop(listener);
    // A call that asked for the end is still to be answered.
    let grace = std::time::Duration::from_millis(200);
    let _ = tokio::time::timeout(grace, async { while tasks.join_next().await.is_some() {} }).await;
    tasks.shutdown().await;
}

async fn serve(ctx: Arc<Context>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut conn = Conn::new(stream, 0, 0);
    let mut shutdown = ctx.shared.shutdown.subscribe();
    loop {
        let head = tokio::select! {
            () = ended(&mut shutdown) => return,
            head = conn.read_head(|| {}) => head,
        };
        let (answer, keep) = match head {
            Ok(head) => {
                let keep = !head.wants_close();
                match body(&mut conn, &head).await {
                    Ok(body) => (calls::answer(&ctx, &head, &body), keep),
                    Err(answer) => (answer, false),
                }
            }
            Err(crate::wire::NoHead::Bad(e)) => (Answer::problem(400, &e.0), false),
            Err(_) => return,
        };
        let bytes = answer.bytes(keep);
        if conn.write(&bytes, &mut 0).await.is_err() {
            return;
        }
        if !keep {
            return finish_fin(conn).await;
        }
    }
}

async fn body(conn: &mut Conn, head: &RequestHead) -> Result<bytes::Bytes, Answer> {
    match conn.read_body(head.body, MAX_BODY + 1).await {
        Ok(info) if info.len <= MAX_BODY as u64 => Ok(info.head),
        Ok(_) => Err(Answer::problem(413, "a call has at most 4 MiB")),
        Err(BodyError::Bad(why)) => Err(Answer::problem(400, why)),
        Err(BodyError::Incomplete) => Err(Answer::problem(400, "the body ended early")),
    }
}

/// Opens the listener of the control API.
pub(crate) async fn open(
    shared: &Arc<Shared>,
    listeners: &[(String, SocketAddr)],
    addr: SocketAddr,
) -> std::io::Result<(Arc<Context>, TcpListener)> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    let listeners = listeners.to_vec();
    Ok((
        Arc::new(Context {
            shared: Arc::clone(shared),
            listeners,
            addr,
        }),
        listener,
    ))
}
