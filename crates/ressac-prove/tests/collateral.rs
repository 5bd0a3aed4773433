//! A mutant leaves every other case as it was, except those that are written beside it.
//!
//! `collateral.toml` keeps what was seen in lines mode. The run over all mutants takes most of an
//! hour and is one for the night (`RESSAC_PROVE_ALL=1`); `RESSAC_PROVE_COLLATERAL` with names of
//! mutants, separated by commas, runs those and prints what it sees.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ressac_prove::{Verdict, cases, find_case};
use serde::Deserialize;
use support::{all, claims, options, run};

/// What is run together, and over how many mutants at once: A to G keep a machine busy, while the
/// cases of H follow one another and mostly wait.
const GROUPS: [(&[&str], usize); 2] = [
    (&["A*", "B*", "C*", "D*", "E*", "F*", "G*"], 2),
    (&["H*"], 6),
];

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

/// The numbers of the cases of these groups that this client turns red, its own left out.
fn red(mutant: &str, groups: &[&str]) -> BTreeSet<String> {
    let arguments = ["reference", "--mutant", mutant];
    let mut options = options(claims("reference"), &arguments, groups);
    options.case_limit = CASE_LIMIT;
    // Several runs go on at once, and the night's folder has room for one.
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
    let wrong = Mutex::new(Vec::new());
    for (groups, at_once) in GROUPS {
        side_by_side(&work, at_once, |mutant| {
            let seen = red(mutant, groups);
            println!("{mutant} = {seen:?} of {groups:?}");
            // One without a row turns nothing else red.
            let written = table.collateral.get(mutant).cloned().unwrap_or_default();
            let more: Vec<_> = seen.difference(&written).collect();
            if !more.is_empty() {
                let line = format!("{mutant}: {more:?} too");
                wrong.lock().unwrap().push(line);
            }
        });
    }
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Does this for each, so many at once.
fn side_by_side(work: &[&str], at_once: usize, each: impl Fn(&str) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(mutant) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(mutant);
                }
            });
        }
    });
}
