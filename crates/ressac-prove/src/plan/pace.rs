//! The pace a client is given, or runs at: attempts, ceilings, limits.

use serde::{Deserialize, Serialize};

use crate::case::PolicyWish;
use crate::claims::{Claims, Jitter};

/// Attempts where nothing is claimed: a bound for a client that promises none.
const UNCLAIMED_ATTEMPTS: u32 = 10;

/// How fast the suite runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tempo {
    /// Base 50 ms, cap 400 ms, 4 attempts, where these can be set.
    #[default]
    Fast,
    /// Everything at its claimed size.
    Real,
}

/// What is known of this machine and this client before the first case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Start of an operation to its first byte, warm median, ms.
    pub lambda_ms: f64,
    /// Last byte of a reply to the result, ms.
    pub epsilon_ms: f64,
    /// Fast or real.
    pub tempo: Tempo,
    /// Of the mock's chance.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            lambda_ms: 1.0,
            epsilon_ms: 1.0,
            tempo: Tempo::Fast,
            seed: 1,
        }
    }
}

/// The pace: told where the client claims that it can be set, else as claimed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Attempts in all.
    pub attempts: u32,
    /// Whether somebody promised that number.
    pub attempts_known: bool,
    /// The first ceiling, ms; `None`: no backoff is claimed.
    pub base: Option<f64>,
    /// The largest ceiling, ms.
    pub cap: f64,
    /// What the ceiling grows by.
    pub factor: f64,
    /// The draw below it.
    pub jitter: Jitter,
    /// Time for the whole operation, ms.
    pub deadline: Option<f64>,
    /// Time for one attempt, ms.
    pub attempt_timeout: Option<f64>,
    /// The longest hint obeyed, ms.
    pub retry_after_max: Option<f64>,
    /// The names that are told to the client, with their values.
    pub told: Vec<(String, String)>,
    /// The budget, the breaker: those that cannot be switched off.
    pub stuck: Vec<String>,
}

impl Pace {
    /// Later wishes win. A wish for something that cannot be set is left out.
    #[must_use]
    pub fn resolve(wishes: &[&PolicyWish], claims: &Claims, setup: &Setup) -> Self {
        let wish = merged(wishes);
        let promises = &claims.claims;
        let real = setup.tempo == Tempo::Real;
        let can = |what: &str| promises.settable.iter().any(|s| s == what);
        let flag = |what: &str| promises.flags.iter().any(|f| f == what);
        let mut told = Vec::new();
        let mut tell = |name: &str, value: String| told.push((name.to_owned(), value));

        let wished = wish
            .attempts
            .or((!real).then_some(4))
            .filter(|_| can("attempts"));
        if let Some(n) = wished {
            tell("ATTEMPTS", n.to_string());
        }
        let attempts = wished.or(promises.attempts);
        let wait = Waits::resolve(&wish, claims, setup);
        if can("base") {
            tell("BASE_MS", whole(wait.base.unwrap_or(50.0)));
        }
        if can("cap") {
            tell("CAP_MS", whole(wait.cap));
        }
        if can("base") || can("cap") {
            tell("FACTOR", wait.factor.to_string());
            tell("JITTER", wait.jitter.text());
        }
        let deadline = wish
            .deadline_ms
            .filter(|_| can("deadline") || flag("deadline"));
        if let Some(ms) = deadline {
            tell("DEADLINE_MS", ms.to_string());
        }
        let limit = wish.attempt_timeout_ms;
        let limit = limit.filter(|_| can("attempt_timeout") || flag("attempt_timeout"));
        if let Some(ms) = limit {
            tell("ATTEMPT_TIMEOUT_MS", ms.to_string());
        }
        if can("retry_on") {
            let statuses = promises.statuses.iter().map(ToString::to_string);
            let words: Vec<String> = statuses.chain(promises.errors.iter().cloned()).collect();
            tell("RETRY_ON", words.join(","));
        }
        let ra = promises.retry_after.as_ref();
        let max = wish.retry_after_max_ms.filter(|_| can("retry_after_max"));
        if let Some(ms) = max {
            tell("RETRY_AFTER_MAX_MS", ms.to_string());
            let over = ra.map_or("clamp", |r| r.over_max.as_str());
            tell(
                "RETRY_AFTER_OVER_MAX",
                if over.is_empty() { "clamp" } else { over }.to_owned(),
            );
        }
        let stuck = switches(&wish, claims, &mut tell);
        Self {
            attempts: attempts.unwrap_or(UNCLAIMED_ATTEMPTS),
            attempts_known: attempts.is_some(),
            base: wait.base,
            cap: wait.cap,
            factor: wait.factor,
            jitter: wait.jitter,
            deadline: deadline.map(|ms| ms as f64),
            attempt_timeout: limit.map(|ms| ms as f64),
            retry_after_max: max
                .map(|ms| ms as f64)
                .or(ra.and_then(|r| r.max).map(|d| d.as_secs_f64() * 1000.0)),
            told,
            stuck,
        }
    }

    /// The ceiling of retry `r`, from 0, ms.
    #[must_use]
    pub fn ceiling(&self, r: u32) -> Option<f64> {
        let grown = self.base? * self.factor.powi(i32::try_from(r).unwrap_or(i32::MAX));
        Some(grown.min(self.cap))
    }

    /// The shortest wait of retry `r`, ms; 0 where no backoff is claimed.
    #[must_use]
    pub fn lo(&self, r: u32) -> f64 {
        let Some(c) = self.ceiling(r) else { return 0.0 };
        match self.jitter {
            Jitter::None | Jitter::Up(_) => c,
            Jitter::Full => 0.0,
            Jitter::Equal => c / 2.0,
            Jitter::Decorrelated => self.base.unwrap_or(0.0),
        }
    }

    /// The longest wait of retry `r`, ms.
    #[must_use]
    pub fn hi(&self, r: u32) -> Option<f64> {
        let c = self.ceiling(r)?;
        Some(match self.jitter {
            Jitter::None | Jitter::Full | Jitter::Equal => c,
            Jitter::Decorrelated => self.cap.min(self.base? * 3.0_f64.powi(r as i32 + 1)),
            Jitter::Up(x) => c * (1.0 + x),
        })
    }

    /// All waits at their longest, ms.
    #[must_use]
    pub fn sum_hi(&self) -> Option<f64> {
        let retries = self.attempts.saturating_sub(1).min(1000);
        (0..retries).map(|r| self.hi(r)).sum()
    }
}

/// The four numbers of a backoff.
struct Waits {
    base: Option<f64>,
    cap: f64,
    factor: f64,
    jitter: Jitter,
}

impl Waits {
    fn resolve(wish: &PolicyWish, claims: &Claims, setup: &Setup) -> Self {
        let promises = &claims.claims;
        let can = |what: &str| promises.settable.iter().any(|s| s == what);
        let backoff = promises.backoff.as_ref();
        let fast = setup.tempo == Tempo::Fast;
        let claimed_base = backoff.map(|b| b.base.as_secs_f64() * 1000.0);
        let claimed_cap = backoff.map(|b| b.cap.as_secs_f64() * 1000.0);
        let mut base = claimed_base;
        if can("base") && fast {
            let least = wish.base_lambdas.map_or(0.0, |k| k * setup.lambda_ms);
            base = Some((wish.base_ms.unwrap_or(50) as f64).max(least.ceil()));
        }
        let mut cap = claimed_cap.unwrap_or(30_000.0);
        if can("cap") && fast {
            let by_base = wish.cap_bases.and_then(|k| base.map(|b| b * k));
            let wished = by_base.or(wish.cap_ms.map(|ms| ms as f64)).unwrap_or(400.0);
            cap = wished.max(base.unwrap_or(0.0));
        }
        Self {
            base,
            cap,
            factor: backoff.map_or(2.0, |b| b.factor),
            jitter: backoff.map_or(Jitter::Full, |b| b.jitter),
        }
    }
}

/// Budget and breaker: off, unless the case is about them. Returns those that cannot be.
fn switches(
    wish: &PolicyWish,
    claims: &Claims,
    tell: &mut impl FnMut(&str, String),
) -> Vec<String> {
    let promises = &claims.claims;
    let can = |what: &str| promises.settable.iter().any(|s| s == what);
    let mut stuck = Vec::new();
    match (&wish.budget, &promises.budget) {
        (Some(_), Some(budget)) if can("budget") => tell("BUDGET", budget.told()),
        (None, _) if can("budget") => tell("BUDGET", "off".to_owned()),
        (None, Some(_)) => stuck.push("budget".to_owned()),
        _ => {}
    }
    match &wish.breaker {
        Some(text) if can("breaker") => tell("BREAKER", text.clone()),
        None if can("breaker") => tell("BREAKER", "off".to_owned()),
        None if promises.breaker.is_some() => stuck.push("breaker".to_owned()),
        _ => {}
    }
    stuck
}

fn merged(wishes: &[&PolicyWish]) -> PolicyWish {
    let mut out = PolicyWish::default();
    for w in wishes {
        out.attempts = w.attempts.or(out.attempts);
        out.base_ms = w.base_ms.or(out.base_ms);
        out.cap_ms = w.cap_ms.or(out.cap_ms);
        out.base_lambdas = w.base_lambdas.or(out.base_lambdas);
        out.cap_bases = w.cap_bases.or(out.cap_bases);
        out.deadline_ms = w.deadline_ms.or(out.deadline_ms);
        out.attempt_timeout_ms = w.attempt_timeout_ms.or(out.attempt_timeout_ms);
        out.retry_after_max_ms = w.retry_after_max_ms.or(out.retry_after_max_ms);
        out.budget = w.budget.clone().or(out.budget);
        out.breaker = w.breaker.clone().or(out.breaker);
    }
    out
}

fn whole(ms: f64) -> String {
    format!("{}", ms.round())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn claims(more: &str) -> Claims {
        let text = format!("[client]\nname = \"x\"\nmode = \"lines\"\n[claims]\n{more}");
        Claims::parse("c.toml", &text).unwrap()
    }

    const BACKOFF: &str =
        "backoff = { base = \"500ms\", cap = \"30s\", jitter = \"equal\" }\nattempts = 6\n";

    #[test]
    fn what_can_be_set_is_told_and_the_rest_is_as_claimed() {
        let wish = PolicyWish {
            deadline_ms: Some(2000),
            ..PolicyWish::default()
        };
        let fixed = Pace::resolve(&[&wish], &claims(BACKOFF), &Setup::default());
        assert_eq!(
            (fixed.base, fixed.cap, fixed.attempts),
            (Some(500.0), 30_000.0, 6)
        );
        assert!(fixed.told.is_empty() && fixed.deadline.is_none());

        let more = format!("{BACKOFF}settable = [\"base\", \"cap\", \"attempts\", \"deadline\"]");
        let told = Pace::resolve(&[&wish], &claims(&more), &Setup::default());
        assert_eq!((told.base, told.cap, told.attempts), (Some(50.0), 400.0, 4));
        assert_eq!(told.deadline, Some(2000.0));
        assert!(told.told.contains(&("JITTER".into(), "equal".into())));
        assert_eq!(
            (told.lo(1), told.hi(1), told.hi(9)),
            (50.0, Some(100.0), Some(400.0))
        );
        assert_eq!(told.sum_hi(), Some(50.0 + 100.0 + 200.0));
    }

    #[test]
    fn nothing_claimed_is_bounded_all_the_same() {
        let pace = Pace::resolve(&[], &claims(""), &Setup::default());
        assert_eq!((pace.attempts, pace.base, pace.hi(0)), (10, None, None));
        assert_eq!(pace.lo(3), 0.0);
    }

    #[test]
    fn a_budget_that_cannot_be_switched_off_is_named() {
        let pace = Pace::resolve(&[], &claims("budget = { ratio = 0.1 }"), &Setup::default());
        assert_eq!(pace.stuck, ["budget"]);
    }
}
