//! Explanations as a person sees them: `explain/NAME.txt`.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{below, golden};
use ressac_config::{Config, Environment, ExplainOptions, NamedPolicy, explain};
use ressac_policy::Mode;

#[test]
fn the_built_in_policies_and_one_of_a_file() {
    let text = "[policy.payments]\nmode = \"durable\"\nretries = 8\nwindow = \"15m\"\njitter = \
     \"decorrelated\"\n\
                base = \"1s\"\ncap = \"1m\"\nbudget = \"off\"\n";
    let config = Config::parse("ressac.toml", text, &Environment::of([])).unwrap();
    let options = ExplainOptions {
        draws: 2_000,
        ..ExplainOptions::default()
    };
    std::fs::create_dir_all(below("explain")).unwrap();
    let mut differing = Vec::new();
    for name in ["sync", "durable", "payments"] {
        let explanation = explain(config.policy(name).unwrap(), &options);
        differing.extend(
            golden(
                &below(&format!("explain/{name}.txt")),
                &explanation.to_string(),
            )
            .err(),
        );
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn the_json_has_the_numbers_in_seconds() {
    let options = ExplainOptions {
        outage: Duration::from_secs(60),
        rate: 100.0,
        draws: 500,
        seed: 3,
    };
    let explanation = explain(&NamedPolicy::built_in(Mode::Synchronous), &options);
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["seed"], 3);
    assert_eq!(json["waits"][2]["ceiling"], 2.0);
    assert_eq!(json["promises"][0]["seconds"], 300.0);
    assert_eq!(json["fields"][0]["origin"]["built_in"]["policy"], "sync");
    // 1 + 0.1 + (100 + 0.1 × 60) / 6000.
    let bound = json["outage"]["amplification"].as_f64().unwrap();
    assert!((bound - (1.1 + 106.0 / 6_000.0)).abs() < 1e-9, "{bound}");
}
