//! The socket, with a count of what was given to it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::failure::FailureKind;
use crate::tls;

/// A TCP socket that counts the bytes it took for sending. A clone is the same socket: one reads
/// and writes, the other watches.
///
/// The count lies under TLS: zero then proves that nothing was sent, while rustls may hold bytes
/// back that its own writer has taken.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    socket: Arc<TcpStream>,
    written: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    refusal: Arc<OnceLock<FailureKind>>,
}

/// What the kernel holds of a connection that nobody has asked for yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unread {
    /// Nothing, and it is open.
    Nothing,
    /// Bytes.
    Bytes,
    /// Its end.
    End,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self {
            socket: Arc::new(socket),
            written: Arc::default(),
            received: Arc::default(),
            refusal: Arc::default(),
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Bytes that came in so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// The refusal that TLS ended with, where it did: HTTP/2 passes on no more than its text.
    pub(crate) fn refusal(&self) -> Option<FailureKind> {
        self.refusal.get().copied()
    }

    /// What there is to read, asked of the kernel itself: the runtime may not have heard yet of
    /// an end that is already here.
    pub(crate) fn unread(&self) -> Unread {
        let mut byte = [MaybeUninit::uninit()];
        match SockRef::from(&*self.socket).peek(&mut byte) {
            Ok(0) => Unread::End,
            Ok(_) => Unread::Bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Unread::Nothing,
            Err(_) => Unread::End,
        }
    }

    fn count(&self, taken: usize) {
        self.written.fetch_add(taken as u64, Ordering::AcqRel);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            match self.socket.try_read(buf.initialize_unfilled()) {
                Ok(read) => {
                    self.received.fetch_add(read as u64, Ordering::AcqRel);
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            match self.socket.try_write_vectored(bufs) {
                Ok(taken) => {
                    self.count(taken);
                    return Poll::Ready(Ok(taken));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.socket).shutdown(Shutdown::Write))
    }
}

/// A connection as HTTP sees it.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(Wire),
    Tls(Box<TlsStream<Wire>>),
}

impl Transport {
    /// The protocol that was agreed on by ALPN.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire).poll_read(cx, buf),
            Self::Tls(stream) => {
                let read = ready!(Pin::new(&mut **stream).poll_read(cx, buf));
                if let Err(error) = &read
                    && let Some(kind) = tls::refusal(error)
                {
                    // The first one counts.
                    let _ = stream.get_ref().0.refusal.set(kind);
                }
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(wire) => wire.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
