//! Draws the events on the axis of time: a row each for prompts, checks and edits, and the times
//! below.

use super::canvas::{below, put};
use super::time::{GUTTER, column, selected_time, short_distance};
use crate::app::App;
use crate::story_view::{AxisEventKind, StoryView};
use crate::theme::TextTone;
use forge_store::model::Timestamp;
use forge_store::story::TimeRuler;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The number of rows: prompts, checks, edits, times, and the selected time.
pub(super) const ROWS: u16 = 5;
/// The number of columns between two times.
const TICK: u16 = 16;
/// From this number of pauses on, the days are more important than the lengths of the pauses.
const MANY_PAUSES: usize = 12;

pub(super) fn draw(
    app: &App,
    story: &StoryView,
    axis: &TimeRuler,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.theme;
    let gutter = GUTTER.min(area.width);
    let strip = Rect { x: area.x + gutter, width: area.width - gutter, ..area };
    for (row, name) in ["you", "chk", "edit"].into_iter().enumerate() {
        put(buffer, below(area, row), &format!(" {name}"), theme.style(TextTone::Dim));
    }
    let cell = |x: u16, row: usize| Rect { x: strip.x + x, width: 1, ..below(strip, row) };
    for pause in axis.pauses() {
        let x = column(pause.middle(), strip.width);
        for row in 0..3 {
            put(buffer, cell(x, row), theme.glyph("┊", ":"), theme.style(TextTone::Dim));
        }
    }
    // The later kinds are drawn over the earlier ones.
    let kinds = [
        (AxisEventKind::Prompt, 0, theme.glyph("●", "o"), TextTone::Accent),
        (AxisEventKind::Passed, 1, theme.glyph("✓", "v"), TextTone::Good),
        (AxisEventKind::Failed, 1, theme.glyph("✗", "x"), TextTone::Bad),
        (AxisEventKind::Edit, 2, theme.glyph("±", "~"), TextTone::Edit),
        (AxisEventKind::Commit, 2, theme.glyph("◆", "#"), TextTone::Accent),
        (AxisEventKind::Compaction, 4, "C", TextTone::Accent),
    ];
    for (kind, row, sign, tone) in kinds {
        // Events of one kind in one column have one sign.
        let mut columns = vec![false; usize::from(strip.width)];
        let until = app.shown_until().unwrap_or(Timestamp::MAX);
        let shown = story.events.iter().filter(|event| event.kind == kind && event.at <= until);
        for event in shown {
            let x = column(axis.place(event.at), strip.width);
            if let Some(seen) = columns.get_mut(usize::from(x)) {
                *seen = true;
            }
        }
        for (x, _) in (0..strip.width).zip(columns).filter(|(_, seen)| *seen) {
            put(buffer, cell(x, row), sign, theme.style(tone));
        }
    }
    times(app, axis, Rect { height: 1, ..below(strip, 3) }, buffer);
    if let Some(time) = selected_time(app) {
        let x = column(axis.place(time), strip.width);
        put(buffer, cell(x, 4), theme.glyph("▲", "^"), theme.style(TextTone::Heading));
        let label = format!(" {}", app.zone.clock(time));
        let after =
            Rect { x: strip.x + x + 1, width: strip.width.saturating_sub(x + 1), ..cell(x, 4) };
        let is_free = (0..6).all(|offset| {
            buffer.cell((after.x + offset, after.y)).is_none_or(|cell| cell.symbol() == " ")
        });
        if is_free {
            put(buffer, after, &label, theme.style(TextTone::Dim));
        }
        for row in 0..3 {
            buffer.set_style(cell(x, row), theme.column());
        }
    }
}

/// Draws the times below the axis, and the lengths of shortened pauses.
fn times(app: &App, axis: &TimeRuler, line: Rect, buffer: &mut Buffer) {
    let style = app.theme.style(TextTone::Dim);
    if line.height == 0 {
        return;
    }
    let mut taken = vec![false; usize::from(line.width)];
    let mut write = |x: u16, text: &str, buffer: &mut Buffer| {
        let length = text.chars().count();
        let range = usize::from(x)..usize::from(x) + length;
        let around = usize::from(x).saturating_sub(1)..usize::from(x) + length + 1;
        let fits = range.end <= taken.len()
            && taken
                .get(around.start..around.end.min(taken.len()))
                .is_some_and(|cells| cells.iter().all(|taken| !taken));
        if fits {
            range.for_each(|place| {
                if let Some(cell) = taken.get_mut(place) {
                    *cell = true;
                }
            });
            let place = Rect { x: line.x + x, width: line.width - x, ..line };
            put(buffer, place, text, style);
        }
    };
    let pauses = axis.pauses().map(|pause| {
        let label = format!("|{}|", short_distance(pause.micros));
        let half = u16::try_from(label.len() / 2).unwrap_or(0);
        (column(pause.middle(), line.width).saturating_sub(half), label)
    });
    let pauses: Vec<(u16, String)> = pauses.collect();
    let mut starts = Vec::new();
    let mut day = String::new();
    for period in axis.periods() {
        let time = period.from;
        let own = app.zone.day(time, app.now);
        let text = match own.split(' ').take(3).collect::<Vec<_>>().as_slice() {
            [_, date, month] if own != day && !day.is_empty() => format!("{date} {month}"),
            _ => app.zone.clock(time),
        };
        day = own;
        starts.push((column(period.start, line.width), text));
    }
    // Among many pauses, there is no room for both.
    let labels = if pauses.len() < MANY_PAUSES { [pauses, starts] } else { [starts, pauses] };
    for (x, text) in labels.iter().flatten() {
        write(*x, text, buffer);
    }
    let mut x = TICK;
    // A minute is written once.
    let minute = |time: Timestamp| time.as_micros().div_euclid(60_000_000);
    let mut written: Vec<i64> = axis.periods().iter().map(|period| minute(period.from)).collect();
    while x + 5 < line.width {
        let place = f64::from(x) / f64::from(line.width - 1);
        let is_in_pause = axis.pauses().any(|pause| pause.start <= place && place <= pause.end());
        let time = axis.time(place).filter(|_| !is_in_pause);
        if let Some(time) = time.filter(|time| !written.contains(&minute(*time))) {
            written.push(minute(time));
            write(x, &app.zone.clock(time), buffer);
        }
        x += TICK;
    }
}
