//! Mutants turn their own case red; what is no client passes nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::time::Duration;

use ressac_prove::{Case, Verdict, cases};
use support::{all, claims, lines, options, run, try_run};

/// One or two of each group, on every commit.
const SAMPLE: [&str; 9] = [
    "A01", "A02", "B01", "C01", "D07", "E01", "E06", "F03", "H08",
];

/// Faults that the reference cannot have: it has no such ability, or its transport leaves no room.
const NOT_HERE: [&str; 5] = ["F08", "G01", "G02", "G03", "no-verify"];

fn red(case: &Case, mutant: &str) -> Result<(), String> {
    let mut options = options(
        claims("reference"),
        &["reference", "--mutant", mutant],
        &[case.number()],
    );
    options.case_limit = Duration::from_secs(15);
    let report = run(options);
    let verdict = &report.cases[0];
    match verdict.verdict {
        Verdict::Fail | Verdict::Warn => Ok(()),
        other => Err(format!(
            "{} {mutant}: {} ({})",
            case.id,
            other.word(),
            verdict.reason
        )),
    }
}

#[test]
fn every_mutant_turns_its_own_case_red() {
    let mut alive = Vec::new();
    let mut caught = 0;
    for case in cases() {
        if !all() && !SAMPLE.contains(&case.number()) {
            continue;
        }
        let needs: Vec<_> = case
            .needs
            .iter()
            .filter(|n| !claims("reference").has(n))
            .collect();
        if !needs.is_empty() || NOT_HERE.contains(&case.number()) {
            println!(
                "{}: not tried, the reference does not claim {needs:?}",
                case.id
            );
            continue;
        }
        let mutants = case
            .mutants
            .iter()
            .filter(|m| !NOT_HERE.contains(&m.as_str()));
        for mutant in mutants {
            match red(case, mutant) {
                Ok(()) => caught += 1,
                Err(what) => alive.push(what),
            }
        }
    }
    println!("{caught} mutants caught");
    assert!(alive.is_empty(), "{}", alive.join("\n"));
    assert!(caught >= 9);
}

#[test]
fn what_is_no_client_passes_nothing() {
    for what in [
        "ok",
        "ko",
        "elsewhere",
        "early",
        "hangs",
        "crashes",
        "noise",
    ] {
        let mut options = options(
            claims("reference"),
            &[&format!("none:{what}")],
            &["A01", "B01"],
        );
        options.case_limit = Duration::from_secs(3);
        let error = match try_run(options) {
            // The set-up already shows that it cannot be driven.
            Err(ressac_prove::RunError::Setup(error)) => error,
            Err(other) => panic!("{what}: {other}"),
            Ok(report) => panic!("{what}: {}", lines(&report)),
        };
        println!("{what}: {error}");
    }
}
