//! The demo's promises, scaled down; and that its report turns bad when a protection is off.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;

use ressac_e2e::ressac;
use serde_json::Value;

fn demo(more: &[&str]) -> Value {
    demo_of(30, more)
}

fn demo_of(messages: u32, more: &[&str]) -> Value {
    let output = Command::new(ressac())
        .args(["demo", "--json", "--outage", "3s", "--retry-after", "2"])
        .args(["--messages", &messages.to_string()])
        .args(more)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{more:?} {text}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).unwrap()
}

fn number(report: &Value, field: &str) -> f64 {
    report
        .pointer(field)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {field}: {report}"))
}

#[test]
fn none_lost_none_doubled_none_early_no_herd() {
    let report = demo(&[]);
    let fields: Vec<_> = report
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "accepted",
        "amplification",
        "attempts",
        "dead",
        "delivered",
        "drain_seconds",
        "duplicates",
        "early",
        "peak_per_second",
    ];
    assert_eq!(fields, expected);
    for (field, value) in [
        ("/accepted", 30.0),
        ("/delivered", 30.0),
        ("/dead", 0.0),
        ("/duplicates", 0.0),
        ("/early", 0.0),
    ] {
        assert_eq!(number(&report, field), value, "{field}");
    }
    assert!(number(&report, "/amplification") <= 2.0);
    assert!(number(&report, "/peak_per_second/after") <= 10.0);
    assert!(number(&report, "/drain_seconds") <= 30.0);

    let naive = demo(&["--naive"]);
    assert!(number(&naive, "/attempts") > number(&report, "/attempts"));
    assert!(number(&naive, "/early") > 0.0);
    assert_eq!(number(&naive, "/peak_per_second/after"), 30.0, "the herd");
}

#[test]
fn without_the_hold_arrivals_come_early() {
    let report = demo(&["--without", "hold"]);
    assert!(number(&report, "/early") > 0.0, "{report}");
}

#[test]
fn without_the_breaker_the_drain_is_not_paced() {
    // A hold alone drains by the default ramp, which doubles every two seconds: too fast for the
    // last of fifty.
    let report = demo_of(50, &["--without", "breaker"]);
    assert!(number(&report, "/peak_per_second/after") > 10.0, "{report}");
}

#[test]
fn without_both_it_is_worse_in_every_respect() {
    let report = demo(&["--without", "hold", "--without", "breaker"]);
    assert!(number(&report, "/early") > 0.0, "{report}");
    assert!(number(&report, "/amplification") > 1.5, "{report}");
}
