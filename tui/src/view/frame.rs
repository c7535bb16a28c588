//! Frames with titles. The frame of the pane in focus is bright and heavy.

use super::canvas::put;
use crate::layout::WindowLayout;
use crate::theme::{TextTone, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

/// The texts that are written into a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameTitles {
    /// At the top left.
    pub(super) title: String,
    /// At the top right.
    pub(super) right: String,
    /// At the bottom right.
    pub(super) below: String,
}

/// Draws a frame, and returns the area inside.
pub(super) fn draw(
    buffer: &mut Buffer,
    area: Rect,
    focused: bool,
    titles: &FrameTitles,
    theme: Theme,
) -> Rect {
    let area = area.intersection(buffer.area);
    let inside = WindowLayout::inside(area);
    if inside == area {
        return area;
    }
    let style = theme.frame(focused);
    let [across, down, corners] = match (theme.ascii, focused) {
        (true, true) => ["=", "#", "####"],
        (true, false) => ["-", "|", "++++"],
        (false, true) => ["━", "┃", "┏┓┗┛"],
        (false, false) => ["─", "│", "╭╮╰╯"],
    };
    let mut corners = corners.chars().map(String::from);
    let mut corner = |x: u16, y: u16, buffer: &mut Buffer| {
        buffer.set_string(x, y, corners.next().unwrap_or_default(), style);
    };
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    let line = across.repeat(usize::from(area.width - 2));
    buffer.set_string(area.x + 1, area.y, &line, style);
    buffer.set_string(area.x + 1, bottom, &line, style);
    for y in inside.top()..inside.bottom() {
        buffer.set_string(area.x, y, down, style);
        buffer.set_string(right, y, down, style);
    }
    corner(area.x, area.y, buffer);
    corner(right, area.y, buffer);
    corner(area.x, bottom, buffer);
    corner(right, bottom, buffer);
    // The texts do not have the colour of the frame.
    let own = Style::new().fg(Color::Reset).remove_modifier(Modifier::all());
    let bold = own.patch(theme.style(if focused { TextTone::Heading } else { TextTone::Plain }));
    let dim = own.patch(theme.style(TextTone::Dim));
    let title = Rect { x: area.x + 1, width: area.width - 2, height: 1, y: area.y };
    let rest = write(buffer, title, &titles.title, bold);
    write_right(buffer, rest, &titles.right, dim);
    write_right(buffer, Rect { y: bottom, ..title }, &titles.below, dim);
    inside
}

fn write(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> Rect {
    if text.is_empty() { area } else { put(buffer, area, &format!("{text} "), style) }
}

/// Writes a text at the right end of an area, if it fits.
fn write_right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let wide = u16::try_from(text.width() + 3).unwrap_or(u16::MAX);
    if text.is_empty() || wide > area.width {
        return;
    }
    let place = Rect { x: area.right() - wide + 1, width: wide - 1, ..area };
    put(buffer, place, &format!(" {text} "), style);
}
