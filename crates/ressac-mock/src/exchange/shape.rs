//! How long a reply says it is, and how many of its bytes go out.

use crate::reply::{Content, Length};
use crate::step::{Cut, End, Framing, Point, Reply};

/// How a reply is framed, and how it ends where no word says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The length announced.
    pub(super) announced: Option<u64>,
    /// The framing, where a body is sent.
    pub(super) framing: Option<Framing>,
    /// Body bytes that go out.
    pub(super) bytes: u64,
    /// Whether these are all of the body.
    pub(super) whole: bool,
    /// The end that the framing demands: the body is broken, or ends with the connection.
    pub(super) ends: bool,
    /// Whether fewer bytes go out than are announced, or a frame is missing.
    pub(super) broken: bool,
}

impl Shape {
    pub(super) fn of(reply: &Reply, content: &Content, head_request: bool) -> Self {
        let bodiless = content.bodiless();
        let announced = match (reply.framing, reply.content_length) {
            (Some(_), _) => None,
            (None, Some(n)) => Some(n),
            (None, None) => match content.length {
                Length::AsTold(n) => n,
                Length::OfBody => (!bodiless).then(|| content.body.len()),
            },
        };
        let all = match head_request || bodiless {
            true => 0,
            false => content.body.len(),
        };
        let bytes = match reply.end {
            Some(End::At(_, Point::Hdr) | End::RstStream(_, Point::Hdr)) => 0,
            Some(End::At(_, Point::Body(n)) | End::RstStream(_, Point::Body(n))) => n.min(all),
            _ => all,
        };
        let framing = reply.framing.filter(|_| !head_request && !bodiless);
        let here = content.length == Length::OfBody || reply.content_length.is_some();
        let short = !head_request && here && announced.is_some_and(|n| n > bytes);
        let broken = short || matches!(framing, Some(Framing::NoLast | Framing::BadChunk));
        Self {
            announced,
            framing,
            bytes,
            whole: bytes == all && !matches!(reply.end, Some(End::At(_, Point::Hdr))),
            ends: broken || framing == Some(Framing::UntilClose),
            broken,
        }
    }

    /// The cut that comes where no word asks for an end.
    pub(super) fn cut(&self) -> Option<Cut> {
        self.broken.then_some(Cut::Fin)
    }
}
