//! One case: its parts run side by side, then it is judged.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Bench, RunError, keep, part};
use crate::case::{Case, Level};
use crate::judge::{CaseVerdict, Verdict, judge, not_claimed};
use crate::plan::{PartPlan, plan};
use crate::profile;
use crate::record::PartRecord;

/// Runs a case as often as asked; the worst verdict counts.
pub(super) async fn run_case(bench: &Bench, case: &Case) -> Result<CaseVerdict, RunError> {
    let case = &profile::apply(case, &bench.options.profile);
    let level = profile::level(case, &bench.options.profile, &bench.options.claims);
    if let Some(missing) = not_asked(bench, case) {
        let verdict = not_claimed(case, level, missing);
        keep::verdict(&keep::case_folder(bench, case, 0), &verdict)?;
        return Ok(verdict);
    }
    let mut worst: Option<CaseVerdict> = None;
    for round in 0..bench.options.repeat.max(1) {
        let verdict = one_round(bench, case, level, round).await?;
        if worst.as_ref().is_none_or(|w| verdict.verdict > w.verdict) {
            worst = Some(verdict);
        }
    }
    worst.ok_or_else(|| RunError::Internal("no round was run".to_owned()))
}

/// Why this client is not asked this case.
fn not_asked(bench: &Bench, case: &Case) -> Option<Vec<String>> {
    if let Some(why) = profile::skipped(case, &bench.options.profile) {
        return Some(vec![why]);
    }
    let claims = &bench.options.claims;
    let missing = case.needs.iter().filter(|need| !claims.has(need));
    let missing: Vec<String> = missing.cloned().collect();
    (!missing.is_empty()).then_some(missing)
}

async fn one_round(
    bench: &Bench,
    case: &Case,
    level: Level,
    round: u32,
) -> Result<CaseVerdict, RunError> {
    let begun = Instant::now();
    let folder = keep::case_folder(bench, case, round);
    let mut verdict = attempt(bench, case, level, &folder).await?;
    // A law that is rejected once is drawn again: only two rejections are no accident.
    let by_chance = case.tests_a_law() && matches!(verdict.verdict, Verdict::Warn | Verdict::Fail);
    if by_chance {
        let first = verdict.reason.clone();
        verdict = attempt(bench, case, level, &folder).await?;
        verdict.reason = match verdict.reason.as_str() {
            "" => format!("a first sample was rejected ({first}), a fresh one was not"),
            again => format!("{again}; and before: {first}"),
        };
    }
    verdict.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    known(bench, &mut verdict);
    keep::verdict(&folder, &verdict)?;
    Ok(verdict)
}

/// Turns the verdict of a case that is known to fail.
pub(super) fn known(bench: &Bench, verdict: &mut CaseVerdict) {
    let Some(reason) = bench.options.known.reason(&verdict.id) else {
        return;
    };
    match verdict.verdict {
        Verdict::Fail | Verdict::Warn => {
            verdict.verdict = Verdict::KnownFailing;
            verdict.reason = format!("{reason} ({})", verdict.reason);
        }
        Verdict::Pass => {
            verdict.verdict = Verdict::Fail;
            verdict.reason = "it passes, and stands on the list of known failures".to_owned();
        }
        _ => {}
    }
}

async fn attempt(
    bench: &Bench,
    case: &Case,
    level: Level,
    folder: &std::path::Path,
) -> Result<CaseVerdict, RunError> {
    let claims = &bench.options.claims;
    let plans = plan(case, claims, &bench.setup);
    if plans.is_empty() {
        let needs = case.parts().iter().flat_map(|p| p.needs.clone()).collect();
        return Ok(not_claimed(case, level, needs));
    }
    let limit = case
        .limit_s
        .map_or(bench.options.case_limit, Duration::from_secs);
    if let Some(longest) = too_long(&plans, limit) {
        let mut verdict = judge(case, claims, &bench.setup, &[], level, false, None);
        let (needs, has) = (longest.as_secs(), limit.as_secs());
        verdict.reason = format!("at this pace it needs {needs} s, and the case limit is {has} s");
        return Ok(verdict);
    }
    let single = plans.len() == 1;
    let runs = plans.into_iter().map(|plan| {
        let place = part_folder(folder, single, plan.index);
        part::run_part(bench, case, plan, place, limit)
    });
    let mut records: Vec<PartRecord> = Vec::new();
    match claims.client.fixed_url {
        // One address for all: one part after another.
        Some(_) => {
            for run in runs {
                records.push(run.await?);
            }
        }
        None => {
            for record in join_all(runs).await {
                records.push(record?);
            }
        }
    }
    Ok(judge_kept(bench, case, level, &records))
}

/// Judges with the options of the run.
pub(super) fn judge_kept(
    bench: &Bench,
    case: &Case,
    level: Level,
    records: &[PartRecord],
) -> CaseVerdict {
    let options = &bench.options;
    let rule = profile::rule(case, &options.profile);
    judge(
        case,
        &options.claims,
        &bench.setup,
        records,
        level,
        options.strict,
        rule,
    )
}

fn part_folder(folder: &std::path::Path, single: bool, index: usize) -> PathBuf {
    match single {
        true => folder.to_owned(),
        false => folder.join(format!("part-{}", index + 1)),
    }
}

/// How long the worst client would take, where that is more than the limit.
fn too_long(plans: &[PartPlan], limit: Duration) -> Option<Duration> {
    plans
        .iter()
        .filter(|p| p.ops.iter().any(|op| op.watch_ms == 0))
        .map(|p| {
            let most = p.pace.deadline.unwrap_or(f64::INFINITY);
            // What matters is how many waits the script asks for.
            let retries = p.ops.iter().map(|op| op.finite).max().unwrap_or(1).max(1);
            let waits = (0..p.pace.attempts.saturating_sub(1).min(1000) as u64)
                .filter(|r| *r < retries || p.scenario.contains("x*"))
                .filter_map(|r| p.pace.hi(u32::try_from(r).unwrap_or(u32::MAX)))
                .sum::<f64>();
            Duration::from_millis(waits.min(most) as u64)
        })
        .max()
        .filter(|longest| *longest > limit)
}

/// All of them, side by side.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|f| Some(Box::pin(f))).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (slot, out) in pending.iter_mut().zip(&mut done) {
            if let Some(future) = slot {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => {
                        *out = Some(value);
                        *slot = None;
                    }
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
