//! Right clients end without fail and without warn.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use ressac_prove::Verdict;
use support::{all, assert_clean, claims, exec, lines, options, run};

/// A few quick cases of each group, so that every commit sees all layers work.
const SAMPLE: [&str; 14] = [
    "A01", "A04", "A07", "A08", "B01", "B03", "C01", "C10", "D04", "D07", "E02", "E07", "F03",
    "H08",
];

fn wanted() -> Vec<&'static str> {
    if all() { Vec::new() } else { SAMPLE.to_vec() }
}

#[test]
fn the_reference_passes_in_lines_mode() {
    let report = run(options(claims("reference"), &["reference"], &wanted()));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert!(report.totals.pass >= 8, "{}", lines(&report));
}

#[test]
fn the_reference_passes_in_exec_mode() {
    let wanted = if all() {
        Vec::new()
    } else {
        vec!["A01", "B01", "C01", "E01", "E07"]
    };
    let report = run(options(exec(claims("reference")), &["reference"], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert!(report.totals.pass >= 3, "{}", lines(&report));
}

#[test]
fn the_library_passes_in_lines_mode() {
    let wanted = if all() {
        Vec::new()
    } else {
        [&SAMPLE[..], &["E14", "F10", "G01", "G03", "G04"]].concat()
    };
    let report = run(options(claims("library"), &["library"], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert!(report.totals.pass >= 10, "{}", lines(&report));
}

#[test]
fn the_library_passes_in_exec_mode() {
    let wanted = if all() {
        Vec::new()
    } else {
        vec!["A01", "C01", "E07", "F03", "G01"]
    };
    let report = run(options(exec(claims("library")), &["library"], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert!(report.totals.pass >= 3, "{}", lines(&report));
}

#[test]
fn keys_may_be_quoted() {
    let report = run(options(claims("reference"), &["quoted"], &["E06", "E07"]));
    assert_clean(&report);
    assert_eq!(report.totals.pass, 2, "{}", lines(&report));
}

#[test]
fn one_attempt_and_no_claims_pass_all_that_is_about_safety() {
    let wanted = if all() {
        Vec::new()
    } else {
        vec!["A01", "A04", "B0*", "C10*", "E01", "E02"]
    };
    let report = run(options(claims("plain"), &["plain"], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert_eq!(support::case(&report, "A01").verdict, Verdict::NotClaimed);
    assert_eq!(support::case(&report, "B01").verdict, Verdict::Pass);
    assert_eq!(report.exit_code(true), 0, "{}", lines(&report));
}

#[test]
fn a_modest_client_is_held_to_what_it_claims() {
    let wanted = if all() {
        Vec::new()
    } else {
        vec!["A01", "B07", "C01", "E05"]
    };
    let report = run(options(claims("modest"), &["modest"], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    assert_ne!(support::case(&report, "A01").verdict, Verdict::NotClaimed);
    assert_eq!(support::case(&report, "E05").verdict, Verdict::NotClaimed);
}

/// A durable client would find there what it did in an earlier run.
#[test]
fn what_an_earlier_run_left_in_a_state_folder_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("cases/B01/state/left");
    std::fs::create_dir_all(left.parent().unwrap()).unwrap();
    std::fs::write(&left, "from before").unwrap();
    let report = run(ressac_prove::Options {
        out: Some(folder.path().to_owned()),
        ..options(claims("reference"), &["reference"], &["B01"])
    });
    assert_clean(&report);
    assert!(!left.exists());
    assert!(left.parent().unwrap().is_dir(), "its folder is there");
}

/// The profile asks for exactly three attempts, so it has to tell the client three.
#[test]
fn a_profile_tells_the_pace_that_it_asks_for() {
    let mut options = options(claims("reference"), &["reference"], &["A04"]);
    options.profile = "aws-standard".to_owned();
    let report = run(options);
    assert_eq!(report.cases[0].verdict, Verdict::Pass, "{}", lines(&report));
}
