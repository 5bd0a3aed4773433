//! What a client promises: a file that its author writes, and the suite holds it to.

mod parts;
mod read;

pub use parts::{
    BackoffClaim, BreakerClaim, BudgetClaim, Jitter, KeysClaim, Mode, RetryAfterClaim,
};
use serde::{Deserialize, Serialize};

/// What is known of a client before it is started.
///
/// ```
/// use ressac_prove::Claims;
///
/// let claims = Claims::parse("acme.toml", r#"
/// [client]
/// name = "acme-http"
/// mode = "lines"
/// [claims]
/// methods = ["GET", "PUT"]
/// statuses = [429, 503]
/// attempts = 4
/// "#).unwrap();
/// assert!(claims.has("st:503") && claims.has("m:PUT") && !claims.has("err:reset"));
///
/// let bad = Claims::parse("acme.toml", "[client]\nname = \"x\"\nmod = \"lines\"\n").unwrap_err();
/// assert_eq!(bad.line(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Who it is.
    pub client: ClientInfo,
    /// What its documentation promises with the settings the command uses.
    #[serde(default)]
    pub claims: Promises,
}

/// Who the client is, and how it is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientInfo {
    /// Its name; the column of a comparison.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// What it is written in.
    #[serde(default)]
    pub language: String,
    /// How it is driven.
    pub mode: Mode,
    /// For subjects that are set up once: the address their cases run on, one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_url: Option<String>,
}

/// The promises. A claim left out is not made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Promises {
    /// Methods repeated without a key.
    pub methods: Vec<String>,
    /// Methods repeated when the operation has a key.
    pub keyed: Vec<String>,
    /// Statuses that are tried again.
    pub statuses: Vec<u16>,
    /// Statuses tried again only with a key.
    pub keyed_statuses: Vec<u16>,
    /// Failures without a reply that are tried again.
    pub errors: Vec<String>,
    /// Attempts in all, the first included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The wait before each retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffClaim>,
    /// What `Retry-After` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfterClaim>,
    /// Idempotency keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysClaim>,
    /// The retry budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetClaim>,
    /// The circuit breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerClaim>,
    /// Headers that may change from attempt to attempt.
    pub headers: HeadersClaim,
    /// Further abilities, by name.
    pub flags: Vec<String>,
    /// Which of the settings that the suite sends are heeded.
    pub settable: Vec<String>,
}

/// Headers that may change from attempt to attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadersClaim {
    /// Their names.
    pub per_attempt: Vec<String>,
    /// The one that carries the attempt's number; empty: none.
    pub attempt: String,
}

/// The words of `flags`.
pub(crate) const FLAGS: [&str; 12] = [
    "deadline",
    "attempt_timeout",
    "cancel",
    "unsent",
    "http2",
    "tls",
    "stream",
    "expect_100",
    "early_data",
    "signed",
    "nested",
    "reasons",
];

/// The words of `settable`.
pub(crate) const SETTABLE: [&str; 9] = [
    "attempts",
    "base",
    "cap",
    "deadline",
    "attempt_timeout",
    "retry_on",
    "retry_after_max",
    "budget",
    "breaker",
];

impl Claims {
    /// Is the need met? The words are those of a case's `needs`.
    #[must_use]
    pub fn has(&self, need: &str) -> bool {
        let c = &self.claims;
        if let Some((kind, what)) = need.split_once(':') {
            return match kind {
                "st" => what.parse().is_ok_and(|s| c.statuses.contains(&s)),
                "kst" => what.parse().is_ok_and(|s| c.keyed_statuses.contains(&s)),
                "m" => c.methods.iter().any(|m| m == what),
                "err" => c.errors.iter().any(|e| e == what),
                "set" => c.settable.iter().any(|s| s == what),
                "ra" => c.retry_after.as_ref().is_some_and(|r| r.has(what)),
                "vendor" => c.retry_after.as_ref().is_some_and(|r| r.believes(what)),
                "key" if what == "own" => {
                    c.has_key() && c.keys.as_ref().is_some_and(|k| k.made_by == "client")
                }
                "jitter" => c.backoff.as_ref().is_some_and(|b| match what {
                    "spread" => b.jitter != Jitter::None,
                    // At the cap the decorrelated law piles up by its own formula.
                    "cap" => !matches!(b.jitter, Jitter::None | Jitter::Decorrelated),
                    word => b.jitter.word() == word,
                }),
                "mode" => self.client.mode.word() == what,
                "over_max" => c.retry_after.as_ref().is_some_and(|r| r.over_max == what),
                _ => false,
            };
        }
        if let Some(least) = need.strip_prefix("A>=") {
            let told = c.settable.iter().any(|s| s == "attempts");
            let least = least.parse().unwrap_or(u32::MAX);
            return told || c.attempts.is_some_and(|a| a >= least);
        }
        if let Some(least) = need.strip_prefix("factor>=") {
            let least = least.parse().unwrap_or(f64::MAX);
            return c.backoff.as_ref().is_some_and(|b| b.factor >= least);
        }
        match need {
            "key" => c.has_key(),
            // One process for all operations, which a proxy is as well.
            "lines" => self.client.mode != Mode::Exec,
            "durable" => c.keys.as_ref().is_some_and(|k| k.durable),
            "budget" => c.budget.is_some(),
            "breaker" => c.breaker.is_some(),
            "backoff" => c.backoff.is_some(),
            flag => c.flags.iter().any(|f| f == flag),
        }
    }

    /// How many claims are made: an empty file must not look like full marks.
    #[must_use]
    pub fn count(&self) -> usize {
        let c = &self.claims;
        let ra = c.retry_after.as_ref().map_or(0, |r| {
            r.statuses.len() + r.forms.len() + r.vendor.len() + usize::from(r.max.is_some())
        });
        c.methods.len()
            + c.keyed.len()
            + c.statuses.len()
            + c.keyed_statuses.len()
            + c.errors.len()
            + c.flags.len()
            + c.settable.len()
            + ra
            + usize::from(c.attempts.is_some())
            + usize::from(c.backoff.is_some())
            + usize::from(c.keys.is_some())
            + usize::from(c.budget.is_some())
            + usize::from(c.breaker.is_some())
    }
}

impl Promises {
    /// Are POSTs repeated when they have a key?
    fn has_key(&self) -> bool {
        self.keyed.iter().any(|m| m == "POST")
    }
}
