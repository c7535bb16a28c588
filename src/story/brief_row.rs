//! The lines of a brief, as every program shows them.

use super::line::StoryTone;
use crate::model::Kind;
use crate::model::text::in_one_line;
use crate::store::{BriefLine, SessionBrief};

/// A line of a brief: the title of its list, and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefRow {
    /// The title of the list on its first line, else empty.
    pub label: String,
    /// The parts of the line, each with its tone.
    pub parts: Vec<(StoryTone, String)>,
}

/// Returns the lines of a brief, the most important list first. An entry with an error is followed
/// by a line with the error. No part has a line break or a tab.
#[must_use]
pub fn brief_rows(brief: &SessionBrief) -> Vec<BriefRow> {
    let mut rows = Vec::new();
    for (name, list) in brief.lists() {
        let omitted = brief.omitted.get(name).copied().unwrap_or(0);
        let total = list.len() + omitted;
        if total == 0 {
            continue;
        }
        let (title, tone) = title(name);
        let title = if omitted > 0 { format!("{title} ({total})") } else { title.to_owned() };
        if list.is_empty() {
            rows.push(BriefRow { label: title, parts: Vec::new() });
            continue;
        }
        for (place, line) in list.iter().enumerate() {
            let label = if place == 0 { title.clone() } else { String::new() };
            let mut parts = parts(line, tone);
            // The name of the list already says that the entry was refused.
            if name == "refused" {
                parts.remove(0);
            }
            rows.push(BriefRow { label, parts });
            if let Some(error) = &line.error {
                let parts = vec![(StoryTone::Bad, in_one_line(error).into_owned())];
                rows.push(BriefRow { label: String::new(), parts });
            }
        }
    }
    if !brief.next.is_empty() {
        let parts = vec![(StoryTone::Plain, in_one_line(&brief.next.join("; ")).into_owned())];
        rows.push(BriefRow { label: "Next".to_owned(), parts });
    }
    rows
}

fn title(list: &str) -> (&'static str, StoryTone) {
    match list {
        "confirmed" => ("Confirmed", StoryTone::Good),
        "rejected" => ("Rejected", StoryTone::Bad),
        "active" => ("Active", StoryTone::Plain),
        "doubted" => ("In doubt", StoryTone::Warning),
        "beliefs" => ("Beliefs", StoryTone::Plain),
        "notes" => ("Notes", StoryTone::Plain),
        "evidence" => ("Evidence", StoryTone::Plain),
        "gaps" => ("Gaps", StoryTone::Plain),
        "failing" => ("Failing", StoryTone::Bad),
        "prompts" => ("You asked", StoryTone::Plain),
        "refused" => ("Refused", StoryTone::Warning),
        "uncommitted" => ("Not committed", StoryTone::Warning),
        "commands" => ("Commands", StoryTone::Plain),
        _ => ("Tasks", StoryTone::Plain),
    }
}

/// The length of a hash, in hexadecimal digits.
const HASH_LENGTH: usize = 64;

fn parts(line: &BriefLine, tone: StoryTone) -> Vec<(StoryTone, String)> {
    let (mark, mark_tone) = entry_mark(line, tone);
    let reason = line.reason.as_ref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!("  ({})", in_one_line(reason))).unwrap_or_default();
    let similar = match line.similar {
        0 => String::new(),
        count => format!("  ({count} more like it)"),
    };
    let id = if shows_id(line) { format!("{}  ", line.id) } else { String::new() };
    vec![
        (mark_tone, mark),
        (StoryTone::Id, id),
        (StoryTone::Plain, in_one_line(&line.text).into_owned()),
        (StoryTone::Dim, reason),
        (StoryTone::Dim, similar),
    ]
}

/// Returns whether to show the id: generated ids mean nothing to a person.
fn shows_id(line: &BriefLine) -> bool {
    match line.kind {
        Kind::Command | Kind::Tool | Kind::Verification | Kind::Prompt | Kind::Code => false,
        // The id of a to-do is the hash of its text.
        Kind::Task => line.id.len() < HASH_LENGTH,
        _ => true,
    }
}

/// Returns the word before an entry, with its tone.
fn entry_mark(line: &BriefLine, tone: StoryTone) -> (String, StoryTone) {
    match line.kind {
        Kind::Hypothesis | Kind::Belief => {
            let confidence = line.confidence.map_or("   -".to_owned(), |it| format!("{it:.2}"));
            let test = if line.word == Some("under_test") { " under test" } else { "" };
            (format!("{confidence}{test}  "), tone)
        }
        Kind::Gap => {
            let word = line.word.unwrap_or_default();
            (format!("{word:8}  "), if word == "critical" { StoryTone::Bad } else { tone })
        }
        Kind::Command => match (line.exit_code, line.word) {
            (Some(0), _) => ("exit 0    ".to_owned(), StoryTone::Good),
            (Some(code), _) => (format!("exit {code:<4} "), StoryTone::Bad),
            (None, word) => (format!("{:9} ", word.unwrap_or("exit ?")), StoryTone::Dim),
        },
        _ => {
            let word = line.word.unwrap_or_default().replace('_', " ");
            (if word.is_empty() { word } else { format!("{word}  ") }, tone)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn each_list_of_a_brief_has_one_label_and_a_failure_has_its_error_below() {
        let line = |id: &str| {
            let at = Timestamp::from_micros(0);
            BriefLine::new(Kind::Verification, id.to_owned(), id.to_owned(), at)
        };
        let mut brief = SessionBrief::empty();
        brief.failing =
            vec![BriefLine { error: Some("E1\tbroke".to_owned()), ..line("a") }, line("b\n1")];
        brief.next = vec!["look".to_owned()];
        let shown: Vec<(String, String)> = brief_rows(&brief)
            .into_iter()
            .map(|row| (row.label, row.parts.into_iter().map(|(_, text)| text).collect()))
            .collect();
        let expected = [("Failing", "a"), ("", "E1 broke"), ("", "b 1"), ("Next", "look")];
        assert_eq!(shown, expected.map(|(label, text)| (label.to_owned(), text.to_owned())));
    }
}
