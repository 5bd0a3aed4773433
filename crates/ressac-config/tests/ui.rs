//! Every error as a person sees it: `ui/NAME.toml` gives `ui/NAME.stderr`. `RESSAC_UPDATE=1` writes
//! them.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;

use common::{below, golden};
use ressac_config::{Config, Environment};

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(below("ui"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn every_error_says_where_why_and_how_to_fix_it() {
    let mut differing = Vec::new();
    for case in cases() {
        let text = std::fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_str().unwrap();
        let error = Config::parse(name, &text, &Environment::of([])).unwrap_err();
        // HT-8: whatever is wrong, a secret is not repeated.
        assert!(!error.to_string().contains("hunter2"), "{error}");
        for diagnostic in error.diagnostics() {
            assert!(diagnostic.location().is_some(), "{diagnostic}");
            assert!(diagnostic.fixes().next().is_some(), "{diagnostic}");
        }
        differing.extend(golden(&case.with_extension("stderr"), &format!("{error}\n")).err());
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
