//! Draws the pane in front of the others.

use super::canvas::{below, clear, put, put_lines, put_wrapped};
use super::frame::{self, FrameTitles};
use super::{chart, popup};
use crate::answer::SessionRow;
use crate::app::App;
use crate::effect::WriteRequest;
use crate::layout::WindowLayout;
use crate::panes::{OverlayPane, SheetPane};
use crate::sheet;
use crate::theme::TextTone;
use crate::worker::MAX_SESSIONS;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(app: &App, buffer: &mut Buffer) {
    // A text input is drawn in the bottom line: the pane behind it stays visible.
    let front = app.overlays.iter().rev().find(|front| !matches!(front, OverlayPane::Input { .. }));
    let Some(front) = front else { return };
    let area = match front {
        OverlayPane::Help { .. } | OverlayPane::Find(_) => WindowLayout::popup(app),
        _ => WindowLayout::front(app),
    };
    let area = area.intersection(buffer.area);
    clear(buffer, area);
    match front {
        OverlayPane::Sheet(reading) => draw_sheet(app, reading, "reading ...", area, buffer),
        OverlayPane::Confirm { change, reading } => {
            let waiting = match change {
                WriteRequest::Undo | WriteRequest::Redo => "looking ...",
                _ => "comparing ...",
            };
            draw_sheet(app, reading, waiting, area, buffer);
        }
        OverlayPane::Charts => chart::draw(app, area, buffer),
        OverlayPane::Sessions { rows, unpushed, cursor } => {
            draw_sessions(app, (rows.as_deref(), unpushed), *cursor, area, buffer);
        }
        OverlayPane::Help { mode, typed, cursor } => {
            popup::help(app, *mode, typed, *cursor, area, buffer);
        }
        OverlayPane::Find(find) => popup::find(app, find, area, buffer),
        OverlayPane::Input { .. } => {}
    }
}

fn draw_sessions(
    app: &App,
    (rows, unpushed): (Option<&[SessionRow]>, &[String]),
    cursor: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.theme;
    let title = "s Sessions, the latest first".to_owned();
    // There may be more sessions than the list has room for.
    let of = |count| if count < MAX_SESSIONS { "of" } else { "of the latest" };
    let at = |rows: &[SessionRow]| {
        format!("{} {} {}", (cursor + 1).min(rows.len()), of(rows.len()), rows.len())
    };
    let right = rows.map(at).unwrap_or_default();
    let titles = FrameTitles { title, right, below: unpushed.join("; ") };
    let inside = frame::draw(buffer, area, true, &titles, theme);
    let Some(rows) = rows.filter(|rows| !rows.is_empty()) else {
        let text = if rows.is_some() { "the store has no sessions yet" } else { "reading ..." };
        return put_lines(buffer, inside, &[(TextTone::Dim, text.to_owned())], theme);
    };
    let room = usize::from(inside.height).max(1);
    let top = (cursor + 1).saturating_sub(room);
    for (place, row) in rows.iter().enumerate().skip(top).take(room) {
        let line = below(inside, place - top);
        let mark = match (place == cursor, row.current) {
            (true, _) => theme.glyph("▌ ", "> "),
            (false, true) => "* ",
            (false, false) => "  ",
        };
        let rest = put(buffer, line, mark, theme.style(TextTone::Accent));
        let mut rest = put(buffer, rest, &row.name, theme.style(TextTone::Heading));
        if !row.unpushed.is_empty() {
            let text = format!("  {}", row.unpushed);
            rest = put(buffer, rest, &text, theme.style(TextTone::Warning));
        }
        put(buffer, rest, &format!("  {}", row.about), theme.style(TextTone::Dim));
        if place == cursor {
            buffer.set_style(line, theme.cursor(true));
        }
    }
}

/// Draws a sheet, or the text `waiting` while it loads.
fn draw_sheet(app: &App, reading: &SheetPane, waiting: &str, area: Rect, buffer: &mut Buffer) {
    let Some(text) = &reading.sheet else {
        let inside = frame::draw(buffer, area, true, &FrameTitles::default(), app.theme);
        put_lines(buffer, inside, &[(TextTone::Warning, waiting.to_owned())], app.theme);
        return;
    };
    let inside = WindowLayout::inside(area);
    let lines = sheet::wrap_sheet(text, inside.width);
    let rows = usize::from(inside.height);
    let right = if lines.len() > rows {
        format!("line {} of {}", reading.cursor + 1, lines.len())
    } else {
        String::new()
    };
    let command = &text.command;
    let below_text = if command.is_empty() { String::new() } else { format!("$ {command}") };
    let titles = FrameTitles { title: text.title.clone(), right, below: below_text };
    let inside = frame::draw(buffer, area, true, &titles, app.theme);
    put_wrapped(buffer, inside, &lines, reading.top, app.theme);
    if let Some(row) = reading.cursor.checked_sub(reading.top).filter(|row| *row < rows) {
        buffer.set_style(below(inside, row), app.theme.cursor(true));
    }
}
