//! HTTP/2: one connection, its frames in, its streams side by side.

mod ends;
mod fields;
mod frame;
mod link;
mod reader;
mod reply;
mod stream;

use std::sync::Arc;

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Afterwards;
use crate::journal::Wire;
use crate::state::Shared;
use crate::step::Cut;
use crate::wire::{Closing, Conn, Stream, cut_fin, finish_fin, finish_rst};
use frame::PREFACE;
use link::{ConnEnd, Link};
use reader::{Reader, Stop};
use stream::Finished;

/// Whether a client without TLS begins with the preface of HTTP/2. Where HTTP/1 is not spoken,
/// it has to.
pub(super) async fn begins(conn: &mut Conn, http1: bool) -> bool {
    if !http1 {
        return true;
    }
    loop {
        let seen = conn.buf.len().min(PREFACE.len());
        if conn.buf[..seen] != PREFACE[..seen] {
            return false;
        }
        if seen == PREFACE.len() {
            return true;
        }
        // An idle connection may stay idle before its first byte too.
        let read = conn.stream.read_buf(&mut conn.buf);
        let got = match seen {
            0 => read.await,
            _ => match tokio::time::timeout(crate::wire::IO_TIMEOUT, read).await {
                Ok(got) => got,
                Err(_) => return false,
            },
        };
        if !matches!(got, Ok(n) if n > 0) {
            return false;
        }
    }
}

/// A connection that is being served.
struct Connection {
    read: ReadHalf<Stream>,
    reader: Reader,
    link: Arc<Link>,
    asked: mpsc::UnboundedReceiver<ConnEnd>,
    tasks: JoinSet<Finished>,
    after: Afterwards,
    closing: Option<Arc<Closing>>,
}

/// Serves a connection until it ends, and says how, for the metrics.
pub(super) async fn serve(shared: &Arc<Shared>, listener: &str, mut conn: Conn) -> &'static str {
    let stream = std::mem::replace(&mut conn.stream, Stream::Gone);
    let (read, write) = tokio::io::split(stream);
    let (link, asked) = Link::new(write);
    let link = Arc::new(link);
    let mut served = Connection {
        read,
        reader: Reader::new(shared, listener, &mut conn, Arc::clone(&link)),
        link,
        asked,
        tasks: JoinSet::new(),
        after: Afterwards::Nothing,
        closing: conn.closing.clone(),
    };
    let stop = served.run().await;
    served.finish(shared, conn, stop).await
}

impl Connection {
    async fn run(&mut self) -> Stop {
        if self.reader.begin().await.is_err() {
            return Stop::Peer;
        }
        loop {
            let busy = !self.tasks.is_empty();
            if let Some(closing) = &self.closing {
                closing.set_busy(busy);
            }
            loop {
                match self.reader.next(&mut self.tasks, self.after).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(stop) => return stop,
                }
            }
            let idle = match self.after {
                Afterwards::Idle(cut, t) if self.tasks.is_empty() => Some((cut, t)),
                _ => None,
            };
            let time = idle.map_or(std::time::Duration::ZERO, |i| i.1);
            tokio::select! {
                biased;
                Some(end) = self.asked.recv() => return Stop::Asked(end),
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Ok(done) = done {
                        self.link.closed(done.id);
                        self.reader.closed(done.id);
                        // A race waits for the next request; an idle time is that of the last one.
                        if !matches!(self.after, Afterwards::Race(_)) {
                            self.after = done.after;
                        }
                    }
                }
                () = tokio::time::sleep(time), if idle.is_some() => {
                    return Stop::Idle(idle.map_or(Cut::Fin, |i| i.0));
                }
                got = self.read.read_buf(self.reader.buf()) => match got {
                    Ok(n) if n > 0 => self.reader.read(),
                    _ => return Stop::Peer,
                }
            }
        }
    }

    /// Carries the end out, and says how it was.
    async fn finish(mut self, shared: &Arc<Shared>, mut conn: Conn, stop: Stop) -> &'static str {
        if let Stop::Peer = stop {
            // Who waits is told, and journals it.
            self.reader.all_gone();
            let rest = async { while self.tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), rest).await;
        }
        if let Stop::Broken(e) = &stop {
            let _ = self
                .link
                .write(&frame::goaway(self.reader.last(), e.0))
                .await;
        }
        if let Stop::Asked(end) = &stop
            && end.cut == Cut::Fin
        {
            super::journal_end(shared, end.place, end.wire, end.written);
        }
        self.tasks.shutdown().await;
        drop(self.reader);
        // The tasks held the only other references.
        let Some(link) = Arc::into_inner(self.link) else {
            return "broken";
        };
        conn.stream = self.read.unsplit(link.into_writer());
        match stop {
            Stop::Peer => "peer",
            Stop::Broken(_) => {
                finish_fin(conn).await;
                "bad-request"
            }
            Stop::Idle(Cut::Fin) => {
                finish_fin(conn).await;
                "idle"
            }
            Stop::Idle(Cut::Rst) => {
                finish_rst(conn).await;
                "idle-rst"
            }
            Stop::Asked(end) => {
                match (end.cut, end.orderly) {
                    (Cut::Fin, true) => finish_fin(conn).await,
                    (Cut::Fin, false) => cut_fin(conn).await,
                    (Cut::Rst, _) => {
                        let certain = finish_rst(conn).await;
                        let wire = if certain { end.wire } else { Wire::Uncertain };
                        super::journal_end(shared, end.place, wire, end.written);
                    }
                }
                end.label
            }
        }
    }
}

/// Parses frames one after another, and decodes the fields of each.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_frames(bytes: &[u8]) -> usize {
    let mut buf = bytes::BytesMut::from(bytes);
    let mut decoder = fields::decoder();
    let mut count = 0;
    while let Ok(Some(got)) = frame::Frame::parse(&mut buf) {
        count += 1;
        if let frame::Frame::Headers { block, end, .. } = got {
            // A request or refused; either is fine.
            let _ = fields::request(&mut decoder, &block, !end);
        }
    }
    count
}
