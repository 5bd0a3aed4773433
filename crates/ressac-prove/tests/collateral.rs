//! A mutant leaves every other case as it was, except those that are written beside it.
//!
//! `collateral.toml` keeps what was seen, for groups A to F in lines mode. The run over all mutants
//! takes half an hour and is one for the night (`RESSAC_PROVE_ALL=1`); `RESSAC_PROVE_COLLATERAL`
//! with names of mutants, separated by commas, runs those and prints what it sees, as a row.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ressac_prove::{Verdict, cases, find_case};
use serde::Deserialize;
use support::{all, claims, options, run};

/// The statistics of group H need the machine for themselves, and G another client.
const GROUPS: [&str; 6] = ["A*", "B*", "C*", "D*", "E*", "F*"];

/// A case that takes longer says nothing here.
const CASE_LIMIT: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Mutant to the numbers of the cases that it turns red beside its own.
    collateral: BTreeMap<String, BTreeSet<String>>,
}

fn table() -> Table {
    toml::from_str(include_str!("collateral.toml")).unwrap()
}

/// The numbers of the cases that a mutant must turn red.
fn own(mutant: &str) -> BTreeSet<&'static str> {
    let of = |case: &&ressac_prove::Case| case.mutants.iter().any(|m| m == mutant);
    cases().iter().filter(of).map(|c| c.number()).collect()
}

/// The numbers of the cases that this client turns red, its own left out.
fn red(mutant: &str) -> BTreeSet<String> {
    let arguments = ["reference", "--mutant", mutant];
    let mut options = options(claims("reference"), &arguments, &GROUPS);
    options.case_limit = CASE_LIMIT;
    // Two runs go on at once, and the night's folder has room for one.
    options.out = None;
    let own = own(mutant);
    // What is inconclusive is nobody's fault: the evidence was missing, or the machine lagged.
    let red = run(options).cases.into_iter().filter_map(|c| {
        let number = find_case(&c.id)?.number();
        let counts = matches!(c.verdict, Verdict::Fail | Verdict::Warn);
        (counts && !own.contains(number)).then(|| number.to_owned())
    });
    red.collect()
}

#[test]
fn the_table_knows_its_mutants_and_cases() {
    for (mutant, numbers) in table().collateral {
        let own = own(&mutant);
        assert!(!own.is_empty(), "{mutant} is no mutant of any case");
        for number in numbers {
            let known = cases().iter().any(|c| c.number() == number);
            assert!(known, "{mutant}: there is no case {number}");
            let in_groups = GROUPS
                .iter()
                .any(|g| g.as_bytes()[0] == number.as_bytes()[0]);
            assert!(
                in_groups,
                "{mutant}: {number} is of a group that is not run"
            );
            let beside = !own.contains(number.as_str());
            assert!(beside, "{mutant}: {number} is its own case, no collateral");
        }
    }
}

#[test]
fn a_mutant_turns_no_other_case_red_than_is_written_beside_it() {
    let chosen = std::env::var("RESSAC_PROVE_COLLATERAL").unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').filter(|name| !name.is_empty()).collect();
    let table = table();
    let mutants: BTreeSet<&str> = cases()
        .iter()
        .flat_map(|case| case.mutants.iter().map(String::as_str))
        .filter(|name| all() && chosen.is_empty() || chosen.contains(name))
        .collect();
    let work: Vec<&str> = mutants.into_iter().collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(mutant) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let seen = red(mutant);
                    println!("{mutant} = {seen:?}");
                    // One without a row turns nothing else red.
                    let written = table.collateral.get(*mutant).cloned().unwrap_or_default();
                    let more: Vec<_> = seen.difference(&written).collect();
                    if !more.is_empty() {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{mutant}: {more:?} too"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
