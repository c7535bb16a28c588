//! Facts: what happened, each at its own time.

use super::{Kind, ObjectId, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// How forge came to know a fact. What anything else knows of a fact replaces a hook's versions of it altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOrigin {
    /// A hook of an agent reported it as it happened.
    Hook,
    /// A person, an agent or a program recorded it.
    Recorded,
    /// It was read in a source that was imported: a transcript, an event stream.
    Imported,
}

/// What happened at a time of its own; the same on every branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is.
    pub kind: Kind,
    /// Its id within kind and session. Several facts of one kind and id are versions of one thing.
    pub id: String,
    /// When it happened; of a command, when it ended.
    pub at: Timestamp,
    /// How forge knows.
    pub origin: FactOrigin,
    /// Where it stands in its source: decides between versions of one time. Bytes for files, else a count.
    pub place: u64,
    /// When forge was told.
    pub recorded_at: Timestamp,
    /// Its fields. A long text is a [`TextRef`] in its place.
    pub value: Value,
}

/// A long text inside a fact's value: its beginning, and where the whole lies.
///
/// Stands in a [`Value`] as a map with the one field `$text` (see [`TextRef::into_value`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextRef {
    /// The beginning of the text.
    pub preview: String,
    /// The length of the whole text in bytes.
    pub bytes: u64,
    /// The blake3 hash of the whole text.
    pub hash: ObjectId,
    /// The place of the JSON document that holds the text: offset and length in bytes within the fact's source
    /// file. `None`: the text is an object of its own, named by `hash`.
    pub place: Option<(u64, u64)>,
    /// Where in that JSON document the text stands (RFC 6901); followed by `#` and a byte range `from-to` of that
    /// string where the text is a part of it.
    pub pointer: String,
}

impl TextRef {
    /// The field whose presence says that a map is a reference to a text.
    pub const FIELD: &'static str = "$text";

    /// This reference as it stands inside a value.
    #[must_use]
    pub fn into_value(self) -> Value {
        let (offset, length) = self
            .place
            .map_or((Value::Null, Value::Null), |(offset, length)| (offset.into(), length.into()));
        let fields = Value::from([
            ("preview", self.preview.into()),
            ("bytes", self.bytes.into()),
            ("hash", self.hash.to_string().into()),
            ("offset", offset),
            ("length", length),
            ("pointer", if self.pointer.is_empty() { Value::Null } else { self.pointer.into() }),
        ]);
        Value::from([(Self::FIELD, fields)])
    }

    /// Calls for each reference inside a value.
    pub fn each_in(value: &Value, each: &mut dyn FnMut(Self)) {
        match value {
            Value::Map(fields) => match Self::from_value(value) {
                Some(text) => each(text),
                None => fields.values().for_each(|field| Self::each_in(field, each)),
            },
            Value::List(items) => items.iter().for_each(|item| Self::each_in(item, each)),
            _ => {}
        }
    }

    /// The reference this value is, if it is one.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let fields = value.field(Self::FIELD)?;
        let number = |name| fields.field(name)?.as_i64()?.try_into().ok();
        Some(Self {
            preview: fields
                .field("preview")
                .and_then(Value::as_text)
                .unwrap_or_default()
                .to_owned(),
            bytes: number("bytes")?,
            hash: fields.field("hash")?.as_text()?.parse().ok()?,
            place: number("offset").zip(number("length")),
            pointer: fields
                .field("pointer")
                .and_then(Value::as_text)
                .unwrap_or_default()
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_reference_survives_inside_a_value() {
        for place in [None, Some((7, 9))] {
            let text = TextRef {
                preview: "be".to_owned(),
                bytes: 5000,
                hash: ObjectId::from_bytes([3; 32]),
                place,
                pointer: place.map_or_else(String::new, |_| "/message/content".to_owned()),
            };
            assert_eq!(TextRef::from_value(&text.clone().into_value()), Some(text));
        }
        assert_eq!(TextRef::from_value(&Value::from("plain")), None);
    }
}
