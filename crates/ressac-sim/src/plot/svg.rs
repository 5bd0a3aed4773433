//! A figure as a static SVG.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{Axis, COLOURS, Figure, Series, Shape};
use super::html::longest;

const SIZE: (u32, u32) = (960, 540);
const LINE_OF_LEGEND: i32 = 20;

/// The SVG.
///
/// # Errors
///
/// If the figure cannot be drawn (axes without an extent).
pub fn svg(figure: &Figure) -> Result<String, String> {
    let mut text = String::new();
    {
        let names = names(figure);
        let height = SIZE.1 + (names.len() as u32 / 2 + 1) * LINE_OF_LEGEND as u32;
        let area = SVGBackend::with_string(&mut text, (SIZE.0, height)).into_drawing_area();
        let fault = |error: DrawingAreaErrorKind<std::io::Error>| error.to_string();
        area.fill(&WHITE).map_err(fault)?;
        let (upper, lower) = area.split_vertically(SIZE.1);
        draw(figure, &upper)?;
        legend(&names, &lower).map_err(|error| error.to_string())?;
        area.present().map_err(fault)?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn names(figure: &Figure) -> Vec<(String, RGBColor)> {
    all_series(figure)
        .map(|(index, series)| (series.name.clone(), colour(index)))
        .collect()
}

fn all_series(figure: &Figure) -> impl Iterator<Item = (usize, &Series)> + Clone {
    let series: &[Series] = match &figure.shape {
        Shape::Lines { series, .. } | Shape::Dots { series, .. } => series,
        Shape::Map { .. } => &[],
    };
    let drawn = Figure::coloured(series).into_iter();
    drawn.filter(|(_, series)| series.shown && !series.points.is_empty())
}

fn colour(index: usize) -> RGBColor {
    let (red, green, blue) = COLOURS[index % COLOURS.len()];
    RGBColor(red, green, blue)
}

fn legend(names: &[(String, RGBColor)], area: &Area<'_>) -> Result<(), String> {
    let style = ("sans-serif", 14).into_font().color(&BLACK);
    for (index, (name, colour)) in names.iter().enumerate() {
        let x = 80 + (index as i32 % 2) * 440;
        let y = 4 + (index as i32 / 2) * LINE_OF_LEGEND;
        let mark = Rectangle::new([(x, y + 5), (x + 22, y + 9)], colour.filled());
        area.draw(&mark).map_err(|error| error.to_string())?;
        let text = Text::new(name.clone(), (x + 30, y), style.clone());
        area.draw(&text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The extent of an axis: what was asked for, or what the data has.
fn extent(axis: &Axis, values: &mut dyn Iterator<Item = f64>) -> (f64, f64) {
    if let Some(range) = axis.range {
        return range;
    }
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0)) {
        least = least.min(value);
        most = most.max(value);
    }
    if least > most {
        return if axis.log { (0.1, 10.0) } else { (0.0, 1.0) };
    }
    if axis.log {
        return (least / 1.1, (most * 1.1).max(least * 2.0));
    }
    (least.min(0.0), if most > 0.0 { most * 1.05 } else { 1.0 })
}

fn draw(figure: &Figure, area: &Area<'_>) -> Result<(), String> {
    let title = ("sans-serif", 20).into_font();
    let area = area
        .titled(&figure.title, title)
        .map_err(|e| e.to_string())?;
    if let Shape::Map {
        xs,
        ys,
        cells,
        marks,
    } = &figure.shape
    {
        return draw_map(figure, &area, xs, ys, cells, marks);
    }
    let points = || all_series(figure).flat_map(|(_, series)| series.points.iter().copied());
    let levels: &[(f64, String)] = match &figure.shape {
        Shape::Lines { levels, .. } => levels,
        Shape::Dots { .. } | Shape::Map { .. } => &[],
    };
    let x = extent(&figure.x, &mut points().map(|(x, _)| x));
    let heights = points()
        .map(|(_, y)| y)
        .chain(levels.iter().map(|(y, _)| *y));
    let y = extent(&figure.y, &mut { heights });
    let mut builder = ChartBuilder::on(&area);
    builder
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(if figure.y.places.is_empty() { 70 } else { 220 });
    macro_rules! chart {
        ($x:expr, $y:expr) => {{
            let mut chart = builder
                .build_cartesian_2d($x, $y)
                .map_err(|e| e.to_string())?;
            chart
                .configure_mesh()
                .x_desc(figure.x.label.clone())
                .y_desc(figure.y.label.clone())
                .x_labels(figure.x.places.len().max(10))
                .y_labels(figure.y.places.len().max(10))
                .x_label_formatter(&|value| tick(&figure.x, *value))
                .y_label_formatter(&|value| tick(&figure.y, *value))
                .light_line_style(WHITE.mix(0.0))
                .bold_line_style(RGBColor(225, 225, 225))
                .label_style(("sans-serif", 13))
                .axis_desc_style(("sans-serif", 15))
                .draw()
                .map_err(|e| e.to_string())?;
            content!(chart, figure, x, y, levels);
        }};
    }
    macro_rules! content {
        ($chart:ident, $figure:ident, $x:ident, $y:ident, $levels:ident) => {{
            let spans = match &$figure.shape {
                Shape::Lines { spans, .. } | Shape::Dots { spans, .. } => spans.as_slice(),
                Shape::Map { .. } => &[],
            };
            for (from, to) in spans {
                let corners = [(from.max($x.0), $y.0), (to.min($x.1), $y.1)];
                let shade = RGBColor(200, 60, 60).mix(0.12).filled();
                let band = Rectangle::new(corners, shade);
                $chart.draw_series([band]).map_err(|e| e.to_string())?;
            }
            for (level, name) in $levels {
                let style = RGBColor(68, 68, 68).stroke_width(1);
                let line = DashedLineSeries::new([($x.0, *level), ($x.1, *level)], 6, 4, style);
                $chart.draw_series(line).map_err(|e| e.to_string())?;
                let above = $levels.iter().all(|(other, _)| other <= level);
                let side = if above { VPos::Bottom } else { VPos::Top };
                let anchor = Pos::new(HPos::Right, side);
                let font = ("sans-serif", 13).into_font().color(&BLACK).pos(anchor);
                let text = Text::new(name.clone(), ($x.1, *level), font);
                $chart.draw_series([text]).map_err(|e| e.to_string())?;
            }
            let dots = matches!($figure.shape, Shape::Dots { .. });
            for (index, series) in all_series($figure) {
                let colour = colour(index);
                let inside = series.points.iter().copied().filter(|(a, _)| *a <= $x.1);
                if dots {
                    let marks = inside.map(|point| Circle::new(point, 1, colour.filled()));
                    $chart.draw_series(marks).map_err(|e| e.to_string())?;
                } else {
                    let line = LineSeries::new(inside, colour.stroke_width(2));
                    $chart.draw_series(line).map_err(|e| e.to_string())?;
                }
            }
        }};
    }
    match (figure.x.log, figure.y.log) {
        (false, false) => chart!(x.0..x.1, y.0..y.1),
        (true, false) => chart!((x.0..x.1).log_scale(), y.0..y.1),
        (false, true) => chart!(x.0..x.1, (y.0..y.1).log_scale()),
        (true, true) => chart!((x.0..x.1).log_scale(), (y.0..y.1).log_scale()),
    }
    Ok(())
}

fn draw_map(
    figure: &Figure,
    area: &Area<'_>,
    xs: &[f64],
    ys: &[f64],
    cells: &[Vec<Option<f64>>],
    marks: &[(f64, String)],
) -> Result<(), String> {
    let (columns, rows) = (edges(xs), edges(ys));
    let (Some(x), Some(y)) = (ends(&columns), ends(&rows)) else {
        return Err("a map without cells".to_owned());
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)
        .map_err(|e| e.to_string())?;
    let most = longest(cells);
    for (row, values) in cells.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let corners = [
                (columns[column], rows[row]),
                (columns[column + 1], rows[row + 1]),
            ];
            let shade = value.map_or(RGBColor(160, 24, 24), |value| blue(value / most));
            let cell = Rectangle::new(corners, shade.filled());
            chart.draw_series([cell]).map_err(|e| e.to_string())?;
        }
    }
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc(format!(
            "{}; dark red: never, pale: at once, blue: up to {most:.0} s",
            figure.x.label
        ))
        .y_desc(figure.y.label.clone())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .axis_desc_style(("sans-serif", 15))
        .draw()
        .map_err(|e| e.to_string())?;
    for (at, name) in marks {
        let line = DashedLineSeries::new([(*at, y.0), (*at, y.1)], 6, 4, BLACK.stroke_width(2));
        chart.draw_series(line).map_err(|e| e.to_string())?;
        let font = ("sans-serif", 14).into_font().color(&BLACK);
        let text = Text::new(name.clone(), (*at, y.1), font);
        chart.draw_series([text]).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn blue(share: f64) -> RGBColor {
    let mix = |from: f64, to: f64| (from + (to - from) * share.clamp(0.0, 1.0)) as u8;
    RGBColor(mix(232.0, 47.0), mix(243.0, 127.0), mix(250.0, 181.0))
}

/// The edges of cells around their middles.
fn edges(middles: &[f64]) -> Vec<f64> {
    let (Some(first), Some(last)) = (middles.first(), middles.last()) else {
        return Vec::new();
    };
    let between: Vec<f64> = middles
        .windows(2)
        .map(|pair| (pair[0] + pair[1]) / 2.0)
        .collect();
    let lead = between.first().map_or(0.5, |edge| edge - first);
    let tail = between.last().map_or(0.5, |edge| last - edge);
    let mut all = vec![first - lead];
    all.extend(between);
    all.push(last + tail);
    all
}

fn ends(edges: &[f64]) -> Option<(f64, f64)> {
    Some((*edges.first()?, *edges.last()?))
}

/// What stands at this value of an axis.
fn tick(axis: &Axis, value: f64) -> String {
    if axis.places.is_empty() {
        return number(value);
    }
    // Between two places stands nothing.
    let place = value.round();
    let name = axis.places.get(place as usize);
    let here = place >= 0.0 && (value - place).abs() < 1e-6;
    name.filter(|_| here).cloned().unwrap_or_default()
}

/// A label without a tail of zeros.
fn number(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        v if v >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}
