//! One scripted operation: its URL, and what reached it.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::journal::Entry;
use crate::state::Shared;
use crate::step::{Script, Times};

/// A route made by [`crate::Mock::script`].
#[derive(Debug, Clone)]
pub struct ScriptHandle {
    shared: Arc<Shared>,
    base: String,
    tls: Option<String>,
    name: String,
    token: String,
    script: Script,
}

/// How far a script has been served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Steps that have served all their arrivals; one that ends in `x*` counts once it served one.
    pub consumed: u64,
    /// Whether every finite step has.
    pub complete: bool,
    /// Arrivals after the end.
    pub overruns: u64,
}

impl Progress {
    pub(crate) fn of(script: &Script, arrivals: u64) -> Self {
        let mut left = arrivals;
        let mut consumed = 0;
        let mut endless = false;
        for step in &script.steps {
            match step.times {
                Times::N(n) if left >= n => left -= n,
                Times::N(_) => break,
                Times::Forever => {
                    endless = true;
                    if left == 0 {
                        break;
                    }
                }
            }
            consumed += 1;
        }
        let finite = script.finite_len();
        let overruns = if endless {
            0
        } else {
            arrivals.saturating_sub(finite)
        };
        Self {
            consumed,
            complete: arrivals >= finite,
            overruns,
        }
    }
}

/// The attempts waited for did not come in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("waited {waited:?} for {wanted} attempts, {seen} came\n{trace}")]
pub struct WaitError {
    /// How many were waited for.
    pub wanted: usize,
    /// How many came.
    pub seen: usize,
    /// How long was waited.
    pub waited: Duration,
    trace: String,
}

impl ScriptHandle {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (base, tls): (String, Option<String>),
        name: String,
        token: String,
        script: Script,
    ) -> Self {
        Self {
            shared,
            base,
            tls,
            name,
            token,
            script,
        }
    }

    /// Where to send the operation.
    pub fn url(&self) -> String {
        format!("{}{}", self.base, self.path())
    }

    /// Where to send the operation over TLS.
    ///
    /// # Panics
    ///
    /// If the scenario has no listener with TLS; the default one has.
    pub fn tls_url(&self) -> String {
        match &self.tls {
            Some(base) => format!("{base}{}", self.path()),
            None => panic!("the scenario has no listener with TLS"),
        }
    }

    /// The path of [`ScriptHandle::url`].
    pub fn path(&self) -> String {
        format!("/{}", self.token)
    }

    /// The token of the operation.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The name of the route in the journal.
    pub fn route(&self) -> &str {
        &self.name
    }

    /// What reached the route, in order of arrival; an entry is there from its arrival on.
    pub fn attempts(&self) -> Vec<Entry> {
        let core = self.shared.core();
        let ours = |e: &&Entry| e.route.as_deref() == Some(&self.name);
        core.journal.since(0).filter(ours).cloned().collect()
    }

    /// How many effects the operation has had. More than 1 is a double.
    pub fn effects(&self) -> u64 {
        self.shared
            .core()
            .resources
            .by_token
            .get(&self.token)
            .copied()
            .unwrap_or(0)
    }

    /// The idempotency keys that came, each once, in order.
    pub fn keys(&self) -> Vec<String> {
        let mut out = Vec::new();
        for key in self.attempts().into_iter().filter_map(|e| e.key) {
            if !out.contains(&key) {
                out.push(key);
            }
        }
        out
    }

    /// The time between one arrival and the next.
    pub fn gaps(&self) -> Vec<Duration> {
        let times: Vec<u64> = self.attempts().iter().map(|e| e.t_head).collect();
        times
            .windows(2)
            .map(|w| Duration::from_nanos(w[1] - w[0]))
            .collect()
    }

    /// How far the script has been served.
    pub fn progress(&self) -> Progress {
        let core = self.shared.core();
        let state = core.routes.iter().find(|r| r.route.name == self.name);
        let arrivals = state
            .and_then(|s| s.counts.get(&self.token))
            .copied()
            .unwrap_or(0);
        Progress::of(&self.script, arrivals)
    }

    /// Waits until `n` attempts have arrived, at most `timeout`, and returns all there are.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if fewer came in time.
    pub async fn wait_attempts(
        &self,
        n: usize,
        timeout: Duration,
    ) -> Result<Vec<Entry>, WaitError> {
        self.wait(n, timeout, |list, n| list.len() >= n).await
    }

    /// Waits until `n` attempts have been answered or cut, at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if fewer were.
    pub async fn wait_done(&self, n: usize, timeout: Duration) -> Result<Vec<Entry>, WaitError> {
        self.wait(n, timeout, done).await
    }

    /// As [`ScriptHandle::wait_attempts`], for blocking code.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if fewer came in time.
    pub fn wait_attempts_blocking(
        &self,
        n: usize,
        timeout: Duration,
    ) -> Result<Vec<Entry>, WaitError> {
        self.wait_blocking(n, timeout, |list, n| list.len() >= n)
    }

    /// As [`ScriptHandle::wait_done`], for blocking code.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if fewer were.
    pub fn wait_done_blocking(&self, n: usize, timeout: Duration) -> Result<Vec<Entry>, WaitError> {
        self.wait_blocking(n, timeout, done)
    }

    /// Checks that every finite step was consumed and nothing came after the end.
    ///
    /// # Panics
    ///
    /// With a trace of the wire, if not.
    pub fn verify(&self) {
        let progress = self.progress();
        if !progress.complete || progress.overruns > 0 {
            panic!(
                "script `{}` of {}: {} steps consumed, {} overruns\n{}",
                self.script,
                self.name,
                progress.consumed,
                progress.overruns,
                trace(&self.attempts()),
            );
        }
    }

    async fn wait(
        &self,
        n: usize,
        timeout: Duration,
        enough: fn(&[Entry], usize) -> bool,
    ) -> Result<Vec<Entry>, WaitError> {
        let mut changed = self.shared.changed.subscribe();
        let wait = async {
            loop {
                changed.mark_unchanged();
                let list = self.attempts();
                if enough(&list, n) {
                    return list;
                }
                // The sender lives in `self.shared`.
                let _ = changed.changed().await;
            }
        };
        match tokio::time::timeout(timeout, wait).await {
            Ok(list) => Ok(list),
            Err(_) => Err(self.late(n, timeout)),
        }
    }

    fn wait_blocking(
        &self,
        n: usize,
        timeout: Duration,
        enough: fn(&[Entry], usize) -> bool,
    ) -> Result<Vec<Entry>, WaitError> {
        let begun = Instant::now();
        loop {
            let list = self.attempts();
            if enough(&list, n) {
                return Ok(list);
            }
            if begun.elapsed() >= timeout {
                return Err(self.late(n, timeout));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn late(&self, wanted: usize, waited: Duration) -> WaitError {
        let list = self.attempts();
        WaitError {
            wanted,
            seen: list.len(),
            waited,
            trace: trace(&list),
        }
    }
}

fn done(list: &[Entry], n: usize) -> bool {
    list.iter().filter(|e| e.is_done()).count() >= n
}

/// One line per attempt, for a person who wants to know what happened.
fn trace(entries: &[Entry]) -> String {
    let mut out = String::new();
    let start = entries.first().map_or(0, |e| e.t_head);
    for e in entries {
        let at = Duration::from_nanos(e.t_head - start);
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "  +{:.3}s conn {} {} {}",
            at.as_secs_f64(),
            e.conn,
            e.method,
            e.target
        );
        if let Some(step) = e.step {
            let _ = write!(out, " step {step}");
        }
        if let Some(key) = &e.key {
            let _ = write!(out, " key {key:?}");
        }
        match &e.sent {
            Some(s) => {
                let status = s.status.map_or("nothing".to_owned(), |s| s.to_string());
                let _ = write!(out, " -> {status} {}", s.wire.label());
            }
            None => out.push_str(" -> pending"),
        }
        let _ = writeln!(out, " {:?}", e.flags);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn progress_counts_whole_steps() {
        let p = |s: &str, n| {
            let p = Progress::of(&s.parse().unwrap(), n);
            (p.consumed, p.complete, p.overruns)
        };
        assert_eq!(p("503 x2, 201", 1), (0, false, 0));
        assert_eq!(p("503 x2, 201", 2), (1, false, 0));
        assert_eq!(p("503 x2, 201", 3), (2, true, 0));
        assert_eq!(p("503 x2, 201", 5), (2, true, 2));
        assert_eq!(p("503, 200 x*", 1), (1, true, 0));
        assert_eq!(p("503, 200 x*", 9), (2, true, 0));
    }
}
