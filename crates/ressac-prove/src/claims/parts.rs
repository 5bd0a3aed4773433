//! The parts of a claims file.

use std::time::Duration;

use ressac_config::parse_duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a client is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One process for each operation.
    Exec,
    /// One process for each part of a case; operations are lines on its standard input.
    Lines,
    /// The command is a proxy; the suite's own client sends through it.
    Proxy,
}

impl Mode {
    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Lines => "lines",
            Self::Proxy => "proxy",
        }
    }
}

/// The law by which a wait is drawn below its ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Exactly the ceiling.
    None,
    /// Uniform from 0 to the ceiling.
    Full,
    /// Half the ceiling, and uniform up to it.
    Equal,
    /// Uniform from the base to three times the wait before.
    Decorrelated,
    /// The ceiling, and uniform up to so much of it on top: `up:0.5`.
    Up(f64),
}

impl Jitter {
    /// The word, without the share of `up`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
            Self::Up(_) => "up",
        }
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Up(x) => format!("up:{x}"),
            other => other.word().to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "full" => Self::Full,
            "equal" => Self::Equal,
            "decorrelated" => Self::Decorrelated,
            _ => {
                let share: f64 = text.strip_prefix("up:")?.parse().ok()?;
                (share > 0.0 && share <= 10.0).then_some(Self::Up(share))?
            }
        })
    }
}

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is no jitter; write none, full, equal, decorrelated or up:0.5"
            ))
        })
    }
}

impl Serialize for Jitter {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text())
    }
}

/// A time in milliseconds, written as `500ms` or `30s`.
pub(crate) mod millis {
    use super::{Deserialize, Deserializer, Duration, Serializer, parse_duration};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(d)?;
        parse_duration(&text).map_err(|e| serde::de::Error::custom(e.to_string()))
    }

    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub(crate) fn serialize<S: Serializer>(t: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{}ms", t.as_millis()))
    }
}

/// The same, where it may be absent.
pub(crate) mod millis_opt {
    use super::{Deserializer, Duration, Serializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::millis::deserialize(d).map(Some)
    }

    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(t: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match t {
            Some(t) => super::millis::serialize(t, s),
            None => s.serialize_none(),
        }
    }
}

/// The wait before each retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackoffClaim {
    /// The first ceiling.
    #[serde(with = "millis")]
    pub base: Duration,
    /// The largest ceiling.
    #[serde(with = "millis")]
    pub cap: Duration,
    /// What the ceiling grows by.
    #[serde(default = "two")]
    pub factor: f64,
    /// The draw below it.
    pub jitter: Jitter,
}

fn two() -> f64 {
    2.0
}

/// What `Retry-After` does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryAfterClaim {
    /// On which statuses it is read.
    pub statuses: Vec<u16>,
    /// `seconds`, `date`.
    #[serde(default)]
    pub forms: Vec<String>,
    /// The longest hint obeyed.
    #[serde(default, with = "millis_opt", skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// `clamp` or `give_up`.
    #[serde(default)]
    pub over_max: String,
    /// Other headers that are believed.
    #[serde(default)]
    pub vendor: Vec<String>,
}

impl RetryAfterClaim {
    pub(super) fn has(&self, what: &str) -> bool {
        match what.parse::<u16>() {
            Ok(status) => self.statuses.contains(&status) && self.form("seconds"),
            Err(_) => self.form(what),
        }
    }

    fn form(&self, name: &str) -> bool {
        self.forms.iter().any(|f| f == name)
    }

    pub(super) fn believes(&self, header: &str) -> bool {
        self.vendor.iter().any(|v| v.eq_ignore_ascii_case(header))
    }
}

/// Idempotency keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysClaim {
    /// The header that carries them.
    #[serde(default = "key_header")]
    pub header: String,
    /// `client` or `caller`.
    #[serde(default = "caller")]
    pub made_by: String,
    /// Whether a key outlives the process.
    #[serde(default)]
    pub durable: bool,
}

fn key_header() -> String {
    "Idempotency-Key".to_owned()
}

fn caller() -> String {
    "caller".to_owned()
}

/// The retry budget: by ratio, or by tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetClaim {
    /// Tokens per first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What bounds the savings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Tokens to start with.
    #[serde(default)]
    pub reserve: f64,
    /// Tokens that come by themselves, as `0.1/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trickle: Option<String>,
    /// A bucket that starts with so many tokens, instead of a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// What a retry costs of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl BudgetClaim {
    /// Tokens per second that come by themselves.
    #[must_use]
    pub fn trickle_per_second(&self) -> f64 {
        let Some(text) = &self.trickle else {
            return 0.0;
        };
        let Some((count, unit)) = text.split_once('/') else {
            return 0.0;
        };
        let count: f64 = count.trim().parse().unwrap_or(0.0);
        match unit.trim() {
            "s" => count,
            "m" => count / 60.0,
            "h" => count / 3600.0,
            _ => 0.0,
        }
    }

    /// As the environment variable tells it.
    #[must_use]
    pub fn told(&self) -> String {
        match (self.tokens, self.ratio) {
            (Some(tokens), _) => format!("tokens={tokens},cost={}", self.cost.unwrap_or(1.0)),
            (None, ratio) => format!(
                "ratio={},window={},reserve={},trickle={}",
                ratio.unwrap_or(0.1),
                self.window.as_deref().unwrap_or("10s"),
                self.reserve,
                self.trickle.as_deref().unwrap_or("0/s"),
            ),
        }
    }
}

/// The circuit breaker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakerClaim {
    /// The share of failures it opens at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<f64>,
    /// The calls below which it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_calls: Option<u32>,
    /// Over which time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// How long it stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// How many it lets through then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<u32>,
}
