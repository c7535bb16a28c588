//! Texts of facts and claims for output: in full, or cut with the hash of the full text.

use crate::error::{CommandError, CommandErrorKind};
use forge_store::error::Error;
pub use forge_store::model::text::{count_text, in_one_line};
use forge_store::model::text::{with_ellipsis, without_hidden};
use forge_store::model::{ObjectId, TextRef, Value};
use forge_store::store::Session;
use serde::Serialize;
use std::mem;

/// The length at which texts are cut in JSON, in bytes.
pub const CUT_BYTES: usize = 4096;

/// How much of a text is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLength {
    /// The beginning that the fact itself contains, so that nothing else is read.
    Preview,
    /// Up to [`CUT_BYTES`]; of a longer text the beginning, with its length and hash.
    Cut,
    /// The full text.
    Whole,
}

/// Returns a text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

/// Returns a name such as `env_vars` as a title.
pub fn name_title(name: &str) -> String {
    capitalised(&name.replace('_', " "))
}

/// Reads the texts of a session's facts.
pub struct TextReader<'a> {
    session: &'a Session,
    length: TextLength,
    /// The document that was read last, with its source and place: it often contains several texts.
    last: Option<(String, (u64, u64), Vec<u8>)>,
}

impl<'a> TextReader<'a> {
    /// Creates a reader of this session's texts, for this length.
    pub fn new(session: &'a Session, length: TextLength) -> Self {
        Self { session, length, last: None }
    }

    /// Returns the value for output: references are replaced by their texts, and long texts are
    /// cut. `source` is the source that the references of a fact point into.
    pub fn resolve(&mut self, source: Option<&str>, value: Value) -> Result<Value, CommandError> {
        if let Some(text) = TextRef::from_value(&value) {
            return self.resolve_reference(source, &text);
        }
        Ok(match value {
            Value::Text(text) if self.length == TextLength::Cut => cut_text(text),
            Value::List(items) => {
                let items = items.into_iter().map(|item| self.resolve(source, item));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Value::Map(mut fields) => {
                for (_, field) in &mut fields {
                    *field = self.resolve(source, mem::take(field))?;
                }
                Value::Map(fields)
            }
            plain => plain,
        })
    }

    /// Finds the source that contains the text of the first reference in this value, for a value
    /// that does not name its source. `None` if there is no reference, or if no source contains it.
    pub fn source_of(&self, value: &Value) -> Result<Option<String>, CommandError> {
        let Some(text) = first_reference(value) else { return Ok(None) };
        Ok(self.session.source_of(&text, &forge_agents::resolve)?)
    }

    fn resolve_reference(
        &mut self,
        source: Option<&str>,
        text: &TextRef,
    ) -> Result<Value, CommandError> {
        match self.length {
            TextLength::Preview => Ok(preview(text)),
            TextLength::Cut => Ok(self.read(source, text)?.map_or_else(|| preview(text), cut_text)),
            TextLength::Whole => {
                Ok(self.read(source, text)?.map_or_else(|| preview(text), Value::from))
            }
        }
    }

    /// Reads the full text; `None` if it was pruned and only its beginning is left.
    fn read(
        &mut self,
        source: Option<&str>,
        text: &TextRef,
    ) -> Result<Option<String>, CommandError> {
        let place = text.place.zip(source);
        let known = place.is_some_and(|(place, name)| {
            self.last.as_ref().is_some_and(|(last, at, _)| last == name && *at == place)
        });
        if !known {
            let bytes = match self.session.text_bytes(source, text) {
                Err(Error::TextRemoved { .. }) => return Ok(None),
                bytes => bytes?,
            };
            let Some((place, name)) = place else {
                return String::from_utf8(bytes).map(Some).map_err(|_| damaged_text(text));
            };
            self.last = Some((name.to_owned(), place, bytes));
        }
        let document = self.last.as_ref().map_or(&[][..], |(_, _, bytes)| bytes);
        forge_agents::resolve(document, &text.pointer).map(Some).ok_or_else(|| damaged_text(text))
    }
}

/// Returns the value with long texts cut, and with every reference replaced by the beginning of its
/// text. Nothing is read.
pub fn with_previews(value: &Value) -> Value {
    if let Some(text) = TextRef::from_value(value) {
        return cut_text_json(&text.preview, text.bytes, text.hash);
    }
    match value {
        Value::Text(text) => cut_text(text.clone()),
        Value::List(items) => Value::List(items.iter().map(with_previews).collect()),
        Value::Map(fields) => Value::Map(
            fields.iter().map(|(name, field)| (name.clone(), with_previews(field))).collect(),
        ),
        plain => plain.clone(),
    }
}

fn first_reference(value: &Value) -> Option<TextRef> {
    match value {
        Value::Map(fields) => {
            TextRef::from_value(value).or_else(|| fields.values().find_map(first_reference))
        }
        Value::List(items) => items.iter().find_map(first_reference),
        _ => None,
    }
}

/// Returns the text; if it is longer than [`CUT_BYTES`], an object with its beginning, length and
/// hash.
fn cut_text(text: String) -> Value {
    if text.len() <= CUT_BYTES {
        return Value::Text(text);
    }
    let hash = ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
    cut_text_json(&text[..text.floor_char_boundary(CUT_BYTES)], text.len() as u64, hash)
}

fn cut_text_json(beginning: &str, bytes: u64, hash: ObjectId) -> Value {
    Value::from([
        ("text", beginning.into()),
        ("bytes", bytes.into()),
        ("blob", hash.to_string().into()),
    ])
}

fn preview(text: &TextRef) -> Value {
    if text.preview.len() as u64 >= text.bytes {
        return text.preview.as_str().into();
    }
    format!("{} ({} bytes)", with_ellipsis(&text.preview), text.bytes).into()
}

fn damaged_text(text: &TextRef) -> CommandError {
    let hash = text.hash.short();
    CommandError::new(
        CommandErrorKind::Corrupt,
        format!("the text {hash} is not where it should be"),
    )
}

/// Returns a text on one line, without control characters, of at most this many characters.
pub fn shorten(text: &str, characters: usize) -> String {
    let line = without_hidden(text, ' ').split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= characters {
        return line;
    }
    let cut: String = line.chars().take(characters.saturating_sub(1)).collect();
    with_ellipsis(&cut)
}

/// Returns the word for a variant of an enum in JSON.
pub fn json_word(variant: impl Serialize) -> String {
    let word = serde_json::to_value(variant).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// Lists names on one line, at most 20 of them: `a, b and 1998 more`.
pub fn name_list(names: &[String]) -> String {
    first_names(names, names.len() as u64)
}

/// Lists the first of `count` names on one line, at most 20 of them: `a, b and 1998 more`.
pub fn first_names(names: &[String], count: u64) -> String {
    const SHOWN: usize = 20;
    let shown = &names[..names.len().min(SHOWN)];
    match count - shown.len() as u64 {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Lists all names, the last one after an `and`: `a, b and c`.
pub fn and_list(names: &[String]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.join(""),
    }
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the deepest folder that contains all these files, with a slash at its end. Empty for one
/// file, and if only the root contains them all.
#[must_use]
pub fn common_folder<'p>(paths: &[&'p str]) -> &'p str {
    let [first, rest @ ..] = paths else { return "" };
    let mut end = if rest.is_empty() { 0 } else { first.rfind('/').map_or(0, |place| place + 1) };
    for path in rest {
        while end > 0 && !path.starts_with(first.get(..end).unwrap_or_default()) {
            let shorter = first.get(..end - 1).unwrap_or_default();
            end = shorter.rfind('/').map_or(0, |place| place + 1);
        }
    }
    if end > 1 { first.get(..end).unwrap_or_default() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    use forge_store::redact::{PartEnding, TextForm};

    /// Regression: three names were listed as "a and b and c".
    #[test]
    fn only_the_last_name_of_a_list_follows_the_word_and() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let lists = [0, 1, 2, 3].map(|count| and_list(names.get(..count).unwrap()));
        assert_eq!(lists, ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn the_common_folder_of_several_files_is_found() {
        assert_eq!(common_folder(&["/w/src/a.rs", "/w/src/b/c.rs"]), "/w/src/");
        assert_eq!(common_folder(&["/w/src/a.rs", "/w/srcs/b.rs"]), "/w/");
        assert_eq!(common_folder(&["/w/a.rs", "/v/b.rs"]), "");
        assert_eq!(common_folder(&["/w/src/a.rs"]), "");
        assert_eq!(common_folder(&["a.rs", "b.rs"]), "");
        assert_eq!(common_folder(&[]), "");
    }

    #[test]
    fn only_texts_over_the_limit_are_cut_and_between_characters() {
        assert_eq!(cut_text("x".repeat(CUT_BYTES)), Value::from("x".repeat(CUT_BYTES)));
        let long = format!("x{}", "ä".repeat(CUT_BYTES));
        let shown = cut_text(long.clone());
        let beginning = shown.field("text").and_then(Value::as_text).unwrap();
        assert_eq!(beginning.len(), CUT_BYTES - 1);
        assert!(long.starts_with(beginning));
        assert_eq!(shown.field("bytes").and_then(Value::as_i64), Some(2 * 4096 + 1));
        let hash = blake3::hash(long.as_bytes()).to_hex().to_string();
        assert_eq!(shown.field("blob").and_then(Value::as_text), Some(hash.as_str()));
    }

    #[test]
    fn a_text_is_read_from_its_line_in_the_source() {
        use forge_store::model::{Fact, FactOrigin, Kind, OperationId, Timestamp};
        use forge_store::store::{NewSession, SourceChunk, Store, WriteContext};
        let store = Store::in_memory().unwrap();
        let now = Timestamp::from_micros(1_770_000_000_000_000);
        let act = WriteContext::asked("import", now);
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let texts = ["x".repeat(1000), "y".repeat(5000)];
        let line = format!("{{\"a\":\"{}\",\"b\":\"{}\"}}", texts[0], texts[1]);
        let refer = |text: &str, pointer: &str| TextRef {
            preview: text[..4].to_owned(),
            bytes: text.len() as u64,
            hash: ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes()),
            place: Some((0, line.len() as u64)),
            pointer: pointer.to_owned(),
        };
        let value = Value::from([
            ("text", refer(&texts[0], "/a").into_value()),
            ("role", refer(&texts[1], "/b").into_value()),
        ]);
        let (kind, id) = (Kind::Message, "m".to_owned());
        let fact = Fact {
            kind,
            id,
            at: now,
            origin: FactOrigin::Imported,
            place: 0,
            recorded_at: now,
            value,
        };
        let taken = SourceChunk {
            bytes: store.redact_source(line.as_bytes(), TextForm::Json, PartEnding::End),
            lines: 1,
            keep: true,
            facts: vec![fact],
            ..SourceChunk::default()
        };
        session.import_chunk(&act, OperationId::from_bytes([1; 16]), "source", taken).unwrap();
        // Another source with another text in that place.
        let other = line.replace(['x', 'y'], "z");
        let taken = SourceChunk {
            bytes: store.redact_source(other.as_bytes(), TextForm::Json, PartEnding::End),
            lines: 1,
            keep: true,
            ..SourceChunk::default()
        };
        session.import_chunk(&act, OperationId::from_bytes([2; 16]), "other", taken).unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        let known = state.facts_of(Kind::Message).unwrap().remove(0);
        let shown = |length| {
            let mut reader = TextReader::new(&session, length);
            reader.resolve(known.source.as_deref(), known.fact.value.clone()).unwrap()
        };
        let cut = shown(TextLength::Cut);
        assert_eq!(cut.field("text"), Some(&Value::from(texts[0].as_str())));
        let long = cut.field("role").unwrap();
        assert_eq!(long.field("text").and_then(Value::as_text).map(str::len), Some(CUT_BYTES));
        assert_eq!(shown(TextLength::Whole).field("role"), Some(&Value::from(texts[1].as_str())));
        assert_eq!(shown(TextLength::Preview).field("text"), Some(&"xxxx… (1000 bytes)".into()));
        let body = Value::List(vec![known.fact.value.clone()]);
        let reader = TextReader::new(&session, TextLength::Whole);
        assert_eq!(reader.source_of(&body).unwrap().as_deref(), Some("source"));
        // When a source is read again from its beginning, its new texts are in another blob.
        let again = line.replace(['x', 'y'], "v");
        let taken = SourceChunk {
            bytes: store.redact_source(again.as_bytes(), TextForm::Json, PartEnding::End),
            lines: 1,
            keep: true,
            rereads: true,
            ..SourceChunk::default()
        };
        session.import_chunk(&act, OperationId::from_bytes([3; 16]), "source", taken).unwrap();
        let new = Value::List(vec![refer(&"v".repeat(1000), "/a").into_value()]);
        let found = reader.source_of(&new).unwrap();
        assert_eq!(found.as_deref(), Some("source#2"));
        assert_eq!(
            reader.source_of(&body).unwrap().as_deref(),
            Some("source"),
            "old texts are still found"
        );
        let read =
            TextReader::new(&session, TextLength::Whole).resolve(found.as_deref(), new).unwrap();
        assert_eq!(read, Value::List(vec!["v".repeat(1000).as_str().into()]));
        let nowhere = Value::List(vec![refer(&"w".repeat(1000), "/a").into_value()]);
        assert_eq!(reader.source_of(&nowhere).unwrap(), None);
    }

    #[test]
    fn a_text_reference_is_shown_with_its_stored_beginning() {
        let text = TextRef {
            preview: "be".to_owned(),
            bytes: 5000,
            hash: ObjectId::from_bytes([3; 32]),
            place: None,
            pointer: String::new(),
        };
        let value = Value::from([("text", text.into_value())]);
        let shown = with_previews(&value);
        let inner = shown.field("text").unwrap();
        assert_eq!(inner.field("text").and_then(Value::as_text), Some("be"));
        assert_eq!(inner.field("bytes").and_then(Value::as_i64), Some(5000));
    }
}
