//! The frames of a reply.

use super::fields;
use super::frame;
use super::stream::Serving;
use crate::clock::nanos;
use crate::exchange::shape::Shape;
use crate::exchange::{Afterwards, Outgoing};
use crate::reply::Content;
use crate::step::{Cut, End, Reply};
use crate::wire::Woken;

/// How far a reply came.
enum Sent {
    Done,
    /// Nobody takes more of it.
    Gone,
    Cancelled,
}

impl Serving<'_> {
    /// Sends a reply and ends the exchange as its step says.
    pub(super) async fn send(&mut self, out: Outgoing<'_>) -> Afterwards {
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
}
