//! One page with all figures, readable without a network: plotly carries its own script.

use std::fmt::Write;

use plotly::color::Rgb;
use plotly::common::{
    Anchor, ColorScale, ColorScaleElement, DashType, Font, Line, LineShape, Marker, Mode, Title,
    Visible,
};
use plotly::layout::{
    Annotation, Axis as PlotAxis, AxisType, Legend, Shape as PlotShape, ShapeLayer, ShapeLine,
    ShapeType,
};
use plotly::{HeatMap, Layout, Plot, Scatter};

use super::figure::{Axis, COLOURS, Figure, Series, Shape};

/// What "never" is drawn as, above every time that was measured.
const NEVER: f64 = 1.25;

/// The page.
///
/// ```
/// let page = ressac_sim::page("Nothing", "No figures.", "seed 1", &[]);
/// assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("<script src"));
/// ```
#[must_use]
pub fn page(title: &str, about: &str, footer: &str, figures: &[Figure]) -> String {
    let mut body = String::new();
    for figure in figures {
        let plot = plot(figure);
        // Writing to a String cannot fail.
        let _ = writeln!(
            body,
            "<section><h2>{}</h2><p>{}</p><div class=\"plot\" id=\"box-{}\">{}</div></section>",
            escape(&figure.title),
            escape(&figure.reading),
            escape(&figure.id),
            plot.to_inline_html(Some(&format!("plot-{}", figure.id))),
        );
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n{}\n</head><body>\n\
         <h1>{title}</h1><p>{}</p>\n{body}<footer>{}</footer>\n</body></html>\n",
        script(),
        escape(about),
        escape(footer),
        title = escape(title),
    )
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
padding:0 1rem;color:#222;background:#fff}h1,h2{line-height:1.2}section{margin:2.5rem 0}\
.plot{height:34rem}footer{color:#555;border-top:1px solid #ccc;margin-top:3rem;padding-top:1rem}";

/// The plotting script alone; formulas, which come second, are not needed.
fn script() -> String {
    const END: &str = "</script>";
    let mut all = Plot::offline_js_sources();
    if let Some(end) = all.find(END) {
        all.truncate(end + END.len());
    }
    all
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn plot(figure: &Figure) -> Plot {
    let mut plot = Plot::new();
    let mut layout = Layout::new()
        .font(Font::new().size(13))
        .margin(plotly::layout::Margin::new().top(10).right(10))
        .legend(
            Legend::new()
                .y_anchor(Anchor::Top)
                .y(-0.22)
                .x(0.0)
                .orientation(plotly::common::Orientation::Horizontal),
        )
        .plot_background_color(Rgb::new(255, 255, 255))
        .x_axis(axis(&figure.x))
        .y_axis(axis(&figure.y));
    match &figure.shape {
        Shape::Lines {
            series,
            levels,
            spans,
        } => {
            for (index, series) in Figure::coloured(series) {
                plot.add_trace(line(series, index));
            }
            layout = layout.shapes(shapes(levels, spans));
            let highest = levels.iter().map(|(y, _)| *y).fold(0.0, f64::max);
            for (y, name) in levels {
                layout.add_annotation(level_name(figure, *y, name, *y >= highest));
            }
        }
        Shape::Dots { series, spans } => {
            for (index, series) in Figure::coloured(series) {
                plot.add_trace(dots(series, index));
            }
            layout = layout.shapes(shapes(&[], spans));
        }
        Shape::Map {
            xs,
            ys,
            cells,
            marks,
        } => {
            plot.add_trace(map(xs, ys, cells));
            for (x, name) in marks {
                layout.add_shape(
                    PlotShape::new()
                        .shape_type(ShapeType::Line)
                        .x0(*x)
                        .x1(*x)
                        .y0(0.0)
                        .y1(1.0)
                        .y_ref("paper")
                        .line(
                            ShapeLine::new()
                                .color("#000")
                                .width(2.0)
                                .dash(DashType::Dash),
                        ),
                );
                layout.add_annotation(
                    Annotation::new()
                        .x(*x)
                        .y(1.0)
                        .y_ref("paper")
                        .y_anchor(Anchor::Bottom)
                        .text(name)
                        .show_arrow(false),
                );
            }
            layout = layout.margin(plotly::layout::Margin::new().top(30).right(10));
        }
    }
    plot.set_layout(layout);
    plot.set_configuration(
        plotly::Configuration::new()
            .responsive(true)
            .display_logo(false),
    );
    plot
}

fn axis(axis: &Axis) -> PlotAxis {
    let grid = Rgb::new(225, 225, 225);
    let made = PlotAxis::new()
        .title(Title::with_text(&axis.label))
        .grid_color(grid)
        .zero_line_color(Rgb::new(150, 150, 150))
        .auto_margin(true);
    let made = if axis.places.is_empty() {
        made
    } else {
        let at = (0..axis.places.len()).map(|place| place as f64);
        made.tick_values(at.collect())
            .tick_text(axis.places.clone())
    };
    match axis.range {
        _ if axis.log => made.type_(AxisType::Log),
        Some((from, to)) => made.range(vec![from, to]),
        None => made.range_mode(plotly::layout::RangeMode::ToZero),
    }
}

fn colour(index: usize) -> Rgb {
    let (red, green, blue) = COLOURS[index % COLOURS.len()];
    Rgb::new(red, green, blue)
}

fn visible(series: &Series) -> Visible {
    if series.shown {
        Visible::True
    } else {
        Visible::LegendOnly
    }
}

fn line(series: &Series, index: usize) -> Box<Scatter<f64, f64>> {
    let (x, y): (Vec<f64>, Vec<f64>) = series.points.iter().copied().unzip();
    let mode = if x.len() > 40 {
        Mode::Lines
    } else {
        Mode::LinesMarkers
    };
    Scatter::new(x, y)
        .name(&series.name)
        .mode(mode)
        .visible(visible(series))
        .line(
            Line::new()
                .color(colour(index))
                .width(2.0)
                .shape(LineShape::Linear),
        )
}

fn dots(series: &Series, index: usize) -> Box<Scatter<f64, f64>> {
    let (x, y): (Vec<f64>, Vec<f64>) = series.points.iter().copied().unzip();
    Scatter::new(x, y)
        .name(&series.name)
        .mode(Mode::Markers)
        .visible(visible(series))
        .marker(Marker::new().color(colour(index)).size(3))
}

fn shapes(levels: &[(f64, String)], spans: &[(f64, f64)]) -> Vec<PlotShape> {
    let spans = spans.iter().map(|(from, to)| {
        PlotShape::new()
            .shape_type(ShapeType::Rect)
            .x0(*from)
            .x1(*to)
            .y0(0.0)
            .y1(1.0)
            .y_ref("paper")
            .fill_color("rgba(200,60,60,0.12)")
            .line(ShapeLine::new().width(0.0))
            .layer(ShapeLayer::Below)
    });
    let levels = levels.iter().map(|(y, _)| {
        PlotShape::new()
            .shape_type(ShapeType::Line)
            .x0(0.0)
            .x1(1.0)
            .x_ref("paper")
            .y0(*y)
            .y1(*y)
            .line(
                ShapeLine::new()
                    .color("#444")
                    .width(1.5)
                    .dash(DashType::Dash),
            )
    });
    spans.chain(levels).collect()
}

/// Above the highest line, below the others: so that two lines do not share a place.
fn level_name(figure: &Figure, y: f64, name: &str, above: bool) -> Annotation {
    let y = if figure.y.log { y.log10() } else { y };
    Annotation::new()
        .x(1.0)
        .x_ref("paper")
        .x_anchor(Anchor::Right)
        .y(y)
        .y_anchor(if above { Anchor::Bottom } else { Anchor::Top })
        .text(name)
        .show_arrow(false)
}

fn map(xs: &[f64], ys: &[f64], cells: &[Vec<Option<f64>>]) -> Box<HeatMap<f64, f64, Vec<f64>>> {
    let longest = longest(cells);
    let values: Vec<Vec<f64>> = cells
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| cell.unwrap_or(longest * NEVER))
                .collect()
        })
        .collect();
    let scale = [
        (0.0, "#e8f3fa"),
        (0.8, "#2f7fb5"),
        (0.81, "#a01818"),
        (1.0, "#a01818"),
    ];
    let elements = scale.map(|(at, colour)| ColorScaleElement(at, colour.to_owned()));
    HeatMap::new(xs.to_vec(), ys.to_vec(), values)
        .zmin(0.0)
        .zmax(longest * NEVER)
        .color_scale(ColorScale::Vector(elements.to_vec()))
}

/// The longest time in a map, at least a second.
pub(super) fn longest(cells: &[Vec<Option<f64>>]) -> f64 {
    let all = cells.iter().flatten().flatten();
    all.copied().fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_break_out_of_the_page() {
        let figure = Figure {
            id: "one".to_owned(),
            title: "<b>".to_owned(),
            reading: String::new(),
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            shape: Shape::Lines {
                series: vec![Series {
                    name: "</script><script>alert(1)</script>".to_owned(),
                    points: vec![(0.0, 1.0)],
                    shown: true,
                }],
                levels: Vec::new(),
                spans: Vec::new(),
            },
        };
        let page = page("t", "a", "f", &[figure]);
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&lt;b&gt;"));
    }
}
