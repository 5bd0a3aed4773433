//! Figures over time, of the first replication of each point.

use super::figure::{Axis, Figure, Series, Shape};
use crate::run::Bin;
use crate::scenario::Report;
use crate::study::{Cell, Study};

/// Lines drawn where no run asks to be.
const SHOWN: usize = 8;
const SECOND: u64 = 1_000_000_000;
/// Dots of one strip of a raster.
const DOTS: usize = 3_000;
/// A level is drawn up to so many times the highest value.
const NEAR: f64 = 4.0;

/// Everything around an outage.
pub(super) fn traffic(study: &Study) -> Vec<Figure> {
    let cells = plotted(study);
    let Some((first, _)) = cells.first() else {
        return Vec::new();
    };
    let until = until(first);
    let step = if study.report == Report::Breaker {
        SECOND / 10
    } else {
        SECOND
    };
    let mut all = vec![
        offered(&cells, until, step),
        goodput(&cells, until),
        queue(&cells, until),
        amplification(&cells, until),
        completion(&cells),
        breakers(&cells, until),
        tokens(&cells, until),
    ];
    all.push(raster(&cells, until));
    all.retain(|figure| !figure.shown().iter().all(|series| series.points.is_empty()));
    all
}

/// Clients that were told a time.
pub(super) fn told(study: &Study) -> Vec<Figure> {
    let cells = plotted(study);
    let lines = over(&cells, 200.0, SECOND, |bin| bin.retries);
    let figure = Figure {
        id: "arrivals".to_owned(),
        title: "Retries a second".to_owned(),
        reading: "A spike is a herd that comes back in one second; a flat band means that the jitter works; anything left of 60 s came earlier than the partner had asked.".to_owned(),
        x: Axis::linear("seconds").over(0.0, 200.0),
        y: Axis::linear("retries a second"),
        shape: Shape::Lines {
            series: lines,
            levels: Vec::new(),
            spans: vec![(0.0, 1.0)],
        },
    };
    vec![figure, raster(&cells, 200.0)]
}

/// Clients that failed at one instant.
pub(super) fn herd(study: &Study) -> Vec<Figure> {
    let cells = plotted(study);
    let lines = over(&cells, 20.0, SECOND / 10, |bin| bin.retries);
    let figure = Figure {
        id: "arrivals".to_owned(),
        title: "Retries in each 100 ms after 5,000 clients failed together".to_owned(),
        reading:
            "Combs are synchronised retries, a decaying hill is work that jitter has spread out."
                .to_owned(),
        x: Axis::linear("seconds after the failure").over(0.0, 20.0),
        y: Axis::linear("retries in 100 ms"),
        shape: Shape::Lines {
            series: lines,
            levels: Vec::new(),
            spans: Vec::new(),
        },
    };
    vec![figure, raster(&cells, 20.0)]
}

/// The points, and whether each is shown from the beginning.
fn plotted(study: &Study) -> Vec<(&Cell, bool)> {
    let asked = study.cells.iter().any(|cell| cell.point.plot);
    let swept = study.report == Report::Metastable;
    let cells = study.cells.iter().enumerate();
    cells
        .map(|(index, cell)| {
            let shown = if asked {
                cell.point.plot
            } else {
                index < SHOWN
            };
            (cell, shown)
        })
        .filter(|(_, shown)| *shown || !swept)
        .collect()
}

/// How long the plots are: the trouble and what comes of it.
fn until(cell: &Cell) -> f64 {
    let end = cell.point.world.horizon.as_secs_f64();
    cell.point.world.server.faults.last().map_or(end, |fault| {
        let length = (fault.to - fault.from).as_secs_f64();
        end.min(fault.to.as_secs_f64() + (10.0 * length).max(30.0))
    })
}

fn spans(cells: &[(&Cell, bool)]) -> Vec<(f64, f64)> {
    cells.first().map_or_else(Vec::new, |(cell, _)| {
        let faults = cell.point.world.server.faults.iter();
        faults
            .map(|fault| (fault.from.as_secs_f64(), fault.to.as_secs_f64()))
            .collect()
    })
}

/// A figure of the bins, as one line for each point.
fn over(
    cells: &[(&Cell, bool)],
    until: f64,
    step: u64,
    figure: impl Fn(&Bin) -> u32,
) -> Vec<Series> {
    cells
        .iter()
        .map(|(cell, shown)| {
            let record = &cell.trace.record;
            let step = step.max(record.bin);
            let width = step as f64 / 1e9;
            let values = record.over(step, &figure);
            let points = values.into_iter().enumerate();
            Series {
                name: cell.point.label.clone(),
                points: points
                    .map(|(index, value)| (index as f64 * width, value as f64))
                    .take_while(|(x, _)| *x <= until)
                    .collect(),
                shown: *shown,
            }
        })
        .collect()
}

fn offered(cells: &[(&Cell, bool)], until: f64, step: u64) -> Figure {
    let scale = SECOND as f64 / step as f64;
    let mut series = over(cells, until, step, |bin| bin.offered);
    for line in &mut series {
        for (_, value) in &mut line.points {
            *value *= scale;
        }
    }
    let mut levels = Vec::new();
    if let Some((cell, _)) = cells.first() {
        let capacity = cell.point.world.server.capacity();
        if capacity.is_finite() {
            levels.push((capacity, "capacity".to_owned()));
        }
        if let Some(load) = cell.point.load {
            levels.push((load, "fresh load".to_owned()));
        }
    }
    Figure {
        id: "offered".to_owned(),
        title: "Offered load".to_owned(),
        reading: "What lies above the fresh load is retries; what lies above the capacity must be shed or waited for.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("attempts a second"),
        shape: Shape::Lines { series, levels, spans: spans(cells) },
    }
}

fn goodput(cells: &[(&Cell, bool)], until: f64) -> Figure {
    Figure {
        id: "goodput".to_owned(),
        title: "Goodput".to_owned(),
        reading: "Operations delivered in time: a line that stays at zero after the outage is a metastable failure.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("operations delivered a second"),
        shape: Shape::Lines {
            series: over(cells, until, SECOND, |bin| bin.delivered),
            levels: Vec::new(),
            spans: spans(cells),
        },
    }
}

fn queue(cells: &[(&Cell, bool)], until: f64) -> Figure {
    let series: Vec<Series> = cells
        .iter()
        .map(|(cell, shown)| {
            let record = &cell.trace.record;
            let points = record.bins.iter().enumerate();
            Series {
                name: cell.point.label.clone(),
                points: points
                    .map(|(index, bin)| {
                        let end = (index + 1) as f64 * record.bin as f64 / 1e9;
                        (end, f64::from(bin.in_system))
                    })
                    .take_while(|(x, _)| *x <= until)
                    .collect(),
                shown: *shown,
            }
        })
        .collect();
    let mut levels = Vec::new();
    if let Some((cell, _)) = cells.first() {
        let patience = cell.point.policy.attempt_timeout.as_secs_f64();
        let capacity = cell.point.world.server.capacity();
        let level = patience * capacity;
        let points = series.iter().flat_map(|series| &series.points);
        let most = points.map(|(_, waiting)| *waiting).fold(0.0, f64::max);
        // A line far above all that happened would only press that flat.
        if patience < 60.0 && level < NEAR * most {
            levels.push((level, "time limit x capacity".to_owned()));
        }
    }
    Figure {
        id: "queue".to_owned(),
        title: "Requests at the partner".to_owned(),
        reading: "Above the time limit times the capacity every answer comes too late: the point of no return.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("requests waiting or served"),
        shape: Shape::Lines { series, levels, spans: spans(cells) },
    }
}

fn amplification(cells: &[(&Cell, bool)], until: f64) -> Figure {
    let series = cells
        .iter()
        .map(|(cell, shown)| {
            let record = &cell.trace.record;
            let offered = record.per_second(|bin| bin.offered);
            let born = record.per_second(|bin| bin.born);
            let points = offered.iter().zip(&born).enumerate();
            Series {
                name: cell.point.label.clone(),
                points: points
                    .filter(|(_, (_, born))| **born > 0)
                    .map(|(second, (offered, born))| {
                        (second as f64, *offered as f64 / *born as f64)
                    })
                    .take_while(|(x, _)| *x <= until)
                    .collect(),
                shown: *shown,
            }
        })
        .collect();
    Figure {
        id: "amplification".to_owned(),
        title: "Amplification".to_owned(),
        reading: "Attempts for each fresh operation, second by second: a budget holds it near 1 + its ratio, retries alone let it rise towards 1 + their number.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("attempts per fresh operation"),
        shape: Shape::Lines {
            series,
            levels: vec![(1.0, "no retries".to_owned())],
            spans: spans(cells),
        },
    }
}

fn completion(cells: &[(&Cell, bool)]) -> Figure {
    let series = cells
        .iter()
        .map(|(cell, shown)| {
            // Those born in the outage tell the policies apart; without one, all do.
            let faulty = !cell.point.world.server.faults.is_empty();
            let (phase, births) = if faulty {
                (1, "born_during")
            } else {
                (0, "born")
            };
            let done = &cell.trace.completion[phase];
            let born = cell.figures.get(births);
            let born = born.map_or(0.0, |born| born.mean() * born.count() as f64);
            let scale = done.count() as f64 / born.max(1.0);
            let points = done.cdf().into_iter();
            Series {
                name: cell.point.label.clone(),
                points: points.map(|(x, y)| (x, y * scale)).collect(),
                shown: *shown && done.count() > 0,
            }
        })
        .collect();
    Figure {
        id: "completion".to_owned(),
        title: "Completion time of what was born in the outage".to_owned(),
        reading: "The share that is done by then: what is missing to 1 is lost; steps mean no \
                  jitter, a long tail a long cap."
            .to_owned(),
        x: Axis::log("seconds from birth to delivery"),
        y: Axis::linear("share delivered").over(0.0, 1.0),
        shape: Shape::Lines {
            series,
            levels: Vec::new(),
            spans: Vec::new(),
        },
    }
}

fn watched(cells: &[(&Cell, bool)], until: f64, open: bool) -> Vec<Series> {
    cells
        .iter()
        .filter(|(cell, _)| {
            let policy = &cell.point.policy;
            if open {
                policy.breaker.is_some()
            } else {
                policy.budget.is_some()
            }
        })
        .map(|(cell, shown)| {
            let record = &cell.trace.record;
            let points = record.watched.iter().enumerate();
            Series {
                name: cell.point.label.clone(),
                points: points
                    .map(|(index, watch)| {
                        let end = (index + 1) as f64 * record.bin as f64 / 1e9;
                        let value = if open { watch.open } else { watch.tokens };
                        (end, f64::from(value))
                    })
                    .take_while(|(x, _)| *x <= until)
                    .collect(),
                shown: *shown,
            }
        })
        .collect()
}

fn breakers(cells: &[(&Cell, bool)], until: f64) -> Figure {
    Figure {
        id: "breakers".to_owned(),
        title: "Breakers that are not closed".to_owned(),
        reading:
            "Why attempts stopped: clients that switch in step have no jitter on their open time."
                .to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("share of the clients").over(0.0, 1.0),
        shape: Shape::Lines {
            series: watched(cells, until, true),
            levels: Vec::new(),
            spans: spans(cells),
        },
    }
}

fn tokens(cells: &[(&Cell, bool)], until: f64) -> Figure {
    Figure {
        id: "tokens".to_owned(),
        title: "Tokens in the retry budget".to_owned(),
        reading: "Why retries stopped: at zero no retry goes, and a deferring client waits in line for the next token.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: Axis::linear("tokens, mean of the clients"),
        shape: Shape::Lines {
            series: watched(cells, until, false),
            levels: Vec::new(),
            spans: spans(cells),
        },
    }
}

/// One strip for each point, the first on top, in its colour of the other figures.
fn raster(cells: &[(&Cell, bool)], until: f64) -> Figure {
    let shown: Vec<_> = cells.iter().filter(|(_, shown)| *shown).collect();
    let strips = shown.len();
    let series = shown.iter().enumerate().map(|(index, (cell, _))| {
        let strip = (strips - 1 - index) as f64;
        let raster = cell.trace.record.raster.iter();
        let within: Vec<_> = raster
            .filter(|(time, _, _)| *time as f64 / 1e9 <= until)
            .collect();
        let every = within.len().div_ceil(DOTS).max(1);
        let points = within.iter().step_by(every).map(|(time, op, _)| {
            // Neighbours in number are spread over the strip: no pattern but that of time.
            let height = f64::from(op.wrapping_mul(0x9e37_79b9) >> 8) / f64::from(1u32 << 24);
            (*time as f64 / 1e9, strip - 0.4 + 0.8 * height)
        });
        Series {
            name: cell.point.label.clone(),
            points: points.collect(),
            shown: true,
        }
    });
    let series: Vec<_> = series.collect();
    let names = series.iter().rev().map(|series| series.name.clone());
    let height = Axis::linear("").over(-0.5, strips.max(1) as f64 - 0.5);
    Figure {
        id: "raster".to_owned(),
        title: "Arrivals, one strip for each policy".to_owned(),
        reading: "Each dot is an attempt that reached the partner, its height in the strip is its operation's; upright combs are synchronised retries.".to_owned(),
        x: Axis::linear("seconds").over(0.0, until),
        y: height.at_places(names.collect()),
        shape: Shape::Dots { series, spans: spans(cells) },
    }
}
