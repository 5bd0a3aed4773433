//! The command line as a whole: help, version, completions, bad usage.

#![allow(clippy::unwrap_used)]

mod common;

use common::{command, finish, ressac};

const COMMANDS: [&str; 10] = [
    "send",
    "serve",
    "dead",
    "check",
    "explain",
    "mock",
    "prove",
    "demo",
    "sim",
    "completions",
];
const NESTED: [&[&str]; 10] = [
    &["dead", "list"],
    &["dead", "show"],
    &["dead", "replay"],
    &["dead", "discard"],
    &["prove", "list"],
    &["prove", "explain"],
    &["prove", "judge"],
    &["prove", "compare"],
    &["sim", "compare"],
    &["sim", "suggest"],
];

#[test]
fn every_help_has_examples_and_exit_codes() {
    let single: Vec<Vec<&str>> = COMMANDS.iter().map(|name| vec![*name]).collect();
    let nested = NESTED.iter().map(|names| names.to_vec());
    for names in single.into_iter().chain(nested).chain([Vec::new()]) {
        let ran = ressac(&[&names[..], &["--help"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{names:?}");
        let example = format!("\nExamples:\n  ressac {}", names.join(" "));
        let examples = if names == ["serve"] || names.is_empty() {
            "\nExamples:\n  ressac"
        } else {
            &example
        };
        assert!(ran.out.contains(examples), "{names:?}: {}", ran.out);
        assert!(
            ran.out.contains("\nExit codes:\n  0 "),
            "{names:?}: {}",
            ran.out
        );
        assert!(
            ran.out.contains("\n  64  bad arguments"),
            "{names:?}: {}",
            ran.out
        );
        let long = ran.out.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{names:?}");
    }
    let send = ressac(&["send", "--help"]).out;
    for code in 10..=19 {
        assert!(send.contains(&format!("\n  {code}  ")), "{code}");
    }
}

#[test]
fn help_and_version_are_answers_and_bad_usage_is_64() {
    assert_eq!(
        ressac(&["--version"]).out,
        concat!("ressac ", env!("CARGO_PKG_VERSION"), "\n")
    );
    for args in [
        &[][..],
        &["nonsense"],
        &["send"],
        &["check", "--nonsense", "x"],
        &["--color", "perhaps", "check", "x"],
        &["dead"],
        &["dead", "show", "not-an-id"],
        &["dead", "replay"],
        &["dead", "replay", "--all"],
        &["completions", "tcsh"],
    ] {
        let ran = ressac(args);
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{args:?}");
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = ressac(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for name in COMMANDS.iter().chain(&["replay", "discard"]) {
            assert!(ran.out.contains(name), "{shell} lacks {name}");
        }
        for option in ["deliver-by", "make-key", "ports-file"] {
            assert!(ran.out.contains(option), "{shell} lacks {option}");
        }
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    for args in [
        &["completions", "bash"][..],
        &["explain", "durable"],
        &["--help"],
    ] {
        let mut child = command(args).spawn().unwrap();
        drop(child.stdout.take());
        let ran = finish(child);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    }
}
