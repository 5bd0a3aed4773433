//! A policy: plain data, from code or from `ressac.toml`.

use core::time::Duration;

use crate::backoff::Backoff;
use crate::hint::VendorHints;
use crate::ratio::{Rate, Ratio};
use crate::status::{RetryOn, StatusSet};

/// Who waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Somebody waits: give up early, with a reason.
    Synchronous,
    /// The message lies in a store: wait in line, inside the window.
    Durable,
}

/// Everything that decides a retry. Start from [`Policy::sync`] or [`Policy::durable`].
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::Policy;
///
/// let policy = Policy { retries: 3, window: Some(Duration::from_secs(60)), ..Policy::sync() };
/// assert_eq!(policy.problems().next(), None);
///
/// let bad = Policy { attempt_timeout: Duration::ZERO, ..Policy::sync() };
/// let problem = bad.problems().next().unwrap();
/// assert_eq!(problem.field, "attempt_timeout");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Who waits for the answer.
    pub mode: Mode,
    /// The wait before each retry.
    pub backoff: Backoff,
    /// Attempts after the first: 5 means 6 attempts. Default 5 sync, 30 durable.
    pub retries: u32,
    /// The time an operation may take in all; nothing is sent after it. `None` is "off": no end.
    /// Default 5 min sync, 24 h durable.
    pub window: Option<Duration>,
    /// The time one attempt may take; more than zero. Default 10 s sync, 30 s durable.
    pub attempt_timeout: Duration,
    /// What `Retry-After` does.
    pub retry_after: RetryAfter,
    /// `None` is "off": retries are bounded by `retries` alone.
    pub budget: Option<BudgetConfig>,
    /// `None` is "off": failures open nothing. A hold or a suspension still ends with a probe and a
    /// paced drain, by the default settings.
    pub breaker: Option<BreakerConfig>,
    /// Rate and concurrency.
    pub limit: LimitConfig,
    /// How outcomes are judged.
    pub rules: Rules,
    /// Durable: so many permanent failures in a row that concern the partner, not the message,
    /// suspend it. `None` is "off". Default 3.
    pub suspend_after: Option<u32>,
}

/// What `Retry-After` and its relatives do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// The longest hint that is obeyed; `None` is the window. A durable operation waits the whole
    /// hint if the window allows, whatever stands here. Default 2 min sync.
    pub max: Option<Duration>,
    /// Jitter on top of the floor, as a share of it. Default 1: told `60`, clients come back
    /// spread over 60 to 120 s.
    pub spread: Ratio,
    /// What a synchronous operation does with a longer hint. Default [`OverMax::Clamp`].
    pub over_max: OverMax,
    /// Which relatives are believed. Default none.
    pub vendors: VendorHints,
    /// Durable: a hint on 429 or 503 holds the whole partner. Default true.
    pub hold: bool,
}

/// What a synchronous operation does with a hint longer than `retry_after.max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverMax {
    /// Waits the maximum.
    #[default]
    Clamp,
    /// Ends as `hint_over_max`.
    GiveUp,
}

/// When the budget is fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Deposit {
    /// By each first attempt: in a total outage a share `ratio` of retries goes on.
    #[default]
    Request,
    /// By each success: in a total outage retries cease.
    Success,
}

/// The retry budget of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// Tokens per deposit; a retry costs one. Default 0.1.
    pub ratio: Ratio,
    /// What bounds the savings: `ratio ×` the first attempts of this time. More than zero.
    /// Default 10 s.
    pub window: Duration,
    /// Tokens to start with, and the least that can be saved. Default 10.
    pub reserve: u32,
    /// Tokens that come by themselves, so that a quiet client recovers; `None` is "off".
    /// Default 0.1/s.
    pub trickle: Option<Rate>,
    /// Default [`Deposit::Request`].
    pub deposit: Deposit,
}

/// What a rate of failures or slow calls is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWindow {
    /// The calls of the last while, in tenths.
    Time(Duration),
    /// The last so many calls; 1 to 10 000.
    Count(u32),
}

/// The circuit breaker of a partner, and the drain after it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Opens at this share of failures over the window; `None` is "off". Default 0.5.
    pub failure_rate: Option<Ratio>,
    /// Opens at this share of slow calls over the window; `None` is "off", the default.
    pub slow_rate: Option<Ratio>,
    /// A call is slow from here on. Default 5 s.
    pub slow_call: Duration,
    /// Neither rate counts below so many calls. Default 20.
    pub min_calls: u32,
    /// Default 10 s.
    pub window: CallWindow,
    /// Opens after so many failures in a row; `None` is "off". Default 5.
    pub consecutive: Option<u32>,
    /// The first open time. Default 5 s.
    pub open: Duration,
    /// The open time is drawn within this share to either side; 0 to 1. Default 0.5.
    pub open_jitter: Ratio,
    /// The open time doubles while probes fail, up to here, jitter included. Default 60 s.
    pub open_max: Duration,
    /// Attempts let through half-open; 1 to 16. All must succeed. Default 3.
    pub probes: u8,
    /// A probe that says nothing for so long gives its place back. Default 10 s, and never
    /// sooner than a second after the attempt's own limit.
    pub probe_timeout: Duration,
    /// After closing: the rate of sending at first. Default 1/s.
    pub ramp_start: Rate,
    /// After closing: the rate doubles each step, up to the limit. Default 2 s.
    pub ramp_step: Duration,
}

/// Rate and concurrency of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    /// Attempts per time; `None` is "off", the default.
    pub rate: Option<Rate>,
    /// Attempts that may come at once before the rate binds; at least 1, the default.
    pub burst: u32,
    /// Attempts in flight; at least 1; `None` is "off". Default 64 sync, 8 durable.
    pub concurrency: Option<u32>,
    /// A 429 multiplies rate and concurrency by this; above 0, at most 1 (1 = not adaptive).
    /// Default 0.7.
    pub decrease: Ratio,
    /// Success gives back this share of the limit per second. Default 0.05.
    pub increase: Ratio,
}

/// How outcomes are judged, where a policy departs from the built-in table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Replaces the table's set of what is retried at all.
    pub retry_on: Option<RetryOn>,
    /// Answers of this partner that certainly mean *not processed*.
    pub unprocessed: StatusSet,
    /// The same, where a hint came along (`"503+retry-after"`).
    pub unprocessed_with_hint: StatusSet,
    /// Answers that mean *already done* after an earlier attempt that may have arrived.
    pub already_done: StatusSet,
}

impl Policy {
    /// The built-in policy for callers who wait.
    #[must_use]
    pub fn sync() -> Policy {
        Policy {
            mode: Mode::Synchronous,
            backoff: Backoff::default(),
            retries: 5,
            window: Some(Duration::from_secs(300)),
            attempt_timeout: Duration::from_secs(10),
            retry_after: RetryAfter {
                max: Some(Duration::from_secs(120)),
                spread: Ratio::ONE,
                over_max: OverMax::Clamp,
                vendors: VendorHints::NONE,
                hold: true,
            },
            budget: Some(BudgetConfig::default()),
            breaker: Some(BreakerConfig::default()),
            limit: LimitConfig::default(),
            rules: Rules {
                already_done: StatusSet::of(&[208]),
                ..Rules::default()
            },
            suspend_after: Some(3),
        }
    }

    /// The built-in policy for messages in a store.
    #[must_use]
    pub fn durable() -> Policy {
        let sync = Policy::sync();
        Policy {
            mode: Mode::Durable,
            backoff: Backoff {
                base: Duration::from_secs(2),
                cap: Duration::from_secs(600),
                ..sync.backoff
            },
            retries: 30,
            window: Some(Duration::from_secs(86_400)),
            attempt_timeout: Duration::from_secs(30),
            retry_after: RetryAfter {
                max: None,
                ..sync.retry_after
            },
            limit: LimitConfig {
                concurrency: Some(8),
                ..sync.limit
            },
            ..sync
        }
    }

    /// What is impossible or contradicts itself, each with the field it stands in (dotted, as in
    /// `ressac.toml`). Empty for a sound policy; an unsound one still never panics.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        crate::problems::of(self)
    }
}

impl Default for BudgetConfig {
    fn default() -> Self {
        BudgetConfig {
            ratio: Ratio::from_millionths(100_000),
            window: Duration::from_secs(10),
            reserve: 10,
            trickle: Rate::new(100_000, Duration::from_secs(1)),
            deposit: Deposit::Request,
        }
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        BreakerConfig {
            failure_rate: Some(Ratio::from_millionths(500_000)),
            slow_rate: None,
            slow_call: Duration::from_secs(5),
            min_calls: 20,
            window: CallWindow::Time(Duration::from_secs(10)),
            consecutive: Some(5),
            open: Duration::from_secs(5),
            open_jitter: Ratio::from_millionths(500_000),
            open_max: Duration::from_secs(60),
            probes: 3,
            probe_timeout: Duration::from_secs(10),
            ramp_start: Rate::per_second(1),
            ramp_step: Duration::from_secs(2),
        }
    }
}

impl Default for LimitConfig {
    fn default() -> Self {
        LimitConfig {
            rate: None,
            burst: 1,
            concurrency: Some(64),
            decrease: Ratio::from_millionths(700_000),
            increase: Ratio::from_millionths(50_000),
        }
    }
}

/// Something impossible in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, dotted as in `ressac.toml`: `breaker.probes`.
    pub field: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// What to write instead.
    pub fix: &'static str,
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.what, self.fix)
    }
}
