//! What the streams of one connection share: the socket's writing half, windows, the end.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};
use tokio::time::timeout;

use super::frame::MAX_FRAME;
use crate::journal::Wire;
use crate::step::Cut;
use crate::wire::{IO_TIMEOUT, Stream};

/// The window of a stream and of a connection before anything is agreed (RFC 9113, 6.9.2).
const WINDOW: i64 = 65_535;
/// The largest window.
const MAX_WINDOW: i64 = 0x7fff_ffff;

/// The end of a connection that a step asks for.
#[derive(Debug)]
pub(super) struct ConnEnd {
    pub(super) cut: Cut,
    /// Whether the end is announced over TLS: an orderly one is, a cut is not.
    pub(super) orderly: bool,
    /// The entry whose end this is, and what has been written of its reply.
    pub(super) place: u64,
    pub(super) wire: Wire,
    pub(super) written: Option<(u64, u64)>,
    /// What the connection's entry says.
    pub(super) label: &'static str,
}

pub(super) struct Link {
    writer: AsyncMutex<WriteHalf<Stream>>,
    flow: Mutex<Flow>,
    moved: watch::Sender<()>,
    ends: mpsc::UnboundedSender<ConnEnd>,
}

struct Flow {
    connection: i64,
    initial: i64,
    streams: HashMap<u32, i64>,
}

impl Link {
    pub(super) fn new(writer: WriteHalf<Stream>) -> (Self, mpsc::UnboundedReceiver<ConnEnd>) {
        let (ends, asked) = mpsc::unbounded_channel();
        let flow = Flow {
            connection: WINDOW,
            initial: WINDOW,
            streams: HashMap::new(),
        };
        let link = Self {
            writer: AsyncMutex::new(writer),
            flow: Mutex::new(flow),
            moved: watch::Sender::new(()),
            ends,
        };
        (link, asked)
    }

    pub(super) fn into_writer(self) -> WriteHalf<Stream> {
        self.writer.into_inner()
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes whole frames. Never dropped half-way: that would break the others' frames.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let write = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        timeout(IO_TIMEOUT, write)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes in pieces, and lets nobody write between them.
    pub(super) async fn dribble(
        &self,
        bytes: &[u8],
        size: usize,
        every: Duration,
    ) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        for (i, piece) in bytes.chunks(size.max(1)).enumerate() {
            if i > 0 {
                tokio::time::sleep(every).await;
            }
            let write = async {
                writer.write_all(piece).await?;
                writer.flush().await
            };
            timeout(IO_TIMEOUT, write)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        }
        Ok(())
    }

    /// Asks for the end of the connection, and never returns: the stream ends with it.
    pub(super) async fn end(&self, end: ConnEnd) -> ! {
        // The receiver lives as long as the connection.
        let _ = self.ends.send(end);
        loop {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn open(&self, stream: u32) {
        let mut flow = self.flow();
        let initial = flow.initial;
        flow.streams.insert(stream, initial);
    }

    pub(super) fn closed(&self, stream: u32) {
        self.flow().streams.remove(&stream);
        self.moved.send_replace(());
    }

    /// Grows a window (stream 0: that of the connection). `false` if it grows past all bounds.
    pub(super) fn grow(&self, stream: u32, by: u32) -> bool {
        let mut flow = self.flow();
        let slot = match stream {
            0 => Some(&mut flow.connection),
            id => flow.streams.get_mut(&id),
        };
        let fits = match slot {
            Some(window) => {
                *window += i64::from(by);
                *window <= MAX_WINDOW
            }
            // Of a stream that has ended.
            None => true,
        };
        drop(flow);
        self.moved.send_replace(());
        fits
    }

    /// The client changed the window that streams begin with.
    pub(super) fn set_initial(&self, size: u32) -> bool {
        let mut flow = self.flow();
        let change = i64::from(size) - flow.initial;
        flow.initial = i64::from(size);
        flow.streams.values_mut().for_each(|w| *w += change);
        let fits = flow.initial <= MAX_WINDOW;
        drop(flow);
        self.moved.send_replace(());
        fits
    }

    /// Waits until bytes of a stream may be sent, and takes at most so many of its windows. `None`:
    /// the stream has ended.
    pub(super) async fn take(&self, stream: u32, most: u64) -> Option<usize> {
        let mut moved = self.moved.subscribe();
        loop {
            moved.mark_unchanged();
            {
                let mut flow = self.flow();
                let own = *flow.streams.get(&stream)?;
                let most = i64::try_from(most.min(MAX_FRAME as u64)).unwrap_or(0);
                let n = own.min(flow.connection).min(most);
                if n > 0 {
                    flow.connection -= n;
                    flow.streams.insert(stream, own - n);
                    return usize::try_from(n).ok();
                }
            }
            // The sender lives in `self`.
            let _ = moved.changed().await;
        }
    }
}
