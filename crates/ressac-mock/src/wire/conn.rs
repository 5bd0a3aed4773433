//! One connection: a socket, what was read ahead, and waits that notice the peer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::closing::Closing;
use super::end::end_now;
use super::head::{HeadError, RequestHead};
use super::pace::Pace;
use super::peer::{Peer, Woken, at};
use super::socket::small_buffer;
use super::stream::Stream;
use crate::journal::TlsInfo;

/// The longest silence inside a request, and the longest wait for a peer that does not read.
pub(crate) const IO_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes read ahead while a reply is withheld.
const READ_AHEAD: usize = 64 * 1024;

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    pub(crate) buf: BytesMut,
    /// Its number, in order of `accept`.
    pub(crate) number: u64,
    pub(crate) t_accept: u64,
    pub(crate) tls: Option<Arc<TlsInfo>>,
    /// How many bytes of the buffer came as early data of TLS.
    pub(crate) early: usize,
    pub(crate) closing: Option<Arc<Closing>>,
    /// How fast a body may be read, where that has a bound.
    pub(crate) pace: Option<Pace>,
}

/// What came instead of, or before, a head.
#[derive(Debug)]
pub(crate) enum NoHead {
    /// The peer closed between requests.
    Closed,
    /// Nothing came for as long as the connection may be idle.
    Idle,
    /// The peer closed, or fell silent, inside a head.
    Incomplete,
    /// Bytes that are no HTTP.
    Bad(HeadError),
}

impl Conn {
    pub(crate) fn new(stream: TcpStream, number: u64, t_accept: u64) -> Self {
        Self {
            stream: Stream::Plain(stream),
            buf: BytesMut::new(),
            number,
            t_accept,
            tls: None,
            early: 0,
            closing: None,
            pace: None,
        }
    }

    /// Reads a head; `first` is called when its first byte is there. Whether the head came as
    /// early data is told beside it.
    pub(crate) async fn read_head(
        &mut self,
        idle: Option<Duration>,
        mut first: impl FnMut(),
    ) -> Result<(RequestHead, bool), NoHead> {
        let until = idle.map(|t| Instant::now() + t);
        let mut begun = false;
        loop {
            // Empty lines before a request are skipped (RFC 9112, 2.2).
            while self.buf.starts_with(b"\r\n") {
                self.buf.advance(2);
            }
            if !self.buf.is_empty() {
                if !begun {
                    first();
                    begun = true;
                }
                let before = self.buf.len();
                match RequestHead::parse(&mut self.buf) {
                    Ok(Some(head)) => {
                        let early = self.early > 0;
                        self.early = self.early.saturating_sub(before - self.buf.len());
                        return Ok((head, early));
                    }
                    Ok(None) => {}
                    Err(e) => return Err(NoHead::Bad(e)),
                }
            }
            let read = self.stream.read_buf(&mut self.buf);
            let got = match (begun, until) {
                // An idle connection may stay idle: closing it unasked would be a fault.
                (false, None) => read.await,
                (false, Some(t)) => match tokio::time::timeout_at(t, read).await {
                    Ok(r) => r,
                    Err(_) => return Err(NoHead::Idle),
                },
                (true, _) => match tokio::time::timeout(IO_TIMEOUT, read).await {
                    Ok(r) => r,
                    Err(_) => return Err(NoHead::Incomplete),
                },
            };
            match got {
                Ok(n) if n > 0 => {}
                _ if begun => return Err(NoHead::Incomplete),
                _ => return Err(NoHead::Closed),
            }
        }
    }

    /// Reads more bytes into the buffer; 0 at the end of the stream.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        let room = match &mut self.pace {
            Some(pace) => pace.room().await,
            None => usize::MAX,
        };
        let mut buf = (&mut self.buf).limit(room);
        let read = self.stream.read_buf(&mut buf);
        let n = match tokio::time::timeout(IO_TIMEOUT, read).await {
            Ok(r) => r?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        if let Some(pace) = &mut self.pace {
            pace.took(n);
        }
        Ok(n)
    }

    /// Lets the peer send little ahead, so that a large body really blocks.
    pub(crate) fn shrink_buffer(&self) {
        if let Some(tcp) = self.stream.tcp() {
            small_buffer(SockRef::from(tcp));
        }
    }

    /// Writes all bytes and counts those the socket took.
    pub(crate) async fn write(&mut self, mut bytes: &[u8], count: &mut u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = match tokio::time::timeout(IO_TIMEOUT, self.stream.write(bytes)).await {
                Ok(Ok(0)) | Err(_) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(Ok(n)) => n,
                Ok(Err(e)) => return Err(e),
            };
            bytes = &bytes[n..];
            *count += n as u64;
        }
        if self.stream.is_tls() {
            return match tokio::time::timeout(IO_TIMEOUT, self.stream.flush()).await {
                Ok(r) => r,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
        }
        Ok(())
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        if let Some(closing) = &self.closing {
            closing.set_busy(busy);
        }
    }

    /// Resolves when the peer has closed or reset; what it sends meanwhile is read ahead.
    async fn peer_gone(&mut self) -> Woken {
        while self.buf.len() < READ_AHEAD {
            match self.stream.read_buf(&mut self.buf).await {
                Ok(0) => return Woken::PeerClosed,
                Ok(_) => {}
                Err(_) => return Woken::PeerReset,
            }
        }
        std::future::pending().await
    }
}

impl Peer for Conn {
    async fn wait(
        &mut self,
        until: Option<Instant>,
        reset: &mut watch::Receiver<u64>,
        generation: u64,
        mut closed: impl FnMut() + Send,
    ) -> Woken {
        let timer = at(until);
        let cancelled = reset.wait_for(|g| *g != generation);
        tokio::pin!(timer, cancelled);
        let mut watching = true;
        loop {
            tokio::select! {
                biased;
                _ = &mut cancelled => return Woken::Cancelled,
                () = &mut timer => return Woken::Due,
                gone = self.peer_gone(), if watching => {
                    closed();
                    match (gone, until) {
                        (Woken::PeerClosed, Some(_)) => watching = false,
                        _ => return gone,
                    }
                }
            }
        }
    }
}

impl Drop for Conn {
    /// A connection that is ended from outside is ended the way that was asked for.
    fn drop(&mut self) {
        if let Some(cut) = self.closing.as_ref().and_then(|c| c.how()) {
            end_now(std::mem::replace(&mut self.stream, Stream::Gone), cut);
        }
    }
}
