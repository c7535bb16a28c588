//! A value as the framework's serialiser gives it.

use super::damaged;
use forge_store::error::Result;
use forge_store::model::{FieldMap, Value};

/// Bytes of a value, and the word for their encoding. Nothing in them is changed or judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedBytes {
    /// The serialiser's word for the encoding, such as `msgpack`.
    pub encoding: String,
    /// The encoded value.
    pub bytes: Vec<u8>,
}

impl TypedBytes {
    /// Returns it as a stored value.
    pub(super) fn to_value(&self) -> Value {
        Value::from([
            ("type", self.encoding.as_str().into()),
            ("bytes", Value::Bytes(self.bytes.clone())),
        ])
    }

    /// Reads it from the fields of a stored value.
    pub(super) fn of_fields(fields: &FieldMap) -> Result<Self> {
        match (fields.get("type"), fields.get("bytes")) {
            (Some(Value::Text(encoding)), Some(Value::Bytes(bytes))) => {
                Ok(Self { encoding: encoding.clone(), bytes: bytes.clone() })
            }
            _ => Err(damaged("a value of a graph", "it has no type or no bytes")),
        }
    }

    /// Reads it from a stored value.
    pub(super) fn of_value(value: &Value) -> Result<Self> {
        let fields = value.as_map();
        fields.map_or_else(|| Err(damaged("a value of a graph", "it is no map")), Self::of_fields)
    }
}
