//! What a case consists of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// How binding a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Broken: fail.
    Must,
    /// Broken: warn, or fail under `--strict`.
    Should,
    /// Never a failure; always a note.
    Check,
}

impl Level {
    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Check => "check",
        }
    }
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `A01/9110-15.6.4/get-503-once`.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// How binding it is.
    pub level: Level,
    /// Claims without which it is not run.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Level where a need of the first kind is met but this one is not (H06).
    #[serde(default)]
    pub check_unless: Vec<String>,
    /// Wished settings; see [`PolicyWish`].
    #[serde(default)]
    pub policy: PolicyWish,
    /// The only part, written short.
    #[serde(default)]
    pub op: Vec<OpSpec>,
    /// Several parts, each with a mock and a process of its own.
    #[serde(default)]
    pub part: Vec<Part>,
    /// A rule over all operations of a part.
    #[serde(default)]
    pub rule: Option<RuleText>,
    /// What must have been seen besides the standard evidence.
    #[serde(default)]
    pub evidence: Option<RuleText>,
    /// No result at the case limit is a failure.
    #[serde(default)]
    pub must_end: bool,
    /// The longest the case may take, in seconds, instead of `--case-limit`.
    #[serde(default)]
    pub limit_s: Option<u64>,
    /// Where the rule comes from.
    pub source: String,
    /// Why it matters.
    pub why: String,
    /// The usual mistake.
    #[serde(default)]
    pub mistake: String,
    /// What each profile changes.
    #[serde(default)]
    pub profiles: BTreeMap<String, ProfileChange>,
    /// Faults of a client that must turn it red.
    #[serde(default)]
    pub mutants: Vec<String>,
}

impl Case {
    /// `A01`.
    #[must_use]
    pub fn number(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// `A`.
    #[must_use]
    pub fn group(&self) -> char {
        self.id.chars().next().unwrap_or('?')
    }

    /// Does it test a law, which one sample in a thousand breaks by chance?
    pub(crate) fn tests_a_law(&self) -> bool {
        let rules = self.op.iter().filter_map(|op| op.group.as_ref());
        rules
            .into_iter()
            .any(|r| r.0.mentions("law") || r.0.mentions("law_at_cap"))
    }

    /// Its parts; the short form is one.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        if self.part.is_empty() {
            let op = self.op.clone();
            return vec![Part {
                op,
                ..Part::default()
            }];
        }
        self.part.clone()
    }
}

/// A rule as it stands in a case; reading the case checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleText(pub Rule);

impl<'de> Deserialize<'de> for RuleText {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map(RuleText).map_err(serde::de::Error::custom)
    }
}

impl Serialize for RuleText {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

/// Settings that a case would like the client to have. Told only where they are claimed settable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyWish {
    /// Attempts in all.
    pub attempts: Option<u32>,
    /// The first ceiling, ms.
    pub base_ms: Option<u64>,
    /// The largest ceiling, ms.
    pub cap_ms: Option<u64>,
    /// Base is at least so many λ.
    pub base_lambdas: Option<f64>,
    /// Cap is so many times the base.
    pub cap_bases: Option<f64>,
    /// Time for the whole operation, ms.
    pub deadline_ms: Option<u64>,
    /// Time for one attempt, ms.
    pub attempt_timeout_ms: Option<u64>,
    /// The longest hint obeyed, ms.
    pub retry_after_max_ms: Option<u64>,
    /// `claimed`: as claimed, instead of off.
    pub budget: Option<String>,
    /// A text for `PROVE_BREAKER`, instead of off.
    pub breaker: Option<String>,
}

/// A part: a mock, and a process of the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Part {
    /// Its name in reports.
    pub name: String,
    /// Claims without which it is left out.
    pub needs: Vec<String>,
    /// The connection script of its listener.
    pub accept: Option<String>,
    /// What the listener speaks; empty: `http/1.1`.
    pub speak: Vec<String>,
    /// TLS, with this certificate.
    pub tls: Option<String>,
    /// The listener refuses so long at the start: `A07`.
    pub down: bool,
    /// Outages.
    pub outage: Vec<OutageSpec>,
    /// A quota of the scenario, as its TOML.
    pub quota: Option<String>,
    /// Settings that differ from the case's.
    pub policy: PolicyWish,
    /// What is done to the client while it waits.
    pub interrupt: Option<Interrupt>,
    /// How long is watched at least, ms.
    pub watch_ms: u64,
    /// Its operations.
    pub op: Vec<OpSpec>,
}

/// An outage of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// From, ms.
    pub from_ms: u64,
    /// To, ms.
    pub to_ms: u64,
    /// The mock's word for the clock.
    pub clock: String,
    /// The step served.
    #[serde(rename = "do")]
    pub action: String,
}

/// What is done to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// `term`, `kill` (and started again), `cancel`, `cut`: a cancel by which the connection to a
    /// proxy is reset instead of closed.
    pub what: String,
    /// So long after the first reply, ms.
    pub after_ms: u64,
}

/// One operation, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpSpec {
    /// Its name in reports.
    pub name: String,
    /// Claims without which it is left out.
    pub needs: Vec<String>,
    /// Claims with which it is left out (`st:403`).
    pub unless: Vec<String>,
    /// How many.
    pub count: u32,
    /// How many in exec mode, where each is a process.
    pub count_exec: Option<u32>,
    /// `own`: each its own client instance; `one`: all share one.
    pub client: String,
    /// Method.
    pub method: String,
    /// What the mock answers.
    pub script: String,
    /// `none`, `given`, `own`.
    pub key: String,
    /// Operations that give the same name share one given key.
    pub key_name: Option<String>,
    /// The caller declares it repeatable.
    pub safe: bool,
    /// Bytes of its body; absent: none.
    pub body: Option<u64>,
    /// The body can be read once only.
    pub stream: bool,
    /// Header lines to send.
    pub headers: Vec<(String, String)>,
    /// Query of the target.
    pub query: String,
    /// Started so long after the part, ms.
    pub at_ms: u64,
    /// Started so many per second.
    pub rate: f64,
    /// Started after the result of this one.
    pub after: Option<String>,
    /// So long after it, ms.
    pub delay_ms: u64,
    /// Watched so long, ms, or until the result; no result is needed.
    pub watch_ms: u64,
    /// When each passes.
    pub rule: Option<RuleText>,
    /// When all together pass.
    pub group: Option<RuleText>,
    /// Evidence of each.
    pub evidence: Option<RuleText>,
    /// Bytes of the one complete reply, where `whole` is asked.
    pub whole: Option<u64>,
    /// Fewer attempts than finite steps are allowed.
    pub fewer: bool,
    /// `1.1`, `2`, `h2c`.
    pub http: String,
}

impl OpSpec {
    /// Offered as load: a breaker or a budget may keep it from the wire.
    pub(crate) fn is_load(&self) -> bool {
        self.rate > 0.0 && self.client != "own"
    }
}

impl Default for OpSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            needs: Vec::new(),
            unless: Vec::new(),
            count: 1,
            count_exec: None,
            client: "own".to_owned(),
            method: "GET".to_owned(),
            script: "200".to_owned(),
            key: "none".to_owned(),
            key_name: None,
            safe: false,
            body: None,
            stream: false,
            headers: Vec::new(),
            query: String::new(),
            at_ms: 0,
            rate: 0.0,
            after: None,
            delay_ms: 0,
            watch_ms: 0,
            rule: None,
            group: None,
            evidence: None,
            whole: None,
            fewer: false,
            http: "1.1".to_owned(),
        }
    }
}

/// What a profile changes of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileChange {
    /// Another level.
    pub level: Option<Level>,
    /// Not run under it, with the reason.
    pub skip: Option<String>,
    /// Another rule for each operation.
    pub rule: Option<RuleText>,
    /// Another line for people, where it asks for something else.
    pub title: Option<String>,
    /// Other claims without which it is not run.
    pub needs: Option<Vec<String>>,
    /// Other parts, in the place of the case's own.
    pub part: Vec<Part>,
    /// Faults of a subject of this profile that must turn it red.
    pub mutants: Vec<String>,
    /// What it means, for people.
    pub note: String,
}
