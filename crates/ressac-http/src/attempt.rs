//! One attempt: over a connection that there is, or over a fresh one.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::answer::Answer;
use crate::client::{Inner, LONGEST};
use crate::config::Version;
use crate::connect::too_slow;
use crate::expect;
use crate::failure::{Failure, FailureKind, Sent};
use crate::reply::Reply;
use crate::shared::{Lease, Ticket};
use crate::target::{Origin, Prepared};
use crate::{http1, http2};

/// A connection to send one request over.
#[derive(Debug)]
pub(crate) enum Line {
    /// Its own.
    Own(http1::Connection),
    /// Shared with others.
    Shared(Lease),
}

impl Inner {
    /// A request whose expectation is refused goes out once more without it, where that is
    /// wanted: the 417 says that the partner did not begin (RFC 9110 §10.1.1).
    pub(crate) async fn attempt(
        &self,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let Prepared { origin, request } = Prepared::new(request)
            .map_err(|error| Failure::not_sent(FailureKind::Invalid, error.to_string()))?;
        let expecting = (self.config.expect.resend_on_417
            && expect::is_expected(request.headers()))
        .then(|| request.clone());
        let line = self.waiting(&origin).await;
        let reply = self.send_over(line, &origin, request, deadline).await?;
        match expecting {
            Some(request) if reply.status == StatusCode::EXPECTATION_FAILED => {
                tracing::debug!(%origin, "417: the request goes out without its expectation");
                let line = self.waiting(&origin).await;
                let request = expect::without(request);
                self.send_over(line, &origin, request, deadline).await
            }
            _ => Ok(reply),
        }
    }

    /// A connection that is there already.
    async fn waiting(&self, origin: &Origin) -> Option<Line> {
        if let Some(own) = self.pool.take(origin) {
            return Some(Line::Own(own));
        }
        let lease = self.shared.take(origin)?;
        if lease.is_alone() {
            lease.link.settle().await;
        }
        drop(lease);
        // What was unread may have been a GOAWAY.
        self.shared.take(origin).map(Line::Shared)
    }

    /// Sends over the waiting connection, and over a fresh one where there is none or it had died.
    pub(crate) async fn send_over(
        &self,
        waiting: Option<Line>,
        origin: &Origin,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        if let Some(waiting) = waiting {
            match self
                .exchange(origin, waiting, request.clone(), deadline)
                .await
            {
                Err(failure) if was_dead(&failure) => {
                    tracing::debug!(%origin, "a pooled connection had died, nothing was sent");
                }
                Ok(reply) => {
                    return Ok(Reply {
                        reused_connection: true,
                        ..reply
                    });
                }
                Err(failure) => {
                    if matches!(failure.kind, FailureKind::Reset | FailureKind::Eof) {
                        // Those beside it are as old, and each would cost a retry to find out.
                        self.pool.forget(origin);
                    }
                    return Err(failure);
                }
            }
        }
        let fresh = self.open(origin, deadline).await?;
        self.exchange(origin, fresh, request, deadline).await
    }

    /// A fresh connection; or one that somebody else has just opened, with room for others.
    pub(crate) async fn open(&self, origin: &Origin, deadline: Instant) -> Result<Line, Failure> {
        let limit = Instant::now() + self.config.connect_timeout.min(LONGEST);
        let limit = deadline.min(limit);
        match self.ticket(origin) {
            None => self.dial(origin, limit).await,
            Some(ticket) => match timeout_at(limit, ticket.turn()).await {
                Err(_) => Err(too_slow(origin, "connection")),
                Ok(Err(failure)) => Err(failure),
                Ok(Ok(turn)) => {
                    if let Some(lease) = self.shared.take(origin) {
                        return Ok(Line::Shared(lease));
                    }
                    let line = self.dial(origin, limit).await;
                    if let Err(failure) = &line {
                        turn.failed(failure);
                    }
                    line
                }
            },
        }
    }

    /// Needed where the connection may come to be shared.
    fn ticket(&self, origin: &Origin) -> Option<Ticket> {
        let shares = match self.config.version {
            Version::Auto => origin.tls,
            Version::Http1 => false,
            Version::Http2 => true,
        };
        shares.then(|| self.shared.ticket(origin)).flatten()
    }

    async fn dial(&self, origin: &Origin, limit: Instant) -> Result<Line, Failure> {
        let max_head = self.config.max_response_head;
        let dialled = self.dialler.connect(origin, limit).await?;
        if dialled.http2 {
            let opening = timeout_at(limit, http2::Connection::open(dialled, max_head)).await;
            let opened = opening.map_err(|_| too_slow(origin, "HTTP/2 connection"))??;
            return Ok(Line::Shared(self.shared.put(origin, opened)));
        }
        if self.config.version == Version::Auto && origin.tls {
            self.shared.speaks_http1(origin);
        }
        let opened = http1::Connection::open(dialled, max_head).await?;
        Ok(Line::Own(opened))
    }

    pub(crate) async fn exchange(
        &self,
        origin: &Origin,
        line: Line,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let (max_body, wait) = (self.config.max_response_body, self.config.expect.wait);
        match line {
            Line::Shared(lease) => {
                let answer = lease
                    .exchange(origin, request, max_body, wait, deadline)
                    .await?;
                Ok(reply(answer, lease.link.remote()))
            }
            Line::Own(own) => {
                let remote = own.remote;
                let (answer, own) = own.exchange(request, max_body, wait, deadline).await?;
                if let Some(own) = own {
                    self.pool.put(origin, own);
                }
                Ok(reply(answer, remote))
            }
        }
    }
}

fn reply(answer: Answer, remote: std::net::SocketAddr) -> Reply {
    let Answer {
        status,
        headers,
        body,
        body_limit_hit,
        sent_at,
        replied_at,
    } = answer;
    Reply {
        status,
        headers,
        body,
        body_limit_hit,
        reused_connection: false,
        elapsed: Duration::ZERO,
        sent_at,
        replied_at,
        remote,
    }
}

/// A failure that says nothing about the partner as it is now: the connection was dead, and not
/// a byte went out.
fn was_dead(failure: &Failure) -> bool {
    failure.sent == Sent::NotSent && failure.kind != FailureKind::Timeout
}
