//! Single fields of an entry, borrowed from its bytes.

use super::codec::{DecodeError, MAX_DEPTH};
use super::entry::value_bytes;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// The value of a field, borrowed from the bytes of its entry.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldRef<'a> {
    /// Null, which a claim's field never is.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits into a signed 64-bit number.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list or a map, whose content is not read.
    Nested,
}

/// Returns the fields with these names of an entry's value; `None` for those that it lacks.
///
/// # Errors
/// [`DecodeError`] if the value is no map, or is damaged.
pub fn entry_fields<'a, const N: usize>(
    entry: &'a [u8],
    names: [&str; N],
) -> Result<[Option<FieldRef<'a>>; N], DecodeError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(value_bytes(entry));
    reader.set_max_depth(MAX_DEPTH);
    let found = NamedFields { names, found: [None; N] }.deserialize(&mut reader);
    found.map_err(|error| DecodeError::new("value", error.to_string()))
}

/// Reads the fields with these names of a map.
struct NamedFields<'n, 'a, const N: usize> {
    names: [&'n str; N],
    found: [Option<FieldRef<'a>>; N],
}

impl<'a, const N: usize> DeserializeSeed<'a> for NamedFields<'_, 'a, N> {
    type Value = [Option<FieldRef<'a>>; N];

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a, const N: usize> Visitor<'a> for NamedFields<'_, 'a, N> {
    type Value = [Option<FieldRef<'a>>; N];

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of fields")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(name) = map.next_key::<&str>()? {
            let place = self.names.iter().position(|wanted| *wanted == name);
            match place.and_then(|place| self.found.get_mut(place)) {
                Some(found) => *found = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(self.found)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FieldRef<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = FieldRef<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(FieldRef::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(FieldRef::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(FieldRef::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(FieldRef::UInt(number), FieldRef::Int))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(FieldRef::Float(number))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FieldRef::Text(text))
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(FieldRef::Bytes(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldRef::Nested)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldRef::Nested)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode_value;
    use super::*;
    use crate::model::{Timestamp, Value};

    #[test]
    fn fields_are_read_as_they_were_written() {
        let list = Value::List(vec![1_i64.into(), "x".into()]);
        let value = Value::from([
            ("bool", true.into()),
            ("float", 0.5.into()),
            ("int", (-7_i64).into()),
            ("large", Value::UInt(u64::MAX)),
            ("list", list.clone()),
            ("map", Value::from([("inner", list)])),
            ("text", "as it is".into()),
        ]);
        for time in [0, -1, 1_700_000_000_000_000] {
            let entry = encode_value(Timestamp::from_micros(time), &value);
            let names = ["text", "none", "int", "large", "float", "bool", "list", "map"];
            let expected = [
                Some(FieldRef::Text("as it is")),
                None,
                Some(FieldRef::Int(-7)),
                Some(FieldRef::UInt(u64::MAX)),
                Some(FieldRef::Float(0.5)),
                Some(FieldRef::Bool(true)),
                Some(FieldRef::Nested),
                Some(FieldRef::Nested),
            ];
            assert_eq!(entry_fields(&entry, names).unwrap(), expected);
            assert_eq!(entry_fields(&entry, []).unwrap(), []);
        }
    }

    #[test]
    fn bytes_are_borrowed() {
        let value = Value::from([("raw", Value::Bytes(vec![0, 1, 0xff]))]);
        let entry = encode_value(Timestamp::default(), &value);
        let [found] = entry_fields(&entry, ["raw"]).unwrap();
        assert_eq!(found, Some(FieldRef::Bytes(&[0, 1, 0xff])));
    }

    #[test]
    fn a_damaged_entry_is_refused() {
        let entry = encode_value(Timestamp::default(), &Value::from([("text", "whole".into())]));
        for end in 0..entry.len() {
            let cut = entry.get(..end).unwrap();
            assert!(entry_fields(cut, ["text"]).is_err(), "{end}");
        }
        let scalar = encode_value(Timestamp::default(), &Value::Int(1));
        assert!(entry_fields(&scalar, ["text"]).is_err());
    }
}
