//! Draws the chips of the filter, above the line in which the filter is typed.

use super::canvas::{clear, put};
use crate::app::App;
use crate::chip::FILTER_CHIPS;
use crate::layout::WindowLayout;
use crate::panes::{InputPurpose, OverlayPane};
use crate::theme::TextTone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// Returns the line of the chips; it has no height if there is no room.
fn line(app: &App) -> Rect {
    let keys = WindowLayout::from_app(app).keys;
    let has_room = app.height >= 5 && keys.y > 0;
    Rect { y: keys.y.saturating_sub(1), height: u16::from(has_room), ..keys }
}

/// Returns the places of the chips. A chip for which there is no room has no width.
pub(crate) fn chip_places(app: &App) -> Vec<Rect> {
    let line = line(app);
    let mut x = line.x + 1;
    let place = |word: &str| {
        let width = u16::try_from(word.width() + 3).unwrap_or(u16::MAX);
        let place = Rect { x: x.min(line.right()), ..line };
        x = x.saturating_add(width + 1);
        let fits = place.x.saturating_add(width) <= line.right();
        Rect { width: if fits { width } else { 0 }, ..place }
    };
    FILTER_CHIPS.iter().map(|chip| chip.word).map(place).collect()
}

pub(super) fn draw(app: &App, buffer: &mut Buffer) {
    let Some(OverlayPane::Input { purpose: InputPurpose::Filter, text }) = app.overlays.last()
    else {
        return;
    };
    let theme = app.theme;
    let line = line(app);
    clear(buffer, line);
    let mut end = line.x;
    for (number, (chip, place)) in FILTER_CHIPS.iter().zip(chip_places(app)).enumerate() {
        let on = chip.is_on(text);
        let sign = if on { theme.glyph("✓", "x") } else { " " };
        let tone = if on { TextTone::Good } else { TextTone::Dim };
        put(buffer, place, &format!("[{sign}{}]", chip.word), theme.style(tone));
        if number == app.chip {
            buffer.set_style(place.intersection(buffer.area), theme.cursor(true));
        }
        end = end.max(place.right());
    }
    let rest = Rect { x: end, width: line.right().saturating_sub(end), ..line };
    let help = "  <tab> switches, <left> <right> choose";
    if usize::from(rest.width) >= help.width() {
        put(buffer, rest, help, theme.style(TextTone::Dim));
    }
}
