//! The end of an exchange whose reply came before its body was read.

use std::time::Duration;

use super::Exchange;
use super::h1::Next;
use crate::step::{Cut, End, Reply};
use crate::wire::{Conn, Pace, Sink, finish_fin, finish_rst};

/// How long a body is left unread after an early reply, and then read at most.
pub(super) const UNREAD: Duration = Duration::from_millis(300);
const DISCARD: Duration = Duration::from_secs(1);

impl Exchange<'_> {
    /// The body stays unread for a while, is read slowly and discarded for a while, and then the
    /// connection ends. Slowly, so that who goes on sending a large body meets the end while it
    /// still sends: a discard as fast as the wire would take any body whole.
    pub(super) async fn early(mut self, mut conn: Conn, reply: &Reply) -> Next {
        let mut sink = Sink::new(0);
        let (kind, generation) = (self.head.body, self.arrival.generation);
        let discard = async {
            tokio::time::sleep(UNREAD).await;
            conn.pace = Some(Pace::new());
            let read = conn.read_into(kind, &mut sink);
            matches!(tokio::time::timeout(DISCARD, read).await, Ok(Ok(())))
        };
        let (whole, cancelled) = tokio::select! {
            biased;
            _ = self.reset.wait_for(|g| *g != generation) => (false, true),
            whole = discard => (whole, false),
        };
        let now = self.shared.clock.now();
        self.shared.note(self.arrival.place, |e| {
            e.body_len = sink.len();
            e.t_req_end = whole.then_some(now);
        });
        if cancelled {
            conn.pace = None;
            finish_fin(conn).await;
            return Err("cancelled");
        }
        match reply.end {
            Some(End::At(Cut::Rst, _)) => {
                finish_rst(conn).await;
                Err("rst")
            }
            _ => {
                finish_fin(conn).await;
                Err("fin")
            }
        }
    }
}
