//! Dead letters as tables. What partners wrote is shown without what steers a terminal.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::output::printable;

const COLUMNS: [(&str, &str); 7] = [
    ("ID", "id"),
    ("PARTNER", "partner"),
    ("REASON", "reason"),
    ("BLAME", "blame"),
    ("PROCESSED", "processed"),
    ("ATTEMPTS", "attempts"),
    ("ENDED", "ended_at"),
];

const FACTS: [&str; 17] = [
    "id",
    "partner",
    "state",
    "waiting_for",
    "due",
    "reason",
    "blame",
    "processed",
    "attempts",
    "series",
    "key",
    "method",
    "path",
    "body_bytes",
    "accepted_at",
    "ended_at",
    "deadline",
];

const ATTEMPTS: [(&str, &str); 8] = [
    ("SERIES", "series"),
    ("ATTEMPT", "number"),
    ("STARTED", "started_at"),
    ("OUTCOME", "outcome"),
    ("STATUS", "status"),
    ("PROCESSED", "processed"),
    ("BLAME", "blame"),
    ("NOTE", "note"),
];

const SERIES: [(&str, &str); 5] = [
    ("SERIES", "series"),
    ("ENDED", "ended_at"),
    ("REASON", "reason"),
    ("BLAME", "blame"),
    ("PROCESSED", "processed"),
];

/// One line for each.
pub(super) fn letters(letters: &[Value]) -> String {
    table(&COLUMNS, letters)
}

/// One of them: its facts, then its history.
pub(super) fn letter(letter: &Value) -> String {
    let mut text = String::new();
    let width = FACTS.iter().map(|name| name.len()).max().unwrap_or(0);
    for name in FACTS {
        let value = cell(letter.get(name));
        if !value.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:width$}  {value}");
        }
    }
    if let Some(Value::Array(headers)) = letter.get("headers") {
        for header in headers {
            let part = |index| cell(header.get(index));
            let _ = writeln!(text, "{:width$}  {}: {}", "header", part(0), part(1));
        }
    }
    for (title, name, columns) in [
        ("History", "history", &ATTEMPTS[..]),
        ("Earlier series", "earlier_series", &SERIES[..]),
    ] {
        if let Some(Value::Array(rows)) = letter.get(name) {
            let _ = writeln!(text, "\n{title}\n{}", table(columns, rows));
        }
    }
    text
}

fn table(columns: &[(&str, &str)], rows: &[Value]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|(title, _)| *title));
    for row in rows {
        table.add_row(columns.iter().map(|(_, name)| cell(row.get(*name))));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_partner_wrote_does_not_steer_the_terminal() {
        let letter = serde_json::json!({
            "id": "1", "partner": "acme", "reason": "permanent",
            "headers": [["x-a", "b\u{1b}[2J"]],
            "history": [{ "number": 1, "note": "bell\u{7}\nnext", "outcome": "status" }],
        });
        let text = super::letter(&letter);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}'),
            "{text}"
        );
        assert!(text.contains("bell\u{fffd}\u{fffd}next"), "{text}");
    }

    #[test]
    fn a_list_has_one_line_for_each() {
        let one = serde_json::json!({ "id": "7", "partner": "acme", "attempts": 3 });
        let text = letters(&[one.clone(), one]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().next().unwrap().contains("ATTEMPTS"));
    }
}
