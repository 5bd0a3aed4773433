//! What a scenario consists of.

use std::time::Duration;

use super::listener::{Certificate, ListenerSpec};
use super::{PathPattern, Quota};
use crate::step::{Reply, Script};

/// Everything a mock is told: routes with their scripts, outages, the idempotency store.
///
/// ```
/// use ressac_mock::Scenario;
///
/// let scenario = Scenario::parse(r#"
/// version = 1
/// [[route]]
/// name = "pay"
/// method = ["POST"]
/// path = "/{token}/v1/payments"
/// scope = "token"
/// script = "503 ra=2 x2, 201 create"
/// "#).unwrap();
/// assert_eq!(scenario.routes[0].name, "pay");
///
/// let err = Scenario::parse("version = 1\nsead = 3\n").unwrap_err();
/// assert_eq!((err.line(), err.column()), (2, 1));
/// assert!(err.to_string().contains("did you mean `seed`?"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Where all chance comes from.
    pub seed: u64,
    /// Times in which the partner is out; first match wins.
    pub outages: Vec<Outage>,
    /// The idempotency store; `None` is `idempotency = "off"`: a partner that honours no key.
    pub idempotency: Option<Idempotency>,
    /// The sockets; never empty.
    pub listeners: Vec<ListenerSpec>,
    /// What is served; first match wins. Empty: every path answers 200.
    pub routes: Vec<Route>,
}

impl Default for Scenario {
    /// No routes (every path answers 200), a listener `plain` and one `tls`, a store with its
    /// defaults.
    fn default() -> Self {
        Self {
            seed: 0,
            outages: Vec::new(),
            idempotency: Some(Idempotency::default()),
            listeners: vec![
                ListenerSpec::plain("plain"),
                ListenerSpec::tls("tls", Certificate::Valid),
            ],
            routes: Vec::new(),
        }
    }
}

impl Scenario {
    /// Whether any outage makes the listeners refuse.
    pub(crate) fn has_down(&self) -> bool {
        self.outages.iter().any(|o| o.action == OutageAction::Down)
    }

    /// The first route that needs an upstream.
    pub(crate) fn passing_route(&self) -> Option<&str> {
        let passes = |r: &&Route| r.script.replies().any(|r| r.pass);
        self.routes.iter().find(passes).map(|r| r.name.as_str())
    }

    /// Whether a step, an outage or a quota asks for `early`, so that a large body must really
    /// block.
    pub(crate) fn has_early(&self) -> bool {
        let out = |o: &Outage| matches!(&o.action, OutageAction::Reply(r) if r.early);
        let route = |r: &Route| {
            r.script.replies().any(|r| r.early) || r.quota.as_ref().is_some_and(|q| q.over.early)
        };
        self.outages.iter().any(out) || self.routes.iter().any(route)
    }
}

/// One route and its script.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its name, unique; the label of journal and metrics.
    pub name: String,
    /// The methods it takes; empty: all.
    pub methods: Vec<String>,
    /// The paths it takes.
    pub path: PathPattern,
    /// What arrivals are numbered by.
    pub scope: Scope,
    /// The header that carries the token, where the path does not.
    pub token_header: Option<String>,
    /// The listener it belongs to; `None`: all.
    pub listener: Option<String>,
    /// What its arrivals meet.
    pub script: Script,
    /// How a created resource is named, `{n}` being its number; default `{route}_{n}`. Where it is
    /// given, what was created can be read, replaced and removed under the path.
    pub resource_id: Option<String>,
    /// How many arrivals are let through.
    pub quota: Option<Quota>,
}

/// What arrivals are numbered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One counter for the route.
    Global,
    /// One per token (a captured path segment, or a header).
    Token,
    /// One per value of the idempotency header; absent is one scope, named empty.
    Key,
    /// One per TCP connection.
    Connection,
}

/// A time in which the partner is out. Outages take no step of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// When it begins, inclusive.
    pub from: Duration,
    /// When it ends, exclusive.
    pub to: Duration,
    /// What the times are counted from.
    pub clock: OutageClock,
    /// The routes that are out; `None`: everything.
    pub routes: Option<Vec<String>>,
    /// What an arrival meets.
    pub action: OutageAction,
}

/// What the times of an outage are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageClock {
    /// The start of the mock (or the last reset of its faults).
    Start,
    /// The first request head that was complete.
    FirstRequest,
    /// The first release of a barrier.
    Barrier,
    /// `arm` of the control API or of [`crate::Mock`].
    Armed,
}

/// What an arrival meets during an outage.
#[derive(Debug, Clone, PartialEq)]
pub enum OutageAction {
    /// The listeners refuse; requests on connections that are still open are reset.
    Down,
    /// This reply.
    Reply(Box<Reply>),
}

/// The idempotency store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The header that carries the key. Default `Idempotency-Key`.
    pub header: String,
    /// Routes on which `create` without a key is a 400. Default none.
    pub required: Vec<String>,
    /// What a repetition must share with the first. Default method, path and body.
    pub fingerprint: Vec<FingerprintPart>,
    /// How long a key stays in flight before the first try is taken for dead. Default 30 s.
    pub lease: Duration,
    /// How long a finished key is remembered. Default 24 h.
    pub ttl: Duration,
    /// How many keys are remembered; 1 to 1 000 000. Default 10 000.
    pub max_keys: usize,
}

impl Default for Idempotency {
    fn default() -> Self {
        Self {
            header: "Idempotency-Key".to_owned(),
            required: Vec::new(),
            fingerprint: vec![
                FingerprintPart::Method,
                FingerprintPart::Path,
                FingerprintPart::Body,
            ],
            lease: Duration::from_secs(30),
            ttl: Duration::from_secs(24 * 3600),
            max_keys: 10_000,
        }
    }
}

/// A part of a request that a repetition must share with the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FingerprintPart {
    /// The method.
    Method,
    /// The path, without the query.
    Path,
    /// The body, by its SHA-256.
    Body,
}
