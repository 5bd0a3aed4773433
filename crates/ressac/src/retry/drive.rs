//! An async operation under way.

use std::pin::Pin;
use std::task::{Context as Task, Poll};

use pin_project_lite::pin_project;
use ressac_policy::{End, Processed, Reason, Wait};

use super::Delivered;
use crate::attempt::Attempt;
use crate::classify::{Judge, outcomes};
use crate::error::{Last, RetryError};
use crate::operation::{Call, Next};
use crate::time::Nap;

pin_project! {
    /// The future of a [`Retry`](super::Retry). Dropping it cancels the operation.
    #[must_use = "futures do nothing unless polled"]
    pub struct Retrying<F, Fut, J, C, R, E> {
        #[pin]
        drive: Drive<F, Fut, J, C, R, E>,
    }
}

pin_project! {
    /// The fields are dropped in this order: the attempt before its place is given back.
    pub(crate) struct Drive<F, Fut, J, C, R, E> {
        #[pin]
        state: State<Fut>,
        call: Call,
        own_limit: bool,
        op: F,
        judge: J,
        last: Last<E, R>,
        #[pin]
        cancel: C,
    }
}

pin_project! {
    #[project = StateParts]
    enum State<Fut> {
        /// The engine is to be asked.
        Ask,
        Attempt {
            #[pin]
            attempt: Attempting<Fut>,
            timeout: std::time::Duration,
            #[pin]
            limit: Option<Nap>,
        },
        Wait {
            #[pin]
            nap: Nap,
        },
        Ended,
    }
}

#[cfg(not(feature = "tracing"))]
type Attempting<Fut> = Fut;
#[cfg(feature = "tracing")]
type Attempting<Fut> = tracing::instrument::Instrumented<Fut>;

impl<F, Fut, J, C, R, E> Retrying<F, Fut, J, C, R, E> {
    pub(super) fn new(drive: Drive<F, Fut, J, C, R, E>) -> Self {
        Retrying { drive }
    }
}

impl<F, Fut, J, C, R, E> Drive<F, Fut, J, C, R, E> {
    pub(super) fn new(call: Call, own_limit: bool, op: F, judge: J, cancel: C) -> Self {
        Drive {
            state: State::Ask,
            call,
            own_limit,
            op,
            judge,
            last: Last::Nothing,
            cancel,
        }
    }
}

impl<F, Fut, T, E, J, C> Future for Retrying<F, Fut, J, C, J::Reply, E>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    C: Future<Output = ()>,
{
    type Output = Result<T, RetryError<E, J::Reply>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        self.project()
            .drive
            .poll(cx)
            .map_ok(|delivered| delivered.value)
    }
}

/// What follows inside the loop of [`Drive::poll`].
enum Step<T> {
    Again,
    Pending,
    Done(T, End),
    Failed(End),
}

impl<F, Fut, T, E, J, C> Future for Drive<F, Fut, J, C, J::Reply, E>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    C: Future<Output = ()>,
{
    type Output = Result<Delivered<T>, RetryError<E, J::Reply>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        if self.as_mut().project().cancel.poll(cx).is_ready() {
            let end = self.as_mut().cancel();
            return Poll::Ready(Err(self.fail(end)));
        }
        loop {
            let step = match self.as_mut().project().state.project() {
                StateParts::Ask => self.as_mut().ask(cx),
                StateParts::Attempt { .. } => self.as_mut().attempt(cx),
                StateParts::Wait { nap } => {
                    let over = nap.poll(cx).is_ready();
                    let this = self.as_mut().project();
                    if !over && this.call.stay_in_line(cx.waker()) {
                        Step::Pending
                    } else {
                        self.as_mut().project().state.set(State::Ask);
                        Step::Again
                    }
                }
                StateParts::Ended => Step::Pending,
            };
            match step {
                Step::Again => {}
                Step::Pending => return Poll::Pending,
                Step::Done(value, end) => return Poll::Ready(Ok(Delivered { value, end })),
                Step::Failed(end) => return Poll::Ready(Err(self.fail(end))),
            }
        }
    }
}

impl<F, Fut, T, E, J, C> Drive<F, Fut, J, C, J::Reply, E>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
{
    fn ask(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Step<T> {
        let mut this = self.project();
        match this.call.poll(|| cx.waker().clone()) {
            Next::Send(attempt) => {
                let timeout = attempt.timeout();
                *this.last = Last::Nothing;
                #[cfg(feature = "tracing")]
                let span = crate::observe::attempt_span(this.call.partner.name(), &attempt);
                let guard = OnPanic(this.call);
                let attempt = (this.op)(attempt);
                std::mem::forget(guard);
                #[cfg(feature = "tracing")]
                let attempt = tracing::Instrument::instrument(attempt, span);
                this.state.set(State::Attempt {
                    attempt,
                    timeout,
                    limit: None,
                });
                Step::Again
            }
            Next::Wait(wait) => {
                this.state.set(sleep(this.call, &wait));
                Step::Again
            }
            Next::End(end) => Step::Failed(end),
        }
    }

    fn attempt(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Step<T> {
        let mut this = self.project();
        let StateParts::Attempt {
            attempt,
            timeout,
            mut limit,
        } = this.state.as_mut().project()
        else {
            return Step::Again;
        };
        // A panic of the closure's future unwinds through here: the place goes back at once.
        let guard = OnPanic(this.call);
        let polled = attempt.poll(cx);
        std::mem::forget(guard);
        let result = match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending if *this.own_limit => return Step::Pending,
            Poll::Pending => {
                if limit.is_none() {
                    let nap = this.call.partner.shared.time.nap(*timeout);
                    limit.set(Some(nap));
                }
                let over = limit
                    .as_pin_mut()
                    .is_none_or(|limit| limit.poll(cx).is_ready());
                if !over {
                    return Step::Pending;
                }
                None
            }
        };
        // What the attempt holds is let go before its place is.
        this.state.set(State::Ask);
        let next = this.call.settle(|context| match &result {
            Some(result) => this.judge.outcome(result, context),
            None => outcomes::timed_out(),
        });
        match (next, result) {
            (Next::End(end), Some(Ok(value))) if end.reason == Reason::Delivered => {
                this.state.set(State::Ended);
                Step::Done(value, end)
            }
            (next, result) => {
                *this.last = match result {
                    Some(Ok(value)) => this.judge.keep(value).map_or(Last::Nothing, Last::Reply),
                    Some(Err(error)) => Last::Error(error),
                    None => Last::Nothing,
                };
                match next {
                    Next::End(end) => Step::Failed(end),
                    Next::Wait(wait) => {
                        keep_less(this.judge, this.last);
                        this.state.set(sleep(this.call, &wait));
                        Step::Again
                    }
                    Next::Send(_) => Step::Again,
                }
            }
        }
    }
}

impl<F, Fut, J, C, R, E> Drive<F, Fut, J, C, R, E> {
    fn cancel(self: Pin<&mut Self>) -> End {
        let mut this = self.project();
        this.state.set(State::Ended);
        match this.call.cancel() {
            Next::End(end) => end,
            // The engine ends what is cancelled.
            Next::Send(_) | Next::Wait(_) => cancelled(),
        }
    }

    #[cold]
    fn fail(self: Pin<&mut Self>, end: End) -> RetryError<E, R> {
        let mut this = self.project();
        this.state.set(State::Ended);
        let last = std::mem::replace(this.last, Last::Nothing);
        RetryError::new(this.call.facts(end), last)
    }
}

/// Cancels, where it is dropped by a panic.
struct OnPanic<'a>(&'a mut Call);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn sleep<Fut>(call: &Call, wait: &Wait) -> State<Fut> {
    let time = &call.partner.shared.time;
    let left = wait.until.since(time.now());
    if left.is_zero() {
        return State::Ask;
    }
    State::Wait {
        nap: time.nap(left),
    }
}

/// What of the last attempt is kept while the operation waits.
pub(super) fn keep_less<T, E, J: Judge<T, E>>(judge: &J, last: &mut Last<E, J::Reply>) {
    *last = match std::mem::replace(last, Last::Nothing) {
        Last::Reply(reply) => judge
            .keep_while_waiting(reply)
            .map_or(Last::Nothing, Last::Reply),
        other => other,
    };
}

const fn cancelled() -> End {
    End {
        reason: Reason::Cancelled,
        blame: None,
        processed: Processed::Maybe,
        attempts: 0,
        already_done: false,
        last: None,
        hint: None,
    }
}
