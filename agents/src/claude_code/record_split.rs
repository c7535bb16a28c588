//! Finds the complete records of a line that holds several records, or that has an incomplete
//! record before a complete one.
//!
//! A client that is stopped while it writes leaves an incomplete record, and the next record
//! follows on the same line. A file system that loses power fills unwritten space with NUL bytes.

use super::reader::{TranscriptDialect, nests_too_deep};
use crate::BYTE_ORDER_MARK;
use crate::lenient::{LenientId, LenientText};
use crate::long_text;
use forge_store::model::replace_lone_surrogates;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::ops::Range;

/// The text between records: white space, NUL bytes and byte order marks.
const BLANK: [char; 7] = [' ', '\t', '\n', '\r', '\x0c', '\0', '\u{feff}'];
/// The maximum average number of times that a search for records reads each byte of its line.
const READINGS: usize = 16;
pub(super) const NO_OBJECT: &str = "is not a JSON object";
pub(super) const NOT_WHOLE: &str = "is not complete JSON";

/// A part of a line: a record, or something else.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinePart {
    /// The bytes of a complete JSON object.
    Record(Range<usize>),
    /// Where bytes begin that are not a record, and why they are not.
    Lost(usize, String),
}

/// Returns where a line begins and ends without the blanks around it.
pub(super) fn trimmed(line: &[u8]) -> Range<usize> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let (mut start, mut end) = (0, line.len());
    while let Some(rest) = line.get(start..end) {
        if rest.first().is_some_and(blank) {
            start += 1;
        } else if rest.starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        } else if rest.last().is_some_and(blank) {
            end -= 1;
        } else {
            break;
        }
    }
    start..end
}

/// Returns whether this is one or more complete JSON objects, with only blanks between them.
pub(super) fn all_whole(line: &[u8]) -> bool {
    let text = line.get(trimmed(line)).unwrap_or_default();
    if !text.starts_with(b"{") || !text.ends_with(b"}") || nests_too_deep(text) {
        return false;
    }
    let text = String::from_utf8_lossy(text);
    let text = without_control_characters(&text);
    let mut rest = &*text;
    while rest.starts_with('{') {
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = objects.next() else { return false };
        rest = rest.get(objects.byte_offset()..).unwrap_or_default().trim_start_matches(BLANK);
    }
    rest.is_empty()
}

/// Returns this text with a space in place of every control character but NUL. JSON does not allow
/// them inside a string, but some clients write them. Offsets do not change.
fn without_control_characters(text: &str) -> Cow<'_, str> {
    if !long_text::has_control_character(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let plain = |c: char| if c < ' ' && c != '\0' { ' ' } else { c };
    Cow::Owned(text.chars().map(plain).collect())
}

/// Returns the session that a line of Claude Code names. If the line holds several records, the
/// last one that names a session counts.
#[must_use]
pub fn session_of(line: &[u8]) -> Option<String> {
    let named = |record: &[u8]| {
        let record = String::from_utf8_lossy(record);
        let record = long_text::readable_json(&record);
        let head: RecordHead<'_> = serde_json::from_str(&record).ok()?;
        head.session_id.text().map(str::to_owned)
    };
    let whole = line.get(trimmed(line)).unwrap_or_default();
    named(whole).or_else(|| {
        split(line, TranscriptDialect::ClaudeCode).into_iter().rev().find_map(|part| match part {
            LinePart::Record(range) => named(line.get(range)?),
            LinePart::Lost(..) => None,
        })
    })
}

/// Returns the records of a line in their order, and what is between them. A record may contain
/// bytes that are not UTF-8.
///
/// An object at the beginning of the line or directly after a record is a record. After an
/// incomplete record, the next record is the first object that has the fields which every record of
/// the agent has, and that is followed by another record or by nothing.
pub(super) fn split(line: &[u8], dialect: TranscriptDialect) -> Vec<LinePart> {
    let line = line.get(..trimmed(line).end).unwrap_or_default();
    // Each byte that is not UTF-8 is read as one character, so that offsets do not change.
    let mut text = String::with_capacity(line.len());
    let mut bad = Vec::new();
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        bad.extend(text.len()..text.len() + chunk.invalid().len());
        chunk.invalid().iter().for_each(|_| text.push('?'));
    }
    let text = replace_lone_surrogates(&text);
    let text = without_control_characters(&text);
    let mut search = RecordSearch {
        dialect,
        budget: line.len() * READINGS,
        line,
        bad,
        lost: None,
        parts: Vec::new(),
    };
    let mut offset = 0;
    for piece in text.split('\0') {
        search.search_piece(piece, offset);
        offset += piece.len() + 1;
    }
    search.close(line.len());
    search.parts
}

/// A search for the records of a line, and what it has found.
struct RecordSearch<'l> {
    dialect: TranscriptDialect,
    /// How many more bytes may be read without finding a record.
    budget: usize,
    line: &'l [u8],
    /// The offsets of bytes that are not UTF-8.
    bad: Vec<usize>,
    /// Where the bytes begin that are not a record, and why they are not.
    lost: Option<(usize, String)>,
    parts: Vec<LinePart>,
}

impl RecordSearch<'_> {
    /// Searches a piece of the line without NUL bytes; `offset` is where it begins in the line.
    fn search_piece(&mut self, text: &str, offset: usize) {
        let mut at = 0;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let start = at + rest.len() - rest.trim_start_matches(BLANK).len();
            let rest = text.get(start..).unwrap_or_default();
            if rest.is_empty() {
                return;
            }
            if self.lost.is_none() {
                match parse_head(rest) {
                    Ok((_, length)) => {
                        at = start + length;
                        self.parts.push(LinePart::Record(offset + start..offset + at));
                        continue;
                    }
                    Err((reason, cost)) => {
                        self.lost = Some((offset + start, reason));
                        self.budget = self.budget.saturating_sub(cost);
                    }
                }
            }
            match self.next_record(text, start, offset) {
                Some(end) => at = end,
                None => return,
            }
        }
    }

    /// Finds the next record of a piece after something that is not a record; returns where the
    /// record ends.
    fn next_record(&mut self, text: &str, from: usize, offset: usize) -> Option<usize> {
        let mut from = from;
        while self.budget > 0 {
            let start = from + text.get(from..)?.find("{\"")?;
            let (next, cost) = match parse_head(text.get(start..)?) {
                Ok((head, length)) => {
                    let end = start + length;
                    let after = text.get(end..)?.trim_start_matches(BLANK);
                    if head.is_record(self.dialect) && (after.is_empty() || after.starts_with('{'))
                    {
                        self.close(offset + start);
                        self.parts.push(LinePart::Record(offset + start..offset + end));
                        return Some(end);
                    }
                    (end, length)
                }
                Err((_, cost)) => (start + 1, cost),
            };
            self.budget = self.budget.saturating_sub(cost);
            from = next;
        }
        None
    }

    /// Ends the part that is not a record, if there is one.
    fn close(&mut self, end: usize) {
        let Some((start, mut reason)) = self.lost.take() else { return };
        let lost = self.line.get(start..end).unwrap_or_default();
        let bad = self.bad.iter().find(|at| (start..end).contains(at));
        if let Some(at) = bad {
            reason = format!("is not UTF-8 at its byte {}", at - start);
        } else if reason.starts_with(NOT_WHOLE) && nests_too_deep(lost) {
            reason = super::reader::too_deep();
        }
        self.parts.push(LinePart::Lost(start, reason));
    }
}

/// The fields that distinguish a record from an object inside a record.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordHead<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    #[serde(borrow, rename = "sessionId")]
    session_id: LenientText<'a>,
    #[serde(borrow)]
    timestamp: LenientText<'a>,
    id: LenientId,
    payload: Option<IgnoredAny>,
    #[serde(rename = "$set")]
    set: Option<IgnoredAny>,
}

impl RecordHead<'_> {
    fn is_record(&self, dialect: TranscriptDialect) -> bool {
        let (kind, session) = (self.kind.text().is_some(), self.session_id.text().is_some());
        let timed = kind && self.timestamp.text().is_some();
        match dialect {
            TranscriptDialect::ClaudeCode => kind && session,
            TranscriptDialect::Codex => timed && self.payload.is_some(),
            TranscriptDialect::Gemini => {
                session || self.set.is_some() || (timed && self.id.0.is_some())
            }
        }
    }
}

/// Parses the object at the beginning of a text and returns it with its length. The error says why
/// there is none, and how many bytes were read.
fn parse_head(text: &str) -> Result<(RecordHead<'_>, usize), (String, usize)> {
    if !text.starts_with('{') {
        return Err((NO_OBJECT.to_owned(), 1));
    }
    let mut objects = serde_json::Deserializer::from_str(text).into_iter();
    match objects.next() {
        Some(Ok(head)) => Ok((head, objects.byte_offset())),
        Some(Err(error)) => {
            let cost = if error.line() > 1 { text.len() } else { error.column() };
            Err((format!("{NOT_WHOLE}: {error}"), cost.max(1)))
        }
        None => Err((NO_OBJECT.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"type":"user","sessionId":"s","x":{"y":[{"type":"text"}]}}"#;

    fn found(line: &str) -> Vec<String> {
        split(line.as_bytes(), TranscriptDialect::ClaudeCode)
            .into_iter()
            .map(|part| match part {
                LinePart::Record(range) if &line[range.clone()] == WHOLE => "whole".to_owned(),
                LinePart::Record(range) => line[range].to_owned(),
                LinePart::Lost(at, _) => format!("lost at {at}"),
            })
            .collect()
    }

    #[test]
    fn whole_records_on_one_line_are_found_whatever_blanks_are_between_them() {
        for between in ["", " ", "\0\0\0", "\u{feff}", "\t\0 \r"] {
            assert_eq!(found(&format!("{WHOLE}{between}{WHOLE}")), ["whole", "whole"]);
        }
        assert_eq!(found(&format!("{{}}{WHOLE}{{\"a\":1}}")), ["{}", "whole", "{\"a\":1}"]);
    }

    #[test]
    fn a_whole_record_is_found_after_a_record_torn_at_any_place() {
        let torn = r#"{"type":"user","n":12.5,"sessionId":"s","m":{"c":["a\\b",{"t":"\"x"}],"d":true},"e":null}"#;
        for end in 1..torn.len() {
            let line = format!("{}{WHOLE}{WHOLE}", &torn[..end]);
            assert_eq!(found(&line), ["lost at 0", "whole", "whole"], "{line}");
            let line = format!("{WHOLE}{}\0\0\0{WHOLE}", &torn[..end]);
            let lost = format!("lost at {}", WHOLE.len());
            assert_eq!(found(&line), ["whole", &lost, "whole"], "{line}");
        }
    }

    #[test]
    fn an_object_inside_a_torn_record_is_not_a_record() {
        let torn =
            r#"{"type":"progress","sessionId":"s","data":{"message":{"type":"user","uuid":"u"}"#;
        assert_eq!(found(torn), ["lost at 0"]);
        assert_eq!(found(&format!("{torn},{WHOLE}]")), ["lost at 0"]);
    }

    #[test]
    fn records_with_raw_control_characters_are_found() {
        let odd = "{\"type\":\"user\",\"text\":\"\u{1b}[31mred\t\"}";
        assert_eq!(found(&format!("{odd}{WHOLE}")), [odd, "whole"]);
        let torn = "{\"type\":\"user\",\"text\":\"\u{1b}[31m";
        assert_eq!(found(&format!("{torn}\0\0{WHOLE}")), ["lost at 0", "whole"]);
        assert!(all_whole(format!("{odd}\0{WHOLE}\r\n").as_bytes()));
        assert!(!all_whole(torn.as_bytes()));
        let named = "{\"sessionId\":\"s1\",\"text\":\"\u{1}\"}";
        assert_eq!(session_of(named.as_bytes()).as_deref(), Some("s1"));
    }

    #[test]
    fn a_character_cut_in_half_does_not_hide_the_next_record() {
        let line =
            [br#"{"type":"user","text":"caf"#.as_slice(), b"\xc3", WHOLE.as_bytes()].concat();
        let parts = split(&line, TranscriptDialect::ClaudeCode);
        assert_eq!(parts[0], LinePart::Lost(0, "is not UTF-8 at its byte 26".to_owned()));
        assert_eq!(parts[1], LinePart::Record(27..line.len()));
    }

    #[test]
    fn a_bad_byte_inside_a_whole_record_loses_no_record_of_the_line() {
        let odd = [br#"{"type":"user","text":"caf"#.as_slice(), b"\xe9\xff", br#""}"#].concat();
        let line = [WHOLE.as_bytes(), &odd, WHOLE.as_bytes()].concat();
        let (one, two) = (WHOLE.len(), WHOLE.len() + odd.len());
        assert_eq!(
            split(&line, TranscriptDialect::ClaudeCode),
            [
                LinePart::Record(0..one),
                LinePart::Record(one..two),
                LinePart::Record(two..line.len())
            ]
        );
    }

    #[test]
    fn adversarial_lines_are_searched_in_linear_time() {
        // Without the limit on readings, each of these takes minutes.
        for unit in
            ["{", "{\"", "{\"a\":", "{\"a\":[", "{\"a\":\"", "[{\"a\":1},", "{\"a\":{\"b\":1},"]
        {
            let line = unit.repeat((2 << 20) / unit.len());
            assert!(!split(line.as_bytes(), TranscriptDialect::ClaudeCode).is_empty(), "{unit}");
        }
    }
}
