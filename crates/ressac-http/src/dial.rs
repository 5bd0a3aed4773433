//! Connections for callers that speak HTTP themselves, and what their ends prove.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::client::LONGEST;
use crate::config::{ClientConfig, ConfigError};
use crate::connect::{Dialled, Dialler};
use crate::failure::{Failure, FailureKind};
use crate::http1;
use crate::target::Origin;
use crate::tls;
use crate::wire::Wire;

impl Dialler {
    /// With the addresses, the trust, the identity and the version of `config`; its limits are
    /// those of a [`Client`](crate::Client) and do not count here.
    ///
    /// # Errors
    ///
    /// Those of [`Client::new`](crate::Client::new).
    pub fn new(config: &ClientConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            policy: config.address_policy.clone(),
            tls: tls::connector(&config.tls, config.version)?,
            version: config.version,
            resolver: Arc::default(),
        })
    }

    /// A connection to the scheme, host and port of `url`, whose name lookup, TCP connect and TLS
    /// handshake end within `limit` (at most a day). Needs a running Tokio runtime with time and
    /// I/O.
    ///
    /// # Errors
    ///
    /// There is no connection. Nothing of a request was sent: [`Sent::NotSent`], whatever the kind.
    ///
    /// [`Sent::NotSent`]: crate::Sent::NotSent
    pub async fn dial(&self, url: &Uri, limit: Duration) -> Result<Dialled, Failure> {
        let origin = Origin::of(url)
            .map_err(|error| Failure::not_sent(FailureKind::Invalid, error.to_string()))?;
        let deadline = Instant::now() + limit.min(LONGEST);
        self.connect(&origin, deadline).await
    }
}

impl Dialled {
    /// Whether HTTP/2 is to be spoken on it: chosen in the TLS handshake, or known beforehand.
    pub fn is_http2(&self) -> bool {
        self.http2
    }

    /// The address it leads to.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// An eye on the socket, for when the connection is in other hands.
    pub fn watch(&self) -> Watch {
        Watch(self.wire.clone())
    }
}

impl AsyncRead for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buf)
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}

/// What a connection's socket saw, below TLS.
#[derive(Clone, Debug)]
pub struct Watch(Wire);

impl Watch {
    /// Bytes that the socket took for sending. No more since a request was handed over, on a
    /// connection that is closed, proves that nothing of it was sent.
    pub fn written(&self) -> u64 {
        self.0.written()
    }
}

impl Failure {
    /// What `error` of an HTTP/1.1 connection proves, before the reply's head was there: nothing,
    /// unless TLS ended with a refusal. `answered` is whether an earlier reply had come over the
    /// connection; such a refusal is then none of the handshake.
    ///
    /// Nobody counted bytes for it: who has the request back unsent, or a [`Watch`] on the
    /// connection, may know more.
    pub fn of_http1(error: &hyper::Error, answered: bool) -> Self {
        let (kind, what) = http1::classify(error, answered);
        let message = format!("{what}: {}", http1::chain(error));
        Self::new(kind, http1::proof(kind), message)
    }
}
