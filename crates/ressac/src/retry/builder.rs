//! An operation before it begins.

use std::time::Duration;

use ressac_policy::{Outcome, Timestamp, is_idempotent};

use super::drive::{Drive, Retrying};
use super::{Delivered, Never};
use crate::attempt::Attempt;
use crate::classify::{ByClosure, ByError, ByReply, Context, Judge, When};
use crate::error::RetryError;
use crate::key::IdempotencyKey;
use crate::operation::{Call, Options};
use crate::partner::Partner;

/// An operation of an async closure: say what it is, then `.await` it.
///
/// Dropping the future at any point cancels the operation: an attempt in flight gives its place
/// back, and nothing more is sent.
///
/// ```
/// use ressac::{Partner, Policy};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let acme = Partner::new(Policy::sync());
/// let mut tries = 0;
/// let value = acme
///     .retry(|_| {
///         tries += 1;
///         let result = if tries < 3 { Err("busy") } else { Ok(7) };
///         async move { result }
///     })
///     .idempotent()
///     .when(|error| *error == "busy")
///     .await;
/// assert_eq!((value.unwrap(), tries), (7, 3));
/// # }
/// ```
#[must_use = "an operation does nothing until it is awaited"]
#[derive(Debug)]
pub struct Retry<F, J = ByError, C = Never> {
    partner: Partner,
    options: Options,
    op: F,
    judge: J,
    cancel: C,
}

/// The settings that async and blocking operations have in common.
macro_rules! settings {
    () => {
        /// It may be repeated without harm, whatever became of an earlier attempt: a read, or a
        /// write that says where to and not how much more.
        pub const fn idempotent(mut self) -> Self {
            self.options.idempotent = true;
            self
        }

        /// An HTTP request of this method (RFC 9110 §9.2.2): `GET`, `PUT` and their like may be
        /// repeated, `POST` and `PATCH` may not.
        pub fn method(mut self, method: &str) -> Self {
            self.options.idempotent = is_idempotent(method);
            self
        }

        /// The closure sends [`Attempt::key`], and the partner honours it: for as long as the
        /// partner's [`Idempotency`](crate::Idempotency) says, else for ever.
        pub const fn keyed(mut self) -> Self {
            self.options.keyed = true;
            self
        }

        /// As [`keyed`](Self::keyed), and the partner remembers the key for `ttl`.
        pub const fn keyed_for(mut self, ttl: Duration) -> Self {
            self.options.keyed = true;
            self.options.key_ttl = Some(ttl);
            self
        }

        /// As [`keyed`](Self::keyed), with a key of the caller's: one that was stored before, or
        /// that names the business transaction.
        pub fn key(mut self, key: IdempotencyKey) -> Self {
            self.options.keyed = true;
            self.options.key = Some(key);
            self
        }

        /// What it sends can be sent once only, as a stream. Where a retry is needed after it had
        /// begun to leave, the operation ends as `body_not_replayable`.
        pub const fn body_once(mut self) -> Self {
            self.options.body_once = true;
            self
        }

        /// Nothing is sent from this moment of [`Partner::now`] on, whatever the window says.
        pub const fn deliver_by(mut self, moment: Timestamp) -> Self {
            self.options.deliver_by = Some(moment);
            self
        }

        /// Nothing is sent later than this after its start, whatever the window says.
        pub const fn within(mut self, time: Duration) -> Self {
            self.options.within = Some(time);
            self
        }
    };
}
pub(super) use settings;

impl<F, J, C> Retry<F, J, C> {
    pub(crate) fn new(partner: Partner, op: F, judge: J, cancel: C) -> Self {
        Retry {
            partner,
            options: Options::default(),
            op,
            judge,
            cancel,
        }
    }

    settings!();

    /// The closure keeps to [`Attempt::timeout`] itself, e.g. as the time limit of an HTTP client
    /// that also covers the body. Otherwise an attempt that takes longer is dropped.
    pub const fn limits_itself(mut self) -> Self {
        self.options.own_limit = true;
        self
    }

    /// Whether another attempt can help, by the error. For an error that says more
    /// [`classify`](Self::classify) it, or implement [`Classify`](crate::Classify).
    ///
    /// "Can help" is not "is safe": what nothing proves unsent is repeated only if the operation is
    /// [idempotent](Self::idempotent) or [keyed](Self::keyed).
    pub fn when<E, W: Fn(&E) -> bool>(self, when: W) -> Retry<F, When<W>, C> {
        self.judge(When(when))
    }

    /// What a result means, by a closure. A reply that is no success goes into the error.
    pub fn classify<T, E, K>(self, classify: K) -> Retry<F, ByClosure<K>, C>
    where
        K: Fn(&Result<T, E>, &Context) -> Outcome,
    {
        self.judge(ByClosure(classify))
    }

    /// `Ok` values are replies that may be failures, as an `http::Response` may be a 503. One that
    /// is goes into the error.
    ///
    /// A reply is kept while the operation waits for its next attempt, with all it holds. For one
    /// that holds a connection read its body inside the closure.
    pub fn replies(self) -> Retry<F, ByReply, C> {
        self.judge(ByReply)
    }

    /// By a [`Judge`].
    pub fn judge<J2>(self, judge: J2) -> Retry<F, J2, C> {
        Retry {
            partner: self.partner,
            options: self.options,
            op: self.op,
            judge,
            cancel: self.cancel,
        }
    }

    /// Ends as `cancelled` as soon as this future is ready, in an attempt as in a wait.
    pub fn cancelled_by<C2: Future<Output = ()>>(self, cancel: C2) -> Retry<F, J, C2> {
        Retry {
            partner: self.partner,
            options: self.options,
            op: self.op,
            judge: self.judge,
            cancel,
        }
    }

    #[cfg(any(feature = "reqwest", feature = "tower"))]
    pub(crate) fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The operation with its end: attempts, and whether it had been done already.
    ///
    /// # Errors
    ///
    /// [`RetryError`] if it was not done.
    pub fn detailed<Fut, T, E>(
        self,
    ) -> impl Future<Output = Result<Delivered<T>, RetryError<E, J::Reply>>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E>,
        C: Future<Output = ()>,
    {
        self.drive()
    }

    fn drive<Fut, T, E>(self) -> Drive<F, Fut, J, C, J::Reply, E>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E>,
        C: Future<Output = ()>,
    {
        let own_limit = self.options.own_limit;
        let call = Call::new(self.partner, self.options);
        Drive::new(call, own_limit, self.op, self.judge, self.cancel)
    }
}

impl<F, Fut, T, E, J, C> IntoFuture for Retry<F, J, C>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    C: Future<Output = ()>,
{
    type Output = Result<T, RetryError<E, J::Reply>>;
    type IntoFuture = Retrying<F, Fut, J, C, J::Reply, E>;

    fn into_future(self) -> Self::IntoFuture {
        Retrying::new(self.drive())
    }
}
