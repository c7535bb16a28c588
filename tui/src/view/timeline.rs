//! The list of moments.

use super::ago;
use super::branch_graph::BranchGraph;
use super::canvas::{below, put, put_lines};
use crate::answer::{RowSign, TimelineRow};
use crate::app::{App, PaneFocus};
use crate::effect::MomentTarget;
use crate::theme::{TextTone, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Returns the sign of a row.
pub(super) fn glyph(sign: RowSign, theme: Theme) -> &'static str {
    match sign {
        RowSign::Head => theme.glyph("○", "@"),
        RowSign::Manual => theme.glyph("◆", "#"),
        RowSign::Automatic => theme.glyph("◇", "o"),
        RowSign::Scheduled => theme.glyph("◷", "t"),
        RowSign::Compaction => "C",
        RowSign::Revision => theme.glyph("•", "."),
        RowSign::Status => "!",
        RowSign::Restore => theme.glyph("↶", "<"),
        RowSign::Merge => "M",
        RowSign::Fact => theme.glyph("·", "-"),
        RowSign::Passed => theme.glyph("✓", "v"),
        RowSign::Failed => theme.glyph("✗", "x"),
    }
}

const fn tone(row: &TimelineRow) -> TextTone {
    match (row.sign, row.weight) {
        (RowSign::Failed, _) => TextTone::Bad,
        (RowSign::Passed, _) => TextTone::Good,
        (RowSign::Compaction, _) => TextTone::Warning,
        (RowSign::Fact, 0) => TextTone::Dim,
        (_, 3) => TextTone::Heading,
        _ => TextTone::Plain,
    }
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let timeline = &app.timeline;
    if timeline.rows.is_empty() {
        let said = if timeline.loading {
            "looking ..."
        } else if timeline.typed.is_empty() {
            "nothing here yet"
        } else {
            "nothing passes the filter: <esc> clears it"
        };
        put_lines(buffer, area, &[(TextTone::Dim, said.to_owned())], app.theme);
        return;
    }
    let graph = BranchGraph::from_branches(&app.session.lines, &app.session.branch);
    let shown = timeline.rows.iter().enumerate().skip(timeline.top).take(area.height.into());
    for (place, row) in shown {
        let line = below(area, place - timeline.top);
        let newer = place.checked_sub(1).and_then(|newer| timeline.rows.get(newer));
        draw_row(app, &graph, row, newer, line, buffer);
        if place == timeline.cursor {
            buffer.set_style(line, app.theme.cursor(app.focus == PaneFocus::Timeline));
        }
    }
}

fn draw_row(
    app: &App,
    graph: &BranchGraph<'_>,
    row: &TimelineRow,
    newer: Option<&TimelineRow>,
    line: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.theme;
    let here = app.target() == row.target && app.row().is_some_and(|one| one.place == row.place);
    let marked = app.mark == Some(row.target);
    let pointer = match (here, marked) {
        (true, true) => "M",
        (true, false) => ">",
        (false, true) => "m",
        (false, false) => " ",
    };
    let mut rest = put(buffer, line, pointer, theme.style(TextTone::Warning));
    let cells = graph.cells(row, newer, glyph(row.sign, theme), theme);
    // A narrow window has no room for all lanes.
    let room = usize::from(line.width / 4).max(2);
    let cells: String = cells.chars().take(room).collect();
    rest = put(buffer, rest, &cells, theme.style(TextTone::Id));
    let weight = match row.weight {
        3 => theme.glyph("★", "*"),
        2 => theme.glyph("•", "+"),
        _ => " ",
    };
    rest = put(buffer, rest, weight, theme.style(TextTone::Warning));
    if line.width >= 34 {
        let ago = format!("{:>7} ", ago(row.place.time, app.now));
        rest = put(buffer, rest, &ago, theme.style(TextTone::Dim));
    }
    if line.width >= 44 {
        let time = app.zone.show(row.place.time);
        let part = if line.width >= 64 { 5..19 } else { 11..16 };
        let time = format!("{} ", time.get(part).unwrap_or(&time));
        rest = put(buffer, rest, &time, theme.style(TextTone::Dim));
    }
    if let MomentTarget::Sequence(sequence) = row.target
        && line.width >= 70
    {
        rest = put(buffer, rest, &format!("#{sequence} "), theme.style(TextTone::Id));
    }
    rest = put(buffer, rest, &row.title, theme.style(tone(row)));
    if !row.tags.is_empty() {
        rest =
            put(buffer, rest, &format!("  [{}]", row.tags.join(" ")), theme.style(TextTone::Tag));
    }
    if !row.by.is_empty() {
        rest = put(buffer, rest, &format!("  {}", row.by), theme.style(TextTone::Dim));
    }
    if row.branch != app.session.branch {
        put(buffer, rest, &format!("  on {}", row.branch), theme.style(TextTone::Dim));
    }
}
