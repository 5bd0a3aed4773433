//! One exchange after another on an HTTP/1 connection.

use std::borrow::Cow;
use std::sync::Arc;

use super::plan;
use super::send::bad_request;
use super::{Afterwards, Exchange, InFlight, Ready};
use crate::arrive::Origin;
use crate::control;
use crate::journal::{Flag, Kind, Wire};
use crate::reply::{Content, Mark};
use crate::state::Shared;
use crate::step::{Cut, End, Expect, Reply};
use crate::wire::{
    BodyError, BodyInfo, Conn, NoHead, RequestHead, Slot, Woken, cut_fin, finish_fin, finish_rst,
};

/// The connection kept alive, or how it ended.
pub(super) type Next = Result<(Conn, Afterwards), &'static str>;

/// Serves a connection until it ends, and says how, for the metrics.
pub(super) async fn serve(shared: &Arc<Shared>, slot: &Slot, mut conn: Conn) -> &'static str {
    let mut after = Afterwards::Nothing;
    loop {
        let mut t_first = 0;
        let idle = match after {
            Afterwards::Idle(_, t) => Some(t),
            _ => None,
        };
        let got = conn.read_head(idle, || t_first = shared.clock.now()).await;
        conn.set_busy(true);
        let tls = conn.tls.clone();
        let mut origin = Origin {
            conn: conn.number,
            stream: None,
            listener: &slot.name,
            t_accept: conn.t_accept,
            t_first,
            tls: tls.as_ref(),
            early: false,
        };
        let head = match got {
            Ok((head, early)) => {
                origin.early = early;
                head
            }
            Err(why) => return no_head(shared, conn, &origin, why, after).await,
        };
        if let Some(ctx) = shared
            .control
            .get()
            .filter(|_| slot.spec.certificate.is_none())
            && head.path().starts_with("/__ressac/")
            && let Some(ctx) = ctx.upgrade()
        {
            match control::answer_here(&ctx, conn, &head).await {
                Some(kept) => conn = kept,
                None => return "control",
            }
            conn.set_busy(false);
            continue;
        }
        let next = match after {
            Afterwards::Race(cut) => raced(shared, conn, &head, &origin, cut).await,
            _ => exchange(shared, conn, &head, &origin).await,
        };
        match next {
            Ok((kept, then)) => (conn, after) = (kept, then),
            Err(end) => return end,
        }
        conn.set_busy(false);
    }
}

async fn exchange(
    shared: &Arc<Shared>,
    conn: Conn,
    head: &RequestHead,
    origin: &Origin<'_>,
) -> Next {
    let arrival = shared.arrive(head, origin);
    let _in_flight = InFlight::new(shared, arrival.place);
    Exchange::new(shared, head, &arrival).run(conn).await
}

/// The end of a connection on which no further request came.
async fn no_head(
    shared: &Arc<Shared>,
    conn: Conn,
    origin: &Origin<'_>,
    why: NoHead,
    after: Afterwards,
) -> &'static str {
    match (why, after) {
        (NoHead::Idle, Afterwards::Idle(Cut::Rst, _)) => {
            finish_rst(conn).await;
            "idle-rst"
        }
        (NoHead::Idle, _) => {
            finish_fin(conn).await;
            "idle"
        }
        (NoHead::Closed, _) => "peer",
        (NoHead::Incomplete, _) => {
            shared.note_broken(Kind::Incomplete, origin);
            finish_fin(conn).await;
            "incomplete"
        }
        (NoHead::Bad(e), _) => {
            let place = shared.note_broken(Kind::BadRequest, origin);
            bad_request(shared, conn, place, &e.0).await;
            "bad-request"
        }
    }
}

/// The request that races with the end of its connection.
async fn raced(
    shared: &Arc<Shared>,
    conn: Conn,
    head: &RequestHead,
    origin: &Origin<'_>,
    cut: Cut,
) -> Next {
    let arrival = shared.arrive_raced(head, origin);
    let _in_flight = InFlight::new(shared, arrival.place);
    let exchange = Exchange::new(shared, head, &arrival);
    exchange.begin_nothing();
    match cut {
        Cut::Fin => {
            exchange.ended(Wire::Race);
            cut_fin(conn).await;
        }
        Cut::Rst => {
            finish_rst(conn).await;
            exchange.ended(Wire::Race);
        }
    }
    Err("race")
}

impl Exchange<'_> {
    /// Order: read as the end demands, barrier, effect, hold, interim, head, gap, body, end.
    async fn run(mut self, mut conn: Conn) -> Next {
        let arrival = self.arrival;
        let (mut reply, mut mark) = plan::reply(self.shared, self.head, arrival);
        if reply.needs_http2() {
            (reply, mark) = plan::needs_http2(&reply);
            self.shared
                .note(arrival.place, |e| e.flags.push(Flag::NeedsHttp2));
        }
        if reply.early {
            conn.shrink_buffer();
        }
        let mut body = None;
        if !reply.ends_at_head() && !reply.early {
            match self.expect(&mut conn, &reply).await {
                Go::Read => {}
                Go::Final(status) => return self.unasked(conn, &reply, &mark, status).await,
                Go::Stop => return self.cancelled(conn).await,
            }
            if !self.head.has_body() {
                body = Some(BodyInfo::empty());
            } else {
                match conn.read_body(self.head.body, Self::keep(&reply)).await {
                    Ok(info) => {
                        self.note_body(&info);
                        body = Some(info);
                    }
                    Err(e) => return self.broken_body(conn, e).await,
                }
            }
        }
        match self.prepare(&mut conn, reply, &mark, body.as_ref()).await {
            Ready::Send(out) => self.send(conn, out).await,
            Ready::Nothing(reply) => self.end_silently(conn, &reply).await,
            Ready::Cancelled => self.cancelled(conn).await,
        }
    }

    /// Answers `Expect: 100-continue`.
    async fn expect(&mut self, conn: &mut Conn, reply: &Reply) -> Go {
        if !self.head.expects_continue() {
            return Go::Read;
        }
        match reply.expect {
            Some(Expect::Never) => return Go::Read,
            Some(Expect::Fail) => return Go::Final(Some(417)),
            Some(Expect::Final) => return Go::Final(None),
            Some(Expect::Late(t)) => {
                let ns = crate::clock::nanos(t);
                // A body that comes without being asked for is read ahead meanwhile.
                if self.pause(conn, Some(ns)).await != Woken::Due {
                    return Go::Stop;
                }
            }
            Some(Expect::Auto) | None => {}
        }
        match conn.write(b"HTTP/1.1 100 Continue\r\n\r\n", &mut 0).await {
            Ok(()) => Go::Read,
            Err(_) => Go::Stop,
        }
    }

    /// A final status in place of the 100. Whether a body follows cannot be known, so the
    /// connection ends (RFC 9110, 10.1.1).
    async fn unasked(self, conn: Conn, reply: &Reply, mark: &Mark, status: Option<u16>) -> Next {
        let mut step = reply.clone();
        step.create = None;
        step.end = Some(End::Close);
        if let Some(status) = status {
            step = Reply {
                end: step.end,
                ..Reply::status(status)
            };
        }
        let content = Content::make(&step, mark);
        let out = super::Outgoing {
            reply: Cow::Owned(step),
            content,
            replayed: false,
        };
        self.send(conn, out).await
    }

    async fn broken_body(&self, conn: Conn, error: BodyError) -> Next {
        self.shared
            .note(self.arrival.place, |e| e.flags.push(Flag::Incomplete));
        match error {
            BodyError::Bad(why) => {
                bad_request(self.shared, conn, self.arrival.place, why).await;
                Err("bad-request")
            }
            BodyError::Incomplete => {
                super::closed(self.shared, self.arrival.place);
                self.ended(Wire::PeerClosed);
                finish_fin(conn).await;
                Err("incomplete")
            }
        }
    }

    /// A wait ended by a reset of the mock or by the peer: nothing more is sent.
    pub(super) async fn cancelled(&self, conn: Conn) -> Next {
        let wire = self.broken_off();
        self.ended(wire);
        finish_fin(conn).await;
        Err(match wire {
            Wire::Cancelled => "cancelled",
            _ => "peer",
        })
    }

    async fn end_silently(self, mut conn: Conn, reply: &Reply) -> Next {
        self.begin_nothing();
        if let Some(status) = reply.interim
            && self.interim(&mut conn, status).await.is_err()
        {
            self.ended(Wire::PeerClosed);
            return Err("peer");
        }
        match reply.end {
            Some(End::At(cut, _)) => self.cut(conn, cut, None).await,
            _ => self.stall(conn, None).await,
        }
    }

    pub(super) async fn cut(&self, conn: Conn, cut: Cut, written: Option<(u64, u64)>) -> Next {
        match cut {
            Cut::Fin => {
                self.ended_with(Wire::Fin, written);
                cut_fin(conn).await;
                Err("fin")
            }
            Cut::Rst => {
                let certain = finish_rst(conn).await;
                let wire = if certain { Wire::Rst } else { Wire::Uncertain };
                self.ended_with(wire, written);
                Err("rst")
            }
        }
    }

    /// Keeps the connection open and silent until the peer goes or the mock is reset.
    pub(super) async fn stall(mut self, mut conn: Conn, written: Option<(u64, u64)>) -> Next {
        self.ended_with(Wire::Stall, written);
        self.pause(&mut conn, None).await;
        finish_fin(conn).await;
        Err("stall")
    }
}

/// What follows a head that expects a 100.
enum Go {
    Read,
    /// A final reply at once; with this status, or with the step's.
    Final(Option<u16>),
    Stop,
}
