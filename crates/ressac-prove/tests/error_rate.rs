//! How often a right client is alarmed by chance. `RESSAC_PROVE_RUNS=200` at night.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use ressac_prove::Verdict;
use support::{all, claims, lines, options, run};

#[test]
fn statistics_alarm_a_right_client_at_most_once_in_200_runs() {
    let runs: u32 = std::env::var("RESSAC_PROVE_RUNS").map_or(1, |n| n.parse().unwrap());
    let wanted = if all() {
        vec!["H*"]
    } else {
        vec!["H01", "H03"]
    };
    let (mut alarms, mut unsure) = (Vec::new(), 0);
    for number in 1..=runs {
        let report = run(options(claims("reference"), &["reference"], &wanted));
        unsure += report.totals.inconclusive;
        let bad = |v: Verdict| matches!(v, Verdict::Fail | Verdict::Warn);
        if report.cases.iter().any(|c| bad(c.verdict)) {
            alarms.push(format!("run {number}:\n{}", lines(&report)));
        }
    }
    println!(
        "{runs} runs: {} alarms, {unsure} inconclusive",
        alarms.len()
    );
    assert!(
        alarms.len() <= runs.div_ceil(200) as usize - usize::from(runs < 200),
        "{alarms:#?}"
    );
}
