//! The verdict of a case.

use serde::{Deserialize, Serialize};

use super::check::check;
use super::evidence::{left_over, missing};
use super::finding::{Finding, Outcome};
use super::group::group;
use super::op::OpView;
use super::told::{measured, report};
use crate::case::{Case, Level, Part};
use crate::claims::Claims;
use crate::plan::Setup;
use crate::record::PartRecord;
use crate::rule::Rule;

/// What a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A need is missing.
    NotClaimed,
    /// Rule met, evidence complete.
    Pass,
    /// On the list of known failures, and still failing.
    KnownFailing,
    /// A should is broken, or a ceiling missed.
    Warn,
    /// It cannot be told.
    Inconclusive,
    /// A must is broken.
    Fail,
}

impl Verdict {
    /// The word of reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotClaimed => "not claimed",
            Self::Pass => "pass",
            Self::KnownFailing => "known failing",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// One operation in a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpReport {
    /// Its id, with the part's number before it where there are several.
    pub op: String,
    /// Its name.
    pub name: String,
    /// Its method and script.
    pub script: String,
    /// Attempts seen.
    pub n: usize,
    /// Gaps, ms.
    pub gaps_ms: Vec<f64>,
    /// The status that was sent last.
    pub status: Option<u16>,
    /// What the client said.
    pub ok: Option<bool>,
    /// Effects.
    pub eff: u64,
    /// Distinct keys.
    pub keys: usize,
    /// Its own verdict.
    pub verdict: Verdict,
}

/// A case, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseVerdict {
    /// Full id.
    pub id: String,
    /// One line.
    pub title: String,
    /// Its level under this profile.
    pub level: Level,
    /// What it came to.
    pub verdict: Verdict,
    /// Why, in one line.
    pub reason: String,
    /// The measurement that tells most.
    pub measured: String,
    /// Conditions that did not hold, and notes; at most a few of each kind.
    pub findings: Vec<Finding>,
    /// Operations, the worst first where there are many.
    pub ops: Vec<OpReport>,
    /// What is missing.
    pub needs: Vec<String>,
    /// Where the rule comes from.
    pub source: String,
    /// How long it took.
    pub took_ms: u64,
    /// The largest lag of this machine while it ran, ms.
    #[serde(default)]
    pub lag_ms: f64,
}

/// The most operations that a report lists one by one.
const MOST_OPS: usize = 24;
/// The most findings of a case in a report.
const MOST_FINDINGS: usize = 12;

/// A case that is not run, with the needs that are missing.
pub(crate) fn not_claimed(case: &Case, level: Level, needs: Vec<String>) -> CaseVerdict {
    let reason = format!("needs {}", needs.join(", "));
    CaseVerdict {
        needs,
        reason,
        ..blank(case, level, Verdict::NotClaimed)
    }
}

fn blank(case: &Case, level: Level, verdict: Verdict) -> CaseVerdict {
    CaseVerdict {
        id: case.id.clone(),
        title: case.title.clone(),
        level,
        verdict,
        reason: String::new(),
        measured: String::new(),
        findings: Vec::new(),
        ops: Vec::new(),
        needs: Vec::new(),
        source: case.source.clone(),
        took_ms: 0,
        lag_ms: 0.0,
    }
}

/// Judges what was recorded of a case. `rule` replaces the rules of its operations where a profile
/// does. Pure: the same record gives the same verdict for ever.
#[must_use]
pub fn judge(
    case: &Case,
    claims: &Claims,
    setup: &Setup,
    records: &[PartRecord],
    level: Level,
    strict: bool,
    rule: Option<&Rule>,
) -> CaseVerdict {
    let parts = case.parts();
    let mut tally = Tally::default();
    for record in records {
        let Some(part) = parts.get(record.plan.index) else {
            continue;
        };
        judge_part(case, part, claims, setup, record, rule, &mut tally);
    }
    let mut out = blank(case, level, Verdict::Pass);
    let (outcome, why) = tally.worst();
    let strict = strict && level == Level::Should;
    out.verdict = match (outcome, level) {
        (Outcome::Pass, _) => Verdict::Pass,
        (Outcome::Warn, _) => Verdict::Warn,
        (Outcome::Unknown, _) => Verdict::Inconclusive,
        (Outcome::Fail, Level::Must) => Verdict::Fail,
        (Outcome::Fail, _) if strict || tally.crash.is_some() => Verdict::Fail,
        (Outcome::Fail, _) => Verdict::Warn,
    };
    out.reason = why;
    out.lag_ms = records.iter().map(|r| r.lag_ms).fold(0.0, f64::max);
    out.measured = measured(&tally.ops, &tally.notes);
    for op in &mut tally.ops {
        op.verdict = match (op.verdict, level) {
            (Verdict::Fail, Level::Should | Level::Check) if !strict => Verdict::Warn,
            (other, _) => other,
        };
    }
    tally.ops.sort_by_key(|op| std::cmp::Reverse(op.verdict));
    tally.ops.truncate(MOST_OPS);
    out.ops = tally.ops;
    tally.findings.sort_by_key(|f| std::cmp::Reverse(f.outcome));
    tally.findings.truncate(MOST_FINDINGS);
    out.findings = tally.findings;
    out.findings.extend(tally.notes);
    if records.is_empty() {
        out.verdict = Verdict::Inconclusive;
        out.reason = "nothing was recorded".to_owned();
    }
    out
}

#[derive(Default)]
struct Tally {
    outcome: Option<Outcome>,
    crash: Option<String>,
    /// Evidence that the whole case lacks.
    missing: Option<String>,
    /// Evidence that one of its operations lacks.
    unmet: Option<String>,
    /// What a rule says that an operation with complete evidence broke.
    broken: Option<String>,
    findings: Vec<Finding>,
    notes: Vec<Finding>,
    ops: Vec<OpReport>,
}

impl Tally {
    fn take(&mut self, outcome: Outcome, findings: impl IntoIterator<Item = Finding>) {
        self.outcome = self.outcome.max(Some(outcome));
        for f in findings {
            if f.note {
                self.notes.push(f);
            } else if f.outcome != Outcome::Pass && !self.findings.iter().any(|k| alike(k, &f)) {
                self.findings.push(f);
            }
        }
    }

    fn lacks(&mut self, what: String) {
        self.missing.get_or_insert(what);
    }

    /// An operation that lacks evidence does not excuse another one.
    fn unmet(&mut self, what: String) {
        self.unmet.get_or_insert(what);
    }

    fn broke(&mut self, answer: &[Finding]) {
        if let Some(f) = answer.iter().find(|f| f.outcome == Outcome::Fail) {
            self.broken
                .get_or_insert(format!("expected {}, seen {}", f.expected, f.seen));
        }
    }

    /// A crash on the fault is the worst. Then evidence that the whole case lacks is stronger than
    /// whatever else was seen; what one operation lacks is weaker than what another one broke.
    fn worst(&self) -> (Outcome, String) {
        if let Some(crash) = &self.crash {
            return (Outcome::Fail, crash.clone());
        }
        if let Some(missing) = &self.missing {
            return (Outcome::Unknown, missing.clone());
        }
        if let Some(broken) = &self.broken {
            return (Outcome::Fail, broken.clone());
        }
        if let Some(unmet) = &self.unmet {
            return (Outcome::Unknown, unmet.clone());
        }
        let outcome = self.outcome.unwrap_or(Outcome::Unknown);
        let told = self.findings.iter().find(|f| f.outcome == outcome);
        let why = told.map_or_else(String::new, |f| {
            format!("expected {}, seen {}", f.expected, f.seen)
        });
        (outcome, why)
    }
}

/// The same condition with the same result, of another operation of a series.
fn alike(a: &Finding, b: &Finding) -> bool {
    (&a.rule, &a.seen, a.outcome) == (&b.rule, &b.seen, b.outcome)
}

fn judge_part(
    case: &Case,
    part: &Part,
    claims: &Claims,
    setup: &Setup,
    record: &PartRecord,
    replaced: Option<&Rule>,
    tally: &mut Tally,
) {
    let views: Vec<OpView<'_>> = record
        .plan
        .ops
        .iter()
        .filter_map(|op| Some((op, part.op.get(op.spec)?)))
        .map(|(op, spec)| OpView::new(record, claims, setup, op, spec))
        .collect();
    if let Some(crash) = record.crash() {
        match record.arrivals.iter().any(|a| a.t_reply_after.is_some()) {
            true => {
                tally.crash.get_or_insert(crash);
            }
            false => tally.lacks(crash),
        }
    }
    let many = case.part.len() > 1;
    for view in &views {
        let own = view.spec.rule.as_ref().map(|r| &r.0);
        let rule = own.map(|own| replaced.unwrap_or(own));
        judge_op(case, view, rule, many, tally);
    }
    for (index, spec) in part.op.iter().enumerate() {
        let of: Vec<OpView<'_>> = views
            .iter()
            .filter(|v| v.op.spec == index)
            .cloned()
            .collect();
        if let Some(rule) = &spec.group
            && !of.is_empty()
        {
            let answer = group(&of, &rule.0);
            tally.take(answer.outcome(), answer.findings);
        }
    }
    if let Some(rule) = &case.rule
        && !views.is_empty()
    {
        let answer = group(&views, &rule.0);
        tally.take(answer.outcome(), answer.findings);
    }
    if let Some(evidence) = &case.evidence {
        let answer = group(&views, &evidence.0);
        if let Some(f) = answer.findings.iter().find(|f| f.outcome != Outcome::Pass) {
            tally.lacks(format!("evidence missing: {} ({})", f.expected, f.seen));
        }
    }
}

fn judge_op(case: &Case, view: &OpView<'_>, rule: Option<&Rule>, many: bool, tally: &mut Tally) {
    let mut outcome = Outcome::Pass;
    let lacks = missing(view, rule, case.must_end).or_else(|| {
        let answer = check(view, &view.spec.evidence.as_ref()?.0);
        let f = answer
            .findings
            .into_iter()
            .find(|f| f.outcome != Outcome::Pass)?;
        Some(format!("evidence missing: {} ({})", f.expected, f.seen))
    });
    match lacks {
        Some(what) => {
            outcome = Outcome::Unknown;
            tally.unmet(format!("{}{what}", label(view)));
        }
        None => {
            if view.result.is_none() && view.record.limit_hit && view.spec.watch_ms == 0 {
                outcome = Outcome::Fail;
                let found = endless(view);
                tally.broke(std::slice::from_ref(&found));
                tally.take(outcome, [found]);
            } else if let Some(rule) = rule {
                let answer = check(view, rule);
                outcome = answer.outcome();
                tally.broke(&answer.findings);
                let name = label(view);
                let named = answer.findings.into_iter().map(|f| Finding {
                    rule: if f.note {
                        f.rule
                    } else {
                        format!("{name}{}", f.rule)
                    },
                    ..f
                });
                tally.take(outcome, named);
            } else {
                tally.take(outcome, []);
            }
            if outcome == Outcome::Pass
                && let Some(what) = rule.and_then(|r| left_over(view, Some(r)))
            {
                outcome = Outcome::Unknown;
                tally.unmet(format!("{}{what}", label(view)));
            }
        }
    }
    tally.ops.push(report(view, outcome, many));
}

fn label(view: &OpView<'_>) -> String {
    match view.spec.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    }
}

fn endless(view: &OpView<'_>) -> Finding {
    Finding {
        outcome: Outcome::Fail,
        rule: "end".to_owned(),
        expected: "ends by itself".to_owned(),
        seen: format!(
            "no result at the case limit, {} attempts",
            view.attempts.len()
        ),
        note: false,
    }
}
