//! Long texts: the fact holds a reference, and the text itself is only in the stored source.
//!
//! A pointer (RFC 6901) leads to a value in the JSON document at the reference's position. The text
//! of that value is: for a string, the string itself; for a list of texts and content blocks, their
//! texts joined by line breaks; for an edit (an object with a patch, replacements or content), its
//! unified patch. `#from-to` after the pointer selects these bytes of that text. `#json` and a
//! second pointer lead into the JSON that a string holds.

use crate::lenient::LenientText;
use crate::patch::EditDescription;
use forge_store::model::text::trim_cut_end;
use forge_store::model::{ObjectId, TextRef, Value, replace_lone_surrogates};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Texts up to this many bytes are stored in the fact itself.
pub const INLINE_BYTES: usize = 256;

const PREVIEW_BYTES: usize = 200;

/// The position of the JSON document that contains a text in its file: offset and length in bytes.
pub(crate) type SourceSpan = (u64, u64);

/// Returns a text as the value of a fact: the text itself if it is short, otherwise a reference.
pub(crate) fn value(text: &str, place: SourceSpan, pointer: impl FnOnce() -> String) -> Value {
    if text.len() <= INLINE_BYTES {
        return text.into();
    }
    TextRef {
        preview: beginning(text, PREVIEW_BYTES).to_owned(),
        bytes: text.len() as u64,
        hash: ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes()),
        place: Some(place),
        pointer: pointer(),
    }
    .into_value()
}

/// Returns a part of a text as the value of a fact, as [`value`] does.
pub(crate) fn part(
    text: &str,
    range: Range<usize>,
    place: SourceSpan,
    pointer: impl FnOnce() -> String,
) -> Value {
    let whole = range == (0..text.len());
    value(text.get(range.clone()).unwrap_or_default(), place, || {
        if whole { pointer() } else { format!("{}#{}-{}", pointer(), range.start, range.end) }
    })
}

/// Returns the longest prefix of at most this many bytes that splits neither a character nor the
/// mark of a secret.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let place = text.floor_char_boundary(bytes);
    text.get(..mark_around(text, place).map_or(place, |mark| mark.start)).unwrap_or(text)
}

/// Returns the longest suffix of at most this many bytes that splits neither a character nor the
/// mark of a secret.
pub(crate) fn ending(text: &str, bytes: usize) -> &str {
    let place = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(mark_around(text, place).map_or(place, |mark| mark.end)..).unwrap_or(text)
}

/// Returns the range of the mark of a secret (`[redacted:KIND]`) that a cut at this place would
/// split.
fn mark_around(text: &str, place: usize) -> Option<Range<usize>> {
    const LONGEST: usize = 64;
    const BEGIN: &str = "[redacted:";
    let from = text.floor_char_boundary(place.saturating_sub(LONGEST));
    let to = text.floor_char_boundary(place.saturating_add(LONGEST).min(text.len()));
    let around = text.get(from..to)?;
    let is_kind = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    around.match_indices(BEGIN).find_map(|(at, _)| {
        let kind = around.get(at + BEGIN.len()..)?.split_once(']')?.0;
        let mark = from + at..from + at + BEGIN.len() + kind.len() + 1;
        (kind.bytes().all(is_kind) && mark.start < place && place < mark.end).then_some(mark)
    })
}

/// Returns the first line that is not blank. A line of more than 80 characters is cut, and `…` is
/// added.
pub(crate) fn headline(text: &str) -> Option<String> {
    const CHARACTERS: usize = 80;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut short: String = line.chars().take(CHARACTERS).collect();
    if short.len() < line.len() {
        short.truncate(trim_cut_end(&short).len());
        short.push('…');
    }
    Some(short)
}

/// Returns the whole text that a reference points to: `document` is the JSON at the reference's
/// position, `pointer` its pointer.
///
/// `None` if the document is not JSON or has no text there.
#[must_use]
pub fn resolve(document: &[u8], pointer: &str) -> Option<String> {
    resolve_each(document, [pointer]).pop()?
}

/// Returns the whole texts that several references to one document point to, each as [`resolve`]
/// does.
#[must_use]
pub fn resolve_each<'p>(
    document: &[u8],
    pointers: impl IntoIterator<Item = &'p str>,
) -> Vec<Option<String>> {
    let document = String::from_utf8_lossy(document);
    let document = readable_json(&document);
    let document = serde_json::from_str::<serde_json::Value>(&document).ok();
    let texts = pointers.into_iter().map(|pointer| found(document.as_ref()?, pointer));
    texts.collect()
}

fn found(document: &serde_json::Value, pointer: &str) -> Option<String> {
    let (path, range) = split_range(pointer);
    let text = match path.split_once("#json") {
        None => value_text(document.pointer(path)?)?,
        Some((outer, inner)) => {
            let inside = readable_json(document.pointer(outer)?.as_str()?).into_owned();
            let inside: serde_json::Value = serde_json::from_str(&inside).ok()?;
            value_text(inside.pointer(inner)?)?
        }
    };
    match range {
        None => Some(text),
        Some(range) => text.get(range).map(str::to_owned),
    }
}

fn split_range(pointer: &str) -> (&str, Option<Range<usize>>) {
    let range = pointer.rsplit_once('#').and_then(|(path, range)| {
        let (from, to) = range.split_once('-')?;
        Some((path, from.parse().ok()?..to.parse().ok()?))
    });
    range.map_or((pointer, None), |(path, range)| (path, Some(range)))
}

fn value_text(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|item| match item {
                serde_json::Value::String(text) => Some(text.as_str()),
                block => block.get("text")?.as_str(),
            });
            Some(join(texts))
        }
        object => {
            let json = object.to_string();
            Some(serde_json::from_str::<EditDescription<'_>>(&json).ok()?.patch()?.text)
        }
    }
}

/// Returns this JSON in a form that a parser accepts: lone surrogates are replaced, and control
/// characters inside strings are escaped. The pointers into the document stay the same.
#[must_use]
pub fn readable_json(json: &str) -> Cow<'_, str> {
    let json = replace_lone_surrogates(json);
    match escape_control_characters(&json) {
        Some(escaped) => Cow::Owned(escaped),
        None => json,
    }
}

/// Whether there is a control character, such as a line break. Each chunk is read to its end,
/// without a branch for each byte: this is quick for many bytes.
pub(crate) fn has_control_character(bytes: &[u8]) -> bool {
    bytes.chunks(256).any(|part| part.iter().fold(false, |found, byte| found | (*byte < b' ')))
}

/// Returns this JSON with escapes in place of control characters inside strings; `None` if there
/// are none.
///
/// A client that prints its records without escaping writes such characters as they are, which JSON
/// does not allow.
fn escape_control_characters(json: &str) -> Option<String> {
    if !has_control_character(json.as_bytes()) {
        return None;
    }
    let (mut quoted, mut backslash, mut escaped) = (false, false, false);
    let mut text = String::with_capacity(json.len() + 64);
    let mut copied = 0;
    for (at, byte) in json.bytes().enumerate() {
        if quoted && byte < b' ' {
            // A backslash before a control character escapes nothing: it is a character of the
            // text.
            let before = if backslash { "\\" } else { "" };
            text.push_str(json.get(copied..at)?);
            text.push_str(before);
            text.push_str(&format!("\\u{byte:04x}"));
            (copied, escaped, backslash) = (at + 1, true, false);
            continue;
        }
        match byte {
            _ if backslash => backslash = false,
            b'\\' => backslash = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    text.push_str(json.get(copied..)?);
    escaped.then_some(text)
}

/// A content block with its text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TextBlock<'a> {
    #[serde(borrow)]
    text: LenientText<'a>,
}

/// Returns the text of a string, a content block or a list of these, with its pointer for
/// [`resolve`]. `pointer` leads to the whole. `None` if there is no text.
pub(crate) fn content_text(content: Option<&RawValue>, pointer: &str) -> Option<(String, String)> {
    let content = content?.get();
    let (text, below) = if content.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(content).ok()?;
        if let [item] = items.as_slice() {
            let (text, below) = block_text(item.get())?;
            (text.into_owned(), format!("/0{below}"))
        } else {
            let texts: Vec<_> = items.iter().filter_map(|item| block_text(item.get())).collect();
            (join(texts.iter().map(|(text, _)| &**text)), String::new())
        }
    } else {
        let (text, below) = block_text(content)?;
        (text.into_owned(), below.to_owned())
    };
    (!text.is_empty()).then(|| (text, format!("{pointer}{below}")))
}

/// Returns the text of a string or content block, and the pointer from it to the text.
fn block_text(json: &str) -> Option<(Cow<'_, str>, &'static str)> {
    let (word, below) = match json.as_bytes().first()? {
        b'"' => (serde_json::from_str(json).ok()?, ""),
        b'{' => (serde_json::from_str::<TextBlock<'_>>(json).ok()?.text, "/text"),
        // serde would accept a list as a block, with the fields in their order.
        _ => return None,
    };
    let LenientText(text) = word;
    Some((text?, below))
}

/// Joins the texts of several content blocks by line breaks.
pub(crate) fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_stored_and_a_long_one_is_resolved() {
        assert_eq!(value("short", (0, 9), || "/a".to_owned()), Value::from("short"));
        let long = "ü".repeat(300);
        let document = serde_json::json!({ "a": { "b/c": long } }).to_string();
        let made = value(&long, (5, document.len() as u64), || "/a/b~1c".to_owned());
        let text = TextRef::from_value(&made).unwrap();
        assert_eq!((text.preview.len(), text.bytes, text.place.unwrap().0), (200, 600, 5));
        assert_eq!(resolve(document.as_bytes(), &text.pointer).as_ref(), Some(&long));
        assert_eq!(text.hash.as_bytes(), blake3::hash(long.as_bytes()).as_bytes());
    }

    #[test]
    fn a_part_of_a_text_is_found_by_its_range() {
        let whole = format!("Exit code 1\n{}", "x".repeat(400));
        let document = serde_json::json!({ "r": whole }).to_string();
        let made = part(&whole, 12..whole.len(), (0, 1), || "/r".to_owned());
        let text = TextRef::from_value(&made).unwrap();
        assert_eq!(text.pointer, "/r#12-412");
        assert_eq!(resolve(document.as_bytes(), &text.pointer), Some("x".repeat(400)));
    }

    #[test]
    fn half_a_character_is_replaced_in_a_resolved_text() {
        let document = r#"{"a":"cut \ud83d"}"#;
        assert_eq!(resolve(document.as_bytes(), "/a"), Some("cut \u{fffd}".to_owned()));
    }

    #[test]
    fn control_characters_inside_strings_are_read() {
        for (json, says) in [
            ("{\"a\":\"x\u{1b}[31my\"}", "x\u{1b}[31my"),
            ("{\"a\":\"\t\r\n\0\u{1f}\"}", "\t\r\n\0\u{1f}"),
            ("{\n\t\"a\" :\r\n\"a\\\"\u{7}\\\\\"}", "a\"\u{7}\\"),
            // A backslash before the character.
            ("{\"a\":\"x\\\u{1}y\"}", "x\\\u{1}y"),
        ] {
            let read: serde_json::Value = serde_json::from_str(&readable_json(json)).unwrap();
            assert_eq!(read["a"], says, "{json}");
            assert_eq!(resolve(json.as_bytes(), "/a").as_deref(), Some(says));
        }
        for same in ["{\n \"a\": [\t1]\r\n}", "{\"a\":\"\\u001b\\n\"}", "", "\u{1b}[31m"] {
            assert!(matches!(readable_json(same), Cow::Borrowed(_)), "{same}");
        }
        let inner = "{\"arguments\":\"{\\\"cmd\\\":\\\"a\\nb\\\"}\"}";
        assert_eq!(resolve(inner.as_bytes(), "/arguments#json/cmd").as_deref(), Some("a\nb"));
    }

    #[test]
    fn a_pointer_to_nothing_resolves_to_nothing() {
        for pointer in ["/b", "/a#3-9", "/a#x-y", "/n"] {
            assert_eq!(resolve(br#"{"a":"text","n":1}"#, pointer), None, "{pointer}");
        }
        assert_eq!(resolve(b"{", "/a"), None);
    }

    #[test]
    fn the_text_of_a_content_is_resolved_by_its_pointer() {
        let long = "z".repeat(300);
        for (content, says, points) in [
            (serde_json::json!("a\nb"), Some("a\nb"), "/c"),
            (serde_json::json!({"type": "text", "text": "a"}), Some("a"), "/c/text"),
            (serde_json::json!(["a"]), Some("a"), "/c/0"),
            (serde_json::json!([{"text": "a"}]), Some("a"), "/c/0/text"),
            (serde_json::json!([{"text": "a"}, {"image": 1}, {"text": "b"}]), Some("a\nb"), "/c"),
            // Strings and blocks may be mixed.
            (serde_json::json!(["a", {"text": long}]), Some(&*format!("a\n{long}")), "/c"),
            (serde_json::json!([{"text": "a"}, "b", 3, null, ["c"]]), Some("a\nb"), "/c"),
            (serde_json::json!([["a"]]), None, ""),
            (serde_json::json!([{"image": 1}]), None, ""),
            (serde_json::json!([]), None, ""),
            (serde_json::json!(""), None, ""),
            (serde_json::json!(7), None, ""),
        ] {
            let raw = serde_json::value::to_raw_value(&content).unwrap();
            let found = content_text(Some(&raw), "/c");
            let expected = says.map(|says| (says.to_owned(), points.to_owned()));
            assert_eq!(found, expected, "{content}");
            let document = serde_json::json!({ "c": content }).to_string();
            if let Some((text, pointer)) = found {
                assert_eq!(resolve(document.as_bytes(), &pointer), Some(text), "{content}");
            }
        }
        // Deeply nested lists.
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep: Box<RawValue> = serde_json::from_str(&deep).unwrap();
        assert_eq!(content_text(Some(&deep), "/c"), None);
    }

    #[test]
    fn a_headline_is_the_first_line_that_is_not_blank() {
        assert_eq!(headline("\n  \n fix it \nnow"), Some("fix it".to_owned()));
        assert_eq!(headline(&"é".repeat(90)), Some(format!("{}…", "é".repeat(80))));
        // The joiner at the end of a cut text joins nothing.
        let joined = format!("{}\u{200d}y", "x".repeat(79));
        assert_eq!(headline(&joined), Some(format!("{}…", "x".repeat(79))));
        assert_eq!(headline(" \n"), None);
    }
}
