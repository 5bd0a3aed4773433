//! A handle to the system that is called.

mod builder;
pub(crate) mod line;
mod seed;
pub(crate) mod shared;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use ressac_policy::{Partner as Engine, PartnerState, PartnerView, Policy, Readiness, Timestamp};

pub use self::builder::{Idempotency, PartnerBuilder, PartnerError};
use self::shared::Core;
use crate::attempt::Attempt;
use crate::classify::ByError;
use crate::key::IdempotencyKey;
use crate::observe::Observer;
use crate::retry::{BlockingRetry, Never, Retry};
use crate::sync::Mutex;
use crate::time::Time;

/// One system that is called, with all that its callers share: retry budget, circuit breaker, rate
/// and concurrency.
///
/// Make one for each partner when the program starts and clone it into every task: a clone is the
/// same partner. The lock inside is held for a decision, never while anything waits.
///
/// ```
/// use ressac::{Partner, Policy, Reason};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let acme = Partner::new(Policy::sync());
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let mut replies = [Err(refused), Ok("paid")].into_iter();
/// let paid = acme.retry(|_attempt| std::future::ready(replies.next().unwrap())).await;
/// assert_eq!(paid.unwrap(), "paid");
///
/// // A failure tells why it was not tried again: this one may have arrived.
/// let failed = acme
///     .retry(async |_| Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))
///     .await;
/// assert_eq!(failed.unwrap_err().reason(), Reason::Ambiguous);
/// # }
/// ```
#[derive(Clone)]
pub struct Partner {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) name: Box<str>,
    pub(crate) time: Time,
    pub(crate) core: Mutex<Core>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) idempotency: Option<Idempotency>,
}

impl Partner {
    /// A partner nothing is known of yet, under this policy.
    ///
    /// A policy that contradicts itself never panics, but does not do what was meant:
    /// [`PartnerBuilder::build`] refuses it.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        PartnerBuilder::new(policy).build_unchecked()
    }

    /// A partner with a name, an observer, another clock and so on.
    pub fn builder(policy: Policy) -> PartnerBuilder {
        PartnerBuilder::new(policy)
    }

    /// An operation of an async closure, which is called for each attempt.
    ///
    /// As it stands the operation is taken for one that must not be repeated where it may have been
    /// done; [`Retry::idempotent`] or [`Retry::keyed`] say otherwise. An attempt that takes longer
    /// than [`Attempt::timeout`] is dropped.
    pub fn retry<F, Fut, T, E>(&self, op: F) -> Retry<F>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Retry::new(self.clone(), op, ByError, Never::new())
    }

    /// The same for a blocking closure: ends with [`BlockingRetry::call`]. The closure itself keeps
    /// to [`Attempt::timeout`].
    pub fn retry_blocking<F, T, E>(&self, op: F) -> BlockingRetry<F>
    where
        F: FnMut(Attempt) -> Result<T, E>,
    {
        BlockingRetry::new(self.clone(), op, ByError)
    }

    /// The name given, or `partner`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Breaker, budget and limiter in numbers.
    #[must_use]
    pub fn view(&self) -> PartnerView {
        let core = self.shared.core.lock();
        core.engine.view(self.shared.time.now())
    }

    /// When the next attempt may go, and what it waits for until then. Changes nothing.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let core = self.shared.core.lock();
        core.engine.readiness(self.shared.time.now())
    }

    /// A copy of the policy in force.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.shared.core.lock().engine.policy().clone()
    }

    /// Puts another policy in force. No bucket is filled and no breaker closed by it; operations
    /// under way keep their window.
    pub fn set_policy(&self, policy: Policy) {
        self.change(|engine, now| engine.set_policy(policy, now));
    }

    /// An operator has mended what opened, held or suspended the partner: a probe may go now.
    pub fn resume(&self) {
        self.change(Engine::resume);
    }

    /// The state worth keeping over a restart; give it to [`PartnerBuilder::state`].
    #[must_use]
    pub fn state(&self) -> PartnerState {
        self.shared.core.lock().engine.state().clone()
    }

    /// The partner's clock. [`Retry::deliver_by`] takes moments of this clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.time.now()
    }

    /// How this partner takes idempotency keys, if it is said to honour them.
    #[must_use]
    pub fn idempotency(&self) -> Option<&Idempotency> {
        self.shared.idempotency.as_ref()
    }

    /// A new key, as an operation of this partner makes one: for a caller who stores it before the
    /// call, so that the same operation can be taken up again after a crash.
    #[must_use]
    pub fn make_key(&self) -> IdempotencyKey {
        let mut core = self.shared.core.lock();
        let now = self.shared.time.now();
        crate::operation::made_key(&mut core.keys, now)
    }

    fn change(&self, change: impl FnOnce(&mut Engine, Timestamp)) {
        let woken = {
            let mut core = self.shared.core.lock();
            change(&mut core.engine, self.shared.time.now());
            core.line.call_all()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Partner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partner")
            .field("name", &self.shared.name)
            .field("view", &self.view())
            .finish_non_exhaustive()
    }
}
