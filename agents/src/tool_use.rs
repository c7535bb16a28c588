//! Builds the fields of facts about tools other than commands, edits, task lists and sub-agents:
//! reads, searches, fetches and questions.

use crate::claude_code::line_context::{LineContext, fields};
use crate::lenient::{LenientText, object};
use crate::long_text::INLINE_BYTES;
use forge_store::model::{FieldMap, Value};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The maximum number of fields of an object, or elements of a list, that a fact stores.
pub(crate) const MAX_ENTRIES: usize = 32;
/// The number of levels of lists and objects that a fact stores; the input itself is the first.
pub(crate) const MAX_LEVELS: usize = 2;
/// The maximum size of an input in bytes. A larger one is not stored in the field `input`.
const MAX_BYTES: usize = 1 << 20;

/// The fields of an input that can become the field `path` of the fact: the first one that the
/// input has is used. The next lists are for other fields.
const PATH: &[&str] = &[
    "file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path", "directory",
    "plan_path", "plan_filename",
];
const PATTERN: &[&str] = &["pattern", "glob_pattern", "regex"];
const ADDRESS: &[&str] = &["url", "uri", "address"];
const QUERY: &[&str] = &["query", "search_query", "q"];

/// Returns the fields that a fact gets from the input of its call: `path`, `pattern`, `address` and
/// `query` if the input has them, and the whole `input` if it has at most [`MAX_BYTES`]. `pointer`
/// is the pointer to the input in the line.
///
/// A long text becomes a reference. [`MAX_LEVELS`] levels of lists and objects are stored, with at
/// most [`MAX_ENTRIES`] entries each. A deeper list or object is stored as JSON text; if that has
/// more than [`INLINE_BYTES`], it is left out of an object, and becomes null in a list.
pub(crate) fn input_fields(
    context: &LineContext,
    input: Option<&RawValue>,
    pointer: &str,
) -> FieldMap {
    let given: BTreeMap<String, &RawValue> = object(input);
    let named = |names: &[&str]| {
        let text = names.iter().find_map(|name| {
            let raw = given.get(*name)?;
            let LenientText(text) = serde_json::from_str(raw.get()).ok()?;
            Some((name, text.filter(|text| !text.is_empty())?))
        });
        Value::from(text.map(|(name, text)| context.text(&text, format!("{pointer}/{name}"))))
    };
    let mut made = fields([
        ("path", named(PATH)),
        ("pattern", named(PATTERN)),
        ("address", named(ADDRESS)),
        ("query", named(QUERY)),
    ]);
    let read = input.filter(|raw| !given.is_empty() && raw.get().len() <= MAX_BYTES);
    let read: Option<Value> = read.and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(input) = read {
        let input = stored_value(context, input.without_nulls(), pointer, 0);
        if input != Value::Map(FieldMap::new()) {
            made.insert("input".to_owned(), input);
        }
    }
    made
}

/// Returns a value of an input in the form in which a fact stores it. `pointer` is the pointer to
/// the value, and `level` the number of lists and objects around it.
pub(crate) fn stored_value(
    context: &LineContext,
    value: Value,
    pointer: &str,
    level: usize,
) -> Value {
    match value {
        Value::Text(text) => context.text(&text, pointer),
        Value::Map(_) | Value::List(_) if level >= MAX_LEVELS => {
            let json = serde_json::to_string(&value).unwrap_or_default();
            if json.len() <= INLINE_BYTES { json.into() } else { Value::Null }
        }
        Value::Map(map) => {
            let below = map.into_iter().take(MAX_ENTRIES).map(|(name, value)| {
                let pointer = format!("{pointer}/{}", escaped(&name));
                let value = stored_value(context, value, &pointer, level + 1);
                (name, value)
            });
            Value::Map(below.filter(|(_, value)| *value != Value::Null).collect())
        }
        Value::List(list) => {
            let below = list.into_iter().take(MAX_ENTRIES).enumerate();
            let below = below.map(|(index, value)| {
                stored_value(context, value, &format!("{pointer}/{index}"), level + 1)
            });
            Value::List(below.collect())
        }
        other => other,
    }
}

/// Escapes a name for a JSON pointer (RFC 6901).
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) {
        name.replace('~', "~0").replace('/', "~1").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;
    use forge_store::model::{TextRef, Timestamp};

    fn line_context() -> LineContext {
        LineContext::new((0, 1), Timestamp::default())
    }

    #[test]
    fn the_subject_of_a_call_is_named_and_its_input_is_kept() {
        let long = "x".repeat(300);
        let document = serde_json::json!({"args": {
            "file_path": "/w/a.rs", "pattern": "fn \\w+", "limit": 3, "flag": true, "none": null,
            "a/b": long, "list": ["a", {"b": 1}], "deep": [[[1]]], "large": ["y".repeat(3000)],
        }});
        let text = document.to_string();
        let input = serde_json::value::to_raw_value(&document["args"]).unwrap();
        let made = input_fields(&line_context(), Some(&input), "/args");
        assert_eq!(made.get("path"), Some(&"/w/a.rs".into()));
        assert_eq!(made.get("pattern"), Some(&"fn \\w+".into()));
        assert_eq!((made.get("address"), made.get("query")), (None, None));
        let Some(Value::Map(input)) = made.get("input") else { panic!("{made:?}") };
        let names: Vec<&str> = input.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["a/b", "deep", "file_path", "flag", "large", "limit", "list", "pattern"]
        );
        let found = TextRef::from_value(&input["a/b"]).unwrap();
        assert_eq!(resolve(text.as_bytes(), &found.pointer), Some(long));
    }

    #[test]
    fn an_input_that_is_not_an_object_gives_no_fields() {
        for json in ["null", "3", "[1]", "\"a\"", "{}"] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(input_fields(&line_context(), Some(&raw), ""), FieldMap::new(), "{json}");
        }
        assert_eq!(input_fields(&line_context(), None, ""), FieldMap::new());
    }
}
