//! `report.html`: one file, no outside requests, readable without script.

use std::fmt::Write as _;

use super::junit::escape;
use super::svg::timeline;
use super::text::findings;
use super::{REMARKS, Report, trace};
use crate::judge::{CaseVerdict, Verdict};
use crate::record::PartRecord;

pub(super) const STYLE: &str = "
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em;color:#1c2430}
h1{font-size:1.5em;margin:0}h2{font-size:1.1em;margin:2em 0 .4em}
table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:left;
border-bottom:1px solid #e3e7ec;vertical-align:top}
code,pre{font:13px/1.4 ui-monospace,monospace}pre{background:#f5f7f9;padding:.6em;overflow:auto}
.v{font-weight:600;white-space:nowrap}.pass{color:#176639}.fail{color:#b3201c}.warn{color:#8a5a00}
.inconclusive{color:#6a2c91}.not-claimed,.known-failing{color:#68727f}
summary{cursor:pointer}details{border-bottom:1px solid #e3e7ec;padding:.3em 0}
.big{font-size:1.2em;margin:.6em 0}.big span{margin-right:1em}
svg .t{font:11px system-ui;fill:#68727f}svg .s{font:9px system-ui;fill:#394450}
svg .l{stroke:#d5dae0}svg .b{fill:#cfe3f7}svg .h{stroke:#8a5a00;stroke-width:2}
svg .d{stroke:#b3201c;stroke-dasharray:3 2}svg .a{stroke:#fff;stroke-width:.5}
svg .good{fill:#2f9e5e}svg .bad{fill:#d9534f}svg .caller{fill:#e09b2d}svg .cut{fill:#7d3fa8}
svg .e{fill:#1c2430}svg .r{font:bold 10px system-ui}svg .ok{fill:#176639}svg .ko{fill:#b3201c}
@media print{details{break-inside:avoid}}
";

/// The whole page. `records` gives the kept parts of a case.
pub(crate) fn html(report: &Report, records: impl Fn(&str) -> Vec<PartRecord>) -> String {
    let name = escape(&format!("{} {}", report.client.name, report.client.version));
    let mut out = head(&format!("ressac prove: {name}"));
    let _ = writeln!(
        out,
        "<h1>{name}</h1><p>ressac prove {}, profile {}, tempo {:?}, seed {}, \
        {} cores, {} claims, {:.0} s; \u{3bb} {:.2} ms, \u{3b5} {:.2} ms, largest lag {:.0} ms</p>",
        escape(&report.suite),
        escape(&report.profile),
        report.tempo,
        report.seed,
        report.host.cores,
        report.claims_count,
        report.took_ms as f64 / 1000.0,
        report.lambda_ms,
        report.epsilon_ms,
        report.host.max_lag_ms
    );
    totals(&mut out, report);
    for remark in REMARKS {
        let _ = writeln!(out, "<p>{}</p>", escape(remark));
    }
    let mut group = None;
    for case in &report.cases {
        let letter = case.id.chars().next().unwrap_or('?');
        if group != Some(letter) {
            let _ = writeln!(out, "<h2>{letter}. {}</h2>", group_name(letter));
            group = Some(letter);
        }
        one(&mut out, case, &records(&case.id));
    }
    out.push_str("</body></html>\n");
    out
}

pub(super) fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n"
    )
}

/// What a group is about.
pub(crate) fn group_name(letter: char) -> &'static str {
    match letter {
        'A' => "Recovery",
        'B' => "Stop signs",
        'C' => "Retry-After",
        'D' => "Pace, deadline, cancel",
        'E' => "Method and identity",
        'F' => "Connections and framing",
        'G' => "HTTP/2",
        'H' => "Statistics and load",
        _ => "",
    }
}

pub(super) fn class(verdict: Verdict) -> String {
    verdict.word().replace(' ', "-")
}

fn totals(out: &mut String, report: &Report) {
    let t = &report.totals;
    let all = [
        (Verdict::Fail, t.fail),
        (Verdict::Warn, t.warn),
        (Verdict::Inconclusive, t.inconclusive),
        (Verdict::Pass, t.pass),
        (Verdict::NotClaimed, t.not_claimed),
        (Verdict::KnownFailing, t.known_failing),
    ];
    out.push_str("<p class=\"big\">");
    for (verdict, n) in all {
        let _ = write!(
            out,
            "<span class=\"v {}\">{n} {}</span> ",
            class(verdict),
            verdict.word()
        );
    }
    out.push_str("</p>\n");
}

fn one(out: &mut String, case: &CaseVerdict, records: &[PartRecord]) {
    let open = if matches!(case.verdict, Verdict::Fail | Verdict::Warn) {
        " open"
    } else {
        ""
    };
    let told = match case.verdict {
        Verdict::Pass => &case.measured,
        _ => &case.reason,
    };
    let _ = writeln!(
        out,
        "<details id=\"{number}\"{open}><summary><span class=\"v {}\">{}</span> <code>{}</code> \
         {} <small>{}</small></summary>",
        class(case.verdict),
        case.verdict.word(),
        escape(&case.id),
        escape(&case.title),
        escape(told),
        number = case.id.split('/').next().unwrap_or_default(),
    );
    if case.verdict != Verdict::NotClaimed {
        let _ = writeln!(
            out,
            "<p>Level {}. Source: {}.</p>",
            case.level.word(),
            escape(&case.source)
        );
        let found = findings(case);
        if !found.is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape(&found));
        }
        for record in records {
            out.push_str(&timeline(record));
        }
        table(out, case);
        if matches!(
            case.verdict,
            Verdict::Fail | Verdict::Warn | Verdict::Inconclusive
        ) {
            for record in records {
                let text: String =
                    trace(record)
                        .lines()
                        .take(60)
                        .fold(String::new(), |mut t, l| {
                            t.push_str(l);
                            t.push('\n');
                            t
                        });
                let _ = writeln!(out, "<pre>{}</pre>", escape(&text));
            }
        }
    }
    out.push_str("</details>\n");
}

fn table(out: &mut String, case: &CaseVerdict) {
    out.push_str(
        "<table><tr><th>op</th><th>what</th><th>verdict</th><th>attempts</th><th>waits, ms</th>\
         <th>client</th><th>effects</th><th>keys</th></tr>\n",
    );
    for op in &case.ops {
        let gaps: Vec<String> = op.gaps_ms.iter().map(|g| format!("{g:.0}")).collect();
        let said = match op.ok {
            Some(true) => "ok",
            Some(false) => "not ok",
            None => "nothing",
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{} <code>{}</code></td><td class=\"v {}\">{}</td><td>{}</td>\
             <td>{}</td><td>{said}</td><td>{}</td><td>{}</td></tr>",
            escape(&op.op),
            escape(&op.name),
            escape(&op.script),
            class(op.verdict),
            op.verdict.word(),
            op.n,
            gaps.join(" "),
            op.eff,
            op.keys,
        );
    }
    out.push_str("</table>\n");
}
