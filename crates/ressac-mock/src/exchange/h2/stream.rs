//! One exchange on one stream.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::fields;
use super::frame;
use super::link::{ConnEnd, Link};
use crate::arrive::Arrival;
use crate::clock::nanos;
use crate::exchange::plan;
use crate::exchange::shape::Shape;
use crate::exchange::{Afterwards, Exchange, InFlight, Outgoing, Ready};
use crate::journal::{Flag, Wire};
use crate::reply::{Content, Mark};
use crate::state::Shared;
use crate::step::{Cut, End, Expect, Framing, Goaway, H2Code, Point, Reply};
use crate::wire::{BodyInfo, Peer, RequestHead, Woken};

/// How long after the first GOAWAY the second one comes.
const GRACE: Duration = Duration::from_millis(100);
/// How long a body is left unread after an early reply.
const UNREAD: Duration = Duration::from_millis(300);
/// The last id of a GOAWAY that only announces the end.
const ANY_STREAM: u32 = 0x7fff_ffff;

/// A request and all it needs.
pub(super) struct Request {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Arc<Link>,
    pub(super) id: u32,
    /// The stream before it; 0 if it is the first.
    pub(super) previous: u32,
    pub(super) head: RequestHead,
    pub(super) arrival: Arrival,
    /// It meets the end of the connection.
    pub(super) race: Option<Cut>,
    pub(super) body: oneshot::Receiver<Result<BodyInfo, u64>>,
    pub(super) gone: watch::Receiver<bool>,
}

/// An exchange that is over.
pub(super) struct Finished {
    pub(super) id: u32,
    pub(super) after: Afterwards,
}

/// The client's side of a stream.
struct Client(watch::Receiver<bool>);

impl Peer for Client {
    async fn wait(
        &mut self,
        until: Option<Instant>,
        reset: &mut watch::Receiver<u64>,
        generation: u64,
        mut closed: impl FnMut() + Send,
    ) -> Woken {
        let timer = async {
            match until {
                Some(t) => tokio::time::sleep_until(t).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = reset.wait_for(|g| *g != generation) => Woken::Cancelled,
            () = timer => Woken::Due,
            // A stream that was reset is over, whatever is still to come.
            _ = self.0.wait_for(|gone| *gone) => {
                closed();
                Woken::PeerReset
            }
        }
    }
}

/// How far a reply came.
enum Sent {
    Done,
    /// Nobody takes more of it.
    Gone,
    Cancelled,
}

/// A stream that is being served.
struct Serving<'a> {
    exchange: Exchange<'a>,
    link: &'a Link,
    id: u32,
    previous: u32,
    client: Client,
    in_flight: &'a InFlight<'a>,
    /// Body bytes sent, and the moment before the last write.
    written: (u64, u64),
    /// Whether the request's body may still come.
    open: bool,
}

impl Request {
    pub(super) async fn serve(self) -> Finished {
        let Self {
            shared,
            link,
            id,
            previous,
            head,
            arrival,
            race,
            body,
            gone,
        } = self;
        let in_flight = InFlight::new(&shared, arrival.place);
        let exchange = Exchange {
            shared: &shared,
            head: &head,
            arrival: &arrival,
            reset: shared.generation.subscribe(),
        };
        let mut serving = Serving {
            exchange,
            link: &link,
            id,
            previous,
            client: Client(gone),
            in_flight: &in_flight,
            written: (0, shared.clock.now()),
            open: head.has_body(),
        };
        let after = match race {
            Some(cut) => {
                serving.exchange.begin_nothing();
                serving.end_connection(cut, false, Wire::Race, "race").await
            }
            None => serving.run(body).await,
        };
        Finished { id, after }
    }
}

impl Serving<'_> {
    /// Order: read as the end demands, barrier, effect, hold, interim, head, gap, body, end.
    async fn run(&mut self, body: oneshot::Receiver<Result<BodyInfo, u64>>) -> Afterwards {
        let (shared, head, arrival) = (
            self.exchange.shared,
            self.exchange.head,
            self.exchange.arrival,
        );
        let (reply, mark) = plan::reply(shared, head, arrival);
        let mut info = None;
        if !reply.ends_at_head() && !reply.early {
            match self.expect(&reply).await {
                Go::Read => {}
                Go::Final(status) => return self.unasked(&reply, &mark, status).await,
                Go::Stop => return self.cancelled().await,
            }
            info = match self.read(body).await {
                Some(info) => Some(info),
                None => return Afterwards::Nothing,
            };
        }
        let ready = self
            .exchange
            .prepare(&mut self.client, reply, &mark, info.as_ref())
            .await;
        match ready {
            Ready::Send(out) => self.send(out).await,
            Ready::Nothing(reply) => self.end_silently(&reply).await,
            Ready::Cancelled => self.cancelled().await,
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.1 = self.exchange.shared.clock.now();
        self.link.write(bytes).await
    }

    /// Answers `Expect: 100-continue`.
    async fn expect(&mut self, reply: &Reply) -> Go {
        if !self.exchange.head.expects_continue() {
            return Go::Read;
        }
        match reply.expect {
            Some(Expect::Never) => return Go::Read,
            Some(Expect::Fail) => return Go::Final(Some(417)),
            Some(Expect::Final) => return Go::Final(None),
            Some(Expect::Late(t)) => {
                if self.exchange.pause(&mut self.client, Some(nanos(t))).await != Woken::Due {
                    return Go::Stop;
                }
            }
            Some(Expect::Auto) | None => {}
        }
        let block = fields::reply(100, &[]);
        match self.write(&frame::headers(self.id, &block, false)).await {
            Ok(()) => Go::Read,
            Err(_) => Go::Stop,
        }
    }

    async fn unasked(&mut self, reply: &Reply, mark: &Mark, status: Option<u16>) -> Afterwards {
        let mut step = match status {
            Some(status) => Reply::status(status),
            None => reply.clone(),
        };
        (step.create, step.end) = (None, None);
        let content = Content::make(&step, mark);
        self.send(Outgoing {
            reply: Cow::Owned(step),
            content,
            replayed: false,
        })
        .await
    }

    /// Waits for the whole body; `None`: it never came, and that is journaled.
    async fn read(&mut self, body: oneshot::Receiver<Result<BodyInfo, u64>>) -> Option<BodyInfo> {
        if !self.exchange.head.has_body() {
            return Some(BodyInfo::empty());
        }
        let generation = self.exchange.arrival.generation;
        let mut reset = self.exchange.reset.clone();
        let got = tokio::select! {
            got = body => got.ok(),
            _ = self.client.0.wait_for(|gone| *gone) => None,
            _ = reset.wait_for(|g| *g != generation) => None,
        };
        match got {
            Some(Ok(info)) => {
                self.open = false;
                self.exchange.note_body(&info);
                Some(info)
            }
            other => {
                let len = match other {
                    Some(Err(len)) => len,
                    _ => 0,
                };
                let place = self.exchange.arrival.place;
                self.exchange.shared.note(place, |e| {
                    e.flags.push(Flag::Incomplete);
                    e.body_len = len;
                });
                crate::exchange::closed(self.exchange.shared, place);
                self.exchange.ended(Wire::PeerClosed);
                None
            }
        }
    }

    /// A wait ended by a reset of the mock or by the peer: nothing more is sent.
    async fn cancelled(&mut self) -> Afterwards {
        let wire = self.exchange.broken_off();
        self.exchange.ended(wire);
        if wire == Wire::Cancelled {
            let cancel = frame::rst_stream(self.id, 8);
            // A client that is not there needs no word of it.
            let _ = self.link.write(&cancel).await;
        }
        Afterwards::Nothing
    }

    fn gone(&self) -> Afterwards {
        self.exchange
            .ended_with(Wire::PeerClosed, Some(self.written));
        Afterwards::Nothing
    }

    async fn end_silently(&mut self, reply: &Reply) -> Afterwards {
        self.exchange.begin_nothing();
        if let Some(status) = reply.interim
            && self.interim(status).await.is_err()
        {
            return self.gone();
        }
        match reply.end {
            Some(End::At(cut, _)) => self.cut(cut).await,
            Some(End::RefusedStream) => self.reset(H2Code(7), Wire::RefusedStream).await,
            Some(End::RstStream(code, _)) => self.reset(code, Wire::RstStream).await,
            Some(End::Goaway(kind)) => {
                let last = match kind {
                    Goaway::Below => self.previous,
                    _ => self.id,
                };
                let code = reply.code.map_or(0, |c| c.0);
                if self.write(&frame::goaway(last, code)).await.is_err() {
                    return self.gone();
                }
                self.end_connection(Cut::Fin, true, Wire::Goaway, "goaway")
                    .await
            }
            _ => self.stall().await,
        }
    }

    async fn interim(&mut self, status: u16) -> io::Result<()> {
        let block = fields::reply(status, &[]);
        self.write(&frame::headers(self.id, &block, false)).await
    }

    async fn reset(&mut self, code: H2Code, wire: Wire) -> Afterwards {
        if self
            .write(&frame::rst_stream(self.id, code.0))
            .await
            .is_err()
        {
            return self.gone();
        }
        self.exchange.ended_with(wire, Some(self.written));
        Afterwards::Nothing
    }

    /// Takes the whole connection.
    async fn cut(&mut self, cut: Cut) -> Afterwards {
        match cut {
            Cut::Fin => self.end_connection(cut, false, Wire::Fin, "fin").await,
            Cut::Rst => self.end_connection(cut, false, Wire::Rst, "rst").await,
        }
    }

    async fn end_connection(
        &mut self,
        cut: Cut,
        orderly: bool,
        wire: Wire,
        label: &'static str,
    ) -> Afterwards {
        // The connection's task journals it, once it has happened.
        self.in_flight.left_to_others.store(true, Ordering::Relaxed);
        self.link
            .end(ConnEnd {
                cut,
                orderly,
                place: self.exchange.arrival.place,
                wire,
                written: Some(self.written),
                label,
            })
            .await
    }

    async fn stall(&mut self) -> Afterwards {
        self.exchange.ended_with(Wire::Stall, Some(self.written));
        self.exchange.pause(&mut self.client, None).await;
        // A stream must not stay open for ever once the mock was reset.
        let _ = self.link.write(&frame::rst_stream(self.id, 8)).await;
        Afterwards::Nothing
    }

    /// Sends a reply and ends the exchange as its step says.
    async fn send(&mut self, out: Outgoing<'_>) -> Afterwards {
        let reply = out.reply.as_ref();
        if let Some(n) = reply.garbage {
            return self.garbage(n).await;
        }
        if let Some(status) = reply.interim
            && self.interim(status).await.is_err()
        {
            return self.gone();
        }
        let shape = Shape::of(reply, &out.content, self.exchange.head.method == "HEAD");
        match self.write_reply(reply, &out, shape).await {
            Sent::Done => {}
            Sent::Gone => return self.gone(),
            Sent::Cancelled => return self.cancelled().await,
        }
        self.end(reply, shape).await
    }

    /// Whether the stream ends with the last byte that goes out.
    fn ends_stream(reply: &Reply, shape: Shape) -> bool {
        match reply.end {
            Some(End::EndStream) => true,
            Some(End::Stall | End::At(..) | End::RstStream(..)) => false,
            _ => !shape.broken,
        }
    }

    async fn write_reply(&mut self, reply: &Reply, out: &Outgoing<'_>, shape: Shape) -> Sent {
        let mut extra = Vec::new();
        if out.replayed {
            extra.push(("Idempotent-Replayed", "true"));
        }
        if let Some(l) = &self.exchange.arrival.limits {
            extra.push(("RateLimit-Policy", l.policy.as_str()));
            extra.push(("RateLimit", l.state.as_str()));
        }
        let lines = out.content.lines(shape.announced, &extra);
        let block = fields::reply(out.content.status, &lines);
        self.written = (0, self.exchange.begin(&out.content, lines));
        let ends = Self::ends_stream(reply, shape);
        let head = frame::headers(self.id, &block, ends && shape.bytes == 0);
        let written = match reply.drip_head {
            None => self.link.write(&head).await,
            Some(d) => self.link.dribble(&head, d.bytes as usize, d.every).await,
        };
        if written.is_err() {
            return Sent::Gone;
        }
        if shape.bytes == 0 {
            return Sent::Done;
        }
        match self.exchange.hold(&mut self.client, reply.gap).await {
            Woken::Due => self.write_body(reply, &out.content, shape, ends).await,
            _ => Sent::Cancelled,
        }
    }

    async fn write_body(
        &mut self,
        reply: &Reply,
        content: &Content,
        shape: Shape,
        ends: bool,
    ) -> Sent {
        let mut at = 0;
        while at < shape.bytes {
            let left = shape.bytes - at;
            let most = reply.drip.map_or(left, |d| left.min(u64::from(d.bytes)));
            let mut piece_left = most;
            // A window may be smaller than a piece.
            while piece_left > 0 {
                let room = match self.room(piece_left).await {
                    Ok(room) => room,
                    Err(sent) => return sent,
                };
                let bytes = content.body.piece(at, room);
                at += room as u64;
                piece_left -= room as u64;
                let end = ends && at == shape.bytes;
                let data = frame::data(self.id, &bytes, end);
                if self.write(&data).await.is_err() {
                    return Sent::Gone;
                }
                self.written.0 = at;
            }
            if let Some(drip) = reply.drip
                && at < shape.bytes
            {
                let every = Some(nanos(drip.every));
                if self.exchange.pause(&mut self.client, every).await != Woken::Due {
                    return Sent::Cancelled;
                }
            }
        }
        Sent::Done
    }

    /// Waits for the client's windows.
    async fn room(&mut self, most: u64) -> Result<usize, Sent> {
        let generation = self.exchange.arrival.generation;
        tokio::select! {
            biased;
            _ = self.client.0.wait_for(|gone| *gone) => {
                crate::exchange::closed(self.exchange.shared, self.exchange.arrival.place);
                Err(Sent::Gone)
            }
            room = self.link.take(self.id, most) => room.ok_or(Sent::Gone),
            _ = self.exchange.reset.wait_for(|g| *g != generation) => Err(Sent::Cancelled),
        }
    }

    async fn garbage(&mut self, n: u32) -> Afterwards {
        let bytes = crate::exchange::send::garbage(&self.exchange, n);
        self.exchange.begin_nothing();
        if self.write(&bytes).await.is_err() {
            return self.gone();
        }
        self.written.0 = u64::from(n);
        self.cut(Cut::Fin).await
    }

    /// The end of a reply that went out.
    async fn end(&mut self, reply: &Reply, shape: Shape) -> Afterwards {
        if reply.early {
            return self.early(reply).await;
        }
        match reply.end {
            Some(End::Stall) => return self.stall().await,
            Some(End::At(cut, _)) => return self.cut(cut).await,
            Some(End::RstStream(code, Point::Hdr | Point::Body(_))) => {
                return self.reset(code, Wire::RstStream).await;
            }
            Some(End::EndStream) => {
                self.exchange.ended_with(Wire::Complete, Some(self.written));
                return Afterwards::Nothing;
            }
            _ => {}
        }
        if let Some(cut) = shape.cut() {
            return self.cut(cut).await;
        }
        self.exchange.ended_with(Wire::Complete, Some(self.written));
        match reply.end {
            Some(End::Goaway(_) | End::Close) => self.graceful(reply).await,
            Some(End::QuietClose) => {
                self.end_connection(Cut::Fin, true, Wire::Complete, "fin")
                    .await
            }
            _ if reply.framing == Some(Framing::UntilClose) => {
                self.end_connection(Cut::Fin, true, Wire::Complete, "fin")
                    .await
            }
            Some(End::Idle(cut, t)) => Afterwards::Idle(cut, t),
            Some(End::Race(cut)) => Afterwards::Race(cut),
            _ => {
                self.stop_body().await;
                Afterwards::Nothing
            }
        }
    }

    /// A reply that came before the whole request: the rest of it is not wanted (RFC 9113, 8.1).
    async fn stop_body(&self) {
        if self.open {
            // A client that is not there sends nothing more either.
            let _ = self.link.write(&frame::rst_stream(self.id, 0)).await;
        }
    }

    async fn early(&mut self, reply: &Reply) -> Afterwards {
        self.exchange.ended_with(Wire::Complete, Some(self.written));
        if self
            .exchange
            .pause(&mut self.client, Some(nanos(UNREAD)))
            .await
            == Woken::Cancelled
        {
            return Afterwards::Nothing;
        }
        match reply.end {
            Some(End::At(Cut::Rst, _)) => {
                self.end_connection(Cut::Rst, false, Wire::Complete, "rst")
                    .await
            }
            Some(End::At(Cut::Fin, _) | End::QuietClose) => {
                self.end_connection(Cut::Fin, true, Wire::Complete, "fin")
                    .await
            }
            Some(End::Close) => self.graceful(reply).await,
            _ => {
                self.stop_body().await;
                Afterwards::Nothing
            }
        }
    }

    /// GOAWAY 2^31 - 1, later GOAWAY with this id, FIN (RFC 9113, 6.8).
    async fn graceful(&mut self, reply: &Reply) -> Afterwards {
        let code = reply.code.map_or(0, |c| c.0);
        if self
            .link
            .write(&frame::goaway(ANY_STREAM, code))
            .await
            .is_err()
        {
            return Afterwards::Nothing;
        }
        self.exchange.ended_with(Wire::Goaway, Some(self.written));
        // The stream is over: a client that closes it must not cut the grace short.
        tokio::time::sleep(GRACE).await;
        if self
            .link
            .write(&frame::goaway(self.id, code))
            .await
            .is_err()
        {
            return Afterwards::Nothing;
        }
        self.end_connection(Cut::Fin, true, Wire::Goaway, "goaway")
            .await
    }
}

/// What follows a head that expects a 100.
enum Go {
    Read,
    /// A final reply at once; with this status, or with the step's.
    Final(Option<u16>),
    Stop,
}
