//! The seven bad habits, each with its number: `lint/habits.toml` gives `lint/habits.stderr`.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{below, golden};
use ressac_config::{Config, Environment, Severity, lints, render_all};

fn read(text: &str) -> Config {
    Config::parse("habits.toml", text, &Environment::of([])).unwrap()
}

fn codes(text: &str) -> Vec<&'static str> {
    lints(&read(text))
        .iter()
        .map(|warning| warning.code())
        .collect()
}

#[test]
fn each_habit_is_shown_with_its_line_and_its_number() {
    let text = std::fs::read_to_string(below("lint/habits.toml")).unwrap();
    let warnings = lints(&read(&text));
    let codes: BTreeSet<_> = warnings.iter().map(|warning| warning.code()).collect();
    let all = [
        "forgotten-key",
        "no-breaker",
        "no-cap",
        "no-end",
        "no-jitter",
        "permanent-retried",
        "short-window",
        "small-jitter",
        "unsafe-writes",
    ];
    assert_eq!(codes, BTreeSet::from(all));
    for warning in &warnings {
        assert_eq!(warning.severity(), Severity::Warning);
        assert!(
            warning.label().contains(|c: char| c.is_ascii_digit()),
            "{warning}"
        );
        assert!(
            warning.fixes().next().is_some() && warning.location().is_some(),
            "{warning}"
        );
    }
    let rendered = format!("{}\n", render_all(&warnings, false));
    golden(&below("lint/habits.stderr"), &rendered).unwrap();
}

#[test]
fn a_plain_policy_has_no_bad_habit() {
    for text in [
        "",
        "[policy.plain]\n",
        "[policy.plain]\nmode = \"durable\"\n",
        "[policy.plain]\nretries = 0\njitter = \"none\"\nbreaker = \"off\"\nwindow = \"off\"\n",
        "[policy.days]\nmode = \"durable\"\nwindow = \"5d\"\ncap = \"4h\"\nretries = 60\n",
        "[partner.acme]\nurl = \"https://acme.example\"\nidempotency = { header = \"K\" }\n",
        // The second is the default for AS2: an answer with a hint proves something.
        "[policy.as2]\nunprocessed = [429, \"503+retry-after\"]\n\
         [partner.a]\nurl = \"http://a\"\npolicy = \"as2\"\n",
        // A key makes a second attempt harmless.
        "[policy.p]\nunprocessed = [503]\n[partner.a]\nurl = \"http://a\"\npolicy = \
         \"p\"\nidempotency = { header = \"K\" }\n",
    ] {
        assert_eq!(codes(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn what_is_inherited_is_said_once_where_it_stands() {
    let text = "[policy.base]\njitter = \"none\"\n[policy.heir]\nextends = \"base\"\nretries = 2\n";
    assert_eq!(codes(text), ["no-jitter"]);
}
