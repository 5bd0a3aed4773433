//! The description of a figure.

/// A figure, whoever draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A word that names it in a page and as a file.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it, in one sentence.
    pub reading: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn.
    pub shape: Shape,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Equal steps are equal factors.
    pub log: bool,
    /// Its ends, where the data shall not decide.
    pub range: Option<(f64, f64)>,
    /// What stands at 0, 1, 2 and so on, where it is not a measure but a name or a count.
    pub places: Vec<String>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Lines, with levels across and spans of time behind them.
    Lines {
        /// The lines.
        series: Vec<Series>,
        /// Horizontal lines with their names.
        levels: Vec<(f64, String)>,
        /// Where something was out of order.
        spans: Vec<(f64, f64)>,
    },
    /// Points.
    Dots {
        /// The groups of points.
        series: Vec<Series>,
        /// Where something was out of order.
        spans: Vec<(f64, f64)>,
    },
    /// A value for each pair; `None` is "never".
    Map {
        /// The columns.
        xs: Vec<f64>,
        /// The rows.
        ys: Vec<f64>,
        /// Row by row.
        cells: Vec<Vec<Option<f64>>>,
        /// Vertical lines with their names.
        marks: Vec<(f64, String)>,
    },
}

/// A named line or group of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Drawn from the beginning; otherwise only where a reader asks for it.
    pub shown: bool,
}

impl Axis {
    /// A linear axis from zero.
    #[must_use]
    pub fn linear(label: &str) -> Axis {
        Axis {
            label: label.to_owned(),
            log: false,
            range: None,
            places: Vec::new(),
        }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: &str) -> Axis {
        Axis {
            log: true,
            ..Axis::linear(label)
        }
    }

    /// With these ends.
    #[must_use]
    pub fn over(mut self, from: f64, to: f64) -> Axis {
        self.range = Some((from, to));
        self
    }

    /// With these words at 0, 1, 2 and so on, and nothing between.
    #[must_use]
    pub fn at_places(mut self, places: Vec<String>) -> Axis {
        self.places = places;
        self
    }
}

impl Figure {
    /// The series with their places in the palette: those that are shown come first.
    pub(super) fn coloured(series: &[Series]) -> Vec<(usize, &Series)> {
        let shown = series.iter().filter(|series| series.shown).count();
        let (mut first, mut later) = (0..shown, shown..series.len());
        let places = series.iter().map(|series| {
            let place = if series.shown {
                first.next()
            } else {
                later.next()
            };
            (place.unwrap_or(0), series)
        });
        places.collect()
    }

    /// The points of all series that are shown.
    pub(super) fn shown(&self) -> Vec<&Series> {
        match &self.shape {
            Shape::Lines { series, .. } | Shape::Dots { series, .. } => {
                series.iter().filter(|series| series.shown).collect()
            }
            Shape::Map { .. } => Vec::new(),
        }
    }
}

/// Colours that can be told apart by the colour-blind (Okabe and Ito), the palest left out.
pub(super) const COLOURS: [(u8, u8, u8); 8] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (70, 70, 70),
    (148, 103, 189),
];
