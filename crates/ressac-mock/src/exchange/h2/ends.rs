//! How an exchange on a stream ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::frame;
use super::link::ConnEnd;
use super::stream::Serving;
use crate::clock::nanos;
use crate::exchange::Afterwards;
use crate::exchange::early::UNREAD;
use crate::exchange::shape::Shape;
use crate::journal::Wire;
use crate::step::{Cut, End, Framing, Goaway, H2Code, Point, Reply};
use crate::wire::Woken;

/// How long after the first GOAWAY the second one comes.
const GRACE: Duration = Duration::from_millis(100);
/// The last id of a GOAWAY that only announces the end.
const ANY_STREAM: u32 = 0x7fff_ffff;

impl Serving<'_> {
    pub(super) async fn end_silently(&mut self, reply: &Reply) -> Afterwards {
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
    pub(super) async fn cut(&mut self, cut: Cut) -> Afterwards {
        match cut {
            Cut::Fin => self.end_connection(cut, false, Wire::Fin, "fin").await,
            Cut::Rst => self.end_connection(cut, false, Wire::Rst, "rst").await,
        }
    }

    pub(super) async fn end_connection(
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

    /// The end of a reply that went out.
    pub(super) async fn end(&mut self, reply: &Reply, shape: Shape) -> Afterwards {
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
