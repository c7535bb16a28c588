//! Sheets: texts in sections that can be folded, wrapped to the width of a window.

use crate::answer::{SheetLine, SheetSection, TextSheet, WorkerFailure};
use crate::theme::TextTone;
use forge_store::model::text::{NewlineMode, count_text, sanitise};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A line of a sheet, wrapped to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedLine {
    pub section: usize,
    /// Whether it is the section's title.
    pub heading: bool,
    /// Its parts with the indentation, each with its tone; safe to print.
    pub parts: Vec<(TextTone, String)>,
}

impl WrappedLine {
    /// Returns the whole text of the line.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// Maximum number of lines of a sheet; the line that reaches it is still shown whole. Longer texts
/// are for a pager.
const MAX_LINES: usize = 5000;

/// Returns lines without a heading, wrapped as in a sheet.
pub(crate) fn wrap_lines(lines: Vec<SheetLine>, width: u16) -> Vec<WrappedLine> {
    wrap_sheet(&TextSheet { sections: vec![section("", lines)], ..TextSheet::default() }, width)
}

/// Returns the lines of a sheet, wrapped to this many columns. A very long sheet is cut, and a last
/// line says how much is left out.
#[must_use]
pub fn wrap_sheet(sheet: &TextSheet, width: u16) -> Vec<WrappedLine> {
    let mut lines = Vec::new();
    for (section, part) in sheet.sections.iter().enumerate() {
        if !part.title.is_empty() {
            let title = sanitise(&part.title, NewlineMode::Escape);
            let text = if part.folded {
                format!("▸ {title} ({})", count_text(part.lines.len() as u64, "line"))
            } else {
                title.into_owned()
            };
            let parts = vec![(TextTone::Heading, text)];
            lines.push(WrappedLine { section, heading: true, parts });
        }
        if part.folded {
            continue;
        }
        for (place, line) in part.lines.iter().enumerate() {
            wrap_line(line, section, width, &mut lines);
            if lines.len() >= MAX_LINES {
                let later = sheet.sections.iter().skip(section + 1);
                let later: usize = later.map(|part| part.lines.len()).sum();
                let more = part.lines.len() - (place + 1) + later;
                if more > 0 {
                    let text = format!("and {}", count_text(more as u64, "more line"));
                    let parts = vec![(TextTone::Dim, text)];
                    lines.push(WrappedLine { section, heading: false, parts });
                }
                return lines;
            }
        }
    }
    lines
}

/// Wraps a line; its parts keep their tones.
fn wrap_line(line: &SheetLine, section: usize, width: u16, lines: &mut Vec<WrappedLine>) {
    let indent = usize::from(line.indent);
    let room = usize::from(width).saturating_sub(indent).max(8);
    let mut text = String::new();
    let mut ends = Vec::new();
    for (tone, part) in &line.parts {
        text.push_str(&sanitise(part, NewlineMode::Keep));
        ends.push((text.len(), *tone));
    }
    let mut start = 0;
    for row in text.split('\n') {
        // The continuation of a line with several parts is indented more than its beginning.
        let hang = if line.parts.len() > 1 { 4.min(room / 4) } else { 0 };
        for (place, piece) in wrapped(row, room, hang).into_iter().enumerate() {
            let from = start + piece.start;
            let to = start + piece.end;
            let hang = if place > 0 { hang } else { 0 };
            let mut parts = vec![(TextTone::Plain, " ".repeat(indent + hang))];
            let mut at = from;
            for (end, tone) in ends.iter().filter(|(end, _)| *end > from) {
                let end = (*end).min(to);
                if let Some(part) = text.get(at..end).filter(|part| !part.is_empty()) {
                    parts.push((*tone, part.to_owned()));
                }
                at = end.max(at);
            }
            lines.push(WrappedLine { section, heading: false, parts });
        }
        start += row.len() + 1;
    }
}

/// Splits a line into pieces of at most `room` columns. The pieces after the first have at most
/// `room - hang`.
fn wrapped(line: &str, room: usize, hang: usize) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let (mut start, mut blank, mut columns) = (0, None, 0);
    for (place, cluster) in line.grapheme_indices(true) {
        let wide = cluster.width();
        let room = if pieces.is_empty() { room } else { room - hang };
        if columns + wide > room && place > start {
            let cut = blank.filter(|blank| *blank > start).unwrap_or(place);
            let piece = line.get(start..cut).unwrap_or_default().trim_end();
            pieces.push(start..start + piece.len());
            start = cut;
            let carried = line.get(start..place).unwrap_or_default();
            columns = carried.graphemes(true).map(UnicodeWidthStr::width).sum();
            blank = None;
        }
        if cluster == " " {
            blank = Some(place + 1);
        }
        columns += wide;
    }
    pieces.push(start..line.len());
    pieces
}

#[must_use]
pub fn line(tone: TextTone, indent: u16, text: impl Into<String>) -> SheetLine {
    SheetLine { indent, parts: vec![(tone, text.into())] }
}

impl SheetLine {
    /// Adds a part with another tone.
    #[must_use]
    pub fn and(mut self, tone: TextTone, text: impl Into<String>) -> Self {
        self.parts.push((tone, text.into()));
        self
    }
}

/// Creates an unfolded section.
#[must_use]
pub fn section(title: impl Into<String>, lines: Vec<SheetLine>) -> SheetSection {
    SheetSection { title: title.into(), lines, folded: false }
}

/// Returns a sheet about an error.
#[must_use]
pub fn failure(failure: &WorkerFailure) -> TextSheet {
    let lines = vec![
        line(TextTone::Bad, 0, failure.message.clone()),
        line(TextTone::Warning, 0, failure.advice_line()),
    ];
    let title = if failure.damaged { "damaged" } else { "this cannot be shown" };
    TextSheet {
        title: title.to_owned(),
        sections: vec![section("", lines)],
        ..TextSheet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(line: &str, room: usize) -> Vec<&str> {
        wrapped(line, room, 0).into_iter().map(|piece| line.get(piece).unwrap()).collect()
    }

    #[test]
    fn long_lines_break_at_blanks_and_wide_letters_count_twice() {
        assert_eq!(pieces("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(pieces("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(pieces("日本語", 4), ["日本", "語"]);
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(pieces(&family.repeat(3), 4), [family.repeat(2), family.to_owned()]);
        assert_eq!(pieces("", 4), [""]);
    }

    #[test]
    fn a_folded_section_shows_its_title_and_how_much_it_hides() {
        let mut sheet = TextSheet {
            sections: vec![section("a", vec![line(TextTone::Plain, 2, "x\ny\u{1b}")])],
            ..TextSheet::default()
        };
        let texts = |sheet: &TextSheet| {
            wrap_sheet(sheet, 20).iter().map(WrappedLine::text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&sheet), ["a", "  x", "  y\\x1b"]);
        sheet.sections[0].folded = true;
        assert_eq!(texts(&sheet), ["▸ a (1 line)"]);
    }

    /// The end of a very long sheet was left out without a word.
    #[test]
    fn a_very_long_sheet_says_how_much_of_it_is_left_out() {
        let lines = |count: usize| vec![line(TextTone::Plain, 0, "x"); count];
        let last = |counts: &[usize]| {
            let sections = counts.iter().map(|count| section("", lines(*count))).collect();
            let shown = wrap_sheet(&TextSheet { sections, ..TextSheet::default() }, 20);
            (shown.len(), shown.last().unwrap().text())
        };
        assert_eq!(last(&[MAX_LINES]), (MAX_LINES, "x".to_owned()));
        assert_eq!(last(&[MAX_LINES + 1]), (MAX_LINES + 1, "and 1 more line".to_owned()));
        assert_eq!(last(&[7, MAX_LINES, 3]), (MAX_LINES + 1, "and 10 more lines".to_owned()));
    }

    #[test]
    fn parts_keep_their_tones_where_a_line_is_wrapped() {
        let parts = line(TextTone::Id, 0, "E1 ").and(TextTone::Plain, "one two three four");
        let sheet = TextSheet { sections: vec![section("", vec![parts])], ..TextSheet::default() };
        let lines = wrap_sheet(&sheet, 12);
        let texts: Vec<String> = lines.iter().map(WrappedLine::text).collect();
        assert_eq!(texts, ["E1 one two", "   three", "   four"]);
        let tones: Vec<TextTone> = lines[0].parts.iter().map(|(tone, _)| *tone).collect();
        assert_eq!(tones, [TextTone::Plain, TextTone::Id, TextTone::Plain]);
    }
}
