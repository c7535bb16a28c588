//! Draws the axis of time at the bottom: confidence, events, and where the selection is.

use super::canvas::{below, put};
use super::frame::{self, FrameTitles};
use super::{chart, lanes};
use crate::app::App;
use crate::effect::MomentTarget;
use crate::layout::WindowLayout;
use crate::panes::PaneFocus;
use crate::story_view::{AxisEventKind, StoryView, ruler_shape};
use crate::theme::TextTone;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use forge_store::story::TimeRuler;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// The number of columns before the axis, with the names of its rows.
pub(super) const GUTTER: u16 = 5;
/// The number of columns of a shortened pause: its length between two bars.
const FOLD_COLUMNS: f64 = 5.0;
/// The number of columns for the counts beside the axis in its one-line form.
const COUNTS: u16 = 24;

/// Returns the area of the axis without the columns for names or counts.
fn strip_area(area: Rect) -> Rect {
    if area.height == 1 {
        return Rect { width: area.width.saturating_sub(COUNTS), ..area };
    }
    let gutter = GUTTER.min(area.width);
    Rect { x: area.x + gutter, width: area.width - gutter, ..area }
}

/// Returns the axis of a story that is this many columns wide.
pub(super) fn axis(story: &StoryView, columns: u16) -> TimeRuler {
    TimeRuler::new(&story.periods, ruler_shape(FOLD_COLUMNS / f64::from(columns.max(1))))
}

/// Returns the column of a place on an axis that is this many columns wide.
pub(super) fn column(place: f64, columns: u16) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within columns")]
    let column = (place.clamp(0.0, 1.0) * f64::from(columns.saturating_sub(1))).round() as u16;
    column.min(columns.saturating_sub(1))
}

/// Returns the time at a column of the window.
pub(crate) fn time_at(app: &App, x: u16) -> Option<Timestamp> {
    let area = strip_area(WindowLayout::inside(WindowLayout::from_app(app).time));
    let offset = x.checked_sub(area.x).filter(|offset| *offset < area.width)?;
    let place = f64::from(offset) / f64::from(area.width.saturating_sub(1).max(1));
    match &app.story {
        Some(story) => axis(story, area.width).time(place),
        None => {
            let strip = app.strip.as_ref()?;
            let span = strip.to.micros_since(strip.from) as f64;
            #[expect(clippy::cast_possible_truncation, reason = "within the session")]
            let micros = (span * place) as i64;
            Some(strip.from.plus_micros(micros))
        }
    }
}

pub(super) fn selected_time(app: &App) -> Option<Timestamp> {
    app.row().map(|row| row.place.time)
}

/// Formats a length of time in few letters: `18h`.
pub(super) fn short_distance(micros: i64) -> String {
    let minutes = micros / 60_000_000;
    match minutes {
        0..=99 => format!("{minutes}m"),
        100..=5_999 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width < 8 {
        return;
    }
    if area.height < 4 {
        return one_line(app, area, buffer);
    }
    let focused = app.focus == PaneFocus::Time && app.overlays.is_empty();
    let pause = app.story.as_ref().map_or(0, |story| story.longest_pause);
    let cut = app.story.as_ref().and_then(|story| story.cut);
    let since = cut.map(|cut| format!(" since #{}", cut.sequence)).unwrap_or_default();
    let title = if pause > 0 {
        format!("4 Time ─ longest pause{since} {}", describe_distance(pause))
    } else {
        format!("4 Time{since}")
    };
    let titles = FrameTitles { title: title.clone(), ..FrameTitles::default() };
    let inside = frame::draw(buffer, area, focused, &titles, app.theme);
    chart::legend(app, area, u16::try_from(title.width()).unwrap_or(0) + 4, buffer);
    let Some(story) = &app.story else {
        let said = if app.story_loading { "reading ..." } else { "v reads the story" };
        put(buffer, below(inside, 1), said, app.theme.style(TextTone::Dim));
        return raw_line(app, Rect { height: 1, ..inside }, buffer);
    };
    let rows = lanes::ROWS.min(inside.height);
    let plot = Rect { height: inside.height - rows, ..inside };
    let lane = Rect { y: plot.bottom(), height: rows, ..inside };
    let axis = axis(story, strip_area(inside).width);
    if plot.height >= 3 && app.chart.count() > 0 {
        chart::plot(app, &axis, plot, buffer);
    }
    lanes::draw(app, story, &axis, lane, buffer);
}

/// The bars by height. Each bar means twice the count of the bar before.
const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_BARS: [&str; 9] = [" ", ".", ".", ":", ":", "|", "|", "#", "#"];

fn bar(count: u32, ascii: bool) -> &'static str {
    let height = (32 - count.leading_zeros()) as usize;
    let bars = if ascii { &ASCII_BARS } else { &BARS };
    bars.get(height.min(8)).copied().unwrap_or(" ")
}

/// Draws activity over time in one line, with the shortened pauses, and counts beside it.
fn one_line(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let strip = strip_area(Rect { height: 1, ..area });
    let Some(story) = &app.story else { return raw_line(app, area, buffer) };
    let axis = axis(story, strip.width);
    let mut counts = vec![0_u32; usize::from(strip.width)];
    for event in &story.events {
        if let Some(count) = counts.get_mut(usize::from(column(axis.place(event.at), strip.width)))
        {
            *count += event.count;
        }
    }
    let cell = |x: u16| Rect { x: strip.x + x, width: 1, ..strip };
    for (x, count) in (0..strip.width).zip(&counts) {
        put(buffer, cell(x), bar(*count, theme.ascii), theme.style(TextTone::Edit));
    }
    for pause in axis.pauses() {
        let (from, to) = (column(pause.start, strip.width) + 1, column(pause.end(), strip.width));
        let wide = to.saturating_sub(from).max(1);
        let label = format!("|{}|", short_distance(pause.micros));
        let label = if label.len() > usize::from(wide) { theme.glyph("┊", ":") } else { &label };
        let place = Rect { x: strip.x + from, width: wide, ..strip };
        put(buffer, place, label, theme.style(TextTone::Dim));
    }
    let mut compactions = 0;
    for event in &story.events {
        if event.kind == AxisEventKind::Compaction {
            compactions += event.count;
            let x = column(axis.place(event.at), strip.width);
            put(buffer, cell(x), "C", theme.style(TextTone::Accent));
        }
    }
    if let Some(time) = selected_time(app) {
        let x = column(axis.place(time), strip.width);
        buffer.set_style(cell(x), theme.cursor(true).patch(theme.matched()));
        let symbol = buffer.cell((cell(x).x, strip.y)).map_or(" ", |cell| cell.symbol());
        if symbol == " " {
            put(buffer, cell(x), "^", theme.style(TextTone::Heading));
        }
    }
    let summary = &story.summary;
    let mut rest = Rect { x: strip.right(), width: area.right() - strip.right(), ..strip };
    let failed = story.events.iter().filter(|one| one.kind == AxisEventKind::Failed);
    let commits = u32::try_from(summary.commits).unwrap_or(u32::MAX);
    let parts = [
        (failed.map(|one| one.count).sum(), theme.glyph("✗", "x"), TextTone::Bad),
        (compactions, "C", TextTone::Accent),
        (commits, theme.glyph("◆", "#"), TextTone::Accent),
    ];
    for (count, sign, tone) in parts.into_iter().filter(|(count, _, _)| *count > 0) {
        rest = put(buffer, rest, &format!("  {sign} "), theme.style(tone));
        rest = put(buffer, rest, &count.to_string(), theme.style(TextTone::Dim));
    }
}

/// Draws the activity of a session whose story has not been read.
fn raw_line(app: &App, area: Rect, buffer: &mut Buffer) {
    let Some(activity) = app.strip.as_ref().map(|strip| &strip.activity) else { return };
    let area = strip_area(area);
    let period_count = activity.counts.len().max(1);
    for x in 0..area.width {
        let place = usize::from(x) * period_count / usize::from(area.width);
        let count = activity.counts.get(place).copied().unwrap_or(0);
        let cell = Rect { x: area.x + x, width: 1, ..below(area, 0) };
        put(buffer, cell, bar(count, app.theme.ascii), app.theme.style(TextTone::Edit));
    }
    let here = selected_time(app).zip(app.strip.as_ref());
    if let Some((time, strip)) = here.filter(|_| app.target() != MomentTarget::Head) {
        let span = (strip.to.micros_since(strip.from) as f64).max(1.0);
        let x = column(time.micros_since(strip.from) as f64 / span, area.width);
        let cell = Rect { x: area.x + x, width: 1, ..area };
        buffer.set_style(cell, app.theme.cursor(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_height_of_an_activity_bar_grows_by_one_with_each_doubling() {
        let bars: String = [0, 1, 2, 4, 8, 16, 32, 64, 128].map(|count| bar(count, false)).concat();
        assert_eq!(bars, BARS.concat());
    }

    #[test]
    fn a_duration_is_shown_with_one_short_unit() {
        let short: Vec<String> = [24, 99, 100, 1080, 5999, 9000]
            .map(|minutes| short_distance(minutes * 60_000_000))
            .into();
        assert_eq!(short, ["24m", "99m", "1h", "18h", "99h", "6d"]);
    }
}
