//! From TOML to a [`Scenario`].

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::reader::{Doc, Res, Value};
use super::{FingerprintPart, Idempotency, Scenario, ScenarioError};

/// The largest scenario file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

const KEYS: &[&str] = &[
    "version",
    "seed",
    "outage",
    "idempotency",
    "listener",
    "route",
];

impl Scenario {
    /// Reads a scenario from TOML. The paths of `file=` begin at the current folder.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with line, column and the fix.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::read(text, Some(Path::new("")))
    }

    /// As [`Scenario::parse`], with the folder where the paths of `file=` begin; without one, such
    /// a path is refused.
    pub(crate) fn read(text: &str, folder: Option<&Path>) -> Result<Self, ScenarioError> {
        let doc = Doc { text, folder };
        let table = match DeTable::parse(text) {
            Ok(t) => t,
            Err(e) => {
                let at = e.span().map_or(0, |s| s.start);
                let what = format!("not TOML: {}", e.message());
                return Err(ScenarioError::at(text, at, what, "correct the syntax"));
            }
        };
        let table = table.into_inner();
        doc.only(&table, "the scenario", KEYS)?;
        version(doc, &table)?;
        let mut scenario = Self::default();
        if let Some(v) = table.get("seed") {
            scenario.seed = doc.u64(v, "seed")?;
        }
        if let Some(v) = table.get("listener") {
            scenario.listeners = super::listeners::parse(doc, v)?;
        }
        if let Some(v) = table.get("route") {
            scenario.routes = super::routes::parse(doc, v, &scenario.listeners)?;
        }
        if let Some(v) = table.get("idempotency") {
            scenario.idempotency = idempotency(doc, v, &scenario)?;
        }
        if let Some(v) = table.get("outage") {
            scenario.outages = super::outages::parse(doc, v, &scenario)?;
        }
        Ok(scenario)
    }

    /// Reads a scenario file of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// As [`Scenario::parse`], with the file's name; or that the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let unreadable = |e: std::io::Error| ScenarioError::unreadable(path, e.to_string());
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE {
            return Err(ScenarioError::unreadable(
                path,
                "larger than 4 MiB".to_owned(),
            ));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read(&text, Some(folder)).map_err(|e| e.in_file(path))
    }
}

fn version(doc: Doc<'_>, table: &DeTable<'_>) -> Res<()> {
    let Some(v) = table.get("version") else {
        return doc.err(
            0..0,
            "`version` is missing",
            "begin the file with `version = 1`",
        );
    };
    match doc.u64(v, "version")? {
        1 => Ok(()),
        n => doc.err(
            v.span(),
            format!("version {n} is unknown"),
            "write `version = 1`",
        ),
    }
}

const STORE_KEYS: &[&str] = &[
    "header",
    "required",
    "fingerprint",
    "lease",
    "ttl",
    "max_keys",
];

fn idempotency(doc: Doc<'_>, v: &Value<'_>, scenario: &Scenario) -> Res<Option<Idempotency>> {
    if let DeValue::String(s) = v.get_ref() {
        return match s.as_ref() {
            "off" => Ok(None),
            _ => doc.err(
                v.span(),
                "`idempotency` is a table or \"off\"",
                "write `{ ttl = \"24h\" }`",
            ),
        };
    }
    let t = doc.table(v, "idempotency")?;
    doc.only(t, "idempotency", STORE_KEYS)?;
    let mut out = Idempotency::default();
    if let Some(v) = t.get("header") {
        out.header = doc.str(v, "header")?.to_owned();
        doc.bad(v, crate::notation::check_header(&out.header, ""))?;
    }
    if let Some(v) = t.get("required") {
        out.required = doc.strings(v, "required")?;
        known_routes(doc, v, &out.required, scenario)?;
    }
    if let Some(v) = t.get("fingerprint") {
        out.fingerprint.clear();
        for part in doc.strings(v, "fingerprint")? {
            out.fingerprint.push(match part.as_str() {
                "method" => FingerprintPart::Method,
                "path" => FingerprintPart::Path,
                "body" => FingerprintPart::Body,
                _ => {
                    let what = format!("unknown part `{part}`");
                    return doc.err(v.span(), what, "write method, path or body");
                }
            });
        }
    }
    if let Some(v) = t.get("lease") {
        out.lease = doc.duration(v, "lease")?;
    }
    if let Some(v) = t.get("ttl") {
        out.ttl = doc.duration(v, "ttl")?;
    }
    if let Some(v) = t.get("max_keys") {
        out.max_keys = match doc.u64(v, "max_keys")? {
            n @ 1..=1_000_000 => n as usize,
            n => return doc.err(v.span(), format!("max_keys {n}"), "write 1 to 1000000"),
        };
    }
    Ok(Some(out))
}

/// Refuses names of routes that do not exist.
pub(super) fn known_routes(
    doc: Doc<'_>,
    v: &Value<'_>,
    names: &[String],
    scenario: &Scenario,
) -> Res<()> {
    for name in names {
        if scenario.routes.iter().any(|r| &r.name == name) {
            continue;
        }
        let known = scenario.routes.iter().map(|r| r.name.as_str());
        let fix = match crate::notation::suggest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add a [[route]] of that name, or remove it".to_owned(),
        };
        return doc.err(v.span(), format!("no route is named `{name}`"), fix);
    }
    Ok(())
}
