//! A study in the terminal: a table, a small chart of arrivals for each row, the reference.

use std::fmt::Write;

use comfy_table::{Cell as Field, CellAlignment, ContentArrangement, Table};
use ressac_sim::{Bin, Cell, OccCell, Phases, Report, Sample, Study, columns, occ};

/// Characters of a small chart.
const CHART: usize = 48;

/// The line below a table's head.
pub(super) const RULE: comfy_table::LineStyle =
    comfy_table::LineStyle::none().fill('─').junction('─');

/// The whole text.
pub(super) fn text(study: &Study) -> String {
    let mut text = format!("{}\n\n", study.about);
    let table = match study.report {
        Report::Occ => occ_table(&study.occ),
        _ => rows(study),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{table}");
    if matches!(
        study.report,
        Report::Outage | Report::Breaker | Report::Herd | Report::Edi
    ) {
        let what = match study.report {
            Report::Edi => "Retries",
            _ => "Arrivals",
        };
        let _ = writeln!(
            text,
            "\n{what} at the partner over time, each row by its own highest:"
        );
        for cell in &study.cells {
            let chart = chart(cell, study.report == Report::Edi);
            let _ = writeln!(text, "  {:<42} {chart}", cell.point.label);
        }
    }
    if let Some((z, of)) = worst(study) {
        let _ = writeln!(
            text,
            "\nAgainst the published figures: the largest |z| is {z:.2} ({of}); beyond 4 is outside \
             the rule."
        );
    }
    let _ = write!(
        text,
        "\nseed {}, {} replications of each row; ± is the standard deviation of one run\n",
        study.seed, study.seeds
    );
    text
}

fn new_table(head: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING.header_separator(RULE))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn rows(study: &Study) -> Table {
    let shown: Vec<&str> = columns(study.report)
        .iter()
        .copied()
        .filter(|name| study.report != Report::Metastable || *name != "lost_in")
        .collect();
    let mut head = vec![if study.report == Report::Edi {
        "rule".to_owned()
    } else {
        "policy".to_owned()
    }];
    let points = study.report == Report::Metastable;
    if points {
        head.extend(["load/s".to_owned(), "outage".to_owned()]);
    }
    head.extend(shown.iter().map(|name| title(name)));
    let mut table = new_table(&head);
    for cell in &study.cells {
        let mut row = vec![Field::new(&cell.point.label)];
        if points {
            let load = cell
                .point
                .load
                .map_or(String::new(), |load| format!("{load:.0}"));
            let outage = cell.point.outage.map(ressac_config::format_duration);
            row.extend([Field::new(load), Field::new(outage.unwrap_or_default())]);
        }
        row.extend(shown.iter().map(|name| {
            let value = cell.figures.get(name).map_or(String::new(), value);
            Field::new(value)
        }));
        table.add_row(row);
    }
    table
}

fn title(name: &str) -> String {
    let short = match name {
        "peak_per_second" => "peak/s",
        "peak_after" => "after/s",
        "peak_after_100ms" => "100 ms, as /s",
        "amplification" => "ampl.",
        "rejections_seconds" => "503s s",
        "recover_seconds" => "recover s",
        "recovered_share" => "recovered",
        "calls_per_click" => "calls/click",
        "latency_ms" => "mean ms",
        "p50_seconds" => "p50 s",
        "p95_seconds" => "p95 s",
        "p99_seconds" => "p99 s",
        "first_peak_100ms" => "first/100 ms",
        "first_peak_10ms" => "first/10 ms",
        "peak_100ms" => "all/100 ms",
        "late_peak_100ms" => "after 5 s",
        other => return other.replace('_', " ").replace(" seconds", " s"),
    };
    short.to_owned()
}

fn value(sample: &Sample) -> String {
    let (mean, sd) = (sample.mean(), sample.sd());
    if !mean.is_finite() {
        return "never".to_owned();
    }
    let digits = match mean.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    if sd == 0.0 {
        return format!("{mean:.digits$}");
    }
    format!("{mean:.digits$}±{sd:.digits$}")
}

/// Arrivals in as many equal spans as there are characters.
fn chart(cell: &Cell, retries: bool) -> String {
    let record = &cell.trace.record;
    let count = |bin: &Bin| if retries { bin.retries } else { bin.offered };
    let counts: Vec<u64> = record
        .bins
        .iter()
        .map(|bin| u64::from(count(bin)))
        .collect();
    let end = counts
        .iter()
        .rposition(|count| *count > 0)
        .map_or(0, |at| at + 1);
    // What comes after recovery tells nothing: as much again as the outage took, four times.
    let fault = cell.point.world.server.faults.first().filter(|_| !retries);
    let shown = fault.map_or(end, |fault| {
        let to = fault.to.as_nanos() as u64 / record.bin;
        let length = (fault.to - fault.from).as_nanos() as u64 / record.bin;
        end.min((to + 4 * length.max(10_000_000_000 / record.bin)) as usize)
    });
    let span = shown.div_ceil(CHART).max(1);
    let spans: Vec<u64> = counts[..shown]
        .chunks(span)
        .map(|bins| bins.iter().sum())
        .collect();
    let seconds = shown as f64 * record.bin as f64 / 1e9;
    format!("{} 0 to {seconds:.0} s", sparkline(&spans))
}

/// Bars by the highest.
pub(super) fn sparkline(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts
        .iter()
        .map(|count| match count {
            0 => ' ',
            count => BARS[((count * 8).div_ceil(most) as usize).clamp(1, 8) - 1],
        })
        .collect()
}

/// Phase diagrams in characters.
pub(super) fn phases(all: &[Phases]) -> String {
    let mut text = String::from(
        "\nWho recovers from a trigger of this length at this load (█ never, · within 10 s, + within 90 s):\n",
    );
    for phases in all {
        let _ = writeln!(text, "\n  {}", phases.label);
        for (row, outage) in phases.outages.iter().enumerate().rev() {
            let cells: Vec<&str> = phases.recover_seconds[row]
                .iter()
                .map(|cell| match cell {
                    None => "████",
                    Some(seconds) if *seconds <= 10.0 => "  · ",
                    Some(_) => "  + ",
                })
                .collect();
            let _ = writeln!(text, "  {outage:>5} s {}", cells.join(" "));
        }
        let loads: Vec<String> = phases
            .loads
            .iter()
            .map(|load| format!("{load:.2}"))
            .collect();
        let _ = writeln!(text, "    load  {}", loads.join(" "));
        if let Some(at) = phases.predicted {
            let _ = writeln!(text, "    never is expected from 1/(1+r) = {at:.3} on");
        }
    }
    text
}

fn occ_table(cells: &[OccCell]) -> Table {
    let head = [
        "policy",
        "clients",
        "calls",
        "published",
        "z",
        "time ms",
        "published",
        "z",
    ];
    let mut table = new_table(&head.map(str::to_owned));
    for cell in cells {
        let reference = occ::reference(cell.policy, cell.clients);
        let mut row = vec![cell.policy.as_str().to_owned(), cell.clients.to_string()];
        for (own, published) in [
            (&cell.calls, reference.map(|(calls, _)| calls)),
            (&cell.time_ms, reference.map(|(_, time)| time)),
        ] {
            row.push(format!("{:.1} ± {:.1}", own.mean(), own.sd()));
            let published =
                published.map(|published| (published, published.z(own.mean(), own.count())));
            row.push(published.map_or(String::new(), |(p, _)| {
                format!("{:.1} ± {:.1}", p.mean, p.sd)
            }));
            row.push(published.map_or(String::new(), |(_, z)| format!("{z:+.2}")));
        }
        table.add_row(row);
    }
    table
}

/// The figure that lies farthest from its reference.
pub(super) fn worst(study: &Study) -> Option<(f64, String)> {
    let mut all = Vec::new();
    for cell in &study.occ {
        let Some((calls, time)) = occ::reference(cell.policy, cell.clients) else {
            continue;
        };
        for (what, own, published) in [("calls", &cell.calls, calls), ("time", &cell.time_ms, time)]
        {
            let of = format!(
                "{what}, {} with {} clients",
                cell.policy.as_str(),
                cell.clients
            );
            all.push((published.z(own.mean(), own.count()).abs(), of));
        }
    }
    for cell in &study.cells {
        for name in cell.point.reference.keys() {
            if let Some((_, z)) = cell.against_reference(name) {
                let of = format!("{}, {}", title(name), cell.point.label);
                all.push((z.abs(), of));
            }
        }
    }
    all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_scales_to_its_highest_and_shows_every_arrival() {
        assert_eq!(sparkline(&[0, 1, 8, 1_000]), " ▁▁█");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_recovery_that_never_came_says_so() {
        assert_eq!(value(&Sample::of([f64::NAN])), "never");
        assert_eq!(value(&Sample::of([3.0, 3.0])), "3.00");
        assert_eq!(value(&Sample::of([1_000.0, 1_002.0])), "1001±1");
    }
}
