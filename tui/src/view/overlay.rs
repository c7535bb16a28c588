//! Draws the panes in front of the timeline and the state.

use super::canvas::{below, put, put_lines};
use super::chart;
use crate::app::{App, ChartsPane, OverlayPane, SheetPane};
use crate::effect::WriteRequest;
use crate::layout::WindowLayout;
use crate::sheet;
use crate::theme::TextTone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(app: &App, buffer: &mut Buffer) {
    // A text input is drawn in the status line; the pane below it stays visible.
    let front = app.fronts.iter().rev().find(|front| !matches!(front, OverlayPane::Input { .. }));
    let Some(front) = front else { return };
    let area = WindowLayout::front(app).intersection(buffer.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
    match front {
        OverlayPane::Sheet(reading) => read(app, reading, "reading ...", area, buffer),
        OverlayPane::Confirm { change, reading } => {
            let question = match change {
                WriteRequest::Undo => "undo the last operation?",
                WriteRequest::Redo => "redo what the last undo reverted?",
                _ => "comparing ...",
            };
            read(app, reading, question, area, buffer);
        }
        OverlayPane::Charts(ChartsPane { data: None, .. })
        | OverlayPane::Sessions { rows: None, .. } => {
            put_lines(buffer, area, &[(TextTone::Dim, "reading ...".to_owned())], app.theme);
        }
        OverlayPane::Charts(charts @ ChartsPane { data: Some(data), .. }) => {
            chart::draw(app, charts, data, area, buffer);
        }
        OverlayPane::Sessions { rows: Some(rows), cursor } => {
            put(buffer, area, "sessions, the latest first", app.theme.style(TextTone::Heading));
            let room = usize::from(area.height.saturating_sub(1)).max(1);
            let top = (cursor + 1).saturating_sub(room);
            for (place, row) in rows.iter().enumerate().skip(top).take(room) {
                let line = below(area, 1 + place - top);
                let mark = match (place == *cursor, row.current) {
                    (true, _) => "> ",
                    (false, true) => "* ",
                    (false, false) => "  ",
                };
                let rest = put(buffer, line, mark, app.theme.style(TextTone::Warning));
                let rest = put(buffer, rest, &row.name, app.theme.style(TextTone::Id));
                put(buffer, rest, &format!("  {}", row.about), app.theme.style(TextTone::Plain));
                if place == *cursor {
                    buffer.set_style(line, app.theme.cursor(true));
                }
            }
        }
        OverlayPane::Input { .. } => {}
    }
}

fn read(app: &App, reading: &SheetPane, waiting: &str, area: Rect, buffer: &mut Buffer) {
    let Some(text) = &reading.sheet else {
        put_lines(buffer, area, &[(TextTone::Warning, waiting.to_owned())], app.theme);
        return;
    };
    let lines = sheet::wrap_sheet(text, area.width);
    let rows = usize::from(area.height.saturating_sub(1));
    let more = if lines.len() > rows {
        format!("  (line {} of {})", reading.cursor + 1, lines.len())
    } else {
        String::new()
    };
    let rest = put(buffer, area, &text.title, app.theme.style(TextTone::Heading));
    put(buffer, rest, &more, app.theme.style(TextTone::Dim));
    for (place, line) in lines.iter().enumerate().skip(reading.top).take(rows) {
        let row = below(area, 1 + place - reading.top);
        put(buffer, row, &line.text, app.theme.style(line.tone));
        if place == reading.cursor {
            buffer.set_style(row, app.theme.cursor(true));
        }
    }
}
