//! Several clients side by side: cases down, clients across.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Report;
use super::html::{class, group_name, head};
use super::junit::escape;
use crate::judge::{CaseVerdict, Verdict};

/// All cases that any report has, in order.
fn rows(reports: &[Report]) -> BTreeMap<&str, &str> {
    reports
        .iter()
        .flat_map(|r| &r.cases)
        .map(|c| (c.id.as_str(), c.title.as_str()))
        .collect()
}

fn cell<'r>(report: &'r Report, id: &str) -> Option<&'r CaseVerdict> {
    report.cases.iter().find(|c| c.id == id)
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "\u{2713}",
        Verdict::Fail => "\u{2717}",
        Verdict::Warn => "!",
        Verdict::Inconclusive => "?",
        Verdict::NotClaimed => "\u{b7}",
        Verdict::KnownFailing => "\u{2020}",
    }
}

/// A page. The links go to `ID/report.html#CASE` beside it, where ID is the client's name.
#[must_use]
pub fn compare_html(reports: &[Report]) -> String {
    let mut out = head("ressac prove: clients compared");
    out.push_str(
        "<h1>Clients compared</h1><p>The number of claims stands on top: what a client \
        does not claim is not asked of it, and a full column is no seal.</p><table><tr><th></th>",
    );
    for r in reports {
        let _ = write!(
            out,
            "<th>{}<br><small>{}<br>{} claims, {}</small></th>",
            escape(&r.client.name),
            escape(&r.client.version),
            r.claims_count,
            r.client.mode.word()
        );
    }
    out.push_str("</tr>\n<tr><td>totals</td>");
    for r in reports {
        let t = &r.totals;
        let _ = write!(
            out,
            "<td><span class=\"v fail\">{} fail</span><br><span class=\"v warn\">{} \
            warn</span><br><span class=\"v pass\">{} pass</span><br>{} inconclusive<br>{} not \
            claimed</td>",
            t.fail, t.warn, t.pass, t.inconclusive, t.not_claimed
        );
    }
    out.push_str("</tr>\n");
    let mut group = None;
    for (id, title) in rows(reports) {
        let letter = id.chars().next().unwrap_or('?');
        if group != Some(letter) {
            let _ = writeln!(
                out,
                "<tr><th colspan=\"{}\">{letter}. {}</th></tr>",
                reports.len() + 1,
                group_name(letter)
            );
            group = Some(letter);
        }
        let _ = write!(
            out,
            "<tr><td><code>{}</code><br><small>{}</small></td>",
            escape(id),
            escape(title)
        );
        for r in reports {
            match cell(r, id) {
                Some(c) => {
                    let number = id.split('/').next().unwrap_or_default();
                    let told = escape(if c.reason.is_empty() {
                        &c.measured
                    } else {
                        &c.reason
                    });
                    let _ = write!(
                        out,
                        "<td class=\"v {}\" title=\"{told}\"><a href=\"{}/report.html\
                        #{number}\" class=\"{}\">{} {}</a></td>",
                        class(c.verdict),
                        escape(&r.client.name),
                        class(c.verdict),
                        mark(c.verdict),
                        c.verdict.word()
                    );
                }
                None => out.push_str("<td>not run</td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></body></html>\n");
    out
}

/// The same as Markdown.
#[must_use]
pub fn compare_markdown(reports: &[Report]) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = String::from("| case |");
    for r in reports {
        let _ = write!(
            out,
            " {} {} |",
            plain(&r.client.name),
            plain(&r.client.version)
        );
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(reports.len()));
    out.push_str("\n| claims |");
    for r in reports {
        let _ = write!(out, " {} |", r.claims_count);
    }
    out.push_str("\n| fail, warn, pass |");
    for r in reports {
        let _ = write!(
            out,
            " {}, {}, {} |",
            r.totals.fail, r.totals.warn, r.totals.pass
        );
    }
    out.push('\n');
    for (id, title) in rows(reports) {
        let _ = write!(out, "| `{id}` {} |", plain(title));
        for r in reports {
            match cell(r, id) {
                Some(c) => {
                    let _ = write!(out, " {} {} |", mark(c.verdict), c.verdict.word());
                }
                None => out.push_str(" not run |"),
            }
        }
        out.push('\n');
    }
    out
}
