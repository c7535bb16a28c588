//! Sheets: texts in sections that can be folded, wrapped to the width of a window.

use crate::answer::{SheetLine, SheetSection, TextSheet, WorkerFailure};
use crate::keymap::{KeyMode, Keymap};
use crate::theme::TextTone;
use forge_store::model::text::{NewlineMode, sanitise};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A line of a sheet, wrapped to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedLine {
    /// The section it belongs to.
    pub section: usize,
    /// Whether it is the section's title.
    pub heading: bool,
    /// The tone of the line.
    pub tone: TextTone,
    /// Its text with the indentation; safe to print.
    pub text: String,
}

/// The maximum number of lines of one text; longer texts are for a pager.
const MAX_LINES: usize = 5000;

/// Returns the lines of a sheet in a window with this many columns.
#[must_use]
pub fn wrap_sheet(sheet: &TextSheet, width: u16) -> Vec<WrappedLine> {
    let mut lines = Vec::new();
    for (section, part) in sheet.sections.iter().enumerate() {
        if !part.title.is_empty() {
            let mark = if part.folded { "+ " } else { "- " };
            let count =
                if part.folded { format!(" ({} lines)", part.lines.len()) } else { String::new() };
            let text = format!("{mark}{}{count}", sanitise(&part.title, NewlineMode::Escape));
            lines.push(WrappedLine { section, heading: true, tone: TextTone::Heading, text });
        }
        if part.folded {
            continue;
        }
        for line in &part.lines {
            let indent = usize::from(line.indent);
            let room = usize::from(width).saturating_sub(indent).max(8);
            let text = sanitise(&line.text, NewlineMode::Keep);
            for row in text.split('\n') {
                for piece in wrapped(row, room) {
                    let text = format!("{}{piece}", " ".repeat(indent));
                    lines.push(WrappedLine { section, heading: false, tone: line.tone, text });
                    if lines.len() >= MAX_LINES {
                        return lines;
                    }
                }
            }
        }
    }
    lines
}

/// Splits a line into pieces of at most this many columns.
fn wrapped(line: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut blank, mut columns) = (0, None, 0);
    for (place, cluster) in line.grapheme_indices(true) {
        let wide = cluster.width();
        if columns + wide > room && place > start {
            let cut = blank.filter(|blank| *blank > start).unwrap_or(place);
            pieces.push(line.get(start..cut).unwrap_or_default().trim_end());
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
    pieces.push(line.get(start..).unwrap_or_default());
    pieces
}

/// Creates a line of a sheet.
#[must_use]
pub fn line(tone: TextTone, indent: u16, text: impl Into<String>) -> SheetLine {
    SheetLine { tone, indent, text: text.into() }
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
        line(TextTone::Plain, 0, failure.advice.clone()),
    ];
    let title = if failure.damaged { "damaged" } else { "this cannot be shown" };
    TextSheet {
        title: title.to_owned(),
        sections: vec![section("", lines)],
        ..TextSheet::default()
    }
}

/// Returns the help: every key, by mode.
#[must_use]
pub fn help(keymap: &Keymap) -> TextSheet {
    let modes = [
        ("timeline", KeyMode::Timeline),
        ("state", KeyMode::State),
        ("details, comparisons and this help", KeyMode::Sheet),
        ("charts", KeyMode::Charts),
        ("sessions", KeyMode::Sessions),
        ("while typing", KeyMode::Input),
        ("yes or no", KeyMode::Confirm),
    ];
    let mut sections: Vec<SheetSection> = Vec::new();
    for (title, mode) in modes {
        let lines = keymap.bindings_in(mode).map(|binding| {
            let keys: Vec<String> = binding.keys.iter().map(ToString::to_string).collect();
            let tone = if mode == KeyMode::Timeline { TextTone::Plain } else { TextTone::Dim };
            line(tone, 2, format!("{:<22}{} [{}]", keys.join(" "), binding.about, binding.name))
        });
        sections.push(section(title, lines.collect()));
    }
    let words = [
        "Words find what holds them all: messages, commands, descriptions, ids.",
        "kind:command  tag:start  trigger:compaction  branch:main  session:NAME",
        "since:\"2 hours ago\"  until:14:30  narrow it down; all must fit.",
    ];
    let words = words.map(|text| line(TextTone::Plain, 2, text)).to_vec();
    sections.push(section("search", words));
    let times = [
        "2 hours ago, yesterday 14:30, 2025-01-20 14:30, 10m, #42, a tag, a branch, HEAD~3,",
        "before last compaction, when H3 was rejected, before commit 1a2b3c4, start",
    ];
    let times = times.map(|text| line(TextTone::Plain, 2, text)).to_vec();
    sections.push(section("moments to go to", times));
    TextSheet { title: "help".to_owned(), sections, ..TextSheet::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_at_blanks_and_wide_letters_count_twice() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(wrapped(&family.repeat(3), 4), [family.repeat(2), family.to_owned()]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn a_folded_section_shows_its_title_and_how_much_it_hides() {
        let mut sheet = TextSheet {
            sections: vec![section("a", vec![line(TextTone::Plain, 2, "x\ny\u{1b}")])],
            ..TextSheet::default()
        };
        let texts = |sheet: &TextSheet| {
            wrap_sheet(sheet, 20).into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&sheet), ["- a", "  x", "  y\\x1b"]);
        sheet.sections[0].folded = true;
        assert_eq!(texts(&sheet), ["+ a (1 lines)"]);
    }
}
