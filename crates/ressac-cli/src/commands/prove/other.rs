//! `list`, `explain`, `judge` and `compare`.

use std::path::PathBuf;

use ressac_prove::{Report, compare_html, compare_markdown, find_case, rejudge};

use super::{Select, exit, options, stop};
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac prove list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac prove list
  ressac prove list --run '*/9110-*' --level must")]
pub(super) struct List {
    #[command(flatten)]
    select: Select,
}

/// The arguments of `ressac prove explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac prove explain C07
  ressac prove explain E07/idem-2.6/once-created")]
pub(super) struct Explain {
    /// The number or the full id of a case.
    #[arg(value_name = "CASE")]
    case: String,
}

/// The arguments of `ressac prove judge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac prove judge proof")]
pub(super) struct Judge {
    /// A folder that `--out` has written.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Exit with 0 where nothing failed, though something is inconclusive.
    #[arg(long)]
    allow_inconclusive: bool,

    /// Write report.json to stdout, and no text.
    #[arg(long)]
    json: bool,
}

/// The arguments of `ressac prove compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac prove compare proof/report.json
  ressac prove compare */report.json --html grid.html --md grid.md")]
pub(super) struct Compare {
    /// Reports that `--out` or `--json` has written.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,

    /// Write one page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a table in Markdown.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
}

pub(super) fn list(args: &List, output: Output) -> Result<Exit, Stop> {
    let cases = options::selection(&args.select)?
        .cases()
        .map_err(Stop::usage)?;
    output.text(&ressac_prove::list(&cases))?;
    Ok(Exit::DONE)
}

pub(super) fn explain(args: &Explain, output: Output) -> Result<Exit, Stop> {
    let Some(case) = find_case(&args.case) else {
        let id = &args.case;
        return Err(Stop::usage(format_args!(
            "`{id}` is no case; `ressac prove list` shows them"
        )));
    };
    output.text(&ressac_prove::explain(case))?;
    Ok(Exit::DONE)
}

pub(super) fn judge(args: &Judge, output: Output) -> Result<Exit, Stop> {
    let report = rejudge(&args.folder).map_err(stop)?;
    if args.json {
        output.json(&report)?;
    } else {
        for case in &report.cases {
            output.text(&Report::line(case, output.color()))?;
        }
        output.text(&report.summary(|id| super::trace(Some(&args.folder), id)))?;
    }
    Ok(exit(&report, args.allow_inconclusive))
}

pub(super) fn compare(args: &Compare, output: Output) -> Result<Exit, Stop> {
    let mut reports = Vec::new();
    for path in &args.reports {
        let report: Report = serde_json::from_str(&options::read(path)?).map_err(|e| {
            Stop::usage(format_args!(
                "{} is no report of prove: {e}",
                path.display()
            ))
        })?;
        reports.push(report);
    }
    let write = |path: &PathBuf, text: String| {
        std::fs::write(path, text)
            .map_err(|e| Stop::usage(format_args!("cannot write {}: {e}", path.display())))
    };
    if let Some(path) = &args.html {
        write(path, compare_html(&reports))?;
    }
    if let Some(path) = &args.md {
        write(path, compare_markdown(&reports))?;
    }
    if args.html.is_none() && args.md.is_none() {
        output.text(&compare_markdown(&reports))?;
    }
    Ok(Exit::DONE)
}
