//! Writes texts into cells, after making them safe to print.

use crate::sheet::{WrappedLine, line, wrap_lines};
use crate::theme::{TextTone, Theme};
use forge_store::model::text::{NewlineMode, sanitise};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Writes a text on the first line of an area, cut to fit. Returns the rest of the line.
pub(super) fn put(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> Rect {
    let area = area.intersection(buffer.area);
    if area.width == 0 || area.height == 0 {
        return area;
    }
    let safe = sanitise(text, NewlineMode::Escape);
    let room = usize::from(area.width);
    let is_cut = safe.width() > room;
    let shown = if is_cut { cut(&safe, room) } else { safe.into_owned() };
    let (end, _) = buffer.set_stringn(area.x, area.y, &shown, room, style);
    // Nothing is written after a text that was cut.
    let used = if is_cut { area.width } else { end.saturating_sub(area.x).min(area.width) };
    Rect { x: area.x + used, width: area.width - used, ..area }
}

/// Returns a text that is safe to print, cut to this many columns.
pub(super) fn shortened(text: &str, room: usize) -> String {
    let safe = sanitise(text, NewlineMode::Escape);
    if safe.width() > room { cut(&safe, room) } else { safe.into_owned() }
}

/// Returns the end of a text that fits into this many columns, safe to print.
pub(super) fn end_of(text: &str, room: usize) -> String {
    let safe = sanitise(text, NewlineMode::Escape);
    let (mut from, mut columns) = (safe.len(), 0);
    for (place, cluster) in safe.grapheme_indices(true).rev() {
        columns += cluster.width();
        if columns > room {
            break;
        }
        from = place;
    }
    safe.get(from..).unwrap_or_default().to_owned()
}

pub(super) fn clear(buffer: &mut Buffer, area: Rect) {
    let area = area.intersection(buffer.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
}

/// Writes wrapped lines into an area, beginning with the line `top`.
pub(super) fn put_wrapped(
    buffer: &mut Buffer,
    area: Rect,
    lines: &[WrappedLine],
    top: usize,
    theme: Theme,
) {
    for (row, line) in lines.iter().skip(top).take(area.height.into()).enumerate() {
        let place = below(area, row);
        let mut rest = place;
        for (tone, text) in &line.parts {
            let style = theme.style(*tone);
            rest = put(buffer, rest, text, style);
            let is_patch = matches!(tone, TextTone::PatchAdded | TextTone::PatchRemoved);
            if is_patch {
                // The background of a changed line reaches to the end of the area.
                buffer.set_style(rest, style);
            }
        }
    }
}

/// Returns the beginning of a text that fits together with a `…` at its end.
fn cut(text: &str, room: usize) -> String {
    let mut columns = 0;
    let mut kept = String::new();
    for cluster in text.graphemes(true) {
        columns += cluster.width();
        if columns >= room {
            break;
        }
        kept.push_str(cluster);
    }
    kept.push('…');
    kept
}

/// Writes lines into an area from the top, and wraps long lines.
pub(super) fn put_lines(
    buffer: &mut Buffer,
    area: Rect,
    lines: &[(TextTone, String)],
    theme: Theme,
) {
    let lines = lines.iter().map(|(tone, text)| line(*tone, 0, text.clone())).collect();
    put_wrapped(buffer, area, &wrap_lines(lines, area.width), 0, theme);
}

/// Returns the line of an area at this distance from its top.
pub(super) fn below(area: Rect, rows: usize) -> Rect {
    let rows = u16::try_from(rows).unwrap_or(u16::MAX).min(area.height);
    Rect { y: area.y + rows, height: u16::from(rows < area.height), ..area }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_emoji_and_joined_letters_are_drawn_whole_in_the_columns_they_take() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let persian = "می\u{200c}خواهم";
        let area = Rect::new(0, 0, 12, 1);
        let mut buffer = Buffer::empty(area);
        let rest = put(&mut buffer, area, &format!("{family}{persian}"), Style::new());
        assert_eq!(rest.x, 2 + 7, "two columns and seven letters");
        let symbols: Vec<&str> =
            (0..rest.x).map(|x| buffer.cell((x, 0)).map_or("", |cell| cell.symbol())).collect();
        assert_eq!(symbols.first(), Some(&family));
        assert_eq!(symbols.get(3), Some(&"ی\u{200c}"));
        let mut narrow = Buffer::empty(area);
        put(&mut narrow, Rect::new(0, 0, 4, 1), &family.repeat(3), Style::new());
        assert_eq!(crate::view::plain(&narrow), format!("{family}…\n"));
    }
}
