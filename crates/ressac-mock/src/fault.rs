//! Faults that come and go while the mock runs, each with an end (MO-7).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::arrive::Matched;
use crate::clock::nanos;
use crate::draw::draw;
use crate::notation;
use crate::scenario::{PathPattern, Scope, plain_step};
use crate::step::{Reply, RetryAfter};
use crate::wire::RequestHead;

/// The longest that a fault may last.
const MAX_TTL: Duration = Duration::from_secs(3600);
/// The most faults at a time.
const MAX_FAULTS: usize = 1000;
/// The most values of a fault's scope.
const MAX_SCOPES: usize = 100_000;

/// A fault: what it hits, what then happens, and when it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The method it hits; `None`: all.
    pub method: Option<String>,
    /// The paths it hits; `None`: all.
    pub path: Option<PathPattern>,
    /// The header it needs, and its value if that matters.
    pub header: Option<(String, Option<String>)>,
    /// What the arrival meets: one step, as in a script.
    pub step: String,
    /// How long it lasts, at most an hour.
    pub ttl: Duration,
    /// How many arrivals it hits; `None`: all. Counted in each value of the scope.
    pub times: Option<u64>,
    /// How many it spares before.
    pub skip: u64,
    /// The share it hits, above 0 and at most 1, drawn from the seed.
    pub p: f64,
    /// What `times` and `skip` are counted by.
    pub scope: Scope,
}

impl Fault {
    /// A fault that hits everything for a time.
    pub fn new(step: &str, ttl: Duration) -> Self {
        Self {
            method: None,
            path: None,
            header: None,
            step: step.to_owned(),
            ttl,
            times: None,
            skip: 0,
            p: 1.0,
            scope: Scope::Global,
        }
    }

    /// Reads what `POST faults` takes.
    ///
    /// ```
    /// use ressac_mock::Fault;
    ///
    /// let fault = Fault::from_json(br#"{"do": "503 ra=1", "ttl": "30s", "times": 3}"#).unwrap();
    /// assert_eq!(fault.times, Some(3));
    /// assert!(Fault::from_json(br#"{"do": "503"}"#).unwrap_err().contains("ttl"));
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong and how to write it.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(text).map_err(|e| format!("not JSON: {e}"))?;
        let Value::Object(map) = value else {
            return Err("a fault is an object".to_owned());
        };
        known(&map, &["match", "do", "ttl", "times", "skip", "p", "scope"])?;
        let Some(step) = map.get("do").and_then(Value::as_str) else {
            return Err("a fault needs `do`, a step like \"503 ra=1\"".to_owned());
        };
        let Some(ttl) = map.get("ttl").and_then(Value::as_str) else {
            return Err("a fault needs `ttl`, like \"30s\": every fault has an end".to_owned());
        };
        let ttl = notation::duration(ttl).map_err(|(what, fix)| format!("ttl: {what}; {fix}"))?;
        let mut fault = Self::new(step, ttl);
        fault.times = number(&map, "times")?;
        fault.skip = number(&map, "skip")?.unwrap_or(0);
        if let Some(p) = map.get("p") {
            fault.p = p.as_f64().ok_or("`p` is a number above 0 and at most 1")?;
        }
        fault.scope = match map.get("scope").map(Value::as_str) {
            None | Some(Some("global")) => Scope::Global,
            Some(Some("token")) => Scope::Token,
            Some(Some("key")) => Scope::Key,
            Some(Some("connection")) => Scope::Connection,
            _ => return Err("`scope` is global, token, key or connection".to_owned()),
        };
        match map.get("match") {
            None => {}
            Some(Value::Object(m)) => fault.read_match(m)?,
            Some(_) => return Err("`match` is an object of method, path and header".to_owned()),
        }
        Ok(fault)
    }

    fn read_match(&mut self, map: &Map<String, Value>) -> Result<(), String> {
        known(map, &["method", "path", "header"])?;
        let text = |name: &str| match map.get(name) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.as_str())),
            Some(_) => Err(format!("`{name}` is a string")),
        };
        self.method = text("method")?.map(str::to_owned);
        self.path = match text("path")? {
            None => None,
            Some(p) => {
                Some(PathPattern::parse(p).map_err(|(what, fix)| format!("path: {what}; {fix}"))?)
            }
        };
        self.header = text("header")?.map(|h| match h.split_once(':') {
            Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
            None => (h.trim().to_owned(), None),
        });
        Ok(())
    }

    /// Whether its step passes the request on.
    pub(crate) fn needs_upstream(&self) -> bool {
        self.check().is_ok_and(|reply| reply.pass)
    }

    /// Whether its step replies before the body is read.
    pub(crate) fn is_early(&self) -> bool {
        self.check().is_ok_and(|reply| reply.early)
    }

    fn check(&self) -> Result<Box<Reply>, String> {
        if self.ttl.is_zero() || self.ttl > MAX_TTL {
            return Err("`ttl` lies above 0 and at most at 1h".to_owned());
        }
        if self.times == Some(0) {
            return Err("`times` 0 hits nothing".to_owned());
        }
        if !(self.p > 0.0 && self.p <= 1.0) {
            return Err("`p` is a number above 0 and at most 1".to_owned());
        }
        let step = notation::parse_step(&self.step).map_err(|e| format!("do: {e}"))?;
        let mut reply =
            plain_step(step, "a fault").map_err(|(what, fix)| format!("do: {what}; {fix}"))?;
        if reply.retry_after == Some(RetryAfter::Auto) && self.times.is_some() {
            return Err("`ra=auto` counts to the end of `ttl`; leave `times` out".to_owned());
        }
        crate::scenario::read_file(&mut reply, None)
            .map_err(|(what, fix)| format!("do: {what}; {fix}"))?;
        Ok(reply)
    }
}

fn known(map: &Map<String, Value>, names: &[&str]) -> Result<(), String> {
    match map.keys().find(|k| !names.contains(&k.as_str())) {
        Some(other) => Err(format!(
            "unknown key {other:?}; there are {}",
            names.join(", ")
        )),
        None => Ok(()),
    }
}

fn number(map: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match map.get(name) {
        None => Ok(None),
        Some(v) => match v.as_u64() {
            Some(n) => Ok(Some(n)),
            None => Err(format!("`{name}` is a whole number")),
        },
    }
}

/// The faults of a mock.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    active: BTreeMap<u64, Active>,
    last: u64,
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    reply: Box<Reply>,
    ends: u64,
    /// Seen and hit, by value of the scope.
    counts: HashMap<String, (u64, u64)>,
    hits: u64,
}

/// A fault that hits.
pub(crate) struct Hit {
    pub(crate) id: u64,
    pub(crate) reply: Box<Reply>,
    pub(crate) ends: u64,
}

impl Faults {
    /// Adds a fault; its id.
    pub(crate) fn add(&mut self, fault: Fault, now: u64) -> Result<u64, String> {
        let reply = fault.check()?;
        self.expire(now);
        if self.active.len() >= MAX_FAULTS {
            return Err("there are 1000 faults already; delete one".to_owned());
        }
        self.last += 1;
        let active = Active {
            ends: now.saturating_add(nanos(fault.ttl)),
            fault,
            reply,
            counts: HashMap::new(),
            hits: 0,
        };
        self.active.insert(self.last, active);
        Ok(self.last)
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        self.active.remove(&id).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.active.clear();
    }

    fn expire(&mut self, now: u64) {
        self.active.retain(|_, a| now < a.ends);
    }

    /// The first fault that hits an arrival.
    pub(crate) fn hit(&mut self, head: &RequestHead, m: &Matched<'_>, seed: u64) -> Option<Hit> {
        if self.active.is_empty() {
            return None;
        }
        self.expire(m.now);
        let found = self
            .active
            .iter_mut()
            .find_map(|(id, a)| a.hits(*id, head, m, seed).then_some(*id))?;
        let a = self.active.get(&found)?;
        let hit = Hit {
            id: found,
            reply: a.reply.clone(),
            ends: a.ends,
        };
        // One counter for all: once it is full, the fault has gone.
        if a.fault.scope == Scope::Global && a.fault.times.is_some_and(|t| a.hits >= t) {
            self.active.remove(&found);
        }
        Some(hit)
    }

    /// What `GET faults` shows.
    pub(crate) fn list(&mut self, now: u64) -> Value {
        self.expire(now);
        let one = |(id, a): (&u64, &Active)| {
            json!({
                "id": id,
                "do": a.fault.step,
                "hits": a.hits,
                "times": a.fault.times,
                "left_ms": (a.ends - now) / 1_000_000,
            })
        };
        self.active.iter().map(one).collect()
    }
}

impl Active {
    fn hits(&mut self, id: u64, head: &RequestHead, m: &Matched<'_>, seed: u64) -> bool {
        let f = &self.fault;
        let captured = match &f.path {
            None => None,
            Some(pattern) => match pattern.matches(head.path()) {
                Some(token) => token,
                None => return false,
            },
        };
        if f.method
            .as_ref()
            .is_some_and(|method| *method != head.method)
        {
            return false;
        }
        if let Some((name, value)) = &f.header {
            let got = head.header(name);
            if got.is_none() || value.as_deref().is_some_and(|v| got != Some(v)) {
                return false;
            }
        }
        let scope = match f.scope {
            Scope::Global => String::new(),
            Scope::Token => captured.unwrap_or(m.token).to_owned(),
            Scope::Key => m.key.unwrap_or_default().to_owned(),
            Scope::Connection => m.conn.to_string(),
        };
        if self.counts.len() >= MAX_SCOPES && !self.counts.contains_key(&scope) {
            return false;
        }
        let (seen, hit) = self.counts.entry(scope.clone()).or_default();
        *seen += 1;
        let spared = *seen <= f.skip || f.times.is_some_and(|t| *hit >= t);
        if spared || (f.p < 1.0 && draw(seed, &format!("fault-{id}"), &scope, *seen, "pick") >= f.p)
        {
            return false;
        }
        *hit += 1;
        self.hits += 1;
        true
    }
}
