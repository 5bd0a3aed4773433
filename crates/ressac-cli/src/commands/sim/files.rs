//! The files of a study.

use std::fs;
use std::path::Path;

use ressac_sim::{Figure, Phases, Study};

use super::Args;
use crate::exit::Stop;

/// Writes what was asked for.
pub(super) fn write(args: &Args, study: &Study, phases: &[Phases]) -> Result<(), Stop> {
    if let Some(folder) = &args.csv {
        make(folder)?;
        put(&folder.join("rows.csv"), &study.csv())?;
        for (index, cell) in study.cells.iter().enumerate() {
            let name = format!("{:02}-{}.csv", index + 1, plain(&cell.point.label));
            put(&folder.join(name), &Study::csv_over_time(cell))?;
        }
    }
    if args.html.is_none() && args.svg.is_none() {
        return Ok(());
    }
    let figures = ressac_sim::plots(study, phases);
    if let Some(path) = &args.html {
        put(path, &page(study, &figures))?;
    }
    if let Some(folder) = &args.svg {
        make(folder)?;
        for figure in &figures {
            let drawn = ressac_sim::svg(figure)
                .map_err(|error| Stop::fault(format_args!("{}: {error}", figure.id)))?;
            put(&folder.join(format!("{}.svg", plain(&figure.id))), &drawn)?;
        }
    }
    Ok(())
}

fn page(study: &Study, figures: &[Figure]) -> String {
    let title = format!("ressac sim {}", study.scenario);
    let footer = format!(
        "ressac {} sim {}, seed {}, {} replications. Figures over time show the first replication; \
         a click on a name in a legend shows or hides it.",
        env!("CARGO_PKG_VERSION"),
        study.scenario,
        study.seed,
        study.seeds,
    );
    ressac_sim::page(&title, &study.about, &footer, figures)
}

fn make(folder: &Path) -> Result<(), Stop> {
    fs::create_dir_all(folder)
        .map_err(|error| Stop::no(format_args!("{}: {error}", folder.display())))
}

fn put(path: &Path, text: &str) -> Result<(), Stop> {
    fs::write(path, text).map_err(|error| Stop::no(format_args!("{}: {error}", path.display())))
}

/// A name that is safe in every file system.
fn plain(label: &str) -> String {
    let mut name = String::new();
    for c in label.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_becomes_a_file_name() {
        assert_eq!(
            plain("+ 10 % budget, deferring (Ressac)"),
            "10-budget-deferring-ressac"
        );
        assert_eq!(plain("../../etc"), "etc");
    }
}
