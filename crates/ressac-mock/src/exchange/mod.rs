//! One exchange after another on a connection: read, meet the step, reply, end.

mod effect;
mod plan;
mod send;

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch;

use crate::arrive::{Arrival, Origin};
use crate::barrier::Joined;
use crate::clock::nanos;
use crate::journal::{Flag, Kind, Sent, Wire, hex};
use crate::reply::{Content, Mark};
use crate::state::Shared;
use crate::step::{End, Hold, Reply};
use crate::wire::{BodyError, BodyInfo, Conn, NoHead, RequestHead, Woken, finish_fin};

/// How much of a body the journal keeps.
const KEEP_BODY: usize = 64 * 1024;

/// Serves a connection until it ends, and says how, for the metrics.
pub(crate) async fn serve(shared: &Arc<Shared>, listener: &str, mut conn: Conn) -> &'static str {
    loop {
        let mut t_first = 0;
        let got = conn.read_head(|| t_first = shared.clock.now()).await;
        let (number, t_accept) = (conn.number, conn.t_accept);
        let origin = Origin {
            conn: number,
            listener,
            t_accept,
            t_first,
        };
        let head = match got {
            Ok(head) => head,
            Err(NoHead::Closed) => return "peer",
            Err(NoHead::Incomplete) => {
                shared.note_broken(Kind::Incomplete, &origin);
                finish_fin(conn).await;
                return "incomplete";
            }
            Err(NoHead::Bad(e)) => {
                let seq = shared.note_broken(Kind::BadRequest, &origin);
                send::bad_request(shared, conn, seq, &e.0).await;
                return "bad-request";
            }
        };
        let arrival = shared.arrive(&head, &origin);
        let in_flight = InFlight(shared);
        let exchange = Exchange {
            shared,
            head: &head,
            arrival: &arrival,
            reset: shared.generation.subscribe(),
        };
        let next = exchange.run(conn).await;
        drop(in_flight);
        conn = match next {
            Ok(conn) => conn,
            Err(end) => return end,
        };
    }
}

/// Counts down when an exchange ends, however it ends.
struct InFlight<'a>(&'a Shared);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut core = self.0.core();
        core.metrics.in_flight = core.metrics.in_flight.saturating_sub(1);
    }
}

/// The connection kept alive, or how it ended.
type Next = Result<Conn, &'static str>;

struct Exchange<'a> {
    shared: &'a Arc<Shared>,
    head: &'a RequestHead,
    arrival: &'a Arrival,
    reset: watch::Receiver<u64>,
}

/// What is to be sent.
struct Outgoing<'r> {
    reply: Cow<'r, Reply>,
    content: Content,
    replayed: bool,
}

impl Exchange<'_> {
    /// Order: read as the end demands, barrier, effect, hold, head, body, end.
    async fn run(mut self, mut conn: Conn) -> Next {
        let arrival = self.arrival;
        let (reply, mark) = plan::reply(self.shared, self.head, arrival);
        let mut body = None;
        if !reply.ends_at_head() {
            match self.read_body(&mut conn).await {
                Ok(info) => body = Some(info),
                Err(e) => return self.broken_body(conn, e).await,
            }
        }
        if let Woken::Cancelled | Woken::PeerReset | Woken::PeerClosed =
            self.barrier(&conn, &reply).await
        {
            return self.cancelled(conn).await;
        }
        let made = match (reply.create, &body) {
            (Some(create), Some(body)) => self.effect(&reply, create, mark.clone(), body).await,
            _ => Ok(effect::Made::Nothing),
        };
        let stored = match made {
            Err(_) => return self.cancelled(conn).await,
            // A refusal of the store is no step of the script: it goes out whole and at once.
            Ok(effect::Made::Refused(content)) => {
                let reply = Cow::Owned(Reply::default());
                return self
                    .send(
                        conn,
                        Outgoing {
                            reply,
                            content,
                            replayed: false,
                        },
                    )
                    .await;
            }
            Ok(effect::Made::Fresh(content)) => Some((content, false)),
            Ok(effect::Made::Replay(content)) => Some((content, true)),
            Ok(effect::Made::Nothing) => None,
        };
        match self.hold(&conn, &reply).await {
            Woken::Due => {}
            _ => return self.cancelled(conn).await,
        }
        if reply.sends_nothing() {
            return self.end_silently(conn, &reply).await;
        }
        let (content, replayed) = match stored {
            Some(stored) => stored,
            None => (Content::make(&reply, &mark), false),
        };
        self.send(
            conn,
            Outgoing {
                reply,
                content,
                replayed,
            },
        )
        .await
    }

    async fn read_body(&self, conn: &mut Conn) -> Result<BodyInfo, BodyError> {
        if self.head.expects_continue() {
            let go = b"HTTP/1.1 100 Continue\r\n\r\n";
            conn.write(go, &mut 0)
                .await
                .map_err(|_| BodyError::Incomplete)?;
        }
        let info = conn.read_body(self.head.body, KEEP_BODY).await?;
        let now = self.shared.clock.now();
        self.shared.note(self.arrival.seq, |e| {
            e.t_req_end = Some(now);
            e.body_len = info.len;
            e.body_sha256 = Some(hex(&info.sha256));
            e.body_head = info.head.clone();
        });
        Ok(info)
    }

    async fn broken_body(&self, conn: Conn, error: BodyError) -> Next {
        self.shared
            .note(self.arrival.seq, |e| e.flags.push(Flag::Incomplete));
        match error {
            BodyError::Bad(why) => {
                send::bad_request(self.shared, conn, self.arrival.seq, why).await;
                Err("bad-request")
            }
            BodyError::Incomplete => {
                self.ended(Wire::PeerClosed);
                finish_fin(conn).await;
                Err("incomplete")
            }
        }
    }

    /// Waits at the barrier of the step, if it has one.
    async fn barrier(&mut self, conn: &Conn, reply: &Reply) -> Woken {
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
        let (shared, seq) = (self.shared, self.arrival.seq);
        tokio::select! {
            biased;
            // The sender only goes away unreleased when a reset clears the barriers.
            r = released.wait_for(|r| *r) => {
                if r.is_ok() { Woken::Due } else { Woken::Cancelled }
            }
            w = conn.wait(deadline, &mut self.reset, self.arrival.generation, || closed(shared, seq))
                => {
                if w == Woken::Due {
                    shared.core().barriers.expire(&waiting);
                    shared.note(seq, |e| e.flags.push(Flag::BarrierTimeout));
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

    async fn hold(&mut self, conn: &Conn, reply: &Reply) -> Woken {
        let ns = match reply.hold {
            None => return Woken::Due,
            Some(Hold::Forever) => None,
            Some(Hold::For(d)) => Some(nanos(d)),
            Some(Hold::Between(a, b)) => {
                let u = self.arrival.plan.delay_draw();
                Some(nanos(a) + (nanos(b - a) as f64 * u) as u64)
            }
        };
        self.pause(conn, ns).await
    }

    /// Waits, by a timer that a reset cancels; `None` is for ever.
    async fn pause(&mut self, conn: &Conn, ns: Option<u64>) -> Woken {
        let until = ns.map(|ns| tokio::time::Instant::now() + std::time::Duration::from_nanos(ns));
        let (shared, seq) = (self.shared, self.arrival.seq);
        let generation = self.arrival.generation;
        conn.wait(until, &mut self.reset, generation, || closed(shared, seq))
            .await
    }

    /// A wait ended by a reset of the mock or by the peer: nothing more is sent.
    async fn cancelled(&self, conn: Conn) -> Next {
        let reset = *self.reset.borrow() != self.arrival.generation;
        self.ended(if reset {
            Wire::Cancelled
        } else {
            Wire::PeerClosed
        });
        finish_fin(conn).await;
        Err(if reset { "cancelled" } else { "peer" })
    }

    async fn end_silently(self, conn: Conn, reply: &Reply) -> Next {
        let now = self.shared.clock.now();
        self.shared
            .note(self.arrival.seq, |e| e.t_reply_before = Some(now));
        match reply.end {
            Some(End::At(cut, _)) => self.cut(conn, cut).await,
            _ => self.stall(conn).await,
        }
    }

    /// Journals the end of the exchange.
    fn ended(&self, wire: Wire) {
        let now = self.shared.clock.now();
        let mut core = self.shared.core();
        if wire != Wire::Complete {
            *core.metrics.faults.entry(wire.label()).or_default() += 1;
        }
        core.journal.update(self.arrival.seq, |e| {
            e.t_reply_after = Some(now);
            let none = || Sent {
                status: None,
                headers: Vec::new(),
                body_bytes: 0,
                wire,
            };
            e.sent.get_or_insert_with(none).wire = wire;
        });
        drop(core);
        self.shared.changed.send_replace(());
    }
}

fn closed(shared: &Shared, seq: u64) {
    let now = shared.clock.now();
    shared.note(seq, |e| e.t_peer_close = Some(now));
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
