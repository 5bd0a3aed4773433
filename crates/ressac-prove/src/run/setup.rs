//! `Z00/setup`: is the client reachable, and how long does it take for nothing?

use super::{Bench, RunError, part};
use crate::case::{Case, Level, OpSpec, Part};
use crate::claims::Mode;
use crate::judge::pattern_sha256;
use crate::plan::{PartPlan, Setup, plan};
use crate::record::PartRecord;

/// Bytes of each reply.
const BODY: u64 = 100;

/// Runs 20 GETs answered 200, one after another, and measures λ and ε.
pub(super) async fn measure(bench: &Bench) -> Result<Setup, RunError> {
    let case = setup_case(bench.options.claims.client.mode);
    let mut plans = plan(&case, &bench.options.claims, &bench.setup);
    let Some(mut planned) = plans.pop() else {
        return Err(RunError::Internal("the set-up case is empty".to_owned()));
    };
    chain(&mut planned);
    let folder = bench.folder.join("cases").join("Z00");
    let record = part::run_part(
        bench,
        &case,
        planned,
        folder.clone(),
        bench.options.case_limit,
    )
    .await?;
    check(&record).map_err(|what| {
        let err = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        let last: Vec<&str> = err.lines().rev().take(5).collect();
        let said: Vec<&str> = last.into_iter().rev().collect();
        match said.is_empty() {
            true => RunError::Setup(what),
            false => RunError::Setup(format!("{what}; its stderr ends:\n  {}", said.join("\n  "))),
        }
    })?;
    let (lambda_ms, epsilon_ms) = medians(&record);
    Ok(Setup {
        lambda_ms,
        epsilon_ms,
        ..bench.setup
    })
}

/// Each operation after the one before, on one client instance.
fn chain(plan: &mut PartPlan) {
    let ids: Vec<String> = plan.ops.iter().map(|op| op.id.clone()).collect();
    for (op, before) in plan.ops.iter_mut().skip(1).zip(ids) {
        op.after = Some(before);
    }
}

fn setup_case(mode: Mode) -> Case {
    let op = OpSpec {
        count: if mode == Mode::Exec { 8 } else { 20 },
        client: "z".to_owned(),
        script: format!("200 body={BODY}"),
        ..OpSpec::default()
    };
    Case {
        id: "Z00/setup/setup".to_owned(),
        title: "the client can be driven".to_owned(),
        level: Level::Must,
        part: vec![Part {
            op: vec![op],
            ..Part::default()
        }],
        needs: Vec::new(),
        check_unless: Vec::new(),
        policy: crate::case::PolicyWish::default(),
        op: Vec::new(),
        rule: None,
        evidence: None,
        must_end: false,
        limit_s: None,
        source: "3.4".to_owned(),
        why: "what is measured later is measured against this".to_owned(),
        mistake: String::new(),
        profiles: std::collections::BTreeMap::new(),
        mutants: Vec::new(),
    }
}

fn check(record: &PartRecord) -> Result<(), String> {
    if let Some(trouble) = &record.trouble {
        return Err(trouble.clone());
    }
    if let Some(crash) = record.crash() {
        return Err(crash);
    }
    let ops = &record.plan.ops;
    let all = ops.len();
    let reached = ops
        .iter()
        .filter(|op| record.arrivals.iter().any(|a| a.target == op.target))
        .count();
    if reached < all {
        return Err(format!("{reached} of {all} plain GETs reached the mock"));
    }
    for op in ops {
        let Some(result) = record.result(&op.id) else {
            return Err(format!("no result for operation {}", op.id));
        };
        if !result.ok {
            let why = result.error.clone().unwrap_or_default();
            return Err(format!(
                "a GET answered 200 was said to have failed ({why})"
            ));
        }
        if result.body_len.is_some_and(|len| len != BODY) {
            return Err(format!(
                "a body of {BODY} bytes was said to have {:?}",
                result.body_len
            ));
        }
        if let Some(hash) = &result.body_sha256
            && !hash.eq_ignore_ascii_case(&pattern_sha256(BODY))
        {
            return Err("the hash of a whole body is wrong".to_owned());
        }
    }
    let extra = record.arrivals.iter().filter(|a| a.is_request()).count();
    match extra > all {
        true => Err(format!("{extra} requests for {all} GETs answered 200")),
        false => Ok(()),
    }
}

fn medians(record: &PartRecord) -> (f64, f64) {
    let (mut lambda, mut epsilon) = (Vec::new(), Vec::new());
    for op in record.plan.ops.iter().skip(1) {
        let arrival = record.arrivals.iter().find(|a| a.target == op.target);
        let (Some(a), Some(start)) = (arrival, record.start(&op.id)) else {
            continue;
        };
        lambda.push(a.t_first.saturating_sub(start) as f64 / 1e6);
        if let (Some(result), Some(end)) = (record.result(&op.id), a.t_reply_after) {
            epsilon.push(result.t.saturating_sub(end) as f64 / 1e6);
        }
    }
    (median(lambda), median(epsilon))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}
