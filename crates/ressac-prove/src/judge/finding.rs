//! What became of one condition.

use serde::{Deserialize, Serialize};

/// What a condition came to, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It holds.
    Pass,
    /// It does not, and that is a warning only.
    Warn,
    /// It cannot be told.
    Unknown,
    /// It does not hold.
    Fail,
}

/// A condition, what was expected and what was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it came to.
    pub outcome: Outcome,
    /// The condition as it stands in the case.
    pub rule: String,
    /// What would have been right.
    pub expected: String,
    /// What was measured.
    pub seen: String,
    /// A value that is told and not judged.
    #[serde(default)]
    pub note: bool,
}

/// A rule evaluated: the worst of its parts, and all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) findings: Vec<Finding>,
    pub(crate) outcome: Option<Outcome>,
}

impl Answer {
    pub(crate) fn one(finding: Finding) -> Self {
        Self {
            outcome: Some(finding.outcome),
            findings: vec![finding],
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(Outcome::Pass)
    }

    /// All of these.
    pub(crate) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        let mut out = Self::default();
        for answer in answers {
            out.outcome = out.outcome.max(answer.outcome);
            out.findings.extend(answer.findings);
        }
        out
    }

    /// The best of these; what the others say is dropped unless none holds.
    pub(crate) fn any(answers: Vec<Self>) -> Self {
        let best = answers
            .iter()
            .map(Self::outcome)
            .min()
            .unwrap_or(Outcome::Pass);
        if best == Outcome::Fail {
            return Self::all(answers);
        }
        answers
            .into_iter()
            .find(|a| a.outcome() == best)
            .unwrap_or_default()
    }
}

/// A time, as people read it.
pub(crate) fn ms(t: f64) -> String {
    if t.abs() >= 10_000.0 {
        format!("{:.1} s", t / 1000.0)
    } else if t.abs() >= 1000.0 {
        format!("{:.2} s", t / 1000.0)
    } else if t.abs() >= 10.0 || t == 0.0 {
        format!("{t:.0} ms")
    } else {
        format!("{t:.1} ms")
    }
}

/// A number without needless zeros.
pub(crate) fn plain(n: f64) -> String {
    if n.fract() == 0.0 {
        format!("{n:.0}")
    } else {
        format!("{n:.2}")
    }
}
