//! Bodies as they go downstream.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_LENGTH;
use hyper::body::{Body, Frame, SizeHint};
use ressac_policy::{Outcome, OutcomeKind, Processed};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::arriving::Arriving;
use crate::call::Call;
use crate::headers::end_to_end;
use crate::upstream::{Answer, Link};

/// Why a body ends before its end: the connection downstream is cut, so that it shows there.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the reply of the upstream broke off")]
pub(crate) struct BrokeOff;

/// Another attempt after the first byte: a fault.
pub(crate) type Again = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// A failure's body, as far as it was read.
pub(crate) enum Kept {
    Whole(Bytes),
    /// The rest is still to come.
    Part(Bytes, Box<Arriving>),
    /// There is no more.
    Cut(Bytes),
}

impl Kept {
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

/// A body that goes downstream.
pub(crate) struct Down {
    source: Source,
    /// It broke off, and what came before is on its way.
    cut: bool,
}

enum Source {
    Kept {
        begin: Bytes,
        rest: Option<Box<Arriving>>,
        cut: bool,
        /// Closes the upstream's connection once nobody reads it any more.
        _link: Option<Link>,
    },
    Passed(Box<Passed>),
}

impl Down {
    pub(crate) fn kept(kept: Kept, link: Option<Link>) -> Self {
        let (begin, rest, cut) = match kept {
            Kept::Whole(begin) => (begin, None, false),
            Kept::Part(begin, rest) => (begin, Some(rest), false),
            Kept::Cut(begin) => (begin, None, true),
        };
        Self::from(Source::Kept {
            begin,
            rest,
            cut,
            _link: link,
        })
    }

    fn from(source: Source) -> Self {
        Self { source, cut: false }
    }
}

/// A success as it comes. From its first byte on nothing is sent again.
pub(crate) struct Passed {
    body: Arriving,
    until: Pin<Box<Sleep>>,
    begun: Instant,
    status: u16,
    /// Until the attempt is settled.
    call: Option<Call>,
    link: Option<Link>,
    again: Option<Again>,
    broken: bool,
    /// The fault: downstream is told that the body is whole.
    hides_the_cut: bool,
}

impl Passed {
    pub(crate) fn reply(
        call: Call,
        answer: Answer,
        until: Instant,
        again: Option<Again>,
    ) -> Response<Down> {
        let Answer {
            mut head,
            mut body,
            link,
        } = answer;
        let short_ok = call.proxy.fault.is("h2-short-ok") && body.forget_length();
        if short_ok {
            head.headers.remove(CONTENT_LENGTH);
        }
        let hides_the_cut = short_ok || call.proxy.fault.is("hides-the-cut");
        let passed = Self {
            body,
            until: Box::pin(sleep_until(until)),
            begun: Instant::now(),
            status: head.status.as_u16(),
            call: Some(call),
            link: Some(link),
            again,
            broken: false,
            hides_the_cut,
        };
        let mut reply = Response::new(Down::from(Source::Passed(Box::new(passed))));
        *reply.status_mut() = head.status;
        *reply.headers_mut() = end_to_end(&head.headers);
        reply
    }

    /// Tells the engine, once.
    fn settle(&mut self, outcome: Outcome) {
        if let Some(mut call) = self.call.take() {
            let outcome = outcome.took(self.begun.elapsed());
            if outcome.is_success()
                && let Some(link) = self.link.take()
            {
                call.proxy.upstream.keep(link);
            }
            // Should the engine want another attempt: a byte has gone downstream, and the call
            // ends here.
            call.settle(&outcome);
        }
        self.link = None;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        if self.broken
            && let Some(again) = &mut self.again
        {
            match pin!(again).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Some(Err(BrokeOff))),
                Poll::Ready(Some(answer)) => {
                    (self.body, self.link) = (answer.body, Some(answer.link));
                    (self.again, self.broken) = (None, false);
                }
            }
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
            Poll::Ready(None) => {
                self.settle(Outcome::status(self.status));
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(_))) => return self.broke_off(cx),
            Poll::Pending => {}
        }
        if self.until.as_mut().poll(cx).is_ready() {
            self.settle(Outcome::new(OutcomeKind::Timeout).proving(Processed::Yes));
            return Poll::Ready(Some(Err(BrokeOff)));
        }
        Poll::Pending
    }

    fn broke_off(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        self.settle(Outcome::new(OutcomeKind::Truncated).proving(Processed::Yes));
        if self.hides_the_cut {
            return Poll::Ready(None);
        }
        self.broken = self.again.is_some();
        match self.broken {
            true => self.poll(cx),
            false => Poll::Ready(Some(Err(BrokeOff))),
        }
    }
}

impl Drop for Passed {
    /// hyper asks for no end where the length was announced.
    fn drop(&mut self) {
        if self.body.is_end_stream() && !self.broken {
            self.settle(Outcome::status(self.status));
        }
    }
}

impl Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        match self {
            Self::Passed(passed) => passed.poll(cx),
            Self::Kept { begin, .. } if !begin.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(begin)))))
            }
            Self::Kept { cut: true, .. } => Poll::Ready(Some(Err(BrokeOff))),
            Self::Kept {
                rest: Some(rest), ..
            } => Pin::new(rest).poll_frame(cx),
            Self::Kept { .. } => Poll::Ready(None),
        }
    }
}

impl Body for Down {
    type Data = Bytes;
    type Error = BrokeOff;

    /// hyper drops what it has not written yet when a body fails, the head of the reply included,
    /// and writes it when a body has nothing at the moment: so a cut is told one turn later.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        if self.cut {
            return Poll::Ready(Some(Err(BrokeOff)));
        }
        let frame = self.source.poll(cx);
        if !matches!(frame, Poll::Ready(Some(Err(_)))) {
            return frame;
        }
        self.cut = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Passed(passed) => passed.body.is_end_stream(),
            Source::Kept {
                begin, rest, cut, ..
            } => begin.is_empty() && rest.is_none() && !cut,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Passed(passed) => passed.body.size_hint(),
            Source::Kept {
                begin,
                rest: None,
                cut: false,
                ..
            } => SizeHint::with_exact(begin.len() as u64),
            Source::Kept { .. } => SizeHint::new(),
        }
    }
}
