//! One exchange: read, meet the step, reply, end.
//!
//! What is the same on HTTP/1 and HTTP/2 stands here: the order of a step up to the first byte of
//! its reply, and what is journaled. `h1` and `h2` read requests and write replies.

mod early;
mod effect;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod h1;
mod h2;
mod plan;
mod resource;
mod send;
mod shape;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::watch;

use crate::arrive::{Arrival, Plan};
use crate::barrier::Joined;
use crate::clock::nanos;
use crate::journal::{Flag, Sent, Wire, hex};
use crate::reply::{Content, Mark};
use crate::state::Shared;
use crate::step::{Cut, Hold, Reply};
use crate::wire::{BodyInfo, Conn, Peer, RequestHead, Slot, Woken};
use effect::Made;

/// How much of a body the journal keeps.
const KEEP_BODY: usize = 64 * 1024;

/// Serves a connection until it ends, and says how, for the metrics.
pub(crate) async fn serve(shared: &Arc<Shared>, slot: &Slot, mut conn: Conn) -> &'static str {
    let alpn = conn.tls.as_ref().and_then(|t| t.alpn.as_deref());
    let http2 = match alpn {
        Some(name) => name == "h2",
        None => slot.spec.http2 && h2::begins(&mut conn, slot.spec.http1).await,
    };
    match http2 {
        true => h2::serve(shared, &slot.name, conn).await,
        false => h1::serve(shared, slot, conn).await,
    }
}

#[cfg(feature = "fuzzing")]
pub(crate) use h2::fuzz_frames;

/// What a connection that is kept alive meets next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The next request.
    Nothing,
    /// The end, once it was idle for so long.
    Idle(Cut, std::time::Duration),
    /// The end instead of the next reply.
    Race(Cut),
}

/// Counts down when an exchange ends, however it ends; one that was broken off is journaled so.
struct InFlight<'a> {
    shared: &'a Shared,
    place: u64,
    /// Whether somebody else journals the end.
    left_to_others: AtomicBool,
}

impl<'a> InFlight<'a> {
    fn new(shared: &'a Shared, place: u64) -> Self {
        Self {
            shared,
            place,
            left_to_others: AtomicBool::new(false),
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut core = self.shared.core();
        core.metrics.in_flight = core.metrics.in_flight.saturating_sub(1);
        if *self.left_to_others.get_mut() {
            return;
        }
        core.journal.update(self.place, |e| {
            if e.t_reply_after.is_none() {
                e.t_reply_after = Some(now);
                e.sent.get_or_insert_with(|| unsent(Wire::Cancelled)).wire = Wire::Cancelled;
            }
        });
    }
}

fn unsent(wire: Wire) -> Sent {
    Sent {
        status: None,
        headers: Vec::new(),
        body_bytes: 0,
        wire,
    }
}

pub(crate) struct Exchange<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) head: &'a RequestHead,
    pub(crate) arrival: &'a Arrival,
    pub(crate) reset: watch::Receiver<u64>,
}

/// What is to be sent.
struct Outgoing<'r> {
    reply: Cow<'r, Reply>,
    content: Content,
    replayed: bool,
}

/// What a step came to, before the first byte of its reply.
enum Ready<'r> {
    Send(Outgoing<'r>),
    /// No final reply; the effect has happened.
    Nothing(Cow<'r, Reply>),
    /// The mock was reset, or the peer went away.
    Cancelled,
}

impl<'a> Exchange<'a> {
    fn new(shared: &'a Arc<Shared>, head: &'a RequestHead, arrival: &'a Arrival) -> Self {
        Self {
            shared,
            head,
            arrival,
            reset: shared.generation.subscribe(),
        }
    }

    /// Order: barrier, effect, hold. The request was read as the end demands.
    async fn prepare<'r>(
        &mut self,
        peer: &mut impl Peer,
        reply: Cow<'r, Reply>,
        mark: &Mark,
        body: Option<&BodyInfo>,
    ) -> Ready<'r> {
        if self.barrier(peer, &reply).await != Woken::Due {
            return Ready::Cancelled;
        }
        if let (
            Plan::Resource {
                route,
                id: Some(id),
            },
            Some(body),
        ) = (&self.arrival.plan, body)
        {
            self.change(route, id, body);
        }
        let made = match (reply.create, body) {
            (Some(create), Some(body)) => self.effect(&reply, create, mark.clone(), body).await,
            _ if reply.pass => self.pass(&reply, body).await,
            _ => Ok(Made::Nothing),
        };
        let stored = match made {
            Err(_) => return Ready::Cancelled,
            // A refusal of the store is no step of the script: it goes out whole and at once.
            Ok(Made::Refused(content)) => {
                return Ready::Send(Outgoing {
                    reply: Cow::Owned(Reply::default()),
                    content,
                    replayed: false,
                });
            }
            Ok(Made::Fresh(content)) => Some((content, false)),
            Ok(Made::Replay(content)) => Some((content, true)),
            Ok(Made::Nothing) => None,
        };
        if self.hold(peer, reply.hold).await != Woken::Due {
            return Ready::Cancelled;
        }
        if reply.sends_nothing() {
            return Ready::Nothing(reply);
        }
        let (content, replayed) = match stored {
            Some(stored) => stored,
            None => (Content::make(&reply, mark), false),
        };
        Ready::Send(Outgoing {
            reply,
            content,
            replayed,
        })
    }

    /// Journals a body that was read.
    fn note_body(&self, info: &BodyInfo) {
        let now = self.shared.clock.now();
        self.shared.note(self.arrival.place, |e| {
            e.t_req_end = Some(now);
            e.body_len = info.len;
            e.body_sha256 = Some(hex(&info.sha256));
            e.body_head = info.head.slice(..info.head.len().min(KEEP_BODY));
        });
    }

    /// How much of a body is kept: all of it, where it is passed on.
    fn keep(reply: &Reply) -> usize {
        match reply.pass {
            true => usize::try_from(crate::wire::MAX_BODY).unwrap_or(usize::MAX),
            false => KEEP_BODY,
        }
    }

    /// Waits at the barrier of the step, if it has one.
    async fn barrier(&mut self, peer: &mut impl Peer, reply: &Reply) -> Woken {
        let Some(barrier) = reply.barrier else {
            return Woken::Due;
        };
        let joined = {
            let mut core = self.shared.core();
            if core.generation != self.arrival.generation {
                return Woken::Cancelled;
            }
            core.barriers.join(self.arrival.plan.place(), barrier)
        };
        let waiting = match joined {
            Joined::Last => {
                self.released();
                return Woken::Due;
            }
            Joined::Wait(waiting) => waiting,
        };
        let mut released = waiting.released.clone();
        let deadline = Some(waiting.deadline);
        let (shared, place, generation) =
            (self.shared, self.arrival.place, self.arrival.generation);
        tokio::select! {
            biased;
            // The sender only goes away unreleased when a reset clears the barriers.
            r = released.wait_for(|r| *r) => {
                if r.is_ok() { Woken::Due } else { Woken::Cancelled }
            }
            w = peer.wait(deadline, &mut self.reset, generation, || closed(shared, place)) => {
                if w == Woken::Due {
                    shared.core().barriers.expire(&waiting);
                    shared.note(place, |e| e.flags.push(Flag::BarrierTimeout));
                    self.released();
                }
                w
            }
        }
    }

    /// The first release of a barrier is time zero of the outages on its clock.
    fn released(&self) {
        let now = self.shared.clock.now();
        self.shared.core().clocks.barrier.get_or_insert(now);
        self.shared.clocks_moved.send_replace(());
    }

    /// A silence that the step asks for.
    async fn hold(&mut self, peer: &mut impl Peer, hold: Option<Hold>) -> Woken {
        let ns = match hold {
            None => return Woken::Due,
            Some(Hold::Forever) => None,
            Some(Hold::For(d)) => Some(nanos(d)),
            Some(Hold::Between(a, b)) => {
                let u = self.arrival.plan.delay_draw();
                Some(nanos(a) + (nanos(b - a) as f64 * u) as u64)
            }
        };
        self.pause(peer, ns).await
    }

    /// Waits, by a timer that a reset cancels; `None` is for ever.
    async fn pause(&mut self, peer: &mut impl Peer, ns: Option<u64>) -> Woken {
        let until = ns.map(|ns| tokio::time::Instant::now() + std::time::Duration::from_nanos(ns));
        let (shared, place) = (self.shared, self.arrival.place);
        let generation = self.arrival.generation;
        peer.wait(until, &mut self.reset, generation, || closed(shared, place))
            .await
    }

    /// How a wait that did not come to its end is journaled.
    fn broken_off(&self) -> Wire {
        match *self.reset.borrow() != self.arrival.generation {
            true => Wire::Cancelled,
            false => Wire::PeerClosed,
        }
    }

    /// Journals what is about to be sent, so that who reads the reply finds it there; the moment.
    fn begin(&self, content: &Content, headers: Vec<(String, String)>) -> u64 {
        let clock = &self.shared.clock;
        let before = clock.now();
        let retry_at = content.hint.map(|h| match h.absolute {
            true => clock.at_unix_ns(i128::from(h.ns)),
            false => before.saturating_add(h.ns),
        });
        let route = self.arrival.plan.route_name();
        let mut core = self.shared.core();
        core.metrics.reply(route, content.status);
        core.journal.update(self.arrival.place, |e| {
            e.t_reply_before = Some(before);
            e.retry_at = retry_at;
            e.retry_date = content.hint.and_then(|h| h.date);
            e.sent = Some(Sent {
                status: Some(content.status),
                headers,
                ..unsent(Wire::Sending)
            });
        });
        drop(core);
        self.shared.changed.send_replace(());
        before
    }

    /// Journals the moment before an end without a reply.
    fn begin_nothing(&self) {
        let now = self.shared.clock.now();
        self.shared
            .note(self.arrival.place, |e| e.t_reply_before = Some(now));
    }

    /// Journals the end of the exchange.
    fn ended(&self, wire: Wire) {
        self.ended_with(wire, None);
    }

    /// As [`Exchange::ended`], with the body bytes sent and the moment before the last write.
    fn ended_with(&self, wire: Wire, written: Option<(u64, u64)>) {
        journal_end(self.shared, self.arrival.place, wire, written);
    }
}

/// Journals the end of an exchange, with the body bytes sent and the moment before the last write.
fn journal_end(shared: &Shared, place: u64, wire: Wire, written: Option<(u64, u64)>) {
    let now = shared.clock.now();
    let mut core = shared.core();
    if wire != Wire::Complete {
        *core.metrics.faults.entry(wire.label()).or_default() += 1;
    }
    core.journal.update(place, |e| {
        // The GOAWAY after a reply does not make the reply any later.
        if wire != Wire::Goaway || e.t_reply_after.is_none() {
            e.t_reply_after = Some(now);
        }
        let sent = e.sent.get_or_insert_with(|| unsent(wire));
        sent.wire = wire;
        if let Some((bytes, last)) = written {
            sent.body_bytes = bytes;
            e.t_reply_before = Some(last);
        }
    });
    drop(core);
    shared.changed.send_replace(());
}

fn closed(shared: &Shared, place: u64) {
    let now = shared.clock.now();
    shared.note(place, |e| {
        e.t_peer_close.get_or_insert(now);
    });
}

/// A problem document (RFC 9457) as content.
fn problem(status: u16, mark: &str, title: &str, detail: &str) -> Content {
    let json = serde_json::json!({ "title": title, "status": status, "detail": detail });
    let mut step = Reply::status(status);
    step.body = Some(crate::step::Body::Json(json.to_string()));
    step.headers.push((
        "Content-Type".to_owned(),
        "application/problem+json".to_owned(),
    ));
    Content::make(
        &step,
        &Mark {
            line: mark.to_owned(),
            ..Mark::default()
        },
    )
}
