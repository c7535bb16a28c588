//! Charts made of letters: each hypothesis has its own letter.

use super::canvas::{below, put};
use super::strip;
use crate::answer::ChartValues;
use crate::app::{App, ChartsPane};
use crate::layout::WindowLayout;
use crate::theme::TextTone;
use forge_store::model::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The width of the scale to the left of a chart.
const SCALE: u16 = 10;

/// The letters of the hypotheses, in the order of the data.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) fn draw(
    app: &App,
    charts: &ChartsPane,
    data: &ChartValues,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.theme;
    let parts = WindowLayout::chart(area, data.confidence.len());
    let drawn = format!("  ({} of {} drawn)", charts.chosen.len(), data.confidence.len());
    let rest = put(buffer, area, "confidence over time", theme.style(TextTone::Heading));
    put(buffer, rest, &drawn, theme.style(TextTone::Dim));
    plot(app, charts, data, parts.plot, buffer);
    list(app, charts, data, parts.list, buffer);
    let area = parts.below;
    let columns = usize::from(area.width.saturating_sub(SCALE));
    let mut marks = |label: &str, times: &[Timestamp], tone: TextTone, line: usize| {
        let rest =
            put(buffer, below(area, line), &format!("{label:<10}"), theme.style(TextTone::Dim));
        let mut counts = vec![0_u32; columns];
        for time in times {
            if let Some(count) = place(*time, data, columns).and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        let text: String = counts
            .iter()
            .map(|count| match count {
                0 => theme.glyph("·", ".").to_owned(),
                1..=9 => count.to_string(),
                _ => "+".to_owned(),
            })
            .collect();
        put(buffer, rest, &text, theme.style(tone));
    };
    marks("passed", &data.activity.passes, TextTone::Good, 0);
    marks("failed", &data.activity.failures, TextTone::Bad, 1);
    let rest = put(buffer, below(area, 2), "activity  ", theme.style(TextTone::Dim));
    let counts = &data.activity.counts;
    let text: String = (0..columns)
        .map(|column| {
            let from = column * counts.len() / columns.max(1);
            strip::bar(counts.get(from).copied().unwrap_or(0), theme.ascii)
        })
        .collect();
    put(buffer, rest, &text, theme.style(TextTone::Id));
    let span = format!("{:10}{} to {}", "", app.zone.show(data.from), app.zone.show(data.to));
    put(buffer, below(area, 3), &span, theme.style(TextTone::Dim));
}

/// Draws the list of hypotheses, with a cross for those in the chart.
fn list(app: &App, charts: &ChartsPane, data: &ChartValues, area: Rect, buffer: &mut Buffer) {
    let listed = data.confidence.iter().zip(LETTERS.chars()).enumerate();
    for (row, (place, (series, letter))) in
        listed.skip(charts.top).take(area.height.into()).enumerate()
    {
        let line = below(area, row);
        let cross = if charts.chosen.contains(&place) { 'x' } else { ' ' };
        let last = series.points.last().map_or(0.0, |(_, value)| *value);
        let text = format!("[{cross}] {letter} {} {last:.2} ({}) ", series.id, series.status);
        let mark = if place == charts.cursor { "> " } else { "  " };
        let rest = put(buffer, line, mark, app.theme.style(TextTone::Warning));
        let rest = put(buffer, rest, &text, app.theme.style(TextTone::Id));
        put(buffer, rest, &series.title, app.theme.style(TextTone::Plain));
        if place == charts.cursor {
            buffer.set_style(line, app.theme.cursor(true));
        }
    }
}

/// Returns the column of a time.
fn place(time: Timestamp, data: &ChartValues, columns: usize) -> Option<usize> {
    let span = i128::from(data.to.micros_since(data.from)).max(1);
    let offset = i128::from(time.micros_since(data.from)).clamp(0, span);
    usize::try_from(offset * columns.saturating_sub(1) as i128 / span).ok()
}

/// Draws each hypothesis as a line of its letter, which is level until the value changes.
fn plot(app: &App, charts: &ChartsPane, data: &ChartValues, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    if data.confidence.is_empty() {
        put(buffer, area, "no hypotheses at this moment", theme.style(TextTone::Dim));
        return;
    }
    let rows = usize::from(area.height);
    let columns = usize::from(area.width.saturating_sub(SCALE));
    if rows < 2 || columns < 2 {
        return;
    }
    for (row, label) in [(0, "1.0"), (rows / 2, "0.5"), (rows - 1, "0.0")] {
        put(buffer, below(area, row), &format!("{label:>8} "), theme.style(TextTone::Dim));
    }
    let chosen = data.confidence.iter().zip(LETTERS.chars()).enumerate();
    for (_, (series, letter)) in chosen.filter(|(place, _)| charts.chosen.contains(place)) {
        let mut value = None;
        let mut points = series.points.iter().peekable();
        for column in 0..columns {
            while let Some((_, new)) = points
                .next_if(|(time, _)| place(*time, data, columns).is_some_and(|at| at <= column))
            {
                value = Some(*new);
            }
            let Some(value) = value else { continue };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "within rows"
            )]
            let down = ((1.0 - value.clamp(0.0, 1.0)) * (rows - 1) as f64).round() as usize;
            let x = area.x + SCALE + u16::try_from(column).unwrap_or(0);
            let cell = Rect { x, width: 1, ..below(area, down) };
            put(buffer, cell, &letter.to_string(), theme.style(TextTone::Id));
        }
    }
}
