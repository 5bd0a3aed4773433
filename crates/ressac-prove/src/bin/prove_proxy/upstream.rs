//! Connections to the upstream: one request, one reply, and what a failure proves.
//!
//! `ressac-http` gives replies whole, and a proxy passes them on as they come; so hyper's
//! connections are driven here.

use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use ressac_policy::{Outcome, OutcomeKind, Processed};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::body::Outgoing;

/// Connections kept for the next request.
const MOST_IDLE: usize = 16;
/// How long a connection may take to be ready again after a reply.
const READY: Duration = Duration::from_millis(20);

/// Where requests are sent on.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) authority: String,
    idle: Mutex<Vec<Link>>,
}

/// A connection. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Link {
    sender: SendRequest<Outgoing>,
    driver: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A reply whose body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: response::Parts,
    pub(crate) body: Incoming,
    pub(crate) link: Link,
}

impl Upstream {
    /// From `http://ADDRESS:PORT`.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let authority = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
            .filter(|authority| !authority.contains('/'))
            .ok_or_else(|| format!("`{url}` is no http://ADDRESS:PORT"))?;
        Ok(Self {
            authority: authority.to_owned(),
            idle: Mutex::default(),
        })
    }

    /// Sends it over a connection that is open, or a fresh one. A request that is handed back
    /// unsent has met a connection that had died, and goes out on a fresh one: no attempt was made.
    pub(crate) async fn send(&self, mut request: Request<Outgoing>) -> Result<Answer, Outcome> {
        while let Some(link) = self.take() {
            match exchange(link, request).await {
                Ok(answer) => return Ok(answer),
                Err((_, Some(unsent))) => request = *unsent,
                Err((outcome, None)) => {
                    // Those beside it are as old, and each would cost a retry to find out.
                    self.idle().clear();
                    return Err(outcome);
                }
            }
        }
        let link = self.open().await?;
        exchange(link, request)
            .await
            .map_err(|(outcome, unsent)| match unsent {
                Some(_) => outcome.proving(Processed::No),
                None => outcome,
            })
    }

    /// Keeps it for the next request.
    pub(crate) fn keep(&self, link: Link) {
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE && !link.sender.is_closed() {
            idle.push(link);
        }
    }

    fn take(&self) -> Option<Link> {
        self.idle().pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self) -> Result<Link, Outcome> {
        let refused = || Outcome::new(OutcomeKind::Refused).proving(Processed::No);
        let socket = TcpStream::connect(&self.authority)
            .await
            .map_err(|_| refused())?;
        let _ = socket.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(socket))
            .await
            .map_err(|_| refused())?;
        let driver = tokio::spawn(async move {
            // Its error reaches the sender, where there is a request to answer for.
            let _ = connection.await;
        });
        Ok(Link {
            sender,
            driver: driver.abort_handle(),
        })
    }
}

/// A failure, and the request where not a byte of it was sent.
type Failed = (Outcome, Option<Box<Request<Outgoing>>>);

async fn exchange(mut link: Link, request: Request<Outgoing>) -> Result<Answer, Failed> {
    let ready = timeout(READY, link.sender.ready()).await;
    if !matches!(ready, Ok(Ok(()))) {
        return Err((Outcome::new(OutcomeKind::Eof), Some(Box::new(request))));
    }
    match link.sender.try_send_request(request).await {
        Ok(reply) => {
            let (head, body) = reply.into_parts();
            Ok(Answer { head, body, link })
        }
        Err(mut failed) => {
            let unsent = failed.take_message().map(Box::new);
            Err((Outcome::new(kind(&failed.into_error())), unsent))
        }
    }
}

/// How a connection ended before the reply's head was there. What is no HTTP counts as an end.
fn kind(error: &hyper::Error) -> OutcomeKind {
    if error.is_incomplete_message() || error.is_parse() {
        return OutcomeKind::Eof;
    }
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::UnexpectedEof
        {
            return OutcomeKind::Eof;
        }
        next = error.source();
    }
    OutcomeKind::Reset
}
