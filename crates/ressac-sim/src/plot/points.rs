//! Figures over the points of a study: clients, layers, load and length of a trigger.

use std::collections::BTreeMap;

use super::figure::{Axis, Figure, Series, Shape};
use crate::occ::OccPolicy;
use crate::stats::Sample;
use crate::study::{OccCell, Phases, Study};

/// Calls and time over the number of clients.
pub(super) fn occ(study: &Study) -> Vec<Figure> {
    let lines = |figure: &dyn Fn(&OccCell) -> &Sample| {
        OccPolicy::ALL
            .iter()
            .map(|policy| Series {
                name: policy.as_str().to_owned(),
                points: study
                    .occ
                    .iter()
                    .filter(|cell| cell.policy == *policy)
                    .map(|cell| (f64::from(cell.clients), figure(cell).mean()))
                    .collect(),
                shown: true,
            })
            .collect()
    };
    let shape = |series| Shape::Lines {
        series,
        levels: Vec::new(),
        spans: Vec::new(),
    };
    vec![
        Figure {
            id: "calls".to_owned(),
            title: "Calls until everybody has written once".to_owned(),
            reading: "A slope of 2 means that everyone fights everyone; the gap down to the number of clients is wasted work.".to_owned(),
            x: Axis::log("clients"),
            y: Axis::log("calls"),
            shape: shape(lines(&|cell| &cell.calls)),
        },
        Figure {
            id: "time".to_owned(),
            title: "Time until everybody has written once".to_owned(),
            reading: "The price of politeness: a rule that is good only in one of both figures is not good.".to_owned(),
            x: Axis::log("clients"),
            y: Axis::log("milliseconds"),
            shape: shape(lines(&|cell| &cell.time_ms)),
        },
    ]
}

/// Calls at the bottom over the number of layers.
pub(super) fn layers(study: &Study) -> Vec<Figure> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for cell in &study.cells {
        let world = &cell.point.world;
        let attempts = cell.point.policy.retries + 1;
        let said = if world.clients.marks { ", says so" } else { "" };
        let name = format!("{attempts} attempts{said}, p = {}", world.server.fail);
        let calls = cell
            .figures
            .get("calls_per_click")
            .map_or(0.0, Sample::mean);
        let layers = f64::from(world.clients.layers);
        lines.entry(name).or_default().push((layers, calls));
    }
    vec![Figure {
        id: "layers".to_owned(),
        title: "Calls at the bottom for each click at the top".to_owned(),
        reading: "Layers multiply only in a total outage (p = 1): a test at p = 0.5 does not see it; layers that say that they gave up do not multiply.".to_owned(),
        x: Axis::linear("retrying layers")
            .over(0.8, 5.2)
            .at_places((0..=5).map(|layers| layers.to_string()).collect()),
        y: Axis::log("calls per click"),
        shape: Shape::Lines {
            series: lines
                .into_iter()
                .map(|(name, points)| Series { name, points, shown: true })
                .collect(),
            levels: Vec::new(),
            spans: Vec::new(),
        },
    }]
}

/// Who recovers, over load and length of the trigger.
pub(super) fn phases(phases: &[Phases]) -> Vec<Figure> {
    phases
        .iter()
        .enumerate()
        .map(|(index, phases)| Figure {
            id: format!("phases-{}", index + 1),
            title: format!("Seconds to recover: {}", phases.label),
            reading: "Dark red has not recovered within 90 s: what lies right of 1/(1 + retries) stays down once the trigger lasts longer than the clients wait; policies compete by the size of the red area.".to_owned(),
            x: Axis::linear("fresh load, as a share of the capacity"),
            y: Axis::linear("length of the trigger, seconds"),
            shape: Shape::Map {
                xs: phases.loads.clone(),
                ys: phases.outages.clone(),
                cells: phases.recover_seconds.clone(),
                marks: phases
                    .predicted
                    .map(|at| (at, format!("1/(1+r) = {at:.3}")))
                    .into_iter()
                    .collect(),
            },
        })
        .collect()
}
