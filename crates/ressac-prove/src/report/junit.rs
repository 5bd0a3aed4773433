//! `junit.xml`: a suite for each group.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Report;
use crate::judge::{CaseVerdict, Verdict};

/// The whole file.
pub(crate) fn junit(report: &Report) -> String {
    let mut groups: BTreeMap<char, Vec<&CaseVerdict>> = BTreeMap::new();
    for case in &report.cases {
        groups
            .entry(case.id.chars().next().unwrap_or('?'))
            .or_default()
            .push(case);
    }
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = escape(&report.client.name);
    let _ = writeln!(out, "<testsuites name=\"ressac prove {name}\">");
    for (group, cases) in groups {
        let count = |v: Verdict| cases.iter().filter(|c| c.verdict == v).count();
        let skipped = count(Verdict::NotClaimed) + count(Verdict::KnownFailing);
        let seconds: f64 = cases.iter().map(|c| c.took_ms as f64 / 1000.0).sum();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{group}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
             skipped=\"{skipped}\" time=\"{seconds:.3}\">",
            cases.len(),
            count(Verdict::Fail),
            count(Verdict::Inconclusive),
        );
        for case in cases {
            one(&mut out, case);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn one(out: &mut String, case: &CaseVerdict) {
    let (id, title) = (escape(&case.id), escape(&case.title));
    let seconds = case.took_ms as f64 / 1000.0;
    let _ = write!(
        out,
        "    <testcase classname=\"{id}\" name=\"{id} {title}\" time=\"{seconds:.3}\""
    );
    let reason = escape(&case.reason);
    let text = || escape(&super::text::findings(case));
    match case.verdict {
        Verdict::Pass => out.push_str("/>\n"),
        Verdict::Fail => {
            let _ = writeln!(
                out,
                ">\n      <failure message=\"{reason}\">{}</failure>\n    </testcase>",
                text()
            );
        }
        Verdict::Inconclusive => {
            let _ = writeln!(
                out,
                ">\n      <error message=\"{reason}\">{}</error>\n    </testcase>",
                text()
            );
        }
        Verdict::NotClaimed | Verdict::KnownFailing => {
            let word = case.verdict.word();
            let _ = writeln!(
                out,
                ">\n      <skipped message=\"{word}: {reason}\"/>\n    </testcase>"
            );
        }
        Verdict::Warn => {
            let _ = writeln!(
                out,
                ">\n      <system-out>warn: {reason}\n{}</system-out>\n    </testcase>",
                text()
            );
        }
    }
}

/// For text and attributes; what XML 1.0 cannot hold at all is replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            c if (c as u32) < 0x20 || matches!(c as u32, 0xfffe | 0xffff) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
