//! A case in words, and the list of all.

use std::fmt::Write as _;

use super::html::group_name;
use crate::case::{Case, OpSpec, Part};

/// Everything that a reader needs to know of a case.
#[must_use]
pub fn explain(case: &Case) -> String {
    let mut out = format!("{}  ({})\n{}\n\n", case.id, case.level.word(), case.title);
    let _ = writeln!(out, "why       {}", case.why);
    if !case.mistake.is_empty() {
        let _ = writeln!(out, "mistake   {}", case.mistake);
    }
    let needs = if case.needs.is_empty() {
        "nothing: always run".into()
    } else {
        case.needs.join(", ")
    };
    let _ = writeln!(out, "needs     {needs}");
    for (index, part) in case.parts().iter().enumerate() {
        let several = case.part.len() > 1;
        if several {
            let _ = writeln!(out, "part {}    {}", index + 1, part.name);
        }
        explain_part(&mut out, part);
    }
    if let Some(rule) = &case.rule {
        let _ = writeln!(out, "together  {}", rule.0);
    }
    let mut evidence =
        "the first step of each operation was met, after its start, and a result exists".to_owned();
    if let Some(more) = &case.evidence {
        let _ = write!(evidence, "; {}", more.0);
    }
    let _ = writeln!(out, "evidence  {evidence}");
    let _ = writeln!(out, "source    {}", case.source);
    for (name, change) in &case.profiles {
        let mut what = Vec::new();
        if let Some(why) = &change.skip {
            what.push(format!("not run: {why}"));
        }
        if let Some(level) = change.level {
            what.push(level.word().to_owned());
        }
        if let Some(needs) = &change.needs {
            what.push(format!("needs {}", needs.join(", ")));
        }
        if let Some(rule) = &change.rule {
            what.push(format!("passes when {}", rule.0));
        }
        if !change.note.is_empty() {
            what.push(change.note.clone());
        }
        if what.is_empty() && change.part.is_empty() {
            // It is the same case; only those that have to fail it are others.
            continue;
        }
        let _ = writeln!(out, "profile   {name}: {}", what.join("; "));
        for part in &change.part {
            explain_part(&mut out, part);
        }
    }
    let _ = writeln!(out, "mutants   {}", case.mutants.join(", "));
    out
}

fn explain_part(out: &mut String, part: &Part) {
    if !part.needs.is_empty() {
        let _ = writeln!(out, "  if      {}", part.needs.join(", "));
    }
    if let Some(script) = &part.accept {
        let _ = writeln!(out, "accept    {script}");
    }
    if let Some(cert) = &part.tls {
        let _ = writeln!(out, "tls       certificate {cert}");
    }
    if part.down {
        let _ = writeln!(out, "listener  refuses at first");
    }
    for o in &part.outage {
        let _ = writeln!(
            out,
            "outage    {} from {} to {} ms ({})",
            o.action, o.from_ms, o.to_ms, o.clock
        );
    }
    for op in &part.op {
        explain_op(out, op);
    }
}

fn explain_op(out: &mut String, op: &OpSpec) {
    let times = if op.count > 1 {
        format!("{} x ", op.count)
    } else {
        String::new()
    };
    let key = match op.key.as_str() {
        "none" => String::new(),
        mode => format!(", key {mode}"),
    };
    let safe = if op.safe { ", declared safe" } else { "" };
    let _ = writeln!(
        out,
        "script    {times}{} `{}`{key}{safe}",
        op.method, op.script
    );
    if let Some(rule) = &op.rule {
        let _ = writeln!(out, "  passes  {}", rule.0);
    }
    if let Some(rule) = &op.group {
        let _ = writeln!(out, "  all     {}", rule.0);
    }
}

/// One line for each case.
#[must_use]
pub fn list(cases: &[&Case]) -> String {
    let mut out = String::new();
    let mut group = None;
    for case in cases {
        if group != Some(case.group()) {
            group = Some(case.group());
            let _ = writeln!(out, "{}. {}", case.group(), group_name(case.group()));
        }
        let _ = writeln!(
            out,
            "  {:<40} {:<7} {}",
            case.id,
            case.level.word(),
            case.title
        );
    }
    out
}
