//! Draws the lists that typing filters: the help, and a search.

use super::canvas::{below, end_of, put, put_lines, put_wrapped};
use super::frame::{self, FrameTitles};
use super::timeline::highlight;
use crate::answer::SheetLine;
use crate::app::App;
use crate::help::{help_lines, sign_words};
use crate::keymap::KeyMode;
use crate::panes::FindState;
use crate::sheet::wrap_lines;
use crate::theme::TextTone;
use crate::update::searched_text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The width of the keys and signs before a line of the help, in columns.
const KEY_COLUMNS: usize = 18;

/// Draws the line that is typed, and returns the area below it.
fn typed_line(app: &App, typed: &str, area: Rect, buffer: &mut Buffer) -> Rect {
    let cursor = app.theme.glyph("▏", "_");
    let typed = end_of(typed, usize::from(area.width).saturating_sub(2));
    put(buffer, area, &format!(" {typed}{cursor}"), app.theme.style(TextTone::Heading));
    Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area }
}

/// Draws the help of a mode: its keys that match what is typed. Without typed text, also the signs.
pub(super) fn help(
    app: &App,
    mode: KeyMode,
    typed: &str,
    cursor: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.theme;
    let lines = help_lines(&app.keymap, mode, typed, theme);
    let commands = lines.iter().filter(|line| line.command.is_some()).count();
    let all = app.keymap.bindings_in(mode).count();
    let titles = FrameTitles {
        title: format!("? Keys in {}", mode.word()),
        right: format!("{commands} of {all}"),
        below: "type to filter, <enter> does it, <esc> closes".to_owned(),
    };
    let inside = frame::draw(buffer, area, true, &titles, theme);
    let list = typed_line(app, typed, inside, buffer);
    let list = if typed.is_empty() { draw_signs(app, list, buffer) } else { list };
    let room = usize::from(list.height).max(1);
    let top = (cursor + 1).saturating_sub(room);
    for (place, line) in lines.iter().enumerate().skip(top).take(room) {
        let row = below(list, place - top);
        let is_selected = place == cursor;
        let mark = if is_selected { theme.glyph("▌", ">") } else { " " };
        let rest = put(buffer, row, mark, theme.style(TextTone::Accent));
        let left = format!("{:KEY_COLUMNS$} ", line.left);
        let rest = put(buffer, rest, &left, theme.style(line.tone));
        let text = put_highlighted(app, &line.text, rest, typed, buffer);
        if !line.name.is_empty() {
            let name = format!("  {}", line.name);
            put(buffer, text, &name, theme.style(TextTone::Dim));
        }
        if is_selected {
            buffer.set_style(row, theme.cursor(true));
        }
    }
}

/// Draws the signs of the story at the bottom if there is room. Returns the area above them.
fn draw_signs(app: &App, area: Rect, buffer: &mut Buffer) -> Rect {
    if area.height < 16 {
        return area;
    }
    let words = sign_words(app.theme).into_iter().flat_map(|(sign, text)| {
        [(TextTone::Accent, format!("{sign} ")), (TextTone::Plain, format!("{text}   "))]
    });
    let parts = [(TextTone::Plain, String::new())].into_iter().chain(words).collect();
    let lines = wrap_lines(vec![SheetLine { indent: 1, parts }], area.width);
    let rows = u16::try_from(lines.len() + 1).unwrap_or(u16::MAX).min(area.height / 2);
    let above = Rect { height: area.height - rows, ..area };
    let rule = Rect { y: above.bottom(), height: 1, ..area };
    let dim = app.theme.style(TextTone::Dim);
    put(buffer, rule, &"─".repeat(area.width.into()), dim);
    let below = Rect { y: rule.y + 1, height: rows - 1, ..area };
    put_wrapped(buffer, below, &lines, 0, app.theme);
    above
}

/// Writes a text and highlights what matches the typed text. Returns the rest of the line.
fn put_highlighted(app: &App, text: &str, area: Rect, typed: &str, buffer: &mut Buffer) -> Rect {
    let rest = put(buffer, area, text, app.theme.style(TextTone::Plain));
    let pattern = crate::fuzzy::FuzzyPattern::new(typed);
    let shown = Rect { width: rest.x - area.x, ..area };
    highlight(&pattern, shown, app.theme, buffer);
    rest
}

/// Draws a search in the rows: the typed text, and the rows that match.
pub(super) fn find(app: &App, find: &FindState, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let count = find.matches.len();
    let titles = FrameTitles {
        title: "/ Find".to_owned(),
        right: format!("{count} of {}", app.timeline.rows.len()),
        below: "<enter> goes there, then n and N step; <esc> closes".to_owned(),
    };
    let inside = frame::draw(buffer, area, true, &titles, theme);
    let list = typed_line(app, &find.typed, inside, buffer);
    if count == 0 {
        let text = if find.typed.is_empty() {
            "words in any order; letters may be left out"
        } else {
            "nothing that is listed; f searches everything"
        };
        put_lines(buffer, list, &[(TextTone::Dim, format!(" {text}"))], theme);
        return;
    }
    let room = usize::from(list.height).max(1);
    let top = (find.cursor + 1).saturating_sub(room);
    for (place, row) in find.matches.iter().enumerate().skip(top).take(room) {
        let Some(row) = app.timeline.rows.get(*row) else { continue };
        let line = below(list, place - top);
        let is_selected = place == find.cursor;
        let mark = if is_selected { theme.glyph("▌", ">") } else { " " };
        let rest = put(buffer, line, mark, theme.style(TextTone::Accent));
        let clock = format!("{} ", app.zone.clock(row.place.time));
        let rest = put(buffer, rest, &clock, theme.style(TextTone::Dim));
        let (sign, tone) = match &row.story {
            Some(story) => story.sign,
            None => (super::timeline::glyph(row.sign, theme), TextTone::Id),
        };
        let text = put(buffer, rest, &format!("{sign:^3} "), theme.style(tone));
        let rest = put(buffer, text, &around(row, find, text.width), theme.style(TextTone::Plain));
        highlight(&find.pattern, Rect { width: rest.x - text.x, ..text }, theme, buffer);
        if is_selected {
            buffer.set_style(line, theme.cursor(true));
        }
    }
}

/// Returns a row's text, without its beginning if the match would not fit into `room` columns.
fn around(row: &crate::answer::TimelineRow, find: &FindState, room: u16) -> String {
    let text = searched_text(row);
    let last = find.pattern.find(&text).and_then(|found| found.places.into_iter().max());
    let room = usize::from(room).saturating_sub(2);
    match last {
        Some(last) if last >= room => {
            use unicode_segmentation::UnicodeSegmentation;
            let skipped = (last + 8).saturating_sub(room).min(last);
            let rest: String = text.graphemes(true).skip(skipped).collect();
            format!("…{rest}")
        }
        _ => text,
    }
}
