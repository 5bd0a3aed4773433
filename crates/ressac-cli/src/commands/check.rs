//! `ressac check`: what is wrong with configuration files, and what is unwise.

use std::path::PathBuf;

use ressac_config::{Config, Diagnostic, Severity, lints, render_all};
use serde::Serialize;

use crate::exit::{Exit, Stop};
use crate::output::{Output, count};

/// The arguments of `ressac check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac check ressac.toml
  ressac check --strict base.toml partners.toml
  ressac check --json ressac.toml | jq '.diagnostics[].code'")]
pub(crate) struct Args {
    /// Configuration files, read together.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Exit with 1 where there are warnings.
    #[arg(long)]
    strict: bool,

    /// Write one JSON object.
    #[arg(long)]
    json: bool,
}

/// Prints errors and warnings: they are the answer, so they go to stdout.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let loaded = Config::load(&args.files);
    let (diagnostics, exit) = match &loaded {
        Err(error) => (error.diagnostics().to_vec(), Exit::USAGE),
        Ok(config) => {
            let warnings = lints(config);
            let exit = if args.strict && !warnings.is_empty() {
                Exit::NO
            } else {
                Exit::DONE
            };
            (warnings, exit)
        }
    };
    if args.json {
        output.json(&Findings::of(&diagnostics, exit))?;
        return Ok(exit);
    }
    if !diagnostics.is_empty() {
        output.text(&render_all(&diagnostics, output.color()))?;
        output.text("")?;
    }
    output.text(&summary(&args, loaded.as_ref().ok(), diagnostics.len()))?;
    Ok(exit)
}

/// The last line: it alone says whether all is well.
fn summary(args: &Args, config: Option<&Config>, found: usize) -> String {
    let names: Vec<_> = args
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let names = names.join(", ");
    let Some(config) = config else {
        return format!("{names}: refused, {}", count(found, "error"));
    };
    let own = config.policies().count() - BUILT_IN;
    format!(
        "{names}: sound, {}, {}, {}",
        count(own, "own policy"),
        count(config.partners().len(), "partner"),
        count(found, "warning"),
    )
}

/// `sync` and `durable` are in every configuration.
const BUILT_IN: usize = 2;

#[derive(Serialize)]
struct Findings<'a> {
    ok: bool,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    severity: &'static str,
    code: &'static str,
    title: &'a str,
    label: &'a str,
    file: Option<&'a str>,
    line: Option<usize>,
    fixes: Vec<&'a str>,
}

impl<'a> Findings<'a> {
    fn of(diagnostics: &'a [Diagnostic], exit: Exit) -> Self {
        let errors = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity() == Severity::Error)
            .count();
        Findings {
            ok: exit == Exit::DONE,
            errors,
            warnings: diagnostics.len() - errors,
            diagnostics: diagnostics.iter().map(finding).collect(),
        }
    }
}

fn finding(diagnostic: &Diagnostic) -> Finding<'_> {
    let location = diagnostic.location();
    Finding {
        severity: match diagnostic.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        code: diagnostic.code(),
        title: diagnostic.title(),
        label: diagnostic.label(),
        file: location.map(|(file, _)| file),
        line: location.map(|(_, line)| line),
        fixes: diagnostic.fixes().collect(),
    }
}
