//! The socket of a connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::tape::Tape;

/// A socket, with TLS on it or without.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// One of those two, whose first bytes are kept.
    Taped(Box<Self>, Arc<Tape>),
    /// Taken away to be ended.
    Gone,
}

impl Stream {
    /// The socket below.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(s) => Some(s),
            Self::Tls(s) => Some(s.get_ref().0),
            Self::Taped(s, _) => s.tcp(),
            Self::Gone => None,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        match self {
            Self::Tls(_) => true,
            Self::Taped(s, _) => s.is_tls(),
            Self::Plain(_) | Self::Gone => false,
        }
    }

    /// Keeps the first bytes from here on.
    pub(crate) fn tape(&mut self, tape: Arc<Tape>) {
        let plain = std::mem::replace(self, Self::Gone);
        *self = Self::Taped(Box::new(plain), tape);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_read(cx, buf),
            Self::Tls(s) => Pin::new(s).poll_read(cx, buf),
            Self::Taped(s, tape) => {
                let before = buf.filled().len();
                let read = Pin::new(&mut **s).poll_read(cx, buf);
                tape.receive(&buf.filled()[before..]);
                read
            }
            Self::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_write(cx, buf),
            Self::Tls(s) => Pin::new(s).poll_write(cx, buf),
            Self::Taped(s, tape) => {
                let written = Pin::new(&mut **s).poll_write(cx, buf);
                if let Poll::Ready(Ok(n)) = &written {
                    tape.send(&buf[..*n]);
                }
                written
            }
            Self::Gone => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_flush(cx),
            Self::Tls(s) => Pin::new(s).poll_flush(cx),
            Self::Taped(s, _) => Pin::new(&mut **s).poll_flush(cx),
            Self::Gone => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Self::Tls(s) => Pin::new(s).poll_shutdown(cx),
            Self::Taped(s, _) => Pin::new(&mut **s).poll_shutdown(cx),
            Self::Gone => Poll::Ready(Ok(())),
        }
    }
}
