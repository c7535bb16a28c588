//! Values of entities: JSON values with one order of fields, and bytes.

use super::FieldMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// The name of the only field of a map that represents bytes in JSON. The field has their base64.
pub const BYTES_FIELD: &str = "$bytes";

/// A JSON value, or bytes. Integers keep all digits from -2^63 to 2^64-1.
///
/// JSON has no bytes. In JSON they are a map whose only field, [`BYTES_FIELD`], has their base64.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Null. A field that is null counts as absent.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits into a signed 64-bit number.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number. A value parsed from JSON is never NaN or infinite.
    Float(f64),
    /// A string.
    Text(String),
    /// Bytes that have a meaning only for the program that recorded them.
    Bytes(Vec<u8>),
    /// A list of values.
    List(Vec<Value>),
    /// A map of named values.
    Map(FieldMap),
}

impl Value {
    /// Returns the text if this is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the bytes if these are bytes.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// Returns the value as a float if it is a number. A large integer is rounded.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a caller that asks for a float accepts 53 bits"
    )]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::UInt(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the value if it is an integer that fits into a signed 64-bit number.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// Returns the value if it is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the items if this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// Returns the fields if this is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&FieldMap> {
        if let Self::Map(fields) = self { Some(fields) } else { None }
    }

    /// Returns the field of this name if this is a map and the field is present and not null.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.as_map()?.get(name).filter(|value| **value != Self::Null)
    }

    /// Returns whether this value has null fields, at any depth.
    pub(crate) fn has_nulls(&self) -> bool {
        match self {
            Self::Map(fields) => {
                fields.values().any(|value| *value == Self::Null || value.has_nulls())
            }
            Self::List(items) => items.iter().any(Self::has_nulls),
            _ => false,
        }
    }

    /// Returns this value without null fields, at any depth.
    #[must_use]
    pub fn without_nulls(self) -> Self {
        match self {
            Self::Map(fields) => Self::Map(
                fields
                    .into_iter()
                    .filter(|(_, value)| *value != Self::Null)
                    .map(|(name, value)| (name, value.without_nulls()))
                    .collect(),
            ),
            Self::List(items) => Self::List(items.into_iter().map(Self::without_nulls).collect()),
            other => other,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::UInt(number), Self::Int)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<const N: usize> From<[(&str, Self); N]> for Value {
    /// Builds a map of these fields; null fields are omitted.
    fn from(fields: [(&str, Self); N]) -> Self {
        Self::Map(
            fields
                .into_iter()
                .filter(|(_, value)| *value != Self::Null)
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::UInt(number) => serializer.serialize_u64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) if serializer.is_human_readable() => {
                let mut fields = serializer.serialize_map(Some(1))?;
                fields.serialize_entry(BYTES_FIELD, &BASE64.encode(bytes))?;
                fields.end()
            }
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::List(items) => items.serialize(serializer),
            Self::Map(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor {
            readable: bool,
        }
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
                Value::deserialize(inner)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Int(number))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(number.into())
            }
            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(text.into())
            }
            fn visit_string<E>(self, text: String) -> Result<Value, E> {
                Ok(Value::Text(text))
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
                Ok(Value::Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Value, E> {
                Ok(Value::Bytes(bytes))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                // No capacity is reserved for the declared length: the input is not trusted.
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Value::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value, A::Error> {
                let map = FieldMap::read(fields)?;
                let bytes = self.readable.then(|| bytes_of_json(&map)).flatten();
                Ok(bytes.unwrap_or(Value::Map(map)))
            }
        }
        let readable = deserializer.is_human_readable();
        deserializer.deserialize_any(ValueVisitor { readable })
    }
}

/// Returns the bytes that a map represents in JSON; `None` for every other map.
fn bytes_of_json(map: &FieldMap) -> Option<Value> {
    let text = map.get(BYTES_FIELD)?.as_text().filter(|_| map.len() == 1)?;
    BASE64.decode(text).ok().map(Value::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_from_json_and_messagepack() {
        let value = Value::from([("raw", Value::Bytes(vec![0, 255, 0xc1])), ("n", 1_i64.into())]);
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(text, r#"{"n":1,"raw":{"$bytes":"AP/B"}}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let packed = rmp_serde::to_vec_named(&value).unwrap();
        assert_eq!(rmp_serde::from_slice::<Value>(&packed).unwrap(), value);
        // Three bytes cost two more: a marker and a length.
        assert_eq!(packed.len(), 1 + 4 + 5 + 2 + 1);
    }

    #[test]
    fn a_map_that_resembles_encoded_bytes_stays_a_map() {
        for text in [r#"{"$bytes":"!"}"#, r#"{"$bytes":1}"#, r#"{"$bytes":"AP/B","x":1}"#] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(value.as_map().is_some(), "{text}");
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
    }

    #[test]
    fn json_and_messagepack_give_the_value_back() {
        let text = r#"{"a":[1,-1,18446744073709551615,1.5,"x",null,true],"b":{"c":{}}}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        let packed = rmp_serde::to_vec_named(&value).unwrap();
        assert_eq!(rmp_serde::from_slice::<Value>(&packed).unwrap(), value);
    }

    #[test]
    fn a_decimal_number_is_read_as_the_nearest_float() {
        // Fast float parsing can be wrong in the last digit. Then exported numbers would differ
        // from the imported ones.
        for text in ["8.888888888888889e43", "0.1", "1.7976931348623157e308", "5e-324"] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Some(value.as_f64().unwrap()), text.parse().ok(), "{text}");
            assert_eq!(
                serde_json::from_str::<Value>(&serde_json::to_string(&value).unwrap()).unwrap(),
                value
            );
        }
    }
}
