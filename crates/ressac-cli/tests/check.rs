//! `ressac check` and `ressac explain` on small files.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Ran, assert_golden, command, finish, golden, ressac};

/// Runs in the folder of the golden files, so that no path of this machine is in the output.
fn there(args: &[&str]) -> Ran {
    finish(command(args).current_dir(golden("")).spawn().unwrap())
}

#[test]
fn a_clean_file_says_so_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clean.toml");
    std::fs::write(&file, "[policy.payments]\nretries = 3\n").unwrap();
    let ran = ressac(&["check", "--strict", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let line = "clean.toml: sound, 1 own policy, no partners, no warnings\n";
    assert!(
        ran.out.ends_with(line) && ran.out.lines().count() == 1,
        "{ran:?}"
    );
}

#[test]
fn warnings_are_0_and_under_strict_1() {
    let ran = there(&["check", "ressac.toml"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_golden("check.txt", &ran.out);
    let strict = there(&["check", "--strict", "ressac.toml"]);
    assert_eq!((strict.code, &strict.out), (1, &ran.out));
}

#[test]
fn errors_are_64_with_their_lines() {
    let ran = there(&["check", "bad.toml"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert_golden("check-bad.txt", &ran.out);
}

#[test]
fn json_has_code_place_and_fix_of_each() {
    let ran = there(&["check", "--json", "bad.toml"]);
    assert_eq!(ran.code, 64);
    let found = ran.json();
    assert_eq!((&found["ok"], &found["errors"]), (&false.into(), &2.into()));
    let first = &found["diagnostics"][0];
    assert_eq!(
        (&first["code"], &first["line"]),
        (&"unknown-key".into(), &2.into())
    );
    assert!(first["fixes"][0].as_str().unwrap().contains("retries"));
    let clean = there(&["check", "--json", "ressac.toml"]).json();
    assert_eq!((&clean["ok"], &clean["errors"]), (&true.into(), &0.into()));
    assert!(clean["warnings"].as_u64().unwrap() >= 2, "{clean}");
}

#[test]
fn colour_on_request_only() {
    for (args, colour) in [
        (&["check", "bad.toml"][..], false),
        (&["check", "bad.toml", "--color", "never"], false),
        (&["--color=always", "check", "bad.toml"], true),
    ] {
        assert_eq!(there(args).out.contains('\u{1b}'), colour, "{args:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_64() {
    let ran = there(&["check", "no-such.toml"]);
    assert_eq!(ran.code, 64);
    assert!(ran.out.contains("no-such.toml"), "{ran:?}");
}

#[test]
fn explain_gives_the_numbers_of_one_policy() {
    let args = [
        "explain",
        "ressac.toml",
        "--policy",
        "payments",
        "--outage",
        "30m",
        "--rate",
        "100",
    ];
    let ran = there(&args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_golden("explain.txt", &ran.out);
}

#[test]
fn explain_gives_all_policies_of_a_file_and_those_its_partners_use() {
    let ran = there(&["explain", "--json", "ressac.toml"]);
    let names: Vec<_> = ran
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["policy"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["durable", "payments", "reports"]);
}

#[test]
fn explain_knows_the_built_in_policies() {
    let ran = ressac(&["explain", "sync", "durable"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out.starts_with("Policy sync (sync): 5 retries"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("\nPolicy durable (durable): 30 retries"),
        "{ran:?}"
    );
}

#[test]
fn explain_says_one_attempt_of_one() {
    let (_folder, spec) = common::policy("retries = 0\n");
    let file = spec.strip_suffix(":p").unwrap();
    let ran = ressac(&["explain", file]);
    assert!(
        ran.out
            .contains("(sync): 0 retries, so at most 1 attempt\n"),
        "{ran:?}"
    );
    assert!(ran.out.contains("  at most 1 attempt, "), "{ran:?}");
}

#[test]
fn explain_refuses_what_is_not_there() {
    for (args, word) in [
        (
            &["explain", "ressac.toml", "--policy", "paymants"][..],
            "paymants",
        ),
        (&["explain", "sync", "--rate", "0"], "above 0"),
        (&["explain", "sync", "--rate", "inf"], "above 0"),
        (&["explain", "sync", "--outage", "5"], "unit"),
        (&["explain", "sync", "--outage", "0s"], "above 0"),
        (&["explain", "bad.toml"], "retrys"),
        (&["explain"], "FILE"),
    ] {
        let ran = there(args);
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.err.contains(word), "{ran:?}");
    }
}
