//! One connection: a socket, what was read ahead, and waits that notice the peer.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::head::{HeadError, RequestHead};

/// The longest silence inside a request, and the longest wait for a peer that does not read.
pub(super) const IO_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: TcpStream,
    pub(super) buf: BytesMut,
    /// Its number, in order of `accept`.
    pub(crate) number: u64,
    pub(crate) t_accept: u64,
}

/// What came instead of, or before, a head.
#[derive(Debug)]
pub(crate) enum NoHead {
    /// The peer closed between requests.
    Closed,
    /// The peer closed, or fell silent, inside a head.
    Incomplete,
    /// Bytes that are no HTTP.
    Bad(HeadError),
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Its time had come.
    Due,
    /// The mock was reset.
    Cancelled,
    /// The peer closed its side. Only told once nothing is left to wait for.
    PeerClosed,
    /// The peer reset the connection.
    PeerReset,
}

impl Conn {
    pub(crate) fn new(stream: TcpStream, number: u64, t_accept: u64) -> Self {
        Self {
            stream,
            buf: BytesMut::new(),
            number,
            t_accept,
        }
    }

    /// Reads a head; `first` is called when its first byte is there.
    pub(crate) async fn read_head(
        &mut self,
        mut first: impl FnMut(),
    ) -> Result<RequestHead, NoHead> {
        let mut begun = false;
        loop {
            // Empty lines before a request are skipped (RFC 9112, 2.2).
            while self.buf.starts_with(b"\r\n") {
                bytes::Buf::advance(&mut self.buf, 2);
            }
            if !self.buf.is_empty() {
                if !begun {
                    first();
                    begun = true;
                }
                match RequestHead::parse(&mut self.buf) {
                    Ok(Some(head)) => return Ok(head),
                    Ok(None) => {}
                    Err(e) => return Err(NoHead::Bad(e)),
                }
            }
            let read = self.stream.read_buf(&mut self.buf);
            let got = match begun {
                // An idle connection may stay idle: closing it unasked would be a fault.
                false => read.await,
                true => match tokio::time::timeout(IO_TIMEOUT, read).await {
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
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        match tokio::time::timeout(IO_TIMEOUT, self.stream.read_buf(&mut self.buf)).await {
            Ok(r) => r,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
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
        Ok(())
    }

    /// Waits until a moment (`None`: for ever), a reset of the mock, or the end of the peer.
    ///
    /// A peer that only closes its sending side may still read, so with a moment to come the wait
    /// goes on; `closed` is called when that is seen.
    pub(crate) async fn wait(
        &self,
        until: Option<Instant>,
        reset: &mut watch::Receiver<u64>,
        generation: u64,
        mut closed: impl FnMut(),
    ) -> Woken {
        let timer = async {
            match until {
                Some(t) => tokio::time::sleep_until(t).await,
                None => std::future::pending().await,
            }
        };
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

    /// Resolves when the peer has closed or reset; stays pending while bytes lie unread.
    async fn peer_gone(&self) -> Woken {
        match self.stream.peek(&mut [0]).await {
            Ok(0) => Woken::PeerClosed,
            Ok(_) => std::future::pending().await,
            Err(_) => Woken::PeerReset,
        }
    }
}
