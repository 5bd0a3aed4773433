//! Faults that can be switched on by name: each is a mistake that clients really make, and each
//! must turn its own case red.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use ressac_http::{ClientConfig, Failure, FailureKind, Reply};
use ressac_policy::{
    End, Hint, HintSource, Jitter, OperationSpec, Outcome, Policy, Ratio, Reason, Timestamp,
    VendorHints,
};

use crate::done::sha256;
use crate::told::Told;

/// At most one fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Option<String>);

/// What was seen of an operation so far.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) attempts: u32,
    pub(crate) status: Option<u16>,
    pub(crate) failure: Option<FailureKind>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) sent_len: usize,
    pub(crate) stream: bool,
    pub(crate) http2: bool,
    pub(crate) goaway: bool,
    /// How many attempts the instance had made before.
    pub(crate) turn: usize,
    pub(crate) was_refused: bool,
    pub(crate) was_cut: bool,
    pub(crate) reused: bool,
    pub(crate) sticky: Option<Duration>,
    pub(crate) stamp: Option<u64>,
}

impl Seen {
    pub(crate) fn new(method: &str, sent_len: usize, stream: bool, http2: bool) -> Self {
        Self {
            method: method.to_owned(),
            attempts: 0,
            status: None,
            failure: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            sent_len,
            stream,
            http2,
            goaway: false,
            turn: 0,
            was_refused: false,
            was_cut: false,
            reused: false,
            sticky: None,
            stamp: None,
        }
    }

    pub(crate) fn note_reply(&mut self, reply: &Reply) {
        self.status = Some(reply.status.as_u16());
        self.failure = None;
        self.headers = reply.headers.clone();
        self.body = reply.body.clone();
        self.reused = reply.reused_connection;
    }

    pub(crate) fn note_failure(&mut self, failure: &Failure) {
        self.status = failure.reply.as_ref().map(|r| r.status.as_u16());
        self.failure = Some(failure.kind);
        self.goaway = failure.message.contains("GOAWAY");
        self.was_refused |= is_refusal(failure);
        self.was_cut |= failure.kind == FailureKind::Truncated;
        self.headers = failure
            .reply
            .as_ref()
            .map(|r| r.headers.clone())
            .unwrap_or_default();
        self.body = Bytes::new();
    }

    /// The text of Retry-After.
    pub(crate) fn hint_text(&self) -> Option<String> {
        let value = self.headers.get("retry-after")?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// What a fault does instead of asking the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Override {
    /// Nothing: the engine decides.
    None,
    /// Sends again after so long.
    Again(Duration),
    /// Ends, well or badly.
    Stop(bool),
    /// Ends, and the engine is never told.
    Forget,
}

impl Fault {
    pub(crate) fn named(name: Option<&str>) -> Self {
        Self(name.map(str::to_owned))
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.as_deref() == Some(name)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }

    pub(crate) fn policy(&self, policy: &mut Policy, told: &Told) {
        match self.name() {
            "one-too-many" => policy.retries += 1,
            "never-ends" => {
                policy.retries = 1_000_000;
                policy.window = None;
            }
            "zero-means-default" if policy.retries == 0 => policy.retries = 3,
            "deadline-per-attempt" => policy.window = None,
            "idle-timeout-only" => policy.attempt_timeout *= 6,
            "vendor-ignored" => policy.retry_after.vendors = VendorHints::NONE,
            "constant-wait" => policy.backoff.factor = 1.0,
            "equal-called-full" => policy.backoff.jitter = Jitter::Equal,
            "no-jitter" => policy.backoff.jitter = Jitter::None,
            "hint-exact" => policy.backoff.jitter = Jitter::None,
            "no-budget" => policy.budget = None,
            "never-opens" => policy.breaker = None,
            _ => {}
        }
        if let Some(budget) = &mut policy.budget {
            match self.name() {
                "budget-never-refills" => {
                    budget.ratio = Ratio::ZERO;
                    budget.trickle = None;
                }
                "budget-without-floor" => {
                    budget.reserve = 0;
                    budget.trickle = None;
                }
                _ => {}
            }
        }
        if let Some(breaker) = &mut policy.breaker {
            match self.name() {
                "half-open-admits-all" => breaker.probes = 16,
                "lost-probe-locks" => breaker.probe_timeout = Duration::from_secs(3600),
                _ => {}
            }
        }
        if self.is("deadline-per-attempt")
            && let Some(limit) = told.millis("deadline_ms")
        {
            policy.attempt_timeout = limit;
        }
    }

    pub(crate) fn transport(&self, config: &mut ClientConfig) {
        match self.name() {
            "417-is-fatal" => config.expect.resend_on_417 = false,
            // Twice as long as the case allows is as good as for ever, and over sooner.
            "waits-for-100-for-ever" => config.expect.wait = Duration::from_secs(10),
            _ => {}
        }
    }

    /// Sends what a certificate forbids.
    #[cfg(feature = "library")]
    pub(crate) fn trusts_everybody(&self, first: &Result<Reply, Failure>) -> bool {
        let refused = |f: &Failure| f.kind == FailureKind::Certificate;
        self.is("no-verify") && first.as_ref().is_err_and(refused)
    }

    pub(crate) fn spec(&self, spec: &mut OperationSpec, method: &str) {
        match self.name() {
            "retries-post" => spec.idempotent = true,
            "get-only" => spec.idempotent &= method == "GET",
            "stream-rest-only" => spec.repeatable_body = true,
            _ => {}
        }
    }

    /// The wait that is really slept.
    pub(crate) fn wait(
        &self,
        _seen: &Seen,
        ceiling: Duration,
        floor: Duration,
        left: Duration,
    ) -> Duration {
        match self.name() {
            "jitter-above-cap" => left + ceiling.mul_f64(1.2),
            "jitter-dies-at-cap" if ceiling >= Duration::from_millis(400) => ceiling,
            "comes-early" if !floor.is_zero() => left.mul_f64(0.3),
            _ => left,
        }
    }

    pub(crate) fn hears_cancel(&self) -> bool {
        !self.is("cancel-after-wait")
    }

    pub(crate) fn hears_signals(&self) -> bool {
        !self.is("ignores-sigterm")
    }

    pub(crate) fn leaves_open(&self) -> bool {
        self.is("leaves-socket-open")
    }

    /// The client forgets what waits beside a connection that died; so many pools, taken in turn,
    /// do not: each retry meets the next dead connection.
    pub(crate) fn pools(&self) -> usize {
        if self.is("pool-first-always") { 8 } else { 1 }
    }

    /// A second layer beneath sends again by itself.
    pub(crate) fn second_layer(&self, first: &Result<Reply, Failure>) -> bool {
        let cut = |f: &Failure| matches!(f.kind, FailureKind::Reset | FailureKind::Eof);
        self.is("two-layers-on-reset") && first.as_ref().is_err_and(cut)
    }

    /// What is slept before an end is told.
    pub(crate) fn before_end(&self, end: &End, deadline: Timestamp, now: Timestamp) -> Duration {
        match (self.name(), end.reason) {
            ("sleeps-to-deadline", Reason::WindowClosed) => deadline.since(now),
            ("sleeps-past-deadline", Reason::WindowClosed) => Duration::from_secs(3600),
            ("sleeps-after-last", Reason::Exhausted) => Duration::from_millis(500),
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn headers(
        &self,
        seen: &Seen,
        headers: &[(String, String)],
    ) -> Vec<(String, String)> {
        let times = if self.is("doubles-headers") {
            seen.attempts.max(1)
        } else {
            1
        };
        let mut out = Vec::new();
        for _ in 0..times {
            out.extend_from_slice(headers);
        }
        out
    }

    pub(crate) fn key(&self, seen: &Seen, key: Option<&str>) -> Option<String> {
        let key = key?;
        match self.name() {
            "key-per-attempt" => Some(uuid::Uuid::now_v7().to_string()),
            "drops-key-on-retry" if seen.attempts > 1 => None,
            "new-key-on-422" if seen.attempts > 1 => Some(uuid::Uuid::now_v7().to_string()),
            _ => Some(key.to_owned()),
        }
    }

    /// A key that is made in a wrong way.
    pub(crate) fn own_key(&self) -> Option<String> {
        match self.name() {
            "one-key-for-all" => Some("the-only-key".to_owned()),
            "key-from-clock" => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                Some(format!("t{}", since.unwrap_or_default().as_millis() / 10))
            }
            _ => None,
        }
    }

    pub(crate) fn remembers(&self) -> bool {
        !self.is("key-in-memory")
    }

    pub(crate) fn body(&self, seen: &Seen, body: &Bytes) -> Bytes {
        let again = seen.attempts > 1;
        match self.name() {
            "half-body" if again => body.slice(..body.len() / 2),
            "stream-rest-only" if again && seen.stream => Bytes::new(),
            "empty-body-after-refusal" if seen.was_refused => Bytes::new(),
            _ => body.clone(),
        }
    }

    /// The moment that is signed.
    pub(crate) fn stamp(&self, seen: &mut Seen) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since.unwrap_or_default().as_secs();
        let first = *seen.stamp.get_or_insert(now);
        if self.is("stale-signature") {
            first
        } else {
            now
        }
    }

    /// Changes what the engine is told.
    pub(crate) fn outcome(&self, seen: &mut Seen, outcome: &mut Outcome) {
        let status = seen.status;
        let digits = |text: String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_date = || seen.hint_text().is_some_and(|t| !digits(t));
        let drop_hint = match self.name() {
            "hint-read-once" => seen.attempts > 1,
            "ignores-hint-503" => status == Some(503),
            "ignores-hint-429" => status == Some(429),
            "ignores-dates" => is_date(),
            "imf-only" => seen
                .hint_text()
                .is_some_and(|t| t.contains('-') || !t.ends_with("GMT")),
            _ => false,
        };
        if drop_hint {
            outcome.hint = None;
        }
        match self.name() {
            "sticky-hint" => match outcome.hint {
                Some(hint) => seen.sticky = Some(hint.wait),
                None => {
                    let again = |wait| Hint {
                        wait,
                        source: HintSource::RetryAfter,
                    };
                    outcome.hint = seen.sticky.map(again);
                }
            },
            "ignores-reason" => outcome.gave_up = false,
            "counts-404" if status == Some(404) => {
                outcome.kind = ressac_policy::OutcomeKind::Status(503);
            }
            _ => {}
        }
    }

    /// What the client returns, wrongly.
    pub(crate) fn wrong_body(&self, seen: &Seen) -> Option<(u64, String)> {
        match self.name() {
            "accepts-short" | "h2-short-ok" if seen.was_cut => Some((40, sha256(b"short"))),
            "appends-after-cut" if seen.was_cut && seen.status == Some(200) => {
                let mut all = vec![b'A'; 40];
                all.extend_from_slice(&seen.body);
                Some((all.len() as u64, sha256(&all)))
            }
            _ => None,
        }
    }
}

/// Was nothing of it sent?
fn is_refusal(failure: &Failure) -> bool {
    failure.kind == FailureKind::Refused
}
