//! What a client sends: frames taken in, requests begun.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use loona_hpack::Decoder;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::fields::{self, FieldError};
use super::frame::{self, Frame, FrameError, PREFACE};
use super::link::{ConnEnd, Link};
use super::stream::{Finished, Request};
use crate::arrive::Origin;
use crate::exchange::{Afterwards, KEEP_BODY};
use crate::journal::{Kind, TlsInfo};
use crate::state::Shared;
use crate::step::Cut;
use crate::wire::{BodyInfo, Conn, MAX_BODY, MAX_HEAD, RequestHead, Sink};

/// The most streams at a time.
const MAX_STREAMS: u32 = 1000;

/// Why a connection ends.
pub(super) enum Stop {
    /// The client closed, reset, or cannot be reached.
    Peer,
    /// It broke the rules.
    Broken(FrameError),
    /// A step asked for it.
    Asked(ConnEnd),
    /// It was idle for as long as it may be.
    Idle(Cut),
}

pub(super) struct Reader {
    shared: Arc<Shared>,
    listener: Arc<str>,
    number: u64,
    t_accept: u64,
    tls: Option<Arc<TlsInfo>>,
    link: Arc<Link>,
    buf: BytesMut,
    /// How many bytes of the buffer came as early data.
    early: usize,
    /// When the bytes read last came.
    t_read: u64,
    decoder: Decoder<'static>,
    /// A block of header fields that is not whole yet.
    block: Option<Block>,
    streams: HashMap<u32, Incoming>,
    last: u32,
    /// Whether the preface was read.
    begun: bool,
}

struct Block {
    stream: u32,
    end: bool,
    bytes: BytesMut,
    t_first: u64,
    early: bool,
}

/// A request whose body may still come.
struct Incoming {
    sink: Option<Sink>,
    body: Option<oneshot::Sender<Result<BodyInfo, u64>>>,
    gone: watch::Sender<bool>,
    /// Whether the client's window is left to run out.
    unread: bool,
}

impl Reader {
    pub(super) fn new(
        shared: &Arc<Shared>,
        listener: &str,
        conn: &mut Conn,
        link: Arc<Link>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            listener: listener.into(),
            number: conn.number,
            t_accept: conn.t_accept,
            tls: conn.tls.clone(),
            link,
            buf: conn.buf.split(),
            early: conn.early,
            t_read: shared.clock.now(),
            decoder: fields::decoder(),
            block: None,
            streams: HashMap::new(),
            last: 0,
            begun: false,
        }
    }

    /// Says what we take.
    pub(super) async fn begin(&self) -> io::Result<()> {
        let head = u32::try_from(MAX_HEAD).unwrap_or(u32::MAX);
        self.link
            .write(&frame::own_settings(MAX_STREAMS, head))
            .await
    }

    pub(super) fn buf(&mut self) -> &mut BytesMut {
        &mut self.buf
    }

    /// More bytes were read.
    pub(super) fn read(&mut self) {
        self.t_read = self.shared.clock.now();
    }

    /// The last stream that was taken in.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// The exchange of a stream is over.
    pub(super) fn closed(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    /// The connection is gone.
    pub(super) fn all_gone(&mut self) {
        for (_, s) in self.streams.drain() {
            s.gone.send_replace(true);
            if let (Some(body), Some(sink)) = (s.body, s.sink) {
                // Nobody waits for it where the exchange is over.
                let _ = body.send(Err(sink.len()));
            }
        }
    }

    /// Takes one frame in; `false` if more bytes are needed.
    pub(super) async fn next(
        &mut self,
        tasks: &mut JoinSet<Finished>,
        after: Afterwards,
    ) -> Result<bool, Stop> {
        if !self.begun && !self.preface()? {
            return Ok(false);
        }
        let before = self.buf.len();
        let early = self.early > 0;
        let got = match Frame::parse(&mut self.buf) {
            Ok(got) => got,
            Err(e) => return Err(self.broken(e)),
        };
        self.early = self.early.saturating_sub(before - self.buf.len());
        let Some(got) = got else {
            return Ok(false);
        };
        self.take(got, early, tasks, after).await?;
        Ok(true)
    }

    /// Takes the preface off; `false` if it is not whole.
    fn preface(&mut self) -> Result<bool, Stop> {
        let seen = self.buf.len().min(PREFACE.len());
        if self.buf[..seen] != PREFACE[..seen] {
            return Err(self.broken(FrameError(1, "no preface of HTTP/2")));
        }
        if seen < PREFACE.len() {
            return Ok(false);
        }
        self.buf.advance(PREFACE.len());
        self.early = self.early.saturating_sub(PREFACE.len());
        self.begun = true;
        Ok(true)
    }

    fn broken(&self, e: FrameError) -> Stop {
        let origin = self.origin(0, self.t_read, false);
        self.shared.note_broken(Kind::BadRequest, &origin);
        Stop::Broken(e)
    }

    fn origin(&self, stream: u32, t_first: u64, early: bool) -> Origin<'_> {
        Origin {
            conn: self.number,
            stream: (stream > 0).then_some(stream),
            listener: &self.listener,
            t_accept: self.t_accept,
            t_first,
            tls: self.tls.as_ref(),
            early,
        }
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), Stop> {
        self.link.write(bytes).await.map_err(|_| Stop::Peer)
    }

    async fn take(
        &mut self,
        got: Frame,
        early: bool,
        tasks: &mut JoinSet<Finished>,
        after: Afterwards,
    ) -> Result<(), Stop> {
        let inside = matches!(got, Frame::Continuation { .. });
        if inside != self.block.is_some() {
            let why = FrameError(1, "a block of fields that is interrupted");
            return Err(self.broken(why));
        }
        match got {
            Frame::Data {
                stream,
                end,
                data,
                counted,
            } => self.data(stream, end, &data, counted).await,
            Frame::Headers {
                stream,
                end,
                block,
                whole,
            } => {
                let known = self.streams.contains_key(&stream);
                if !known && (stream <= self.last || stream.is_multiple_of(2)) {
                    return Err(self.broken(FrameError(1, "a stream that cannot be opened")));
                }
                self.block = Some(Block {
                    stream,
                    end,
                    bytes: BytesMut::from(&block[..]),
                    t_first: self.t_read,
                    early,
                });
                self.fields(whole, tasks, after).await
            }
            Frame::Continuation {
                stream,
                block,
                whole,
            } => {
                match &mut self.block {
                    Some(b) if b.stream == stream => b.bytes.extend_from_slice(&block),
                    _ => {
                        let why = FrameError(1, "a block of fields of another stream");
                        return Err(self.broken(why));
                    }
                }
                self.fields(whole, tasks, after).await
            }
            Frame::Reset { stream } => {
                if let Some(s) = self.streams.get(&stream) {
                    s.gone.send_replace(true);
                    self.link.closed(stream);
                }
                Ok(())
            }
            Frame::Settings { ack: true, .. } | Frame::Ping { ack: true, .. } => Ok(()),
            Frame::Settings { values, .. } => self.settings(&values).await,
            Frame::Ping { data, .. } => self.write(&frame::ping_ack(data)).await,
            Frame::WindowUpdate { stream, by } => match self.link.grow(stream, by) {
                true => Ok(()),
                false => Err(self.broken(FrameError(3, "a window larger than 2^31 - 1"))),
            },
            Frame::Goaway | Frame::Other => Ok(()),
        }
    }

    async fn settings(&mut self, values: &[(u16, u32)]) -> Result<(), Stop> {
        for (name, value) in values {
            // SETTINGS_INITIAL_WINDOW_SIZE; the others ask nothing of us.
            if *name == 4 && !self.link.set_initial(*value) {
                return Err(self.broken(FrameError(3, "a window larger than 2^31 - 1")));
            }
        }
        self.write(&frame::settings_ack()).await
    }

    async fn data(
        &mut self,
        stream: u32,
        end: bool,
        data: &[u8],
        counted: u32,
    ) -> Result<(), Stop> {
        if counted > 0 {
            self.write(&frame::window_update(0, counted)).await?;
        }
        if stream > self.last {
            return Err(self.broken(FrameError(1, "data of a stream that was never opened")));
        }
        let Some(incoming) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        let mut too_large = false;
        if let Some(sink) = &mut incoming.sink {
            sink.take(data);
            too_large = sink.len() > MAX_BODY;
        }
        if end || too_large {
            let sink = incoming.sink.take().filter(|_| !too_large);
            if let (Some(body), Some(sink)) = (incoming.body.take(), sink) {
                // Nobody waits for it where the exchange is over.
                let _ = body.send(Ok(sink.done()));
            }
        }
        if too_large {
            // The exchange finds its body gone.
            return self.write(&frame::rst_stream(stream, 11)).await;
        }
        if !end && counted > 0 && !incoming.unread {
            self.write(&frame::window_update(stream, counted)).await?;
        }
        Ok(())
    }

    /// A block of fields grew; a whole one is a request, or the trailers of one.
    async fn fields(
        &mut self,
        whole: bool,
        tasks: &mut JoinSet<Finished>,
        after: Afterwards,
    ) -> Result<(), Stop> {
        let size = self.block.as_ref().map_or(0, |b| b.bytes.len());
        if size > MAX_HEAD {
            return Err(self.broken(FrameError(11, "a head larger than 64 KiB")));
        }
        if !whole {
            return Ok(());
        }
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let head = fields::request(&mut self.decoder, &block.bytes, !block.end);
        if self.streams.contains_key(&block.stream) {
            // Trailers: decoded for the table's sake, and the end of the body.
            return match head {
                Err(FieldError::Compression(_)) => {
                    Err(self.broken(FrameError(9, "fields that cannot be decoded")))
                }
                _ => self.data(block.stream, true, &[], 0).await,
            };
        }
        let previous = std::mem::replace(&mut self.last, block.stream);
        match head {
            Ok(_) if self.streams.len() >= MAX_STREAMS as usize => {
                self.write(&frame::rst_stream(block.stream, 7)).await
            }
            Ok(head) => {
                self.request(head, &block, previous, tasks, after);
                Ok(())
            }
            Err(FieldError::Compression(_)) => {
                Err(self.broken(FrameError(9, "fields that cannot be decoded")))
            }
            Err(FieldError::Malformed(_)) => {
                let origin = self.origin(block.stream, block.t_first, block.early);
                self.shared.note_broken(Kind::BadRequest, &origin);
                self.write(&frame::rst_stream(block.stream, 1)).await
            }
        }
    }

    /// Numbers a request and serves it beside the others.
    fn request(
        &mut self,
        head: RequestHead,
        block: &Block,
        previous: u32,
        tasks: &mut JoinSet<Finished>,
        after: Afterwards,
    ) {
        let origin = self.origin(block.stream, block.t_first, block.early);
        let race = match after {
            Afterwards::Race(cut) => Some(cut),
            _ => None,
        };
        let arrival = match race {
            Some(_) => self.shared.arrive_raced(&head, &origin),
            None => self.shared.arrive(&head, &origin),
        };
        let passes = arrival.passes();
        let keep = match passes {
            true => usize::try_from(MAX_BODY).unwrap_or(usize::MAX),
            false => KEEP_BODY,
        };
        let (body, incoming) = oneshot::channel();
        let (gone, is_gone) = watch::channel(false);
        let unread = arrival.leaves_unread();
        self.link.open(block.stream);
        self.streams.insert(
            block.stream,
            Incoming {
                sink: (!block.end).then(|| Sink::new(keep)),
                body: (!block.end).then_some(body),
                gone,
                unread,
            },
        );
        let request = Request {
            shared: Arc::clone(&self.shared),
            link: Arc::clone(&self.link),
            id: block.stream,
            previous,
            head,
            arrival,
            race,
            body: incoming,
            gone: is_gone,
        };
        tasks.spawn(request.serve());
    }
}
