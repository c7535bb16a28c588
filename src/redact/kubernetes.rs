//! Kubernetes secrets: the values under `data` and `stringData` of an object of kind `Secret`, in
//! YAML and JSON. Both may be inside a JSON string.

use super::byte_text::backslashes;
use super::json_text::{parse_string, skip_quote, skip_spaces};
use super::{MAX_SECRET_BYTES, SecretFinding, TextForm, work_counter};
use std::ops::Range;

/// Maximum distance from the kind back to the start of the object, in bytes.
const BEFORE: usize = 4096;
/// Minimum length of a value, in bytes.
const MIN_BYTES: usize = 4;
const KIND: &str = "kubernetes-secret";

/// Returns the secrets of the object whose kind is at `word`, and the range of the object.
pub(super) fn find(
    text: &[u8],
    word: Range<usize>,
    form: TextForm,
) -> (Vec<SecretFinding>, Range<usize>) {
    let after = text.get(word.end..).unwrap_or_default();
    // Another kind: `SecretList`, `SecretProviderClass`.
    if after.first().is_some_and(u8::is_ascii_alphanumeric) {
        return (Vec::new(), word);
    }
    let is_json = text.get(word.clone()).is_some_and(|word| word.contains(&b'"'));
    let is_inside = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = text.len().min(word.end + MAX_SECRET_BYTES);
    let end = (end..text.len()).find(|at| !is_inside(at)).unwrap_or(text.len());
    let limits = word.start.saturating_sub(BEFORE)..end;
    let limits =
        if is_json || form == TextForm::Plain { limits } else { in_string(text, &word, &limits) };
    let object = if is_json { enclosing(text, &word, &limits) } else { item(text, &word, &limits) };
    work_counter::add(object.len() + word.start - limits.start);
    let mut found = Vec::new();
    let mut add = |range: Range<usize>| {
        let value = text.get(range.clone()).unwrap_or_default();
        let is_other = matches!(value.first(), Some(b'[' | b'{' | b'<' | b'$')) || value == b"null";
        if range.len() >= MIN_BYTES && !is_other {
            found.push(SecretFinding { range, kind: KIND });
        }
    };
    if is_json {
        fields(text, &object, &mut add);
    } else {
        lines_below(text, &object, &mut add);
    }
    (found, object)
}

/// Returns the range of the JSON object around its kind, from the opening brace to the closing one;
/// up to a limit if a brace is beyond it.
fn enclosing(text: &[u8], word: &Range<usize>, limits: &Range<usize>) -> Range<usize> {
    let depth = |opens: u8, closes: u8| {
        let mut depth = 0_u32;
        move |byte: u8| {
            if byte == closes && depth == 0 {
                return true;
            }
            depth = depth + u32::from(byte == opens) - u32::from(byte == closes);
            false
        }
    };
    let (mut is_begin, mut is_end) = (depth(b'}', b'{'), depth(b'{', b'}'));
    let before = text.get(limits.start..word.start).unwrap_or_default();
    let after = text.get(word.end..limits.end).unwrap_or_default();
    let start = before.iter().rposition(|byte| is_begin(*byte)).unwrap_or(0) + limits.start;
    let end = after.iter().position(|byte| is_end(*byte)).map_or(limits.end, |at| word.end + at);
    start..end
}

/// Returns the part of the limits that is in the JSON string around the kind.
fn in_string(text: &[u8], word: &Range<usize>, limits: &Range<usize>) -> Range<usize> {
    let is_end =
        |at: &usize| text.get(*at) == Some(&b'"') && text.get(at.wrapping_sub(1)) != Some(&b'\\');
    let start = (limits.start..word.start).rev().find(is_end).map_or(limits.start, |at| at + 1);
    start..(word.end..limits.end).find(is_end).unwrap_or(limits.end)
}

/// Finds the values below `"data":` and `"stringData":` in JSON.
fn fields(text: &[u8], object: &Range<usize>, add: &mut dyn FnMut(Range<usize>)) {
    let mut from = object.start;
    while let Some(at) = data(text, from, object.end) {
        from = at;
        let Some(colon) = skip_quote(text, at).map(|at| skip_spaces(text, at)) else { continue };
        if text.get(colon) != Some(&b':') {
            continue;
        }
        let open = skip_spaces(text, colon + 1);
        if text.get(open) != Some(&b'{') {
            continue;
        }
        let mut next = skip_spaces(text, open + 1);
        while let Some((_, at)) = parse_string(text, next, object.end) {
            let colon = skip_spaces(text, at);
            let Some((value, at)) = parse_string(text, skip_spaces(text, colon + 1), object.end)
            else {
                break;
            };
            add(value);
            let comma = skip_spaces(text, at);
            from = comma;
            if text.get(comma) != Some(&b',') {
                break;
            }
            next = skip_spaces(text, comma + 1);
        }
    }
}

/// Returns the offset after the next `data` or `Data` that follows a quote or `string`.
fn data(text: &[u8], from: usize, end: usize) -> Option<usize> {
    let rest = text.get(from..end)?;
    let is_whole = |at: usize| {
        let before = text.get(..from + at).unwrap_or_default();
        before.ends_with(b"\"") || before.ends_with(b"string")
    };
    let mut words = rest.windows(4).enumerate();
    let (at, _) = words.find(|(at, four)| matches!(*four, b"data" | b"Data") && is_whole(*at))?;
    Some(from + at + 4)
}

/// A line of YAML.
struct Line {
    /// How many spaces, tabs and signs of lists or diffs are before its content.
    indent: usize,
    /// Whether it begins a list item.
    is_item: bool,
    /// Whether it separates documents.
    is_rule: bool,
    /// The range of its text without white space at either end.
    content: Range<usize>,
    /// The start of the next line.
    next: usize,
}

fn line(text: &[u8], at: usize, end: usize) -> Line {
    let rest = text.get(at..end).unwrap_or_default();
    let (length, next) = line_end(rest);
    let content = rest.get(..length).unwrap_or_default();
    let is_margin = |byte: &&u8| matches!(byte, b' ' | b'+' | b'-' | b'\t');
    let indent = content.iter().take_while(is_margin).count();
    // The sign of a diff is not a list item.
    let is_item = indent >= 2 && content.get(indent - 2..indent) == Some(b"- ");
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let trimmed = content.iter().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1);
    let is_rule = content.starts_with(b"---");
    Line {
        indent,
        is_item,
        is_rule,
        content: at + indent.min(trimmed)..at + trimmed,
        next: at + next,
    }
}

/// Returns the end of a line and the start of the next one. A line break may be escaped.
fn line_end(rest: &[u8]) -> (usize, usize) {
    let mut from = 0;
    while let Some(at) = rest.iter().skip(from).position(|byte| matches!(byte, b'\n' | b'\\')) {
        let at = from + at;
        if rest.get(at) == Some(&b'\n') {
            return (at, at + 1);
        }
        let slashes = backslashes(rest, at, usize::MAX);
        match rest.get(at + slashes) {
            Some(b'n') => return (at, at + slashes + 1),
            Some(b'r') => {
                let more = backslashes(rest, at + slashes + 1, usize::MAX);
                return (at, rest.len().min(at + slashes + more + 2));
            }
            _ => from = at + slashes + 1,
        }
    }
    (rest.len(), rest.len())
}

/// Returns the range of the lines of the YAML object around its kind: up to another list item,
/// another document, or a line that is indented less.
fn item(text: &[u8], word: &Range<usize>, limits: &Range<usize>) -> Range<usize> {
    // The starts of the lines up to that of the kind.
    let mut begins = Vec::new();
    let mut at = limits.start;
    while at <= word.start {
        begins.push(at);
        let next = line(text, at, limits.end).next;
        if next <= at {
            break;
        }
        at = next;
    }
    let Some(own) = begins.pop() else { return word.clone() };
    let first = line(text, own, limits.end);
    let mut start = own;
    if !first.is_item {
        for begin in begins.into_iter().rev() {
            let line = line(text, begin, limits.end);
            let content = text.get(line.content.clone()).unwrap_or_default();
            if line.is_rule || !belongs(content, line.indent, first.indent) {
                break;
            }
            start = begin;
            if line.is_item && line.indent == first.indent {
                break;
            }
        }
    }
    let mut end = first.next;
    while end < limits.end {
        let line = line(text, end, limits.end);
        let content = text.get(line.content.clone()).unwrap_or_default();
        let is_next = line.is_item && line.indent == first.indent;
        let is_other = is_next || !belongs(content, line.indent, first.indent);
        if is_other || line.is_rule || line.next <= end {
            break;
        }
        end = line.next;
    }
    start..end
}

/// Returns whether a line belongs to an object whose fields have the indentation `of_object`.
fn belongs(content: &[u8], indent: usize, of_object: usize) -> bool {
    let word = content.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    content.is_empty()
        || indent > of_object
        || indent == of_object && word > 0 && content.get(word) == Some(&b':')
}

/// Finds the values below `data:` and `stringData:` in YAML.
fn lines_below(text: &[u8], object: &Range<usize>, add: &mut dyn FnMut(Range<usize>)) {
    let mut below: Option<usize> = None;
    let mut block: Option<(usize, Range<usize>)> = None;
    let mut at = object.start;
    while at < object.end {
        let line = line(text, at, object.end);
        if line.next <= at {
            break;
        }
        at = line.next;
        let content = text.get(line.content.clone()).unwrap_or_default();
        if content.is_empty() {
            continue;
        }
        if let Some((indent, range)) = &mut block {
            if line.indent > *indent {
                let start = if range.start == range.end { line.content.start } else { range.start };
                *range = start..line.content.end;
                continue;
            }
            add(range.clone());
            block = None;
        }
        if matches!(content, b"data:" | b"stringData:") {
            below = Some(line.indent);
            continue;
        }
        if below.is_none_or(|indent| line.indent <= indent) {
            below = None;
            continue;
        }
        let Some(colon) = content.windows(2).position(|two| two == b": ") else { continue };
        let value = content.get(colon + 2..).unwrap_or_default();
        let spaces = value.iter().take_while(|byte| **byte == b' ').count();
        let value = value.get(spaces..).unwrap_or_default();
        if matches!(value.first(), Some(b'|' | b'>')) {
            block = Some((line.indent, 0..0));
            continue;
        }
        let from = line.content.end - value.len();
        let is_quote = |byte: &&u8| matches!(byte, b'\\' | b'"' | b'\'');
        let quotes = value.iter().take_while(is_quote).count();
        let closing = value.iter().rev().take_while(is_quote).count();
        let closing = if quotes > 0 { closing } else { 0 };
        if quotes + closing < value.len() {
            add(from + quotes..line.content.end - closing);
        }
    }
    if let Some((_, range)) = block {
        add(range);
    }
}
