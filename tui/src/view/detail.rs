//! Draws the details of the selection.

use super::canvas::{below, put, put_lines, put_wrapped};
use super::frame::{self, FrameTitles};
use crate::app::App;
use crate::layout::WindowLayout;
use crate::panes::PaneFocus;
use crate::sheet::wrap_sheet;
use crate::theme::TextTone;
use forge_store::story::DigestLine;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    if let Some(digest) = shown_digest(app) {
        return draw_digest(app, digest, area, buffer);
    }
    let focused = app.focus == PaneFocus::Detail && app.overlays.is_empty();
    let sheet = app.detail.sheet.as_ref();
    let name = if app.comparing { "Changed between" } else { "Detail" };
    let title = match sheet.map(|sheet| sheet.title.as_str()) {
        Some(title) if !app.comparing && !title.is_empty() => {
            format!("2 {name} ─ {}", super::canvas::shortened(title, usize::from(area.width / 2)))
        }
        _ => format!("2 {name}"),
    };
    let inside = WindowLayout::inside(area);
    let lines = sheet.map(|sheet| wrap_sheet(sheet, inside.width)).unwrap_or_default();
    let rows = usize::from(inside.height);
    let right = if lines.len() > rows {
        let end = (app.detail.top + rows).min(lines.len());
        format!("{}–{end} of {}", app.detail.top + 1, lines.len())
    } else {
        String::new()
    };
    let below = match sheet {
        Some(sheet) if !sheet.command.is_empty() => format!("$ {}", sheet.command),
        _ => String::new(),
    };
    let inside =
        frame::draw(buffer, area, focused, &FrameTitles { title, right, below }, app.theme);
    if sheet.is_none() {
        let text = if app.timeline.rows.is_empty() { "nothing is selected" } else { "reading ..." };
        put_lines(buffer, inside, &[(TextTone::Dim, text.to_owned())], app.theme);
        return;
    }
    put_wrapped(buffer, inside, &lines, app.detail.top, app.theme);
}

/// Returns the digest of the session if it is shown instead of the details: in a narrow window,
/// while the story has the focus and its newest row stays selected.
fn shown_digest(app: &App) -> Option<&[DigestLine]> {
    let at_end = app.timeline.following && app.timeline.is_story() && !app.comparing;
    let story = app.story.as_ref()?;
    let shown = at_end && app.focus == PaneFocus::Story && WindowLayout::is_narrow(app);
    Some(&*story.summary.digest).filter(|digest| shown && !digest.is_empty())
}

fn draw_digest(app: &App, digest: &[DigestLine], area: Rect, buffer: &mut Buffer) {
    const LABEL_COLUMNS: usize = 11;
    let title = "2 Summary".to_owned();
    let titles = FrameTitles { title, right: "<tab> this row".to_owned(), below: String::new() };
    let inside = frame::draw(buffer, area, false, &titles, app.theme);
    for (place, row) in digest.iter().take(inside.height.into()).enumerate() {
        let label = format!("{:LABEL_COLUMNS$}", row.label);
        let rest = put(buffer, below(inside, place), &label, app.theme.style(TextTone::Heading));
        put(buffer, rest, &row.text, app.theme.style(TextTone::Plain));
    }
}
