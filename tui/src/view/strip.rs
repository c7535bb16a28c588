//! Draws the activity strip: the number of events over the session's time, with its landmarks.

use super::canvas::{below, put};
use crate::app::App;
use crate::theme::TextTone;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The heights of a bar, each for twice the count of the one before.
const BARS: [&str; 9] = ["·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_BARS: [&str; 9] = [" ", ".", ".", ":", ":", "|", "|", "#", "#"];

/// Returns the bar for a count.
pub(super) fn bar(count: u32, ascii: bool) -> &'static str {
    let height = (32 - count.leading_zeros()) as usize;
    let bars = if ascii { &ASCII_BARS } else { &BARS };
    bars.get(height.min(8)).copied().unwrap_or(" ")
}

/// Returns the column of a time.
fn column(time: Timestamp, first: Timestamp, last: Timestamp, width: u16) -> u16 {
    let span = i128::from(last.micros_since(first)).max(1);
    let offset = i128::from(time.micros_since(first)).clamp(0, span);
    let column = offset * i128::from(width.saturating_sub(1)) / span;
    u16::try_from(column).unwrap_or(0)
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let Some(strip) = &app.strip else { return };
    let (first, last, activity) = (strip.from, strip.to, &strip.activity);
    if area.height == 0 || area.width == 0 {
        return;
    }
    let theme = app.theme;
    let stretches = activity.counts.len().max(1);
    for x in 0..area.width {
        let place = usize::from(x) * stretches / usize::from(area.width);
        let count = activity.counts.get(place).copied().unwrap_or(0);
        let tone = if count == 0 { TextTone::Dim } else { TextTone::Good };
        let cell = Rect { x: area.x + x, y: area.y, width: 1, height: 1 };
        put(buffer, cell, bar(count, theme.ascii), theme.style(tone));
    }
    let marks = below(area, 1);
    let mut mark = |time: Timestamp, sign: &str, tone: TextTone| {
        let x = area.x + column(time, first, last, area.width);
        put(buffer, Rect { x, width: 1, ..marks }, sign, theme.style(tone));
    };
    for time in &activity.failures {
        mark(*time, theme.glyph("✗", "x"), TextTone::Bad);
    }
    for time in &activity.compactions {
        mark(*time, "C", TextTone::Warning);
    }
    if let Some(row) = app.row() {
        mark(row.place.time, "^", TextTone::Heading);
    }
    if area.height > 2 {
        let pause = longest_pause(&activity.counts, first, last);
        let show = |time: Timestamp| {
            let text = app.zone.show(time);
            text.get(..16).unwrap_or(&text).to_owned()
        };
        let text = format!(
            "{} to {}  {} activity  {} idle{pause}  C compaction  {} failed  ^ here",
            show(first),
            show(last),
            theme.glyph("▁▄█", ".:#"),
            theme.glyph("·", "blank"),
            theme.glyph("✗", "x"),
        );
        put(buffer, below(area, 2), &text, theme.style(TextTone::Dim));
    }
}

/// The longest interval without events, in words.
fn longest_pause(counts: &[u32], first: Timestamp, last: Timestamp) -> String {
    let longest = counts.split(|count| *count > 0).map(<[u32]>::len).max().unwrap_or(0);
    if longest < 2 || counts.is_empty() {
        return String::new();
    }
    let span = i128::from(last.micros_since(first)) * longest as i128 / counts.len() as i128;
    let span = i64::try_from(span).unwrap_or(0);
    format!(" (longest about {})", describe_distance(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_by_one_with_each_doubling() {
        let bars: String = [0, 1, 2, 4, 8, 16, 32, 64, 128].map(|count| bar(count, false)).concat();
        assert_eq!(bars, BARS.concat());
    }
}
