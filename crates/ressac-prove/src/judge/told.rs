//! What a report tells of an operation, and of a case in one line.

use std::collections::BTreeSet;

use super::finding::{Finding, Outcome};
use super::op::OpView;
use super::verdict::{OpReport, Verdict};

pub(super) fn report(view: &OpView<'_>, outcome: Outcome, many: bool) -> OpReport {
    let keys: BTreeSet<_> = view
        .attempts
        .iter()
        .filter_map(|a| a.key.as_ref())
        .collect();
    OpReport {
        op: match many {
            true => format!("{}.{}", view.record.plan.index + 1, view.op.id),
            false => view.op.id.clone(),
        },
        name: view.spec.name.clone(),
        script: format!("{} {}", view.op.method, view.spec.script),
        n: view.attempts.len(),
        gaps_ms: view
            .gaps()
            .into_iter()
            .take(16)
            .map(|g| (g * 10.0).round() / 10.0)
            .collect(),
        status: view.attempts.last().and_then(|a| a.status()),
        ok: view.result.map(|r| r.ok),
        eff: view.effects(),
        keys: keys.len(),
        verdict: match outcome {
            Outcome::Pass => Verdict::Pass,
            Outcome::Warn => Verdict::Warn,
            Outcome::Unknown => Verdict::Inconclusive,
            Outcome::Fail => Verdict::Fail,
        },
    }
}

/// What a reader wants to see first: attempts and waits, or the notes.
pub(super) fn measured(ops: &[OpReport], notes: &[Finding]) -> String {
    if let Some(note) = notes.first() {
        return match note.rule.as_str() {
            "" => note.seen.clone(),
            rule if rule.contains('(') => note.seen.clone(),
            rule => format!("{rule} = {}", note.seen),
        };
    }
    let mut counts: Vec<usize> = ops.iter().map(|op| op.n).collect();
    counts.sort_unstable();
    counts.dedup();
    let counts: Vec<String> = counts.iter().take(6).map(ToString::to_string).collect();
    let gaps: Vec<f64> = ops
        .iter()
        .flat_map(|op| op.gaps_ms.iter().copied())
        .collect();
    let mut text = format!("n = {}", counts.join(", "));
    if let [only] = ops
        && !only.gaps_ms.is_empty()
    {
        let list: Vec<String> = only
            .gaps_ms
            .iter()
            .take(6)
            .map(|g| format!("{g:.0}"))
            .collect();
        text.push_str(&format!(", gaps {} ms", list.join(" ")));
    } else if !gaps.is_empty() {
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        text.push_str(&format!(", mean gap {mean:.0} ms of {}", gaps.len()));
    }
    text
}
