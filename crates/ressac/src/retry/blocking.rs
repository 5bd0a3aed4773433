//! The same for threads.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use ressac_policy::{Outcome, Reason, Timestamp, Wait, is_idempotent};

use super::Delivered;
use super::builder::settings;
use super::drive::keep_less;
use crate::attempt::Attempt;
use crate::classify::{ByClosure, ByError, ByReply, Context, Judge, When};
use crate::error::{Last, RetryError};
use crate::key::IdempotencyKey;
use crate::operation::{Call, Next, Options};
use crate::partner::Partner;

/// An operation of a blocking closure: say what it is, then [`call`](BlockingRetry::call).
///
/// Its waits block the thread. A closure cannot be interrupted: it keeps to [`Attempt::timeout`] by
/// the time limits of what it calls.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use ressac::{Partner, Policy};
///
/// fn daytime(partner: &Partner, addr: std::net::SocketAddr) -> Result<String, impl std::error::Error> {
///     partner
///         .retry_blocking(|attempt| {
///             let mut socket = TcpStream::connect_timeout(&addr, attempt.timeout())?;
///             socket.set_read_timeout(Some(attempt.timeout()))?;
///             let mut text = String::new();
///             socket.read_to_string(&mut text)?;
///             Ok::<_, std::io::Error>(text)
///         })
///         .idempotent()
///         .call()
/// }
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// # let addr = listener.local_addr().unwrap();
/// # std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"noon").unwrap());
/// # assert_eq!(daytime(&Partner::new(Policy::sync()), addr).unwrap(), "noon");
/// ```
#[must_use = "an operation does nothing until it is called"]
#[derive(Debug)]
pub struct BlockingRetry<F, J = ByError> {
    partner: Partner,
    options: Options,
    op: F,
    judge: J,
}

impl<F, J> BlockingRetry<F, J> {
    pub(crate) fn new(partner: Partner, op: F, judge: J) -> Self {
        BlockingRetry {
            partner,
            options: Options::default(),
            op,
            judge,
        }
    }

    settings!();

    /// Whether another attempt can help, by the error.
    pub fn when<E, W: Fn(&E) -> bool>(self, when: W) -> BlockingRetry<F, When<W>> {
        self.judge(When(when))
    }

    /// What a result means, by a closure. A reply that is no success goes into the error.
    pub fn classify<T, E, K>(self, classify: K) -> BlockingRetry<F, ByClosure<K>>
    where
        K: Fn(&Result<T, E>, &Context) -> Outcome,
    {
        self.judge(ByClosure(classify))
    }

    /// `Ok` values are replies that may be failures; one that is goes into the error.
    pub fn replies(self) -> BlockingRetry<F, ByReply> {
        self.judge(ByReply)
    }

    /// By a [`Judge`].
    pub fn judge<J2>(self, judge: J2) -> BlockingRetry<F, J2> {
        BlockingRetry {
            partner: self.partner,
            options: self.options,
            op: self.op,
            judge,
        }
    }

    /// Makes the attempts, with the waits between them.
    ///
    /// # Errors
    ///
    /// [`RetryError`] if it was not done.
    pub fn call<T, E>(self) -> Result<T, RetryError<E, J::Reply>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
        J: Judge<T, E>,
    {
        self.detailed().map(|delivered| delivered.value)
    }

    /// The same, with its end: attempts, and whether it had been done already.
    ///
    /// # Errors
    ///
    /// [`RetryError`] if it was not done.
    pub fn detailed<T, E>(mut self) -> Result<Delivered<T>, RetryError<E, J::Reply>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
        J: Judge<T, E>,
    {
        let mut call = Call::new(self.partner, self.options);
        let mut last = Last::Nothing;
        let end = loop {
            let attempt = match call.poll(unparker) {
                Next::Send(attempt) => attempt,
                Next::Wait(wait) => {
                    park(&mut call, &wait);
                    continue;
                }
                Next::End(end) => break end,
            };
            // Should it panic, dropping `call` gives the place back.
            let result = (self.op)(attempt);
            let next = call.settle(|context| self.judge.outcome(&result, context));
            last = match (&next, result) {
                (Next::End(end), Ok(value)) if end.reason == Reason::Delivered => {
                    return Ok(Delivered { value, end: *end });
                }
                (_, Ok(value)) => self.judge.keep(value).map_or(Last::Nothing, Last::Reply),
                (_, Err(error)) => Last::Error(error),
            };
            match next {
                Next::End(end) => break end,
                Next::Wait(wait) => {
                    keep_less(&self.judge, &mut last);
                    park(&mut call, &wait);
                }
                Next::Send(_) => {}
            }
        };
        Err(RetryError::new(call.facts(end), last))
    }
}

/// Blocks until the time has come, or until called from the line.
fn park(call: &mut Call, wait: &Wait) {
    let waker = unparker();
    loop {
        let time = call.partner.shared.time.clone();
        let left = wait.until.since(time.now());
        if left.is_zero() || !call.stay_in_line(&waker) {
            return;
        }
        time.park(left);
    }
}

fn unparker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Waker::from(Arc::new(Unpark(std::thread::current())))
}
