//! Mutants turn their own case red; what is no client passes nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ressac_prove::{Case, Verdict, cases};
use support::{all, claims, lines, options, try_run, turns_red};

/// One or two of each group, on every commit.
const SAMPLE: [&str; 11] = [
    "A01", "A02", "B01", "C01", "D07", "E01", "E06", "F03", "G01", "G04", "H08",
];

fn red(case: &'static Case, mutant: &str) -> Result<(), String> {
    let mut options = options(
        claims("reference"),
        &["reference", "--mutant", mutant],
        &[case.number()],
    );
    options.case_limit = Duration::from_secs(15);
    turns_red(options, case, mutant)
}

/// Side by side, as a case mostly waits; group H has the machine for itself.
fn try_all(work: &[(&'static Case, &'static str)], threads: usize) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let alive = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((case, mutant)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = red(case, mutant) {
                        alive.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    alive.into_inner().unwrap()
}

#[test]
fn every_mutant_turns_its_own_case_red() {
    let reference = claims("reference");
    let only = std::env::var("RESSAC_PROVE_MUTANTS").unwrap_or_default();
    let mut work = Vec::new();
    for case in cases() {
        let chosen = SAMPLE.contains(&case.number()) || all() || only.contains(case.number());
        if !chosen || (!only.is_empty() && !only.contains(case.number())) {
            continue;
        }
        let needs: Vec<_> = case.needs.iter().filter(|n| !reference.has(n)).collect();
        if !needs.is_empty() {
            println!(
                "{}: not tried, the reference does not claim {needs:?}",
                case.id
            );
            continue;
        }
        work.extend(case.mutants.iter().map(|m| (case, m.as_str())));
    }
    let (alone, together): (Vec<_>, Vec<_>) = work.iter().partition(|w| w.0.group() == 'H');
    let mut alive = try_all(&together, 8);
    alive.extend(try_all(&alone, 1));
    println!(
        "{} of {} mutants caught",
        work.len() - alive.len(),
        work.len()
    );
    assert!(alive.is_empty(), "{}", alive.join("\n"));
    assert!(!work.is_empty());
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
            Ok(report) => {
                let passed = report.cases.iter().any(|c| c.verdict == Verdict::Pass);
                assert!(
                    !passed && report.exit_code(false) != 0,
                    "{what}: {}",
                    lines(&report)
                );
                lines(&report)
            }
        };
        println!("{what}: {error}");
    }
}
