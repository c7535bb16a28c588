//! Turns what the framework serialised into values that people can read.
//!
//! The format is LangGraph's: MessagePack, with extensions that name a Python class and the
//! arguments that make an object of it. No object is made: it is shown as the name of its class
//! with its fields.

use forge_store::model::text::with_ellipsis;
use forge_store::model::{FieldMap, Value};
use rmpv::ValueRef;
use rmpv::decode::read_value_ref_with_max_depth;

/// The field with the name of a Python class.
pub const CLASS_FIELD: &str = "class";

/// The maximum length of a title, in characters. A longer one is cut and ends with `…` in addition.
const MAX_TITLE_CHARS: usize = 200;

/// The encoding of an element that names none.
pub const PLAIN_ENCODING: &str = "msgpack";

/// How deep values and extensions may be nested.
const MAX_DEPTH: usize = 64;

/// The extensions of LangGraph's serialiser, by their codes.
mod extension {
    /// A class with one argument.
    pub(super) const ONE_ARGUMENT: i8 = 0;
    /// A class with a list of arguments.
    pub(super) const ARGUMENTS: i8 = 1;
    /// A class with named arguments.
    pub(super) const NAMED_ARGUMENTS: i8 = 2;
    /// A method of a class with one argument.
    pub(super) const METHOD: i8 = 3;
    /// A model of pydantic 1.
    pub(super) const PYDANTIC_1: i8 = 4;
    /// A model of pydantic 2.
    pub(super) const PYDANTIC_2: i8 = 5;
    pub(super) const NUMPY_ARRAY: i8 = 6;
    /// A stored value of a channel that is otherwise computed from writes.
    pub(super) const DELTA_SNAPSHOT: i8 = 7;
}

/// Returns the values that these bytes contain in this encoding: an entry of a map is two values,
/// its key and its value. `None` if the bytes are not in the encoding, or if only the framework can
/// read the encoding, such as an encrypted one.
#[must_use]
pub fn readable_values(encoding: &str, bytes: &[u8]) -> Option<Vec<Value>> {
    match encoding {
        "null" => Some(vec![Value::Null]),
        "bytes" | "bytearray" => Some(vec![Value::Bytes(bytes.to_vec())]),
        "json" => Some(vec![serde_json::from_slice(bytes).ok()?]),
        PLAIN_ENCODING => {
            let mut rest = bytes;
            let mut values = Vec::new();
            while !rest.is_empty() {
                values.push(readable(&next_packed(&mut rest, MAX_DEPTH)?, MAX_DEPTH));
            }
            Some(values)
        }
        _ => None,
    }
}

/// Returns the values that a stored element contains; `None` if they cannot be read.
#[must_use]
pub fn readable_element(element: &Value) -> Option<Vec<Value>> {
    let encoding = element.field("type").and_then(Value::as_text).unwrap_or(PLAIN_ENCODING);
    readable_values(encoding, element.field("bytes")?.as_bytes()?)
}

/// Returns the values that these bytes contain, in one line of at most 200 characters and `…`;
/// `None` if they cannot be read or are empty.
#[must_use]
pub fn readable_title(encoding: &str, bytes: &[u8]) -> Option<String> {
    let values = readable_values(encoding, bytes)?;
    let titles: Vec<String> = values.iter().map(one_line).collect();
    let mut title = titles.join(": ");
    if !is_spaced(&title) {
        title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let end = title.char_indices().nth(MAX_TITLE_CHARS).map(|(end, _)| end);
    match end.and_then(|end| title.get(..end)) {
        Some(cut) => Some(with_ellipsis(cut)),
        None => Some(title).filter(|title| !title.is_empty()),
    }
}

/// Returns whether a text is ASCII without white space other than single spaces between words.
fn is_spaced(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_plain && !text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  ")
}

/// Returns a value as text, which may have several lines. An object is the last part of the name of
/// its class, with its content or its calls.
fn one_line(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::Map(fields) => {
            let Some(path) = value.field(CLASS_FIELD).and_then(Value::as_text) else {
                return serde_json::to_string(value).unwrap_or_default();
            };
            let name = path.rsplit('.').next().unwrap_or(path);
            let content =
                ["content", "value", "arguments"].iter().find_map(|name| fields.get(*name));
            let calls = fields.get("tool_calls").and_then(Value::as_list).unwrap_or_default();
            let calls = calls.iter().filter_map(|call| call.field("name")?.as_text());
            let calls: Vec<&str> = calls.collect();
            match (content, calls.is_empty()) {
                (Some(content), _) => format!("{name}: {}", one_line(content)),
                (None, false) => format!("{name}: calls {}", calls.join(", ")),
                (None, true) => name.to_owned(),
            }
        }
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// Reads the next MessagePack value of these bytes, and removes it from them.
fn next_packed<'a>(bytes: &mut &'a [u8], depth: usize) -> Option<ValueRef<'a>> {
    read_value_ref_with_max_depth(bytes, depth).ok()
}

/// Turns a MessagePack value into a value that people can read.
fn readable(value: &ValueRef<'_>, depth: usize) -> Value {
    match value {
        ValueRef::Nil => Value::Null,
        ValueRef::Boolean(value) => (*value).into(),
        ValueRef::Integer(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => Value::Null,
        },
        ValueRef::F32(number) => f64::from(*number).into(),
        ValueRef::F64(number) => (*number).into(),
        ValueRef::String(text) => match text.as_str() {
            Some(text) => text.into(),
            None => Value::Bytes(text.as_bytes().to_vec()),
        },
        ValueRef::Binary(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Array(items) => {
            Value::List(items.iter().map(|item| readable(item, depth)).collect())
        }
        ValueRef::Map(entries) => Value::Map(fields(entries, depth)),
        ValueRef::Ext(code, bytes) => extension(*code, bytes, depth).unwrap_or_else(|| {
            object_of_class("unknown", [("bytes", Value::Bytes(bytes.to_vec()))])
        }),
    }
}

/// Returns the entries of a map as fields. A key that is not text is written as JSON.
fn fields(entries: &[(ValueRef<'_>, ValueRef<'_>)], depth: usize) -> FieldMap {
    let name = |key: &ValueRef<'_>| match readable(key, depth) {
        Value::Text(name) => name,
        other => serde_json::to_string(&other).unwrap_or_default(),
    };
    entries.iter().map(|(key, value)| (name(key), readable(value, depth))).collect()
}

/// Returns the value of an extension; `None` if it is not one of the serialiser's, or is nested too
/// deep.
fn extension(code: i8, mut bytes: &[u8], depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let content = next_packed(&mut bytes, depth)?;
    if code == extension::DELTA_SNAPSHOT {
        return Some(readable(&content, depth));
    }
    let ValueRef::Array(parts) = content else { return None };
    if code == extension::NUMPY_ARRAY {
        let [kind, shape, ..] = parts.as_slice() else { return None };
        let class_fields = [("type", readable(kind, depth)), ("shape", readable(shape, depth))];
        return Some(object_of_class("numpy.ndarray", class_fields));
    }
    let [module, name, given, ..] = parts.as_slice() else { return None };
    let (module, name) = (text(module)?, text(name)?);
    let path = format!("{module}.{name}");
    Some(match (code, given) {
        (extension::ONE_ARGUMENT | extension::METHOD, given) => {
            object_of_class(&path, [("value", readable(given, depth))])
        }
        (extension::ARGUMENTS, given) => {
            object_of_class(&path, [("arguments", readable(given, depth))])
        }
        (
            extension::NAMED_ARGUMENTS | extension::PYDANTIC_1 | extension::PYDANTIC_2,
            ValueRef::Map(entries),
        ) => {
            let mut known = fields(entries, depth);
            known.retain(|_, value| !is_empty(value));
            known.insert(CLASS_FIELD.to_owned(), path.into());
            Value::Map(known)
        }
        _ => return None,
    })
}

fn text<'a>(value: &'a ValueRef<'_>) -> Option<&'a str> {
    if let ValueRef::String(text) = value { text.as_str() } else { None }
}

/// Returns an object of the class with this path, with these fields.
fn object_of_class<const N: usize>(path: &str, class_fields: [(&str, Value); N]) -> Value {
    let class_fields = class_fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Map(class_fields.chain([(CLASS_FIELD.to_owned(), path.into())]).collect())
}

/// Returns whether a field is empty. Models have many empty fields.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmpv::Value as Packed;

    fn pack(value: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    fn named(fields: &[(&str, Packed)]) -> Packed {
        Packed::Map(fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
    }

    fn message(text: &str) -> Packed {
        let fields = named(&[
            ("content", text.into()),
            ("additional_kwargs", named(&[])),
            ("id", Packed::Nil),
            ("type", "human".into()),
        ]);
        let parts =
            vec!["langchain_core.messages.human".into(), "HumanMessage".into(), fields, "x".into()];
        Packed::Ext(extension::PYDANTIC_2, pack(&Packed::Array(parts)))
    }

    fn json(bytes: &[u8]) -> String {
        serde_json::to_string(&readable_values("msgpack", bytes).unwrap()).unwrap()
    }

    #[test]
    fn a_message_is_shown_by_its_class_and_its_fields() {
        assert_eq!(
            json(&pack(&message("why is it stale?"))),
            r#"[{"class":"langchain_core.messages.human.HumanMessage","content":"why is it stale?","type":"human"}]"#
        );
    }

    #[test]
    fn the_title_of_a_value_is_one_line() {
        let title = |value: &Packed| readable_title("msgpack", &pack(value)).unwrap();
        assert_eq!(title(&message("why is\nit stale?")), "HumanMessage: why is it stale?");
        for text in ["a b", " a b", "a b ", "a  b", "a\tb", "a\u{a0}b"] {
            assert_eq!(title(&text.into()), "a b", "{text:?}");
        }
        let calls = Packed::Array(vec![named(&[("name", "search".into()), ("id", "c1".into())])]);
        let fields = named(&[("content", "".into()), ("tool_calls", calls)]);
        let parts = vec!["langchain_core.messages.ai".into(), "AIMessage".into(), fields];
        let answer = Packed::Ext(extension::PYDANTIC_2, pack(&Packed::Array(parts)));
        assert_eq!(title(&answer), "AIMessage: calls search");
        let entry = [pack(&"total".into()), pack(&7.into())].concat();
        assert_eq!(readable_title("msgpack", &entry).unwrap(), "total: 7");
        let long = title(&Packed::from("ü".repeat(500)));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_TITLE_CHARS + 1, true));
        assert_eq!(readable_title("msgpack+aes", b"x"), None);
    }

    #[test]
    fn an_entry_of_a_map_is_shown_as_its_key_and_value() {
        let entry = [pack(&"total".into()), pack(&Packed::Array(vec![7.into(), (-1).into()]))];
        assert_eq!(json(&entry.concat()), r#"["total",[7,-1]]"#);
    }

    #[test]
    fn each_extension_value_is_shown_with_its_class() {
        let ext = |code, parts: Vec<Packed>| pack(&Packed::Ext(code, pack(&Packed::Array(parts))));
        let uuid = ext(extension::ONE_ARGUMENT, vec!["uuid".into(), "UUID".into(), "ab".into()]);
        assert_eq!(json(&uuid), r#"[{"class":"uuid.UUID","value":"ab"}]"#);
        let time =
            vec!["datetime".into(), "datetime".into(), "2026".into(), "fromisoformat".into()];
        let time = ext(extension::METHOD, time);
        assert_eq!(json(&time), r#"[{"class":"datetime.datetime","value":"2026"}]"#);
        let path = vec!["pathlib".into(), "Path".into(), Packed::Array(vec!["a".into()])];
        let path = ext(extension::ARGUMENTS, path);
        assert_eq!(json(&path), r#"[{"arguments":["a"],"class":"pathlib.Path"}]"#);
        let shape = Packed::Array(vec![2.into(), 3.into()]);
        let array = vec!["<f8".into(), shape, "C".into(), Packed::Binary(vec![0; 48])];
        let array = ext(extension::NUMPY_ARRAY, array);
        assert_eq!(json(&array), r#"[{"class":"numpy.ndarray","shape":[2,3],"type":"<f8"}]"#);
        let snapshot = Packed::Ext(extension::DELTA_SNAPSHOT, pack(&Packed::Array(vec![1.into()])));
        assert_eq!(json(&pack(&snapshot)), "[[1]]");
    }

    #[test]
    fn values_that_cannot_be_read_are_not_guessed() {
        assert_eq!(readable_values("msgpack+aes", &pack(&message("x"))), None);
        assert_eq!(readable_values("pickle", b"x"), None);
        assert_eq!(readable_values("msgpack", &[0x92, 1]), None);
        assert_eq!(readable_values("json", b"{"), None);
        // An unknown extension keeps its bytes.
        assert_eq!(
            json(&pack(&Packed::Ext(99, vec![1, 2]))),
            r#"[{"bytes":{"$bytes":"AQI="},"class":"unknown"}]"#
        );
    }

    #[test]
    fn deeply_nested_values_are_shown_as_unknown() {
        let mut bytes = pack(&Packed::Nil);
        for _ in 0..200 {
            bytes = pack(&Packed::Ext(extension::DELTA_SNAPSHOT, bytes));
        }
        assert!(json(&bytes).contains("unknown"));
        assert_eq!(readable_values("msgpack", &[0x91; 5000]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = readable_values("msgpack", &bytes);
        }
    }
}
