//! Plots: one description of a figure, drawn as a static SVG and on an interactive page.

mod figure;
mod html;
mod over_time;
mod points;
mod svg;

use crate::scenario::Report;
use crate::study::{Phases, Study};

pub use figure::{Axis, Figure, Series, Shape};
pub use html::page;
pub use svg::svg;

/// The plots that fit a study, and the phase diagrams where there are any.
#[must_use]
pub fn plots(study: &Study, phases: &[Phases]) -> Vec<Figure> {
    match study.report {
        Report::Occ => points::occ(study),
        Report::Layers => points::layers(study),
        Report::Edi => over_time::told(study),
        Report::Herd => over_time::herd(study),
        Report::Outage | Report::Breaker => over_time::traffic(study),
        Report::Metastable => {
            let mut all = points::phases(phases);
            all.extend(over_time::traffic(study));
            all
        }
    }
}
