//! The client: one call, one attempt.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::Instant;

use crate::config::{ClientConfig, ConfigError};
use crate::connect::Dialler;
use crate::failure::Failure;
use crate::pool::Pool;
use crate::reply::Reply;
use crate::shared::Shared;

/// The longest time limit of an attempt: a day. A clock cannot count to any `Duration`.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// An HTTP client that makes one attempt and says what it knows about it. It follows no redirect,
/// reads no proxy variable, keeps no cookie, and retries nothing that was sent (but for an
/// expectation that was refused: [`ExpectContinue`](crate::ExpectContinue)).
///
/// It speaks HTTP/1.1, and HTTP/2 where a partner chooses it in the TLS handshake; see
/// [`Version`](crate::Version) for more or less of it. A clone shares the connections. Dropping
/// the future of [`send`](Self::send) resets its stream over HTTP/2, and closes the connection it
/// used over HTTP/1.1.
///
/// ```
/// use std::time::Duration;
/// use bytes::Bytes;
/// use ressac_http::{Client, ClientConfig, FailureKind, Sent};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A port that nobody listens on.
/// let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
///
/// let client = Client::new(ClientConfig::default())?;
/// let request = http::Request::post(format!("http://127.0.0.1:{port}/orders"))
///     .header("Idempotency-Key", "0197")
///     .body(Bytes::from_static(b"{}"))?;
/// let failure = client.send(request, Duration::from_secs(10)).await.unwrap_err();
/// assert_eq!(failure.kind, FailureKind::Refused);
/// assert_eq!(failure.sent, Sent::NotSent);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: ClientConfig,
    pub(crate) dialler: Dialler,
    /// Connections of HTTP/1.1 that wait for their next request.
    pub(crate) pool: Arc<Pool>,
    /// Connections of HTTP/2.
    pub(crate) shared: Arc<Shared>,
}

impl Client {
    /// A client with these settings. Reads the platform's certificate authorities, which takes
    /// some milliseconds: build one and clone it.
    ///
    /// # Errors
    ///
    /// A setting that cannot work, or PEM text that is none. Missing platform authorities are no
    /// error here, so that plain `http` works without them; `https` then fails as
    /// [`FailureKind::Invalid`](crate::FailureKind::Invalid).
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        let dialler = Dialler::new(&config)?;
        let pool = Arc::new(Pool::new(config.idle_timeout, config.max_idle_per_host));
        let shared_for = match config.max_idle_per_host {
            0 => Duration::ZERO,
            _ => config.idle_timeout,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                dialler,
                pool,
                shared: Arc::new(Shared::new(shared_for)),
            }),
        })
    }

    /// Makes one attempt, which ends within `timeout` (at most a day) from name lookup to the
    /// last byte of the body. Needs a running Tokio runtime with time and I/O.
    ///
    /// A pooled connection that turns out dead with nothing sent is replaced by a fresh one,
    /// once, within the same attempt.
    ///
    /// # Errors
    ///
    /// No whole reply came; [`Failure::sent`] says what that proves. A reply of any status is no
    /// failure here.
    pub async fn send(&self, request: Request<Bytes>, timeout: Duration) -> Result<Reply, Failure> {
        let start = Instant::now();
        let deadline = start + timeout.min(LONGEST);
        let mut outcome = self.inner.attempt(request, deadline).await;
        if let Ok(reply) = &mut outcome {
            reply.elapsed = start.elapsed();
        }
        if let Err(failure) = &mut outcome {
            failure.elapsed = start.elapsed();
            tracing::debug!(
                kind = %failure.kind,
                sent = failure.sent.as_str(),
                bytes_written = failure.bytes_written,
                "attempt failed: {failure}"
            );
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::attempt::Line;
    use crate::failure::{FailureKind, Sent};
    use crate::http1;
    use crate::target::{Origin, Prepared};

    async fn fresh(client: &Client, origin: &Origin, deadline: Instant) -> http1::Connection {
        match client.inner.open(origin, deadline).await.unwrap() {
            Line::Own(own) => own,
            Line::Shared(_) => panic!("cleartext is HTTP/1.1"),
        }
    }

    /// VR-6: the connection passed every check and died before the request was on it.
    #[tokio::test]
    async fn vr_6_a_request_handed_back_unsent_goes_out_once_on_a_fresh_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let request = Request::post(url).body(Bytes::from_static(b"x")).unwrap();
        let prepared = Prepared::new(request).unwrap();
        let client = Client::new(ClientConfig::default()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);

        let dying = fresh(&client, &prepared.origin, deadline).await;
        drop(listener.accept().await.unwrap());
        dying.ended().await;

        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n\r\nx") {
                assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0);
            }
            socket
                .write_all(b"HTTP/1.1 204 Done\r\n\r\n")
                .await
                .unwrap();
        });
        let Prepared { origin, request } = prepared;
        let reply = client
            .inner
            .send_over(Some(Line::Own(dying)), &origin, request, deadline)
            .await
            .unwrap();
        assert_eq!(reply.status, 204);
        assert!(!reply.reused_connection);
        served.await.unwrap();
    }

    /// VR-6: of many connections that died in the pool, one may cost an attempt.
    #[tokio::test]
    async fn vr_6_what_waited_beside_a_connection_that_died_is_not_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = Client::new(ClientConfig::default()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let request = Request::get(&url).body(Bytes::new()).unwrap();
        let origin = Prepared::new(request.clone()).unwrap().origin;
        let mut sockets = Vec::new();
        for _ in 0..4 {
            let connection = fresh(&client, &origin, deadline).await;
            client.inner.pool.put(&origin, connection);
            sockets.push(listener.accept().await.unwrap().0);
        }
        // Each closes once it is used, as behind a partner that was started anew.
        for mut socket in sockets {
            tokio::spawn(async move { socket.read_u8().await });
        }
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0);
            }
            socket
                .write_all(b"HTTP/1.1 204 Done\r\n\r\n")
                .await
                .unwrap();
        });
        let limit = Duration::from_secs(20);
        let failure = client.send(request.clone(), limit).await.unwrap_err();
        assert_eq!(failure.sent, Sent::MaybeProcessed);
        let reply = client.send(request, limit).await.unwrap();
        assert_eq!(reply.status, 204);
        assert!(!reply.reused_connection);
        served.await.unwrap();
    }

    /// The fresh connection gets no second chance: what it says is the outcome.
    #[tokio::test]
    async fn a_fresh_connection_that_dies_unsent_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let request = Request::post(url).body(Bytes::from_static(b"x")).unwrap();
        let Prepared { origin, request } = Prepared::new(request).unwrap();
        let client = Client::new(ClientConfig::default()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);

        let dying = fresh(&client, &origin, deadline).await;
        drop(listener.accept().await.unwrap());
        dying.ended().await;
        let failure = client
            .inner
            .exchange(&origin, Line::Own(dying), request, deadline)
            .await
            .unwrap_err();
        assert_eq!(
            (failure.kind, failure.sent),
            (FailureKind::Eof, Sent::NotSent)
        );
        assert_eq!(failure.bytes_written, 0);
    }
}
