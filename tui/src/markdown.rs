//! Converts pages to Markdown, to be pasted elsewhere.

use crate::answer::{SheetLine, SheetSection, TextSheet};
use crate::theme::TextTone;
use forge_store::story::BriefRow;

/// Returns a sheet as Markdown, without empty and folded sections.
#[must_use]
pub fn sheet_markdown(sheet: &TextSheet) -> String {
    let mut text = String::new();
    if !sheet.title.is_empty() {
        text.push_str(&format!("### {}\n\n", one_line(&sheet.title)));
    }
    for section in &sheet.sections {
        if section.lines.is_empty() || section.folded {
            continue;
        }
        if !section.title.is_empty() {
            text.push_str(&format!("**{}**\n\n", one_line(&section.title)));
        }
        put_section(section, &mut text);
    }
    if !sheet.command.is_empty() {
        text.push_str(&format!("{}\n", code(&sheet.command)));
    }
    let end = text.trim_end().len();
    text.truncate(end);
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[must_use]
pub fn brief_markdown(rows: &[BriefRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let said: String = row.parts.iter().map(|(_, part)| part.as_str()).collect();
        if !row.label.is_empty() {
            let space = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{space}**{}**\n\n", row.label.trim()));
        }
        if !said.trim().is_empty() {
            text.push_str(&format!("- {}\n", one_line(said.trim())));
        }
    }
    text
}

fn put_section(section: &SheetSection, text: &mut String) {
    let is_patch = |line: &&SheetLine| {
        let tones = line.parts.iter().map(|(tone, _)| *tone);
        tones.into_iter().any(|tone| matches!(tone, TextTone::PatchAdded | TextTone::PatchRemoved))
    };
    let is_difference = section.lines.iter().any(|line| is_patch(&line));
    let is_output = section.lines.iter().any(is_command);
    let mut fenced: Vec<String> = Vec::new();
    for (place, line) in section.lines.iter().enumerate() {
        let whole: String = line.parts.iter().map(|(_, part)| part.as_str()).collect();
        // The first line of a patch or of an output is its heading.
        if (is_difference && place > 0) || (is_output && (place > 0 || is_command(line))) {
            fenced.push(whole);
            continue;
        }
        put_line(line, &whole, text);
    }
    if fenced.is_empty() {
        text.push('\n');
        return;
    }
    let fence = fence(&fenced);
    let language = if is_difference { "diff" } else { "console" };
    text.push_str(&format!("\n{fence}{language}\n{}\n{fence}\n\n", fenced.join("\n")));
}

fn is_command(line: &SheetLine) -> bool {
    line.parts.first().is_some_and(|(_, part)| part == "$ ")
}

/// Writes a line; an indented line becomes an item of a list.
fn put_line(line: &SheetLine, whole: &str, text: &mut String) {
    let mut rows = whole.trim_end().lines();
    let first = rows.next().unwrap_or_default().trim();
    if first.is_empty() {
        return;
    }
    let depth = usize::from(line.indent / 2);
    let (begin, rest) = match depth {
        0 => (String::new(), String::new()),
        depth => (format!("{}- ", "  ".repeat(depth - 1)), "  ".repeat(depth)),
    };
    // In Markdown, two blanks at the end of a line keep the line break.
    let end = if depth == 0 { "  " } else { "" };
    text.push_str(&format!("{begin}{first}{end}\n"));
    for row in rows {
        text.push_str(&format!("{rest}{}{end}\n", row.trim()));
    }
}

/// Returns a fence that does not occur in these lines.
fn fence(lines: &[String]) -> String {
    let longest = lines.iter().map(|line| longest_ticks(line)).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn longest_ticks(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// Returns a text as code within a line.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_ticks(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{}{space}{ticks}", one_line(text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::{line, section};

    #[test]
    fn a_page_has_headings_lists_patches_and_its_command() {
        let head = line(TextTone::Heading, 0, "a.rs  ").and(TextTone::Dim, "10:45");
        let patch = vec![
            head,
            line(TextTone::Id, 0, "@@ -1 +1 @@"),
            line(TextTone::PatchRemoved, 0, "-a ``` b"),
            line(TextTone::PatchAdded, 0, "+c"),
        ];
        let list = vec![line(TextTone::Plain, 2, "E1 one\nmore"), line(TextTone::Plain, 4, "deep")];
        let sheet = TextSheet {
            title: "an edit".to_owned(),
            command: "forge show `x`".to_owned(),
            id: String::new(),
            sections: vec![section("", patch), section("For", list), section("Empty", Vec::new())],
        };
        let expected = "### an edit\n\na.rs  10:45  \n\n````diff\n@@ -1 +1 @@\n-a ``` b\n+c\n````\n\n\
            **For**\n\n- E1 one\n  more\n  - deep\n\n`` forge show `x` ``\n";
        assert_eq!(sheet_markdown(&sheet), expected);
    }

    #[test]
    fn the_output_of_a_command_is_fenced() {
        let command = line(TextTone::Dim, 0, "$ ").and(TextTone::Heading, "cargo test");
        let lines = vec![
            line(TextTone::Heading, 0, "").and(TextTone::Bad, "failed (exit 1)"),
            command,
            line(TextTone::Plain, 0, "1 failed"),
        ];
        let sheet = TextSheet { sections: vec![section("", lines)], ..TextSheet::default() };
        let expected = "failed (exit 1)  \n\n```console\n$ cargo test\n1 failed\n```\n";
        assert_eq!(sheet_markdown(&sheet), expected);
        assert_eq!(sheet_markdown(&TextSheet::default()), "");
    }

    #[test]
    fn a_brief_in_markdown_has_one_list_for_each_label() {
        let row = |label: &str, text: &str| BriefRow {
            label: label.to_owned(),
            parts: vec![(forge_store::story::StoryTone::Plain, text.to_owned())],
        };
        let rows = [row("Confirmed", "H4  it"), row("", "H6"), row("Gaps", "G1")];
        let expected = "**Confirmed**\n\n- H4 it\n- H6\n\n**Gaps**\n\n- G1\n";
        assert_eq!(brief_markdown(&rows), expected);
    }
}
