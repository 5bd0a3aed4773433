//! Runs the suite over clients of its own.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use ressac_prove::{
    Case, CaseVerdict, Claims, KnownFailing, Mode, Options, Report, RunError, Selection, Tempo,
    Verdict,
};

/// Is everything to be run, as at night?
pub(crate) fn all() -> bool {
    std::env::var_os("RESSAC_PROVE_ALL").is_some()
}

/// Claims beside the tests.
pub(crate) fn claims(name: &str) -> Claims {
    let path = format!("{}/tests/claims/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    Claims::parse(&path, &text).unwrap_or_else(|e| panic!("{e}"))
}

/// The options of a run of the client of the tests.
pub(crate) fn options(claims: Claims, arguments: &[&str], run: &[&str]) -> Options {
    let mut command = vec![env!("CARGO_BIN_EXE_prove-client").into()];
    command.extend(arguments.iter().map(Into::into));
    let selection = Selection {
        run: run.iter().map(|s| (*s).to_owned()).collect(),
        ..Selection::default()
    };
    Options {
        command,
        claims,
        cases: selection.cases().unwrap(),
        tempo: Tempo::Fast,
        profile: "ressac".to_owned(),
        strict: false,
        jobs: 8,
        seed: 1,
        case_limit: Duration::from_secs(60),
        repeat: 1,
        fail_fast: false,
        out: std::env::var_os("RESSAC_PROVE_OUT").map(PathBuf::from),
        known: KnownFailing::default(),
    }
}

pub(crate) fn try_run(options: Options) -> Result<Report, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(ressac_prove::run(options, &mut |_| {}))
}

pub(crate) fn run(options: Options) -> Report {
    try_run(options).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn exec(mut claims: Claims) -> Claims {
    claims.client.mode = Mode::Exec;
    claims
}

/// A case of a report.
pub(crate) fn case<'r>(report: &'r Report, number: &str) -> &'r CaseVerdict {
    let found = report.cases.iter().find(|c| c.id.starts_with(number));
    found.unwrap_or_else(|| panic!("{number} is not in the report"))
}

/// A wrong client over its own case: it is seen to be wrong, or says what it came to instead.
pub(crate) fn turns_red(options: Options, case: &Case, mutant: &str) -> Result<(), String> {
    let report = run(options);
    let verdict = &report.cases[0];
    match verdict.verdict {
        Verdict::Fail | Verdict::Warn => Ok(()),
        // The rule was seen broken; on this machine it could have been the lag.
        Verdict::Inconclusive if verdict.reason.contains("lag") => Ok(()),
        other => Err(format!(
            "{} {mutant}: {} ({})",
            case.id,
            other.word(),
            verdict.reason
        )),
    }
}

/// Fails with everything that is not well.
pub(crate) fn assert_clean(report: &Report) {
    let bad: Vec<String> = report
        .cases
        .iter()
        .filter(|c| matches!(c.verdict, Verdict::Fail | Verdict::Warn))
        .map(|c| format!("{}\n{c:#?}", Report::line(c, false)))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// One line for each case.
pub(crate) fn lines(report: &Report) -> String {
    let lines: Vec<String> = report
        .cases
        .iter()
        .map(|c| Report::line(c, false))
        .collect();
    lines.join("\n")
}
