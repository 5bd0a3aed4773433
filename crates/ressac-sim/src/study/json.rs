//! A study as JSON and CSV.

use serde_json::{Map, Value, json};

use super::figures::columns;
use super::{Cell, OccCell, Study};
use crate::occ;
use crate::scenario::Report;
use crate::stats::Sample;

/// What tells rows apart; these columns come first.
const KEYS: [&str; 5] = [
    "rule",
    "policy",
    "clients",
    "load_per_second",
    "outage_seconds",
];

impl Study {
    /// One object `{scenario, seed, seeds, rows}`, a row for each policy and point. What has no
    /// value (a recovery that never came) is `null`.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = if self.report == Report::Occ {
            self.occ.iter().map(occ_row).collect()
        } else {
            self.cells.iter().map(|cell| self.row(cell)).collect()
        };
        json!({
            "scenario": self.scenario,
            "seed": self.seed,
            "seeds": self.seeds,
            "rows": rows,
        })
    }

    fn row(&self, cell: &Cell) -> Value {
        let mut row = Map::new();
        let key = match self.report {
            Report::Edi => "rule",
            _ => "policy",
        };
        row.insert(key.to_owned(), cell.point.label.clone().into());
        row.insert(
            "clients".to_owned(),
            cell.point.world.clients.instances.into(),
        );
        if let Some(load) = cell.point.load {
            row.insert("load_per_second".to_owned(), load.into());
        }
        if let Some(outage) = cell.point.outage {
            row.insert("outage_seconds".to_owned(), outage.as_secs_f64().into());
        }
        let shown = columns(self.report);
        let rest = cell.figures.keys().filter(|name| !shown.contains(name));
        for name in shown.iter().chain(rest) {
            if let Some(sample) = cell.figures.get(name) {
                put(&mut row, name, sample);
            }
        }
        Value::Object(row)
    }

    /// The rows as CSV, with a line of names.
    #[must_use]
    pub fn csv(&self) -> String {
        let json = self.json();
        let rows = json["rows"].as_array().map_or(&[][..], Vec::as_slice);
        let mut names: Vec<&String> = Vec::new();
        for row in rows.iter().filter_map(Value::as_object) {
            let new: Vec<_> = row.keys().filter(|name| !names.contains(name)).collect();
            names.extend(new);
        }
        names.sort_by_key(|name| {
            KEYS.iter()
                .position(|key| key == name)
                .unwrap_or(KEYS.len())
        });
        let mut text = names
            .iter()
            .map(|n| n.as_str())
            .collect::<Vec<_>>()
            .join(",");
        text.push('\n');
        for row in rows {
            let fields: Vec<String> = names
                .iter()
                .map(|name| field(&row[name.as_str()]))
                .collect();
            text.push_str(&fields.join(","));
            text.push('\n');
        }
        text
    }

    /// One replication of one point over time, as CSV: a line for each bin.
    #[must_use]
    pub fn csv_over_time(cell: &Cell) -> String {
        let mut text =
            String::from("seconds,born,offered,retries,rejected,served,delivered,lost,in_system\n");
        let record = &cell.trace.record;
        for (index, bin) in record.bins.iter().enumerate() {
            let seconds = index as f64 * record.bin as f64 / 1e9;
            let numbers = [
                bin.born,
                bin.offered,
                bin.retries,
                bin.rejected,
                bin.served,
                bin.delivered,
                bin.lost,
                bin.in_system,
            ];
            text.push_str(&format!("{seconds}"));
            for number in numbers {
                text.push_str(&format!(",{number}"));
            }
            text.push('\n');
        }
        text
    }
}

fn occ_row(cell: &OccCell) -> Value {
    let mut row = Map::new();
    row.insert("policy".to_owned(), cell.policy.as_str().into());
    row.insert("clients".to_owned(), cell.clients.into());
    put(&mut row, "calls", &cell.calls);
    put(&mut row, "time_ms", &cell.time_ms);
    if let Some((calls, time)) = occ::reference(cell.policy, cell.clients) {
        row.insert("calls_reference".to_owned(), calls.mean.into());
        let z = calls.z(cell.calls.mean(), cell.calls.count());
        row.insert("calls_z".to_owned(), z.into());
        row.insert("time_ms_reference".to_owned(), time.mean.into());
        let z = time.z(cell.time_ms.mean(), cell.time_ms.count());
        row.insert("time_ms_z".to_owned(), z.into());
    }
    Value::Object(row)
}

/// JSON has no NaN: serde_json writes null.
fn put(row: &mut Map<String, Value>, name: &str, sample: &Sample) {
    row.insert(format!("{name}_mean"), sample.mean().into());
    row.insert(format!("{name}_sd"), sample.sd().into());
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        other => other.to_string(),
    }
}
