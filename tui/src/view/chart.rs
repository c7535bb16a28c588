//! Draws confidence over time: a line for each hypothesis, which is level until it changes.

use super::canvas::{below, put, put_lines};
use super::frame::{self, FrameTitles};
use super::lanes;
use super::time::{GUTTER, axis, column, selected_time};
use crate::answer::{ConfidencePoint, ConfidenceSeries};
use crate::app::App;
use crate::effect::MomentTarget;
use crate::theme::{TextTone, Theme};
use forge_store::model::Timestamp;
use forge_store::story::TimeRuler;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::widgets::Widget;
use ratatui::widgets::canvas::{Canvas, Line as CanvasLine};
use unicode_width::UnicodeWidthStr;

/// The number of columns after the chart, with the ids and the last confidences.
const LABELS: u16 = 12;
/// The number of lines below the chart with the last change and the confidences at that time.
const CAUSE: u16 = 4;

/// Returns the sign and the tone of a settled status; no sign for another status.
fn seal(status: &str, theme: Theme) -> (&'static str, TextTone) {
    match status {
        "confirmed" => (theme.glyph("✓", "v"), TextTone::Good),
        "rejected" => (theme.glyph("✗", "x"), TextTone::Bad),
        "archived" => (theme.glyph("–", "-"), TextTone::Dim),
        _ => ("", TextTone::Plain),
    }
}

/// Returns the hypotheses in the order in which they are drawn. Of several in one cell, the last
/// one is seen: the selected hypothesis, else an open one, else the last settled one.
fn in_order(app: &App) -> Vec<&ConfidenceSeries> {
    let selected = app.chart.selected().map(|series| series.id.as_str());
    let mut drawn: Vec<&ConfidenceSeries> = app.chart.drawn().collect();
    drawn.sort_by_key(|series| {
        let settled = series.settled().map_or(i64::MAX, |point| point.at.as_micros());
        (Some(series.id.as_str()) == selected, settled)
    });
    drawn
}

/// Returns what was known of a hypothesis at a moment; `None` before it was stated.
fn known_at(series: &ConfidenceSeries, until: Timestamp) -> Option<ConfidenceSeries> {
    let points: Vec<ConfidencePoint> =
        series.points.iter().filter(|point| point.at <= until).cloned().collect();
    let status = points.last()?.status.clone();
    Some(ConfidenceSeries { points, status, ..series.clone() })
}

/// Returns the point after which a hypothesis is no longer drawn: where it was rejected or
/// archived.
fn end(series: &ConfidenceSeries) -> Option<&ConfidencePoint> {
    series.settled().filter(|point| point.status != "confirmed" && series.status != "confirmed")
}

/// Draws the ids of the hypotheses into the top of a frame, with the signs of their status, if
/// there is room beside the first `after` columns.
pub(super) fn legend(app: &App, area: Rect, after: u16, buffer: &mut Buffer) {
    let theme = app.theme;
    let until = app.shown_until().unwrap_or(Timestamp::MAX);
    let all: Vec<ConfidenceSeries> =
        app.chart.series.iter().flatten().filter_map(|one| known_at(one, until)).collect();
    let word = |series: &ConfidenceSeries| {
        let (sign, _) = seal(&series.status, theme);
        format!("{}{}{sign}", series.id, if sign.is_empty() { "" } else { " " })
    };
    let wide: usize = all.iter().map(|series| word(series).width() + 2).sum();
    let wide = u16::try_from(wide).unwrap_or(u16::MAX);
    if all.is_empty() || wide.saturating_add(after + 2) > area.width {
        return;
    }
    let mut rest = Rect { x: area.right() - wide - 1, width: wide, height: 1, y: area.y };
    for series in &all {
        let (sign, tone) = seal(&series.status, theme);
        let style = theme.style(TextTone::of_hypothesis(&series.id));
        rest = put(buffer, rest, &format!(" {} ", series.id), style);
        if !sign.is_empty() {
            rest = put(buffer, rest, sign, theme.style(tone));
        }
    }
}

/// Draws the lines of the hypotheses, with a scale.
pub(super) fn plot(app: &App, axis: &TimeRuler, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let gutter = GUTTER.min(area.width);
    let plot = Rect { x: area.x + gutter, width: area.width - gutter, ..area };
    let rows = usize::from(plot.height);
    if rows < 2 || plot.width < 2 {
        return;
    }
    let scale = if rows >= 9 {
        vec![(0, "1"), (rows / 4, ".75"), (rows / 2, ".5"), (rows * 3 / 4, ".25"), (rows - 1, "0")]
    } else {
        vec![(0, "1"), (rows / 2, ".5"), (rows - 1, "0")]
    };
    for (row, label) in scale {
        put(buffer, below(area, row), &format!("{label:>4} "), theme.style(TextTone::Dim));
    }
    let until = app.shown_until();
    let known: Vec<ConfidenceSeries> = match until {
        Some(until) => in_order(app).into_iter().filter_map(|one| known_at(one, until)).collect(),
        None => Vec::new(),
    };
    let series = if until.is_some() { known.iter().collect() } else { in_order(app) };
    let to = until.map_or(1.0, |until| axis.place(until));
    if theme.ascii {
        for one in &series {
            ascii_line(app, axis, one, to, plot, buffer);
        }
    } else {
        braille(app, axis, &series, to, plot, buffer);
    }
    for one in &series {
        if let Some(point) = one.points.first() {
            name(app, axis, one, point, plot, buffer);
        }
        if let Some(point) = one.settled() {
            let (sign, tone) = seal(&point.status, theme);
            put(buffer, cell(axis, point, plot), sign, theme.style(tone));
        }
    }
    if let Some(time) = selected_time(app) {
        let x = column(axis.place(time), plot.width);
        buffer.set_style(Rect { x: plot.x + x, width: 1, ..plot }, theme.column());
    }
}

/// Returns the row of a value in a plot with four dots in each row, as braille lines have.
fn row_of(value: f64, rows: u16) -> u16 {
    let dots = f64::from(rows.max(1)) * 4.0 - 1.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within rows")]
    let row = ((1.0 - value.clamp(0.0, 1.0)) * dots).round() as u16 / 4;
    row
}

fn cell(axis: &TimeRuler, point: &ConfidencePoint, plot: Rect) -> Rect {
    let x = column(axis.place(point.at), plot.width);
    let y = plot.y + row_of(point.value, plot.height);
    Rect { x: plot.x + x, y, width: 1, height: 1 }
}

/// Writes the id of a hypothesis where it was stated, before its line if there is room. It is left
/// out if it would touch another id.
fn name(
    app: &App,
    axis: &TimeRuler,
    series: &ConfidenceSeries,
    point: &ConfidencePoint,
    plot: Rect,
    buffer: &mut Buffer,
) {
    if plot.height < 9 {
        return;
    }
    let first = cell(axis, point, plot);
    let wide = u16::try_from(series.id.width()).unwrap_or(0);
    let x = first.x.saturating_sub(wide).max(plot.x);
    let place = Rect { x, width: wide.min(plot.right() - x), ..first };
    let is_id = |x: u16| {
        let cell = buffer.cell((x, place.y));
        cell.is_some_and(|cell| cell.symbol().starts_with(char::is_alphanumeric))
    };
    if (x.saturating_sub(1)..=place.right()).any(is_id) {
        return;
    }
    put(buffer, place, &series.id, app.theme.style(TextTone::of_hypothesis(&series.id)));
}

/// Draws the lines with braille dots: each cell has four rows and two columns of dots.
fn braille(
    app: &App,
    axis: &TimeRuler,
    series: &[&ConfidenceSeries],
    to: f64,
    plot: Rect,
    buffer: &mut Buffer,
) {
    let (width, height) = (f64::from(plot.width) * 2.0 - 1.0, f64::from(plot.height) * 4.0 - 1.0);
    let canvas = Canvas::default()
        .marker(Marker::Braille)
        .x_bounds([0.0, width])
        .y_bounds([0.0, height])
        .paint(|context| {
            for one in series {
                let style = app.theme.style(TextTone::of_hypothesis(&one.id));
                let color = style.fg.unwrap_or(Color::Reset);
                let mut draw = |x1: f64, y1: f64, x2: f64, y2: f64| {
                    context.draw(&CanvasLine { x1, y1, x2, y2, color });
                };
                let stop = end(one).map(|point| (axis.place(point.at) * width).round());
                let mut before: Option<(f64, f64)> = None;
                for point in &one.points {
                    let x = (axis.place(point.at) * width).round();
                    let y = (point.value.clamp(0.0, 1.0) * height).round();
                    if before == Some((x, y)) {
                        continue;
                    }
                    if let Some((old_x, old_y)) = before {
                        draw(old_x, old_y, x, old_y);
                        draw(x, old_y, x, y);
                    }
                    before = Some((x, y));
                }
                if let Some((x, y)) = before {
                    draw(x, y, stop.unwrap_or((to * width).round()).max(x), y);
                }
            }
        });
    canvas.render(plot, buffer);
}

/// Draws a line from dashes, bars and corners.
fn ascii_line(
    app: &App,
    axis: &TimeRuler,
    series: &ConfidenceSeries,
    to: f64,
    plot: Rect,
    buffer: &mut Buffer,
) {
    let style = app.theme.style(TextTone::of_hypothesis(&series.id));
    let mut set = |x: u16, y: u16, sign: &str| {
        buffer.set_stringn(plot.x + x, plot.y + y, sign, 1, style);
    };
    let last = column(to, plot.width);
    let stop = end(series).map_or(last, |point| column(axis.place(point.at), plot.width));
    let mut before: Option<(u16, u16)> = None;
    let ends = series
        .points
        .iter()
        .map(|point| (column(axis.place(point.at), plot.width), row_of(point.value, plot.height)));
    for (x, y) in ends {
        if let Some((old_x, old_y)) = before {
            (old_x..x).for_each(|x| set(x, old_y, "-"));
            if y != old_y {
                set(x, old_y, "+");
                (old_y.min(y) + 1..old_y.max(y)).for_each(|y| set(x, y, "|"));
                set(x, y, "+");
            }
        }
        before = Some((x, y));
    }
    if let Some((x, y)) = before {
        (x..=stop.max(x)).for_each(|x| set(x, y, "-"));
    }
}

/// Draws the chart in front: the lines, the events, the last change, the confidences at the
/// selected moment, and the list of hypotheses.
pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let steps: usize = app.chart.drawn().map(|series| series.points.len()).sum();
    let drawn = app.chart.drawn().count();
    let count = app.story.as_ref().map_or(0, |story| story.hypothesis_count);
    let title = format!("c Confidence ─ {drawn} of {count} hypotheses, {steps} changes");
    let right = selected_time(app).map(|time| app.zone.clock(time)).unwrap_or_default();
    let titles = FrameTitles { title, right, ..FrameTitles::default() };
    let inside = frame::draw(buffer, area, true, &titles, theme);
    let Some(story) = &app.story else { return };
    let list = u16::try_from(app.chart.count()).unwrap_or(u16::MAX).min(inside.height / 4);
    let used = lanes::ROWS + CAUSE + list;
    let height = inside.height.saturating_sub(used);
    let labels = if inside.width > 60 { LABELS } else { 0 };
    let plotted = Rect { height, width: inside.width - labels, ..inside };
    let columns = plotted.width.saturating_sub(GUTTER);
    let axis = axis(story, columns);
    plot(app, &axis, plotted, buffer);
    if labels > 0 {
        ends_of_lines(app, Rect { x: plotted.right(), width: labels, ..plotted }, buffer);
    }
    let lane = Rect {
        y: plotted.bottom(),
        height: lanes::ROWS.min(inside.bottom() - plotted.bottom()),
        ..plotted
    };
    lanes::draw(app, story, &axis, lane, buffer);
    let cause =
        Rect { y: lane.bottom(), height: CAUSE.min(inside.bottom() - lane.bottom()), ..inside };
    draw_cause(app, cause, buffer);
    let rest = Rect { y: cause.bottom(), height: inside.bottom() - cause.bottom(), ..inside };
    draw_list(app, rest, buffer);
}

/// Writes the id and the last confidence of each hypothesis beside the end of its line.
fn ends_of_lines(app: &App, area: Rect, buffer: &mut Buffer) {
    let mut ends: Vec<(&ConfidenceSeries, &ConfidencePoint)> = app
        .chart
        .drawn()
        .filter_map(|series| {
            let point = match app.shown_until() {
                Some(until) => series.at(until),
                None => series.points.last(),
            };
            Some((series, point?))
        })
        .collect();
    ends.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let mut next = 0;
    let count = ends.len();
    for (place, (series, point)) in ends.into_iter().enumerate() {
        // Labels that would share a row move down, as far as those after them allow.
        let last = area.height.saturating_sub(u16::try_from(count - place).unwrap_or(0));
        let row = row_of(point.value, area.height).max(next).min(last.max(next));
        next = row + 1;
        let (sign, tone) = seal(&point.status, app.theme);
        let line = below(area, row.into());
        let text = format!(" {} {:.2}", series.id, point.value);
        let rest = put(buffer, line, &text, app.theme.style(TextTone::of_hypothesis(&series.id)));
        put(buffer, rest, sign, app.theme.style(tone));
    }
}

/// Writes the last change at the selected moment, and the confidences at that moment.
fn draw_cause(app: &App, area: Rect, buffer: &mut Buffer) {
    let Some(time) = selected_time(app) else { return };
    let theme = app.theme;
    let steps = app.chart.steps();
    let own = |point: &ConfidencePoint| app.target() == MomentTarget::Sequence(point.sequence);
    let last = steps
        .iter()
        .rev()
        .find(|(_, point)| own(point))
        .or_else(|| steps.iter().rev().find(|(_, point)| point.at <= time));
    if let Some((id, point)) = last {
        let row = app.timeline.rows.iter().find(|row| {
            row.target == MomentTarget::Sequence(point.sequence)
                && row.title.split(' ').next() == Some(id)
        });
        let clock = format!(" {}  ", app.zone.clock(point.at));
        let rest = put(buffer, area, &clock, theme.style(TextTone::Dim));
        let (title, reason) = match row {
            Some(row) => {
                let reason = row.story.as_ref().map_or("", |story| story.reason.as_str());
                (row.title.clone(), reason)
            }
            None => (format!("{id} {:.2}", point.value), ""),
        };
        let rest = put(buffer, rest, &title, theme.style(TextTone::of_hypothesis(id)));
        let rest = put(buffer, rest, "  ", theme.style(TextTone::Plain));
        let first = Rect { height: 1, ..rest };
        put(buffer, first, reason, theme.style(TextTone::Plain));
    }
    let mut rest = put(buffer, below(area, 1), " held then:", theme.style(TextTone::Dim));
    for series in app.chart.series.iter().flatten() {
        let Some(point) = series.at(time) else { continue };
        let (sign, tone) = seal(&point.status, theme);
        let text = format!("  {} {:.2}", series.id, point.value);
        rest = put(buffer, rest, &text, theme.style(TextTone::of_hypothesis(&series.id)));
        rest = put(buffer, rest, sign, theme.style(tone));
    }
    let text = app.chart.selected().map(|series| {
        let at = series.at(time).map(|point| point.status.replace('_', " ")).unwrap_or_default();
        let at = if at.is_empty() { "not stated yet".to_owned() } else { at };
        format!(" {}  {at}: {}", series.id, series.title)
    });
    let lines = [(TextTone::Plain, text.unwrap_or_default())];
    let rows = area.height.min(2);
    let rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    put_lines(buffer, rest, &lines, theme);
}

/// Lists the hypotheses, with a cross before each one that is drawn.
fn draw_list(app: &App, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height);
    let top = (app.chart.cursor + 1).saturating_sub(room);
    let all = app.chart.series.iter().flatten().enumerate().skip(top).take(room);
    for (row, (place, series)) in all.enumerate() {
        let line = below(area, row);
        let theme = app.theme;
        let cross = if app.chart.hidden.contains(&series.id) { ' ' } else { 'x' };
        let mark = if place == app.chart.cursor { theme.glyph("▌", ">") } else { " " };
        let rest = put(buffer, line, mark, theme.style(TextTone::Accent));
        let rest = put(buffer, rest, &format!("[{cross}] "), theme.style(TextTone::Dim));
        let style = theme.style(TextTone::of_hypothesis(&series.id));
        let rest = put(buffer, rest, &format!("{} ", series.id), style);
        let (sign, tone) = seal(&series.status, theme);
        let rest = put(buffer, rest, &format!("{sign:1} "), theme.style(tone));
        put(buffer, rest, &series.title, theme.style(TextTone::Plain));
        if place == app.chart.cursor {
            buffer.set_style(line, theme.cursor(true));
        }
    }
}
