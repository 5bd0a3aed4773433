//! What a partner is made with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{Partner as Engine, PartnerState, Policy};

use super::line::Line;
use super::shared::Core;
use super::{Partner, Shared, seed};
use crate::observe::Observer;
use crate::sync::Mutex;
use crate::time::{Sleeper, Time};

/// How a partner takes idempotency keys. To name it is to say that the partner honours them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub(crate) header: Box<str>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) quoted: bool,
}

impl Idempotency {
    /// By this header, bare, remembered for ever.
    #[must_use]
    pub fn header(name: &str) -> Self {
        Idempotency {
            header: name.into(),
            ttl: None,
            quoted: false,
        }
    }

    /// The partner remembers a key for so long. What may have been processed is not sent again
    /// after that.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The key goes in double quotes, as draft-ietf-httpapi-idempotency-key-header has it.
    #[must_use]
    pub const fn quoted(mut self) -> Self {
        self.quoted = true;
        self
    }
}

/// Makes a [`Partner`].
///
/// ```
/// use std::time::Duration;
/// use ressac::{Idempotency, Partner, Policy};
///
/// let policy = Policy { retries: 3, ..Policy::sync() };
/// let acme = Partner::builder(policy)
///     .name("acme")
///     .idempotency(Idempotency::header("Idempotency-Key").ttl(Duration::from_secs(86_400)))
///     .build()?;
/// assert_eq!(acme.name(), "acme");
///
/// let bad = Policy { attempt_timeout: Duration::ZERO, ..Policy::sync() };
/// let refused = Partner::builder(bad).build().unwrap_err();
/// assert!(refused.to_string().contains("attempt_timeout"));
/// # Ok::<(), ressac::PartnerError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct PartnerBuilder {
    policy: Policy,
    name: Box<str>,
    time: Option<Time>,
    seed: Option<u64>,
    state: Option<PartnerState>,
    observer: Option<Arc<dyn Observer>>,
    idempotency: Option<Idempotency>,
}

impl PartnerBuilder {
    pub(super) fn new(policy: Policy) -> Self {
        PartnerBuilder {
            policy,
            name: "partner".into(),
            time: None,
            seed: None,
            state: None,
            observer: None,
            idempotency: None,
        }
    }

    /// The name that stands in errors, spans, events and labels. Default `partner`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Another clock, and another way to sleep.
    pub fn sleeper(mut self, sleeper: impl Sleeper) -> Self {
        self.time = Some(Time::Other(Arc::new(sleeper)));
        self
    }

    /// Who is told of each attempt, outcome, wait and end.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// How the partner takes idempotency keys.
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Takes up what [`Partner::state`] gave before a restart. Its moments must be of the same
    /// clock.
    pub fn state(mut self, state: PartnerState) -> Self {
        self.state = Some(state);
        self
    }

    /// The same waits each time, for tests: in production clients with one seed would come back
    /// together. Keys are always random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The partner.
    ///
    /// # Errors
    ///
    /// [`PartnerError`] with all that is impossible in the policy, or a header that is none.
    pub fn build(self) -> Result<Partner, PartnerError> {
        let mut problems: Vec<String> = self
            .policy
            .problems()
            .map(|problem| problem.to_string())
            .collect();
        if let Some(idempotency) = &self.idempotency
            && !is_token(&idempotency.header)
        {
            problems.push(
                "idempotency.header: not a header name; write e.g. \"Idempotency-Key\"".to_owned(),
            );
        }
        if problems.is_empty() {
            Ok(self.build_unchecked())
        } else {
            let name = self.name;
            Err(PartnerError { name, problems })
        }
    }

    pub(super) fn build_unchecked(self) -> Partner {
        let time = self.time.unwrap_or_else(Time::ambient);
        let now = time.now();
        let engine = match self.state {
            Some(state) => Engine::restore(self.policy, state, now),
            None => Engine::new(self.policy, now),
        };
        let core = Core {
            engine,
            rng: match self.seed {
                Some(seed) => Xoshiro256PlusPlus::seed_from_u64(seed),
                None => seed::from_system(),
            },
            keys: seed::from_system(),
            line: Line::default(),
            latest: now,
        };
        Partner {
            shared: Arc::new(Shared {
                name: self.name,
                time,
                core: Mutex::new(core),
                observer: self.observer,
                idempotency: self.idempotency,
            }),
        }
    }
}

/// A field name is a token (RFC 9110 §5.1).
fn is_token(name: &str) -> bool {
    let tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 256 && name.bytes().all(tchar)
}

/// A partner that cannot be: what is impossible in its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartnerError {
    name: Box<str>,
    problems: Vec<String>,
}

impl PartnerError {
    /// Each problem with its field, what is wrong and what to write.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for PartnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the policy of {} is impossible: ", self.name)?;
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for PartnerError {}
