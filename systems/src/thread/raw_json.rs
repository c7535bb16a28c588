//! JSON objects that keep the order of their fields and the source text of their values. If fields
//! of a message are changed, the text of all other values stays the same.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The fields of an object: names, and values as JSON texts.
#[derive(Clone, Debug)]
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> RawObject<'a> {
    /// Parses an object; `None` if the text is not a JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
    }

    /// Returns the value of a field as JSON text; `None` if the field is absent or null. If the
    /// name is repeated, the last value counts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(field, _)| field == name);
        found.map(|(_, value)| &**value).filter(|value| *value != "null")
    }

    /// Returns whether a field of this name exists, null or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    /// Returns the names of the fields in order, with repetitions.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| &**name).collect()
    }

    /// Returns the fields in order: names, and values as JSON texts.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the field if it is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        text(self.get(name)?)
    }

    /// Returns the items of the field if it is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&str>> {
        list(self.get(name)?)
    }

    /// Returns the field if it is an object.
    pub(super) fn object(&self, name: &str) -> Option<RawObject<'_>> {
        RawObject::parse(self.get(name)?)
    }

    /// Sets a field to this JSON text. A new field becomes the last one.
    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().rev().find(|(field, _)| field == name) {
            Some((_, old)) => *old = Cow::Owned(value),
            None => self.0.push((Cow::Owned(name.to_owned()), Cow::Owned(value))),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(field, _)| field != name);
    }

    /// Removes all fields that do not have one of these names.
    pub(super) fn keep(&mut self, names: &[&str]) {
        self.0.retain(|(field, _)| names.contains(&&**field));
    }

    /// Writes the object as JSON.
    pub(super) fn write(&self) -> String {
        let mut out = String::from("{");
        for (place, (name, value)) in self.0.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawObjectVisitor;
        impl<'de> Visitor<'de> for RawObjectVisitor {
            type Value = RawObject<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((FieldName(name), value)) =
                    map.next_entry::<FieldName<'de>, &'de RawValue>()?
                {
                    fields.push((name, Cow::Borrowed(value.get())));
                }
                Ok(RawObject(fields))
            }
        }
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

/// A JSON text, such as a field name, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the text that this JSON string encodes; `None` if the JSON is not a string.
pub(super) fn text(json: &str) -> Option<Cow<'_, str>> {
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str::<FieldName<'_>>(json).ok().map(|name| name.0)
}

/// Returns whether a text is one JSON value.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the items of a JSON list; `None` if the JSON is not a list.
pub(super) fn list(json: &str) -> Option<Vec<&str>> {
    if !json.trim_start().starts_with('[') {
        return None;
    }
    let items = serde_json::from_str::<Vec<&RawValue>>(json).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Returns the JSON list with these items, which are JSON texts.
pub(super) fn written_list<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

/// Returns a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns JSON on one line. If it has line breaks, all white space outside of strings is removed;
/// otherwise only the white space at both ends.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    if !json.contains(['\n', '\r']) {
        return Cow::Borrowed(json.trim());
    }
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for character in json.chars() {
        if inside {
            inside = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            inside = character == '"';
        }
        out.push(character);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_not_set_keep_their_order_and_bytes() {
        let text = r#"{"z": 1.50, "a":{"k" : [1, 2]}, "n":null}"#;
        let mut object = RawObject::parse(text).unwrap();
        assert_eq!((object.get("z"), object.get("n"), object.has("n")), (Some("1.50"), None, true));
        object.set("b", quoted("x\"y"));
        object.set("z", "2".to_owned());
        object.remove("n");
        assert_eq!(object.write(), r#"{"z":2,"a":{"k" : [1, 2]},"b":"x\"y"}"#);
        object.keep(&["z", "c", "a"]);
        assert_eq!(object.write(), r#"{"z":2,"a":{"k" : [1, 2]}}"#);
    }

    #[test]
    fn json_of_another_type_is_not_read() {
        assert!(RawObject::parse("[1]").is_none() && RawObject::parse("{").is_none());
        assert!(text("1").is_none() && list("{}").is_none());
        assert_eq!(text(r#""a\nb""#).unwrap(), "a\nb");
        assert_eq!(list("[ 1 , \"a\"]").unwrap(), ["1", "\"a\""]);
    }

    #[test]
    fn compacting_json_keeps_spaces_inside_strings() {
        assert_eq!(
            compact("{\n  \"a b\": \"c \\\" \\\\\",\n \"d\": 1\n}"),
            r#"{"a b":"c \" \\","d":1}"#
        );
        assert_eq!(compact(" {\"a\": 1} "), "{\"a\": 1}");
    }
}
