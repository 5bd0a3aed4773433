//! `ressac sim`: JSON shapes, files, refusals, repeatability.

#![allow(clippy::unwrap_used)]

mod common;

use common::ressac;
use serde_json::Value;

fn rows(args: &[&str]) -> (Value, Vec<Value>) {
    let ran = ressac(args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    let json = ran.json();
    let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["rows", "scenario", "seed", "seeds"]);
    let rows = json["rows"].as_array().unwrap().clone();
    (json, rows)
}

#[test]
fn aws_occ_has_the_promised_fields_and_repeats_bit_for_bit() {
    let args = [
        "sim",
        "aws-occ",
        "--seeds",
        "5",
        "--clients",
        "50",
        "--json",
    ];
    let (json, all) = rows(&args);
    assert_eq!(
        (&json["scenario"], &json["seeds"]),
        (&"aws-occ".into(), &5.into())
    );
    assert_eq!(all.len(), 5);
    for row in &all {
        assert!(row["policy"].is_string());
        assert_eq!(row["clients"], 50);
        for field in ["calls_mean", "calls_sd", "time_ms_mean", "time_ms_sd"] {
            assert!(row[field].as_f64().unwrap() > 0.0, "{field}: {row}");
        }
    }
    assert_eq!(ressac(&args).out, ressac(&args).out);
    let other = [
        "sim",
        "aws-occ",
        "--seeds",
        "5",
        "--clients",
        "50",
        "--json",
        "--seed",
        "9",
    ];
    assert_ne!(ressac(&args).out, ressac(&other).out);
}

#[test]
fn edi_and_outage_have_the_promised_fields_and_figures() {
    let (_, all) = rows(&["sim", "edi-50", "--seeds", "40", "--json"]);
    let rule = |part: &str| {
        let named = |row: &&Value| row["rule"].as_str().unwrap().contains(part);
        all.iter().find(named).unwrap().clone()
    };
    let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
    let exactly = rule("exactly");
    assert_eq!(number(&exactly, "peak_per_second_mean"), 50.0);
    assert_eq!(number(&exactly, "early_mean"), 0.0);
    let ressac = rule("Ressac");
    assert!((number(&ressac, "peak_per_second_mean") - 3.54).abs() < 0.7);
    assert!(number(&ressac, "peak_per_second_sd") > 0.0);
    assert_eq!(number(&ressac, "early_mean"), 0.0);
    assert!(number(&ressac, "spread_seconds_mean") > 50.0);

    let (_, all) = rows(&[
        "sim", "outage", "--seeds", "1", "--policy", "durable", "--policy", "sync", "--json",
    ]);
    assert_eq!(all.len(), 2);
    for row in &all {
        for field in [
            "peak_per_second",
            "amplification",
            "lost_in",
            "lost_after",
            "recover_seconds",
        ] {
            assert!(row[format!("{field}_mean")].is_number(), "{field}: {row}");
            assert!(row[format!("{field}_sd")].is_number(), "{field}: {row}");
        }
    }
    assert_eq!(all[0]["policy"], "durable");
    assert_eq!(number(&all[0], "lost_in_mean"), 0.0);
}

#[test]
fn a_file_of_ones_own_with_a_policy_of_ressac_toml_and_all_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scenario = "about = \"mine\"\nhorizon = \"20s\"\nseeds = 2\n\
        server = { rate = \"100/s\", queue = 50 }\n\
        arrivals = { kind = \"poisson\", rate = \"50/s\" }\n\
        [[fault]]\nfrom = \"3s\"\nto = \"5s\"\n[[run]]\npolicy = \"sync\"\n";
    std::fs::write(path("mine.toml"), scenario).unwrap();
    std::fs::write(path("ressac.toml"), "[policy.payments]\nretries = 3\n").unwrap();
    let policy = path("ressac.toml:payments");
    let ran = ressac(&[
        "sim",
        &path("mine.toml"),
        "--policy",
        &policy,
        "--csv",
        &path("csv"),
        "--html",
        &path("storm.html"),
        "--svg",
        &path("svg"),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("payments") && ran.out.contains("seed 1, 2 replications"));
    let csv = std::fs::read_to_string(path("csv/rows.csv")).unwrap();
    assert!(
        csv.starts_with("policy,") && csv.contains("\"payments\","),
        "{csv}"
    );
    assert!(
        std::fs::read_to_string(path("csv/01-payments.csv"))
            .unwrap()
            .lines()
            .count()
            > 150
    );
    let html = std::fs::read_to_string(path("storm.html")).unwrap();
    assert!(html.contains("plot-offered") && html.contains("plot-goodput"));
    assert!(
        !html.contains("<script src") && !html.contains("<link"),
        "it needs no network"
    );
    let svg = std::fs::read_to_string(path("svg/offered.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("capacity") && svg.contains("payments"));
}

#[test]
fn nonsense_is_refused_with_a_word_on_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, "about = \"x\"\nhorizont = \"20s\"\n").unwrap();
    for (args, word) in [
        (vec!["sim", "outrage"], "built in are edi-50"),
        (vec!["sim", bad.to_str().unwrap()], "horizont"),
        (
            vec!["sim", "outage", "--policy", "nowhere.toml:x"],
            "nowhere.toml",
        ),
        (vec!["sim", "aws-occ", "--policy", "sync"], "five rules"),
        (vec!["sim", "outage", "--seeds", "0"], "--seeds"),
        (vec!["sim", "outage", "--clients", "4000000000"], "clients"),
        (
            vec!["sim", "suggest", "--base", "9s..1s"],
            "first must not be above",
        ),
        (
            vec![
                "sim", "compare", "--policy", "sync", "--rate", "1000000", "--outage", "6h",
            ],
            "lower --rate",
        ),
    ] {
        let ran = ressac(&args);
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{args:?} {ran:?}");
        assert!(ran.err.contains(word), "{args:?}: {}", ran.err);
    }
}

#[test]
fn compare_says_who_loses_nothing_and_suggest_stays_in_its_bounds() {
    let small = [
        "--capacity",
        "60",
        "--rate",
        "50",
        "--outage",
        "5s",
        "--clients",
        "2",
        "--seeds",
        "1",
    ];
    let compare = ["sim", "compare", "--policy", "sync", "--policy", "durable"];
    let ran = ressac(&[&compare[..], &small].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out.contains("Loses nothing:             durable\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("The model leaves out"));
    let suggest = [
        "sim",
        "suggest",
        "--tries",
        "6",
        "--retries",
        "4..6",
        "--json",
    ];
    let json = ressac(&[&suggest[..], &small].concat()).json();
    let retries = json["suggestion"]["best"]["retries"].as_u64().unwrap();
    assert!((4..=6).contains(&retries), "{json}");
    assert!(json["suggestion"]["sensitivity"].as_array().unwrap().len() >= 5);
}
