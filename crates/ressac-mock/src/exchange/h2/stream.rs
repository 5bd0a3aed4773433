//! One exchange on one stream.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::fields;
use super::frame;
use super::link::Link;
use crate::arrive::Arrival;
use crate::clock::nanos;
use crate::exchange::plan;
use crate::exchange::{Afterwards, Exchange, InFlight, Outgoing, Ready};
use crate::journal::{Flag, Wire};
use crate::reply::{Content, Mark};
use crate::state::Shared;
use crate::step::{Cut, Expect, Reply};
use crate::wire::{BodyInfo, Peer, RequestHead, Woken, at};

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
pub(super) struct Client(pub(super) watch::Receiver<bool>);

impl Peer for Client {
    async fn wait(
        &mut self,
        until: Option<Instant>,
        reset: &mut watch::Receiver<u64>,
        generation: u64,
        mut closed: impl FnMut() + Send,
    ) -> Woken {
        tokio::select! {
            biased;
            _ = reset.wait_for(|g| *g != generation) => Woken::Cancelled,
            () = at(until) => Woken::Due,
            // A stream that was reset is over, whatever is still to come.
            _ = self.0.wait_for(|gone| *gone) => {
                closed();
                Woken::PeerReset
            }
        }
    }
}

/// A stream that is being served.
pub(super) struct Serving<'a> {
    pub(super) exchange: Exchange<'a>,
    pub(super) link: &'a Link,
    pub(super) id: u32,
    pub(super) previous: u32,
    pub(super) client: Client,
    pub(super) in_flight: &'a InFlight<'a>,
    /// Body bytes sent, and the moment before the last write.
    pub(super) written: (u64, u64),
    /// Whether the request's body may still come.
    pub(super) open: bool,
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
        let exchange = Exchange::new(&shared, &head, &arrival);
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

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
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
    pub(super) async fn cancelled(&mut self) -> Afterwards {
        let wire = self.exchange.broken_off();
        self.exchange.ended(wire);
        if wire == Wire::Cancelled {
            let cancel = frame::rst_stream(self.id, 8);
            // A client that is not there needs no word of it.
            let _ = self.link.write(&cancel).await;
        }
        Afterwards::Nothing
    }

    pub(super) fn gone(&self) -> Afterwards {
        self.exchange
            .ended_with(Wire::PeerClosed, Some(self.written));
        Afterwards::Nothing
    }

    pub(super) async fn interim(&mut self, status: u16) -> io::Result<()> {
        let block = fields::reply(status, &[]);
        self.write(&frame::headers(self.id, &block, false)).await
    }
}

/// What follows a head that expects a 100.
enum Go {
    Read,
    /// A final reply at once; with this status, or with the step's.
    Final(Option<u16>),
    Stop,
}
