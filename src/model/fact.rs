//! Facts: events that happened, each at its own time.

use super::{Kind, ObjectId, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// How forge learned of a fact. A version with any other origin replaces all versions with the
/// origin `hook`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOrigin {
    /// A hook of an agent reported it when it happened.
    Hook,
    /// A person, an agent or a program recorded it.
    Recorded,
    /// It was read from an imported source: a transcript or an event stream.
    Imported,
}

impl FactOrigin {
    /// All origins. Stored data name an origin by its place here.
    pub const ALL: [Self; 3] = [Self::Hook, Self::Recorded, Self::Imported];
}

/// An event with its own time; the same on every branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The kind of the fact.
    pub kind: Kind,
    /// The id within kind and session. Several facts with the same kind and id are versions of one
    /// fact.
    pub id: String,
    /// When it happened; for a command, when it ended.
    pub at: Timestamp,
    /// How forge learned of it.
    pub origin: FactOrigin,
    /// The position in its source: a byte offset in a file, otherwise a count. It orders versions
    /// with equal own times.
    pub place: u64,
    /// When forge received it.
    pub recorded_at: Timestamp,
    /// The fields. A long text is replaced by a [`TextRef`].
    pub value: Value,
}

/// A reference to a long text inside a fact's value: its beginning, and the location of the whole
/// text.
///
/// In a [`Value`] it is a map with the single field `$text` (see [`TextRef::into_value`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextRef {
    /// The beginning of the text.
    pub preview: String,
    /// The length of the whole text in bytes.
    pub bytes: u64,
    /// The blake3 hash of the whole text.
    pub hash: ObjectId,
    /// The location of the JSON document that contains the text: offset and length in bytes within
    /// the fact's source file. `None`: the text is stored as an object, named by `hash`.
    pub place: Option<(u64, u64)>,
    /// The JSON pointer (RFC 6901) to the string in that document; followed by `#` and a byte range
    /// `from-to` of the string if the text is a part of it.
    pub pointer: String,
}

impl TextRef {
    /// The field that marks a map as a text reference.
    pub const FIELD: &'static str = "$text";

    /// Returns this reference as a value.
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

    /// Calls a function for each reference inside a value.
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

    /// Returns the hashes of the texts that a value refers to and that are stored as objects.
    pub(crate) fn objects_in(value: &Value) -> Vec<ObjectId> {
        let mut found = Vec::new();
        Self::each_in(value, &mut |text| found.extend(text.object()));
        found
    }

    /// Returns the hash of the text if it is stored as an object.
    pub(crate) fn object(&self) -> Option<ObjectId> {
        self.place.is_none().then_some(self.hash)
    }

    /// Parses a value as a reference, if it is one.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        Self::from_fields(value.field(Self::FIELD)?)
    }

    /// Parses the value of the field [`TextRef::FIELD`].
    pub(crate) fn from_fields(fields: &Value) -> Option<Self> {
        let number = |name| fields.field(name)?.as_i64()?.try_into().ok();
        let text = |name| Some(fields.field(name)?.as_text()?.to_owned());
        Some(Self {
            preview: text("preview").unwrap_or_default(),
            bytes: number("bytes")?,
            hash: fields.field("hash")?.as_text()?.parse().ok()?,
            place: number("offset").zip(number("length")),
            pointer: text("pointer").unwrap_or_default(),
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
