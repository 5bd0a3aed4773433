//! What happened beside the wire: starts, results, ends of processes, lag.

use serde::{Deserialize, Serialize};

use super::Arrival;
use crate::plan::PartPlan;

/// A part that was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartRecord {
    /// What was planned.
    pub plan: PartPlan,
    /// The journal.
    #[serde(skip)]
    pub arrivals: Vec<Arrival>,
    /// Entries that the journal lost.
    pub dropped: u64,
    /// When each operation was started.
    pub starts: Vec<OpStart>,
    /// What the client said.
    #[serde(skip)]
    pub results: Vec<OpResult>,
    /// How its processes ended.
    pub ends: Vec<ProcessEnd>,
    /// When the listener was made to refuse.
    pub armed: Option<u64>,
    /// When the client was interrupted.
    pub interrupted: Option<u64>,
    /// When the watch was over.
    pub watched_until: u64,
    /// The case limit was hit.
    pub limit_hit: bool,
    /// What went wrong on this side; the part is then worth nothing.
    pub trouble: Option<String>,
    /// The largest delay of a 5 ms heartbeat, ms.
    pub lag_ms: f64,
    /// Wall clock at nanosecond 0, in nanoseconds since 1970.
    pub anchor_unix_ns: u64,
}

/// The start of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpStart {
    /// Its id.
    pub op: String,
    /// When, on the mock's clock.
    pub t: u64,
}

/// What the client says an operation came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpResult {
    /// Its id.
    pub op: String,
    /// Did it succeed?
    pub ok: bool,
    /// The last status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Attempts it counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hint it was given, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint_ms: Option<f64>,
    /// The key it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Bytes of the body it returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_len: Option<u64>,
    /// Their hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
    /// What went wrong, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Header lines of the reply. Only the suite's own client tells them, through a proxy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// When the head of the reply was there, on the mock's clock. As `headers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_head: Option<u64>,
    /// When it came, on the mock's clock. Set by the runner.
    pub t: u64,
    /// In exec mode the process said nothing: only `ok` is known.
    pub bare: bool,
}

/// The end of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// The operation, in exec mode.
    pub op: Option<String>,
    /// Its exit code; none after a signal.
    pub code: Option<i32>,
    /// When.
    pub t: u64,
    /// The runner ended it.
    pub by_us: bool,
}

impl PartRecord {
    /// The process broke by itself: a signal, or a code that means nothing.
    #[must_use]
    pub fn crash(&self) -> Option<String> {
        let lines = self.ends.iter().all(|e| e.op.is_none());
        self.ends
            .iter()
            .filter(|e| !e.by_us)
            .find_map(|e| match e.code {
                None => Some("the process was ended by a signal".to_owned()),
                Some(0) => None,
                Some(1) if !lines => None,
                Some(code) => Some(format!("the process ended with code {code}")),
            })
    }

    /// When an operation was started.
    #[must_use]
    pub fn start(&self, op: &str) -> Option<u64> {
        self.starts.iter().find(|s| s.op == op).map(|s| s.t)
    }

    /// What an operation came to.
    #[must_use]
    pub fn result(&self, op: &str) -> Option<&OpResult> {
        self.results.iter().find(|r| r.op == op)
    }
}
