//! Runs that were kept: of each case one that passes and one of a mutant that does not. The judge
//! says of them today what it said when they were recorded; without sockets, without a clock.
//!
//! `RESSAC_UPDATE=1 cargo test -p ressac-prove --test kept` records them anew (ten minutes),
//! `RESSAC_UPDATE=A08,C01` those of these cases.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ressac_prove::{Case, Options, Verdict, cases, rejudge};
use serde::{Deserialize, Serialize};
use support::{claims, options, run};

/// The files of a run of one case, and what the judge said.
#[derive(Serialize, Deserialize)]
struct Kept {
    client: String,
    verdict: Verdict,
    files: BTreeMap<String, String>,
}

fn place(case: &Case, what: &str) -> PathBuf {
    let name = format!("{}-{what}.json.gz", case.number());
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/kept")
        .join(name)
}

fn load(case: &Case, what: &str) -> Kept {
    let path = place(case, what);
    let file = fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Judges a kept run again; `journal` may change what was seen.
fn judged(kept: &Kept, journal: impl Fn(&str) -> String) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &kept.files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match name.ends_with("journal.ndjson") {
            true => journal(text),
            false => text.clone(),
        };
        fs::write(path, text).unwrap();
    }
    let report = rejudge(folder.path()).unwrap();
    let [case] = &report.cases[..] else {
        panic!("{} cases in a run of one", report.cases.len());
    };
    case.verdict
}

#[test]
fn the_judge_says_of_kept_runs_what_it_said_of_them() {
    if let Ok(which) = std::env::var("RESSAC_UPDATE") {
        record(&which);
    }
    for case in cases().iter() {
        let right = load(case, "pass");
        assert_eq!(right.verdict, Verdict::Pass, "{} as recorded", case.id);
        assert_eq!(judged(&right, str::to_owned), Verdict::Pass, "{}", case.id);
        let wrong = load(case, "red");
        let name = &wrong.client;
        assert!(
            matches!(wrong.verdict, Verdict::Fail | Verdict::Warn),
            "{} {name} as recorded",
            case.id
        );
        assert_eq!(
            judged(&wrong, str::to_owned),
            wrong.verdict,
            "{} {name}",
            case.id
        );
    }
}

/// The same results with an empty journal: what a client says of itself proves nothing. But for
/// who gave up while the listener refused (A07): refused connections leave no trace anywhere.
#[test]
fn without_a_journal_nothing_passes_and_nothing_fails() {
    let mut told = Vec::new();
    for case in cases() {
        for what in ["pass", "red"] {
            let kept = load(case, what);
            let verdict = judged(&kept, |_| String::new());
            let refused = case.number() == "A07" && what == "red";
            if verdict != Verdict::Inconclusive && !refused {
                told.push(format!("{} {}: {verdict:?}", case.id, kept.client));
            }
        }
    }
    assert!(told.is_empty(), "{told:#?}");
}

/// Four cases at a time, as a case mostly waits; group H has the machine for itself.
fn record(which: &str) {
    fs::create_dir_all(place(cases().iter().next().unwrap(), "").parent().unwrap()).unwrap();
    let wanted = cases()
        .iter()
        .filter(|c| which == "1" || which.split(',').any(|n| n == c.number()));
    let (load, light): (Vec<_>, Vec<_>) = wanted.partition(|c| c.number().starts_with('H'));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = light.get(next.fetch_add(1, Ordering::Relaxed)) {
                    both(case);
                }
            });
        }
    });
    load.into_iter().for_each(both);
}

fn both(case: &'static Case) {
    keep(case, "pass", &["reference"]);
    keep(case, "red", &["reference", "--mutant", &case.mutants[0]]);
}

/// Runs a case alone until it came to what is wanted of it, at most five times: lag of the machine
/// that records is no property of the client.
fn keep(case: &'static Case, what: &str, client: &[&str]) {
    let wanted = |v: Verdict| match what {
        "pass" => v == Verdict::Pass,
        _ => matches!(v, Verdict::Fail | Verdict::Warn),
    };
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let report = run(Options {
            out: Some(folder.path().to_owned()),
            case_limit: Duration::from_secs(20),
            ..options(claims("reference"), client, &[case.number()])
        });
        let verdict = report.cases[0].verdict;
        println!("{} {what}: {}", case.number(), verdict.word());
        if wanted(verdict) {
            let mut files = BTreeMap::new();
            gather(folder.path(), folder.path(), &mut files);
            let client = client.last().unwrap().to_string();
            let kept = Kept {
                client,
                verdict,
                files,
            };
            let mut out = GzEncoder::new(Vec::new(), Compression::best());
            out.write_all(&serde_json::to_vec(&kept).unwrap()).unwrap();
            fs::write(place(case, what), out.finish().unwrap()).unwrap();
            return;
        }
    }
    panic!("{} {client:?} does not come to {what}", case.id);
}

/// What `rejudge` reads.
fn gather(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            gather(root, &path, files);
        } else if [
            "run.json",
            "record.json",
            "journal.ndjson",
            "results.ndjson",
        ]
        .contains(&name.as_str())
        {
            let text = fs::read_to_string(&path).unwrap();
            let inside = path.strip_prefix(root).unwrap();
            files.insert(inside.to_string_lossy().into_owned(), text);
        }
    }
}
