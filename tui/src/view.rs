//! Drawing. Reads the browser's state and writes only cells.

mod branch_graph;
mod canvas;
mod chart;
mod overlay;
mod state;
mod strip;
mod timeline;

use crate::app::{App, AppStage, InputPurpose, OverlayPane};
use crate::effect::MomentTarget;
use crate::layout::WindowLayout;
use crate::theme::TextTone;
use canvas::{put, put_lines};
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the browser.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    // The window may have changed since its last resize event.
    let area = frame.area();
    if (area.width, area.height) == (app.width, app.height) {
        render(app, frame.buffer_mut());
    } else {
        let app = App { width: area.width, height: area.height, ..app.clone() };
        render(&app, frame.buffer_mut());
    }
}

/// Draws the browser into a buffer.
pub fn render(app: &App, buffer: &mut Buffer) {
    let layout = WindowLayout::from_app(app);
    header(app, layout.header, buffer);
    match &app.stage {
        AppStage::Browsing => {
            if layout.timeline.width > 0 {
                timeline::draw(app, layout.timeline, buffer);
            }
            if layout.state.width > 0 {
                state::draw(app, layout.state, buffer);
            }
            if layout.timeline.width > 0 && layout.state.width > 0 {
                let style = app.theme.style(TextTone::Dim);
                for y in layout.state.top()..layout.state.bottom() {
                    let line = Rect { x: layout.state.x - 1, y, width: 1, height: 1 };
                    put(buffer, line, app.theme.glyph("│", "|"), style);
                }
            }
            strip::draw(app, layout.strip, buffer);
        }
        stage => stage_screen(app, stage, buffer),
    }
    overlay::draw(app, buffer);
    status(app, layout.status, buffer);
    keys(app, layout.keys, buffer);
    if app.theme.ascii {
        for cell in &mut buffer.content {
            if cell.symbol() == "…" {
                cell.set_symbol("~");
            }
        }
    }
}

/// Returns the browser's screen as plain text.
#[must_use]
pub fn text(app: &App) -> String {
    let area = Rect { x: 0, y: 0, width: app.width, height: app.height };
    let mut buffer = Buffer::empty(area);
    render(app, &mut buffer);
    plain(&buffer)
}

/// Returns a buffer as plain text, without trailing blanks.
#[must_use]
pub fn plain(buffer: &Buffer) -> String {
    use unicode_width::UnicodeWidthStr;
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            line.push_str(symbol);
            // A wide character also occupies the next cell.
            x += (symbol.width() as u16).max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// How long ago a time is, in its largest unit.
fn ago(time: Timestamp, now: Timestamp) -> String {
    let micros = now.micros_since(time);
    if micros.abs() < 1_000_000 {
        return "now".to_owned();
    }
    let said = describe_distance(micros);
    let greatest: Vec<&str> = said.split(' ').take(2).collect();
    let greatest = greatest.join(" ");
    if micros > 0 { greatest } else { format!("in {greatest}") }
}

fn header(app: &App, area: Rect, buffer: &mut Buffer) {
    let session = &app.session;
    let following = if app.target() == MomentTarget::Head && app.stage == AppStage::Browsing {
        format!("  {} following", app.theme.glyph("●", "*"))
    } else {
        String::new()
    };
    let filter = if app.timeline.typed.is_empty() {
        String::new()
    } else {
        format!("  filter: {}", app.timeline.typed)
    };
    let mark = app.mark.map(|mark| format!("  mark: {mark}")).unwrap_or_default();
    let text = if session.name.is_empty() {
        "forge".to_owned()
    } else {
        format!(
            "{}  on {}  {} checkpoints, {} recorded{following}{mark}{filter}",
            session.name, session.branch, session.checkpoints, session.count
        )
    };
    put(buffer, area, &text, app.theme.style(TextTone::Heading));
}

fn stage_screen(app: &App, stage: &AppStage, buffer: &mut Buffer) {
    let area = WindowLayout::front(app);
    let lines: Vec<(TextTone, String)> = match stage {
        AppStage::Loading => vec![(TextTone::Dim, "reading the store ...".to_owned())],
        AppStage::Empty => {
            let mut lines = vec![(TextTone::Heading, "Nothing has been recorded yet.".to_owned())];
            lines.extend(
                [
                    "",
                    "Record something in another terminal; it appears here automatically:",
                    "  forge hypothesis add 'the cache is stale'",
                    "  forge checkpoint create 'before the change'",
                    "  forge import claude-code",
                    "",
                    "s lists the sessions of this store, q quits.",
                ]
                .map(|text| (TextTone::Plain, text.to_owned())),
            );
            lines
        }
        AppStage::Failed(failure) => {
            let title =
                if failure.damaged { "This store is damaged." } else { "This cannot be shown." };
            vec![
                (TextTone::Bad, title.to_owned()),
                (TextTone::Plain, failure.message.clone()),
                (TextTone::Plain, String::new()),
                (TextTone::Warning, format!("What to do: {}.", failure.advice)),
                (TextTone::Plain, "r tries again, s lists the sessions, q quits.".to_owned()),
            ]
        }
        AppStage::Browsing => Vec::new(),
    };
    put_lines(buffer, area, &lines, app.theme);
}

fn status(app: &App, area: Rect, buffer: &mut Buffer) {
    let (tone, text) = match (app.fronts.last(), &app.status) {
        (Some(OverlayPane::Input { purpose, text }), said) => {
            let prompt = match purpose {
                InputPurpose::Search => "search",
                InputPurpose::Jump => "go to",
                InputPurpose::Create => "say what moment this is",
                InputPurpose::Tag => "tags (-word removes one)",
                InputPurpose::Branch => "name of the branch",
                InputPurpose::Export => "write this view to",
            };
            let said = said.as_ref().map(|said| format!("   {}", said.text)).unwrap_or_default();
            let cursor = app.theme.glyph("▏", "_");
            // The end of the typed text stays visible.
            let room = usize::from(area.width).saturating_sub(prompt.len() + 4).max(4);
            let letters: Vec<char> = text.chars().collect();
            let from = letters.len().saturating_sub(room);
            let tail: String = letters.into_iter().skip(from).collect();
            (TextTone::Plain, format!("{prompt}: {tail}{cursor}{said}"))
        }
        (Some(OverlayPane::Confirm { change, .. }), _) => {
            (TextTone::Warning, format!("do it? (y/n)   $ {}", change.command()))
        }
        (Some(OverlayPane::Sheet(reading)), None) => {
            let command = reading.sheet.as_ref().map(|sheet| sheet.command.clone());
            let command = command.filter(|command| !command.is_empty());
            (TextTone::Dim, command.map(|command| format!("$ {command}")).unwrap_or_default())
        }
        (_, Some(status)) => (status.tone, status.text.clone()),
        (None, None) if app.stage == AppStage::Browsing => {
            let target = crate::effect::quoted(&app.target().to_string());
            (TextTone::Dim, format!("$ forge checkpoint at {target}"))
        }
        _ => (TextTone::Plain, String::new()),
    };
    put(buffer, area, &text, app.theme.style(tone));
}

/// Draws the bottom line: the key hints, as many as fit.
fn keys(app: &App, area: Rect, buffer: &mut Buffer) {
    use unicode_width::UnicodeWidthStr;
    let mut line = String::new();
    for binding in app.keymap.bindings_in(app.mode()).filter(|binding| !binding.short.is_empty()) {
        let Some(key) = binding.keys.first() else { continue };
        let part = format!("{key} {}", binding.short);
        let gap = if line.is_empty() { 0 } else { 2 };
        if line.width() + gap + part.width() > usize::from(area.width) {
            break;
        }
        if gap > 0 {
            line.push_str("  ");
        }
        line.push_str(&part);
    }
    put(buffer, area, &line, app.theme.style(TextTone::Dim));
}
