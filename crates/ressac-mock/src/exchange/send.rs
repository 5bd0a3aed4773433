//! The bytes of an HTTP/1 reply.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};

use super::h1::Next;
use super::shape::Shape;
use super::{Afterwards, Exchange, Outgoing, problem};
use crate::draw::bytes as seeded;
use crate::journal::{Sent, Wire};
use crate::reply::{Content, head_bytes, interim_bytes};
use crate::state::Shared;
use crate::step::{Drip, End, Framing, Reply};
use crate::wire::{Conn, Woken, finish_fin};

/// Body bytes written at once.
const PIECE: usize = 64 * 1024;

/// How far a reply came.
enum Written {
    Done,
    /// The peer does not take more.
    Gone,
    /// The mock was reset between two writes.
    Cancelled,
}

/// What has been written of a reply.
struct Progress {
    /// Body bytes that the socket took.
    body: u64,
    /// The moment before the last write.
    last: u64,
}

impl Exchange<'_> {
    /// Sends a reply and ends the exchange as its step says.
    pub(super) async fn send(mut self, mut conn: Conn, out: Outgoing<'_>) -> Next {
        let reply = out.reply.as_ref();
        if let Some(n) = reply.garbage {
            return self.garbage(conn, n).await;
        }
        if let Some(status) = reply.interim
            && self.interim(&mut conn, status).await.is_err()
        {
            self.ended(Wire::PeerClosed);
            return Err("peer");
        }
        let shape = Shape::of(reply, &out.content, self.head.method == "HEAD");
        let close = reply.end == Some(End::Close) || self.head.wants_close();
        let mut extra = Vec::new();
        if reply.framing.is_some_and(|f| f != Framing::UntilClose) {
            extra.push(("Transfer-Encoding", "chunked"));
        }
        if out.replayed {
            extra.push(("Idempotent-Replayed", "true"));
        }
        if let Some(l) = &self.arrival.limits {
            extra.push(("RateLimit-Policy", &l.policy));
            extra.push(("RateLimit", &l.state));
        }
        if close {
            extra.push(("Connection", "close"));
        }
        let lines = out.content.lines(shape.announced, &extra);
        let head = head_bytes(out.content.status, &lines);
        let mut done = Progress {
            body: 0,
            last: self.begin(&out.content, lines),
        };
        let parts = Parts {
            reply,
            content: &out.content,
            shape,
        };
        match self.write_reply(&mut conn, head, &parts, &mut done).await {
            Written::Done => {}
            Written::Gone => {
                self.ended_with(Wire::PeerClosed, Some((done.body, done.last)));
                return Err("peer");
            }
            Written::Cancelled => return self.cancelled(conn).await,
        }
        self.end(conn, reply, shape, close, (done.body, done.last))
            .await
    }

    /// The end of a reply that went out.
    async fn end(
        self,
        conn: Conn,
        reply: &Reply,
        shape: Shape,
        close: bool,
        written: (u64, u64),
    ) -> Next {
        let written = Some(written);
        if reply.early {
            self.ended_with(Wire::Complete, written);
            return self.early(conn, reply).await;
        }
        match reply.end {
            Some(End::Stall) => return self.stall(conn, written).await,
            Some(End::At(cut, _)) => return self.cut(conn, cut, written).await,
            _ => {}
        }
        if let Some(cut) = shape.cut() {
            return self.cut(conn, cut, written).await;
        }
        self.ended_with(Wire::Complete, written);
        let closes = close || shape.ends || reply.end == Some(End::QuietClose);
        if closes {
            finish_fin(conn).await;
            return Err("fin");
        }
        Ok((
            conn,
            match reply.end {
                Some(End::Idle(cut, t)) => Afterwards::Idle(cut, t),
                Some(End::Race(cut)) => Afterwards::Race(cut),
                _ => Afterwards::Nothing,
            },
        ))
    }

    /// Sends a 1xx head.
    pub(super) async fn interim(&self, conn: &mut Conn, status: u16) -> io::Result<()> {
        conn.write(&interim_bytes(status), &mut 0).await
    }

    /// Seeded bytes that are no HTTP, then FIN.
    async fn garbage(self, mut conn: Conn, n: u32) -> Next {
        let bytes = garbage(&self, n);
        self.begin_nothing();
        let mut sent = 0;
        let last = self.shared.clock.now();
        let written = conn.write(&bytes, &mut sent).await;
        if written.is_err() {
            self.ended_with(Wire::PeerClosed, Some((sent, last)));
            return Err("peer");
        }
        self.cut(conn, crate::step::Cut::Fin, Some((sent, last)))
            .await
    }

    /// Writes head and body; a small body goes with the head.
    async fn write_reply(
        &mut self,
        conn: &mut Conn,
        mut head: BytesMut,
        parts: &Parts<'_>,
        done: &mut Progress,
    ) -> Written {
        let Parts { reply, shape, .. } = parts;
        let together = reply.gap.is_none() && reply.drip.is_none() && reply.drip_head.is_none();
        let head_len = head.len() as u64;
        let mut at = 0;
        let mut framed = (0, 0);
        if together && shape.bytes > 0 {
            let (piece, lead, len) = parts.piece(0, PIECE);
            head.extend_from_slice(&piece);
            (at, framed) = (len, (lead, len));
        }
        if together && at == shape.bytes {
            head.extend_from_slice(parts.tail());
        }
        if let Some(drip) = reply.drip_head {
            match self.dribble(conn, &head, drip, done).await {
                Written::Done => {}
                other => return other,
            }
        } else {
            let mut total = 0;
            let result = conn.write(&head, &mut total).await;
            let past = total.saturating_sub(head_len + framed.0);
            done.body = past.min(framed.1);
            if result.is_err() {
                return Written::Gone;
            }
        }
        if together && at == shape.bytes {
            return Written::Done;
        }
        if self.hold(conn, reply.gap).await != Woken::Due {
            return Written::Cancelled;
        }
        self.write_body(conn, parts, at, done).await
    }

    async fn write_body(
        &mut self,
        conn: &mut Conn,
        parts: &Parts<'_>,
        mut at: u64,
        done: &mut Progress,
    ) -> Written {
        let Parts { reply, shape, .. } = parts;
        let size = reply.drip.map_or(PIECE, |d| d.bytes as usize);
        while at < shape.bytes {
            let (mut piece, lead, len) = parts.piece(at, size);
            at += len;
            if at == shape.bytes {
                piece.extend_from_slice(parts.tail());
            }
            done.last = self.shared.clock.now();
            let mut total = 0;
            let result = conn.write(&piece, &mut total).await;
            done.body += total.saturating_sub(lead).min(len);
            if result.is_err() {
                return Written::Gone;
            }
            if let Some(drip) = reply.drip
                && at < shape.bytes
                && self
                    .pause(conn, Some(crate::clock::nanos(drip.every)))
                    .await
                    != Woken::Due
            {
                return Written::Cancelled;
            }
        }
        if shape.bytes == 0 && !parts.tail().is_empty() {
            done.last = self.shared.clock.now();
            if conn.write(parts.tail(), &mut 0).await.is_err() {
                return Written::Gone;
            }
        }
        Written::Done
    }

    /// The head in pieces.
    async fn dribble(
        &mut self,
        conn: &mut Conn,
        head: &[u8],
        drip: Drip,
        done: &mut Progress,
    ) -> Written {
        for (i, piece) in head.chunks(drip.bytes as usize).enumerate() {
            let every = Some(crate::clock::nanos(drip.every));
            if i > 0 && self.pause(conn, every).await != Woken::Due {
                return Written::Cancelled;
            }
            done.last = self.shared.clock.now();
            if conn.write(piece, &mut 0).await.is_err() {
                return Written::Gone;
            }
        }
        Written::Done
    }
}

/// Seeded bytes; the first is never `H`, so that no client takes them for a reply.
pub(super) fn garbage(exchange: &Exchange<'_>, n: u32) -> Bytes {
    let (seed, route, scope, number) = exchange.arrival.plan.identity();
    let mut out = seeded(seed, route, scope, number, "garbage", n as usize);
    if let Some(first) = out.first_mut()
        && *first == b'H'
    {
        *first = b'h';
    }
    out.into()
}

/// A reply and how it is framed.
struct Parts<'r> {
    reply: &'r Reply,
    content: &'r Content,
    shape: Shape,
}

impl Parts<'_> {
    /// The wire bytes of the next piece of the body, how many of them come before its content, and
    /// how much content it has.
    fn piece(&self, from: u64, max: usize) -> (BytesMut, u64, u64) {
        let whole = self.content.body.len();
        // A cut inside a chunk leaves the chunk's size as if nothing were to happen.
        let full = (whole - from).min(max as u64);
        let len = full.min(self.shape.bytes - from);
        let content = self
            .content
            .body
            .piece(from, usize::try_from(len).unwrap_or(max));
        let mut out = BytesMut::with_capacity(content.len() + 16);
        let chunked = matches!(
            self.shape.framing,
            Some(Framing::Chunked | Framing::NoLast | Framing::BadChunk)
        );
        if chunked {
            out.put_slice(format!("{full:x}\r\n").as_bytes());
        }
        let lead = out.len() as u64;
        out.put_slice(&content);
        if chunked && len == full {
            out.put_slice(b"\r\n");
        }
        (out, lead, content.len() as u64)
    }

    /// What follows the body.
    fn tail(&self) -> &'static [u8] {
        match self.shape.framing {
            Some(Framing::Chunked) if self.shape.whole => b"0\r\n\r\n",
            Some(Framing::BadChunk) if self.shape.whole => b"not hex\r\n",
            _ => b"",
        }
    }
}

/// 400 for bytes that are no HTTP, then FIN.
pub(super) async fn bad_request(shared: &Shared, mut conn: Conn, place: u64, why: &str) {
    let content = problem(400, "bad-request", "Not a request", why);
    let lines = content.lines(Some(content.body.len()), &[("Connection", "close")]);
    let mut bytes = head_bytes(400, &lines);
    let head_len = bytes.len() as u64;
    bytes.extend_from_slice(&content.body.piece(0, PIECE));
    let before = shared.clock.now();
    let mut sent = 0;
    let written = conn.write(&bytes, &mut sent).await;
    let wire = if written.is_ok() {
        Wire::Complete
    } else {
        Wire::PeerClosed
    };
    let after = shared.clock.now();
    shared.note(place, |e| {
        e.t_reply_before = Some(before);
        e.t_reply_after = Some(after);
        e.sent = Some(Sent {
            status: Some(400),
            headers: lines,
            body_bytes: sent.saturating_sub(head_len),
            wire,
        });
    });
    finish_fin(conn).await;
}
