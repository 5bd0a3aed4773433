//! The control API, on its own listener that never fails on purpose.

mod answer;
mod calls;
mod journal;
mod listeners;
mod query;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::state::{Shared, ended};
use crate::wire::{BodyError, Conn, NoHead, RequestHead, finish_fin};
use answer::Answer;
pub(crate) use calls::{Ports, ports_json};

/// One call, and the bytes of its answer.
#[cfg(feature = "fuzzing")]
pub(crate) fn call(ctx: &Context, head: &RequestHead, body: &[u8]) -> Vec<u8> {
    calls::answer(ctx, head, body).bytes(true).to_vec()
}

/// The largest body of a call: a scenario.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The most connections at a time.
const MAX_CONNECTIONS: usize = 64;

/// What a call is answered from.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ports: Ports,
    /// What a caller must show, where the API is open to others.
    pub(crate) token: Option<String>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the token.
        f.debug_struct("Context").finish_non_exhaustive()
    }
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
            head = conn.read_head(None, || {}) => head,
        };
        let next = match head {
            Ok((head, _)) => answer_here(&ctx, conn, &head).await,
            Err(NoHead::Bad(e)) => write(conn, &Answer::problem(400, &e.0), false).await,
            Err(_) => return,
        };
        match next {
            Some(kept) => conn = kept,
            None => return,
        }
    }
}

/// Answers one call on a connection; the connection, if it is kept alive.
pub(crate) async fn answer_here(ctx: &Context, mut conn: Conn, head: &RequestHead) -> Option<Conn> {
    let keep = !head.wants_close();
    if !allowed(ctx, head) {
        let detail = "this call needs `Authorization: Bearer` and the control token";
        return write(conn, &Answer::problem(401, detail), false).await;
    }
    if head.expects_continue()
        && conn
            .write(b"HTTP/1.1 100 Continue\r\n\r\n", &mut 0)
            .await
            .is_err()
    {
        return None;
    }
    match body(&mut conn, head).await {
        Ok(_) if head.method == "GET" && head.path() == "/__ressac/v1/journal/stream" => {
            journal::stream(ctx, conn, head).await;
            None
        }
        Ok(body) => write(conn, &calls::answer(ctx, head, &body), keep).await,
        Err(answer) => write(conn, &answer, false).await,
    }
}

/// Whether a call shows the token, where one is needed. Compared without an early end, so that the
/// time taken tells nothing.
fn allowed(ctx: &Context, head: &RequestHead) -> bool {
    let Some(token) = &ctx.token else {
        return true;
    };
    let shown = head
        .header("authorization")
        .and_then(|v| v.strip_prefix("Bearer "))
        .unwrap_or_default()
        .trim();
    let same = |acc: u8, (a, b): (u8, u8)| acc | (a ^ b);
    shown.len() == token.len() && shown.bytes().zip(token.bytes()).fold(0, same) == 0
}

async fn write(mut conn: Conn, answer: &Answer, keep: bool) -> Option<Conn> {
    let bytes = answer.bytes(keep);
    if conn.write(&bytes, &mut 0).await.is_err() {
        return None;
    }
    if !keep {
        finish_fin(conn).await;
        return None;
    }
    Some(conn)
}

async fn body(conn: &mut Conn, head: &RequestHead) -> Result<Bytes, Answer> {
    match conn.read_body(head.body, MAX_BODY + 1).await {
        Ok(info) if info.len <= MAX_BODY as u64 => Ok(info.head),
        Ok(_) => Err(Answer::problem(413, "a call has at most 4 MiB")),
        Err(BodyError::Bad(why)) => Err(Answer::problem(400, why)),
        Err(BodyError::Incomplete) => Err(Answer::problem(400, "the body ended early")),
    }
}

/// Opens the listener of the control API.
pub(crate) async fn open(addr: SocketAddr) -> std::io::Result<(SocketAddr, TcpListener)> {
    let listener = TcpListener::bind(addr).await?;
    Ok((listener.local_addr()?, listener))
}
