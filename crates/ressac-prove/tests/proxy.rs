//! Proxy mode: a right proxy ends without fail and without warn, a wrong one turns its case red.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::time::Duration;

use ressac_prove::{Case, Claims, Options, RunError, Verdict, cases};
use support::{all, assert_clean, case, claims, lines, options, run, try_run, turns_red};

/// What a proxy differs in, and a few that it has in common with clients.
const SAMPLE: [&str; 21] = [
    "A01", "A04", "A07", "B11", "D05", "D09", "E01", "E07", "E11", "E13", "F02", "F03", "F04",
    "F11", "F12", "G01", "G02", "G03", "G04", "G05", "G06",
];

/// Wrong proxies on every commit; the others at night.
const WRONG: [&str; 9] = [
    "replays-after-first-byte",
    "retries-post",
    "keeps-trying-after-downstream-left",
    "mixes-headers",
    "no-verify",
    "retries-bad-certificate",
    "goaway-always-safe",
    "refused-uncounted",
    "h2-short-ok",
];

fn proxied(claims: Claims, arguments: &[&str], wanted: &[&str]) -> Options {
    let mut options = options(claims, &[], wanted);
    options.command = vec![env!("CARGO_BIN_EXE_prove-proxy").into()];
    options.command.extend(arguments.iter().map(Into::into));
    options.profile = "proxy".to_owned();
    options
}

#[test]
fn a_right_proxy_passes() {
    let wanted = if all() { Vec::new() } else { SAMPLE.to_vec() };
    let report = run(proxied(claims("proxy"), &[], &wanted));
    println!("{}\n{}", lines(&report), report.totals);
    assert_clean(&report);
    let judged = ["A01", "B11", "D09", "E01", "E13", "F03", "F11", "F12"];
    let over_http2 = ["G01", "G02", "G03", "G04", "G05", "G06"];
    for number in judged.into_iter().chain(over_http2) {
        let verdict = case(&report, number);
        // A lagging machine may leave a case open; it never passes or fails one wrongly.
        let open = verdict.verdict == Verdict::Inconclusive;
        assert!(open || verdict.verdict == Verdict::Pass, "{verdict:#?}");
    }
    assert!(report.totals.pass >= 15, "{}", lines(&report));
}

/// Who claims neither TLS nor HTTP/2 is asked for neither.
#[test]
fn a_proxy_of_plain_http_is_not_asked_for_more() {
    let mut claims = claims("proxy");
    let plain = |flag: &String| !matches!(flag.as_str(), "tls" | "http2");
    claims.claims.flags.retain(plain);
    let report = run(proxied(claims, &[], &["F11", "F12", "G*"]));
    assert_eq!(report.totals.not_claimed, 8, "{}", lines(&report));
}

fn red(case: &'static Case, mutant: &str) -> Result<(), String> {
    let mut options = proxied(claims("proxy"), &["--mutant", mutant], &[case.number()]);
    options.case_limit = Duration::from_secs(20);
    turns_red(options, case, mutant)
}

#[test]
fn every_wrong_proxy_turns_its_own_case_red() {
    let mut alive = Vec::new();
    let mut tried = 0;
    std::thread::scope(|scope| {
        let mut runs = Vec::new();
        let mut seen = Vec::new();
        for case in cases() {
            let Some(change) = case.profiles.get("proxy") else {
                continue;
            };
            for mutant in &change.mutants {
                let sampled = WRONG.contains(&mutant.as_str()) && !seen.contains(mutant);
                if sampled || all() {
                    seen.push(mutant.clone());
                    runs.push(scope.spawn(move || red(case, mutant)));
                }
            }
        }
        tried = runs.len();
        for run in runs {
            alive.extend(run.join().unwrap().err());
        }
    });
    println!("{} of {tried} mutants caught", tried - alive.len());
    assert!(alive.is_empty(), "{}", alive.join("\n"));
    assert!(tried >= WRONG.len());
}

/// A proxy that never listens, and one that ends at once, are no proxies: the set-up says so.
#[test]
#[cfg(unix)]
fn what_does_not_listen_is_no_proxy() {
    for (command, says) in [
        ("sleep 60", "accepts no connection"),
        ("exit 3", "ended before it was ready"),
    ] {
        let mut options = proxied(claims("proxy"), &[], &["A01"]);
        options.command = ["sh", "-c", command].iter().map(Into::into).collect();
        options.case_limit = Duration::from_secs(2);
        match try_run(options) {
            Err(RunError::Setup(error)) => assert!(error.contains(says), "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

/// With an address of its own the partner is always in the same place, and no two cases, nor two
/// parts of one, are there at once.
#[test]
fn cases_on_a_fixed_address_run_one_after_another() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut claims = claims("proxy");
    claims.client.fixed_url = Some(format!("http://{address}"));
    let report = run(proxied(claims, &[], &["B01", "D10", "E02"]));
    assert_clean(&report);
    assert_eq!(report.totals.pass, 3, "{}", lines(&report));
}
