//! Whatever stands in the file: an answer, no panic, and no secret in it.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use ressac_config::{Config, Environment, ExplainOptions, explain, lints};

const VALID: &str = include_str!("lint/habits.toml");
const WRONG: [&str; 4] = [
    include_str!("ui/contradiction.toml"),
    include_str!("ui/partner.toml"),
    include_str!("ui/wrong-type.toml"),
    include_str!("ui/extends.toml"),
];

/// Reads it, and goes through all that can be done with it.
fn all_of_it(text: &str) {
    match Config::parse("fuzz.toml", text, &Environment::of([("A", "b")])) {
        Ok(config) => {
            for warning in lints(&config) {
                assert!(!warning.render(true).is_empty());
            }
            for named in config.policies() {
                let options = ExplainOptions {
                    draws: 3,
                    ..ExplainOptions::default()
                };
                assert!(!explain(named, &options).to_string().is_empty());
            }
        }
        Err(error) => {
            assert!(!error.diagnostics().is_empty());
            assert!(!error.render(false).is_empty());
        }
    }
}

fn cut(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at % (text.len() + 1))
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        "[\\x00-\\x1f\"'\\[\\]{}=.,#\\\\é→]{0,6}",
        "[0-9]{1,40}",
        Just("\"off\"".to_owned()),
        Just("extends = \"heir\"\n".to_owned()),
        Just("1e308".to_owned()),
        Just("\"366d\"".to_owned()),
        Just("nan".to_owned()),
        Just("[[policy]]\n".to_owned()),
        Just("= {".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(
        text in "\\PC{0,200}",
        lines in "([a-z\\[\\].\"= 0-9{}]{0,20}\n){0,10}",
    ) {
        all_of_it(&text);
        all_of_it(&lines);
    }

    #[test]
    fn mutated_files_never_panic(
        which in 0usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, piece()), 1..4),
    ) {
        let mut text = WRONG.get(which).copied().unwrap_or(VALID).to_owned();
        for (at, length, new) in changes {
            let start = cut(&text, at.index(text.len() + 1));
            let end = text.ceil_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, &new);
        }
        all_of_it(&text);
    }

    /// HT-8: a header's value is in no error, wherever the file is cut off or broken.
    #[test]
    fn no_error_shows_a_header_value(at in any::<prop::sample::Index>(), new in piece()) {
        let text = "[partner.acme]\nurl = \"https://a.example\"\n\
                    headers = { Authorization = \"hunter2\" }\nx = 1\n";
        // Inside the value itself there is nothing left to hide.
        let start = cut(text, at.index(text.len()));
        let secret = text.find("hunter2").unwrap();
        prop_assume!(start <= secret || start >= secret + 7);
        let mut broken = text.to_owned();
        broken.insert_str(start, &new);
        if let Err(error) = Config::parse("fuzz.toml", &broken, &Environment::of([])) {
            let shown = error.to_string();
            prop_assert!(!shown.contains("hunter2"), "{}", shown);
        }
    }
}
