//! Evidence on disk: `DIR/cases/ID/`, and judging it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::client::Said;
use super::{Bench, Options, RunError, case};
use crate::case::{Case, find};
use crate::claims::Claims;
use crate::judge::CaseVerdict;
use crate::known::KnownFailing;
use crate::plan::Setup;
use crate::profile;
use crate::record::{Arrival, OpResult, PartRecord};
use crate::report::{Report, trace};

/// What a kept run needs to be judged again.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    claims: Claims,
    setup: Setup,
    profile: String,
    strict: bool,
    cases: Vec<String>,
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> RunError + '_ {
    move |error| RunError::Keep {
        path: path.to_owned(),
        error,
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), RunError> {
    fs::write(path, bytes).map_err(failed(path))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, RunError> {
    serde_json::to_vec_pretty(value).map_err(|e| RunError::Internal(e.to_string()))
}

fn ndjson<T: Serialize>(values: &[T]) -> Result<Vec<u8>, RunError> {
    let mut out = Vec::new();
    for value in values {
        serde_json::to_writer(&mut out, value).map_err(|e| RunError::Internal(e.to_string()))?;
        out.push(b'\n');
    }
    Ok(out)
}

/// Writes what is known before the first case.
pub(super) fn begin(bench: &Bench) -> Result<(), RunError> {
    fs::create_dir_all(&bench.folder).map_err(failed(&bench.folder))?;
    let options = &bench.options;
    let kept = Kept {
        claims: options.claims.clone(),
        setup: bench.setup,
        profile: options.profile.clone(),
        strict: options.strict,
        cases: options.cases.iter().map(|c| c.id.clone()).collect(),
    };
    write(&bench.folder.join("run.json"), json(&kept)?)
}

/// Writes the reports.
pub(super) fn end(bench: &Bench, report: &Report) -> Result<(), RunError> {
    let Some(folder) = &bench.options.out else {
        return Ok(());
    };
    write(&folder.join("report.json"), json(report)?)?;
    write(&folder.join("junit.xml"), crate::report::junit(report))?;
    let html = crate::report::html(report, |id| records(&bench.folder, id));
    write(&folder.join("report.html"), html)
}

/// The parts of a case as they are kept.
fn records(folder: &Path, id: &str) -> Vec<PartRecord> {
    let number = id.split('/').next().unwrap_or_default();
    let place = folder.join("cases").join(number);
    read_records(&place).unwrap_or_default()
}

/// Where a case keeps its evidence.
pub(super) fn case_folder(bench: &Bench, case: &Case, round: u32) -> PathBuf {
    let name = match round {
        0 => case.number().to_owned(),
        n => format!("{}-{}", case.number(), n + 1),
    };
    bench.folder.join("cases").join(name)
}

/// Writes a part.
pub(super) fn part(folder: &Path, record: &PartRecord, said: &Said) -> Result<(), RunError> {
    write(&folder.join("scenario.toml"), &record.plan.scenario)?;
    write(&folder.join("journal.ndjson"), ndjson(&record.arrivals)?)?;
    write(&folder.join("results.ndjson"), ndjson(&record.results)?)?;
    write(&folder.join("record.json"), json(record)?)?;
    write(&folder.join("stdout"), &said.out)?;
    write(&folder.join("stderr"), &said.err)?;
    write(&folder.join("wire.txt"), trace(record))
}

/// Writes the verdict of a case.
pub(super) fn verdict(folder: &Path, verdict: &CaseVerdict) -> Result<(), RunError> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    write(&folder.join("verdict.json"), json(verdict)?)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    let bytes = fs::read(path).map_err(failed(path))?;
    serde_json::from_slice(&bytes).map_err(|e| RunError::Keep {
        path: path.to_owned(),
        error: std::io::Error::new(std::io::ErrorKind::InvalidData, e),
    })
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RunError> {
    let text = fs::read_to_string(path).map_err(failed(path))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            serde_json::from_str(line).map_err(|e| RunError::Keep {
                path: path.to_owned(),
                error: std::io::Error::new(std::io::ErrorKind::InvalidData, e),
            })
        })
        .collect()
}

fn read_record(folder: &Path) -> Result<PartRecord, RunError> {
    let mut record: PartRecord = read(&folder.join("record.json"))?;
    record.arrivals = read_lines::<Arrival>(&folder.join("journal.ndjson"))?;
    record.results = read_lines::<OpResult>(&folder.join("results.ndjson"))?;
    Ok(record)
}

fn read_records(folder: &Path) -> Result<Vec<PartRecord>, RunError> {
    if folder.join("record.json").exists() {
        return Ok(vec![read_record(folder)?]);
    }
    let mut parts: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed(folder))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("record.json").exists())
        .collect();
    parts.sort();
    parts.iter().map(|path| read_record(path)).collect()
}

/// Judges a kept run again, with the claims and the set-up it was run with.
///
/// # Errors
///
/// A file that is missing or cannot be read.
pub fn rejudge(folder: &Path) -> Result<Report, RunError> {
    let kept: Kept = read(&folder.join("run.json"))?;
    let bench = Bench {
        options: Options {
            command: Vec::new(),
            claims: kept.claims,
            cases: kept.cases.iter().filter_map(|id| find(id)).collect(),
            tempo: kept.setup.tempo,
            profile: kept.profile,
            strict: kept.strict,
            jobs: 1,
            seed: kept.setup.seed,
            case_limit: Duration::from_secs(60),
            repeat: 1,
            fail_fast: false,
            out: None,
            known: KnownFailing::default(),
        },
        setup: kept.setup,
        folder: folder.to_owned(),
    };
    let mut verdicts = Vec::new();
    for original in &bench.options.cases {
        let applied = profile::apply(original, &bench.options.profile);
        let place = case_folder(&bench, original, 0);
        let records = read_records(&place).unwrap_or_default();
        // A case without a record was not run: its verdict needs no judging.
        if records.is_empty() {
            verdicts.push(read(&place.join("verdict.json"))?);
            continue;
        }
        let level = profile::level(&applied, &bench.options.profile, &bench.options.claims);
        verdicts.push(case::judge_kept(&bench, &applied, level, &records));
    }
    Ok(Report::new(
        &bench.options,
        &bench.setup,
        verdicts,
        Duration::ZERO,
    ))
}
