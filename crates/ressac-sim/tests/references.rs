//! The built-in scenarios against the published tables, by their rule of acceptance. Here with few
//! runs for each row; `ressac sim NAME --seeds 20` is the whole.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::atomic::AtomicBool;

use ressac_sim::{Study, StudyOptions, built_in, columns, study};

fn run(name: &str, seeds: u32) -> Study {
    let options = StudyOptions {
        seeds: Some(seeds),
        ..StudyOptions::default()
    };
    let scenario = built_in(name).unwrap();
    study(&scenario, &options, &|_, _| (), &AtomicBool::new(false))
        .unwrap()
        .unwrap()
}

fn judge(study: &Study) {
    let mut bad = Vec::new();
    let mut compared = 0;
    for cell in &study.cells {
        for name in cell.point.reference.keys() {
            let known = cell.figures.contains_key(name.as_str());
            assert!(known, "{name} of {} is no figure", cell.point.label);
            let (published, z) = cell.against_reference(name).unwrap();
            compared += 1;
            let own = &cell.figures[name.as_str()];
            let line = format!(
                "{:<44} {name:<20} {:>10.3} ± {:<8.3} published {published:>9} z {z:>6.2}",
                cell.point.label,
                own.mean(),
                own.sd()
            );
            println!("{line}");
            if z.abs() > 4.0 {
                bad.push(line);
            }
        }
    }
    assert!(compared > 0 && !columns(study.report).is_empty());
    assert!(bad.is_empty(), "outside the rule:\n{}", bad.join("\n"));
}

#[test]
fn edi_50_is_that_of_the_table() {
    judge(&run("edi-50", 100));
}

#[test]
fn outage_is_that_of_the_table() {
    judge(&run("outage", 8));
}

#[test]
fn herd_5000_is_that_of_the_table() {
    judge(&run("herd-5000", 6));
}

#[test]
fn layers_multiply_unless_they_say_that_they_gave_up() {
    judge(&run("layers", 3));
}
