//! The bytes of a reply, and the end of the exchange.

use bytes::BytesMut;

use super::{Exchange, Next, Outgoing, problem};
use crate::journal::{Sent, Wire};
use crate::reply::{Content, head_bytes};
use crate::state::Shared;
use crate::step::{Cut, End, Point, Reply};
use crate::wire::{Conn, finish_fin, finish_rst};

/// Body bytes written at once.
const PIECE: usize = 64 * 1024;

impl Exchange<'_> {
    /// Sends a reply and ends the exchange as its step says.
    pub(super) async fn send(self, mut conn: Conn, out: Outgoing<'_>) -> Next {
        let reply = out.reply.as_ref();
        let shape = Shape::of(reply, &out.content, self.head.method == "HEAD");
        let close = reply.end == Some(End::Close) || self.head.wants_close();
        let mut extra = Vec::new();
        if out.replayed {
            extra.push(("Idempotent-Replayed", "true"));
        }
        if close {
            extra.push(("Connection", "close"));
        }
        let lines = out.content.lines(shape.announced, &extra);
        let head = head_bytes(out.content.status, &lines);
        self.begin(&out.content, lines);
        let mut sent = 0;
        let written = write_reply(&mut conn, head, &out.content, shape.bytes, &mut sent).await;
        self.shared.note(self.arrival.seq, |e| {
            if let Some(s) = &mut e.sent {
                s.body_bytes = sent;
            }
        });
        if written.is_err() {
            self.ended(Wire::PeerClosed);
            return Err("peer");
        }
        match reply.end {
            Some(End::Stall) => self.stall(conn).await,
            Some(End::At(cut, _)) => self.cut(conn, cut).await,
            Some(End::Close) | None => {
                if shape.short {
                    return self.cut(conn, Cut::Fin).await;
                }
                self.ended(Wire::Complete);
                if !close {
                    return Ok(conn);
                }
                finish_fin(conn).await;
                Err("fin")
            }
        }
    }

    /// Journals what is about to be sent, so that who reads the reply finds it there.
    fn begin(&self, content: &Content, headers: Vec<(String, String)>) {
        let clock = &self.shared.clock;
        let before = clock.now();
        let retry_at = content.hint.map(|h| match h.absolute {
            true => clock.at_unix_ns(i128::from(h.ns)),
            false => before.saturating_add(h.ns),
        });
        let route = self.arrival.plan.route_name().to_owned();
        let mut core = self.shared.core();
        *core
            .metrics
            .requests
            .entry((route, content.status))
            .or_default() += 1;
        core.journal.update(self.arrival.seq, |e| {
            e.t_reply_before = Some(before);
            e.retry_at = retry_at;
            e.retry_date = content.hint.and_then(|h| h.date);
            let status = Some(content.status);
            e.sent = Some(Sent {
                status,
                headers,
                body_bytes: 0,
                wire: Wire::Sending,
            });
        });
        drop(core);
        self.shared.changed.send_replace(());
    }

    pub(super) async fn cut(&self, conn: Conn, cut: Cut) -> Next {
        match cut {
            Cut::Fin => {
                self.ended(Wire::Fin);
                finish_fin(conn).await;
                Err("fin")
            }
            Cut::Rst => {
                let certain = finish_rst(conn).await;
                self.ended(if certain { Wire::Rst } else { Wire::Uncertain });
                Err("rst")
            }
        }
    }

    /// Keeps the connection open and silent until the peer goes or the mock is reset.
    pub(super) async fn stall(mut self, conn: Conn) -> Next {
        self.ended(Wire::Stall);
        self.pause(&conn, None).await;
        finish_fin(conn).await;
        Err("stall")
    }
}

/// How long a reply says it is, and how many body bytes go out.
struct Shape {
    announced: Option<u64>,
    bytes: u64,
    /// Fewer bytes than announced, with no end word: the end is FIN.
    short: bool,
}

impl Shape {
    fn of(reply: &Reply, content: &Content, head_request: bool) -> Self {
        let bodiless = content.bodiless();
        let announced = match reply.content_length {
            Some(n) => Some(n),
            None if bodiless => None,
            None => Some(content.body.len()),
        };
        let whole = if head_request || bodiless {
            0
        } else {
            content.body.len()
        };
        let bytes = match reply.end {
            Some(End::At(_, Point::Hdr)) => 0,
            Some(End::At(_, Point::Body(n))) => n.min(whole),
            _ => whole,
        };
        let short = !head_request && reply.end.is_none() && announced.is_some_and(|n| n > bytes);
        Self {
            announced,
            bytes,
            short,
        }
    }
}

/// Writes the head and the first `bytes` of the body; a small body goes with the head.
async fn write_reply(
    conn: &mut Conn,
    mut head: BytesMut,
    content: &Content,
    bytes: u64,
    sent: &mut u64,
) -> std::io::Result<()> {
    let left = |from: u64| {
        usize::try_from(bytes - from)
            .unwrap_or(usize::MAX)
            .min(PIECE)
    };
    let first = content.body.piece(0, left(0));
    let head_len = head.len() as u64;
    head.extend_from_slice(&first);
    let mut total = 0;
    let result = conn.write(&head, &mut total).await;
    *sent = total.saturating_sub(head_len);
    result?;
    while *sent < bytes {
        let piece = content.body.piece(*sent, left(*sent));
        conn.write(&piece, sent).await?;
    }
    Ok(())
}

/// 400 for bytes that are no HTTP, then FIN.
pub(super) async fn bad_request(shared: &Shared, mut conn: Conn, seq: u64, why: &str) {
    let content = problem(400, "bad-request", "Not a request", why);
    let lines = content.lines(Some(content.body.len()), &[("Connection", "close")]);
    let head = head_bytes(400, &lines);
    let before = shared.clock.now();
    let mut sent = 0;
    let written = write_reply(&mut conn, head, &content, content.body.len(), &mut sent).await;
    let wire = if written.is_ok() {
        Wire::Complete
    } else {
        Wire::PeerClosed
    };
    let after = shared.clock.now();
    shared.note(seq, |e| {
        e.t_reply_before = Some(before);
        e.t_reply_after = Some(after);
        e.sent = Some(Sent {
            status: Some(400),
            headers: lines,
            body_bytes: sent,
            wire,
        });
    });
    finish_fin(conn).await;
}
