//! Uses of tools that are no command, edit, task list or sub-agent: what was read, searched, fetched or asked.

use crate::claude_code::scene::{Scene, fields};
use crate::lenient::Word;
use forge_store::model::{Map, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest list or object inside an input that its fact holds, in bytes of JSON.
const MAX_NESTED_BYTES: usize = 2 << 10;
/// How deep lists and objects may be inside each other there.
const MAX_NESTED_LEVELS: usize = 2;

/// The names that tools give to what a fact names too, in the order they are looked for.
const PATH: &[&str] = &[
    "file_path",
    "absolute_path",
    "notebook_path",
    "path",
    "dir_path",
    "directory",
    "plan_path",
    "plan_filename",
];
const PATTERN: &[&str] = &["pattern", "glob_pattern", "regex"];
const ADDRESS: &[&str] = &["url", "uri", "address"];
const QUERY: &[&str] = &["query", "search_query", "q"];

/// The fields that the input of a call gives its fact: `path`, `pattern`, `address` and `query` where the input has
/// them, and the `input` as a whole. `pointer` leads to the input in the line.
///
/// A long text is a reference. A list or object inside is kept up to two levels and 2 kB; a larger one is left out.
pub(crate) fn input_fields(scene: &Scene<'_>, input: Option<&RawValue>, pointer: &str) -> Map {
    let given = entries(input);
    let named = |names: &[&str]| {
        let text = names.iter().find_map(|name| {
            let raw = given.get(*name)?;
            let Word(text) = serde_json::from_str(raw.get()).ok()?;
            Some((name, text.filter(|text| !text.is_empty())?))
        });
        Value::from(text.map(|(name, text)| scene.text(&text, format!("{pointer}/{name}"))))
    };
    let mut made = fields([
        ("path", named(PATH)),
        ("pattern", named(PATTERN)),
        ("address", named(ADDRESS)),
        ("query", named(QUERY)),
    ]);
    let input: Map = given
        .iter()
        .filter_map(|(name, raw)| {
            let value = value(scene, raw, || format!("{pointer}/{}", escaped(name)))?;
            Some((name.clone().into_owned(), value))
        })
        .collect();
    if !input.is_empty() {
        made.insert("input".to_owned(), Value::Map(input));
    }
    made
}

/// The entries of an object; none of anything else.
fn entries(input: Option<&RawValue>) -> BTreeMap<Cow<'_, str>, &RawValue> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Entries<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);
    let entries = input.and_then(|raw| serde_json::from_str::<Entries<'_>>(raw.get()).ok());
    entries.map(|entries| entries.0).unwrap_or_default()
}

fn value(scene: &Scene<'_>, raw: &RawValue, pointer: impl Fn() -> String) -> Option<Value> {
    let json = raw.get();
    match json.as_bytes().first()? {
        b'"' => {
            let Word(text) = serde_json::from_str(json).ok()?;
            Some(scene.text(&text?, pointer()))
        }
        b'{' | b'[' if json.len() > MAX_NESTED_BYTES => None,
        _ => {
            let value: Value = serde_json::from_str(json).ok()?;
            let value = value.without_nulls();
            (value != Value::Null && levels(&value) <= MAX_NESTED_LEVELS).then_some(value)
        }
    }
}

/// How deep lists and maps are inside each other; 0 for what is neither.
fn levels(value: &Value) -> usize {
    let deepest = match value {
        Value::List(items) => items.iter().map(levels).max(),
        Value::Map(fields) => fields.values().map(levels).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// A name as a part of a pointer (RFC 6901).
fn escaped(name: &str) -> Cow<'_, str> {
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

    fn scene() -> Scene<'static> {
        Scene {
            place: (0, 1),
            at: Timestamp::default(),
            recorded_at: Timestamp::default(),
            agent: None,
            base: "",
            cwd: None,
            git_branch: None,
        }
    }

    #[test]
    fn what_a_call_was_about_is_named_and_its_input_kept() {
        let long = "x".repeat(300);
        let document = serde_json::json!({"args": {
            "file_path": "/w/a.rs", "pattern": "fn \\w+", "limit": 3, "flag": true, "none": null,
            "a/b": long, "list": ["a", {"b": 1}], "deep": [[[1]]], "large": ["y".repeat(3000)],
        }});
        let text = document.to_string();
        let input = serde_json::value::to_raw_value(&document["args"]).unwrap();
        let made = input_fields(&scene(), Some(&input), "/args");
        assert_eq!(made.get("path"), Some(&"/w/a.rs".into()));
        assert_eq!(made.get("pattern"), Some(&"fn \\w+".into()));
        assert_eq!((made.get("address"), made.get("query")), (None, None));
        let Some(Value::Map(input)) = made.get("input") else { panic!("{made:?}") };
        let names: Vec<&str> = input.keys().map(String::as_str).collect();
        assert_eq!(names, ["a/b", "file_path", "flag", "limit", "list", "pattern"]);
        let found = TextRef::from_value(&input["a/b"]).unwrap();
        assert_eq!(resolve(text.as_bytes(), &found.pointer), Some(long));
    }

    #[test]
    fn an_input_that_is_no_object_says_nothing() {
        for json in ["null", "3", "[1]", "\"a\"", "{}"] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(input_fields(&scene(), Some(&raw), ""), Map::new(), "{json}");
        }
        assert_eq!(input_fields(&scene(), None, ""), Map::new());
    }
}
