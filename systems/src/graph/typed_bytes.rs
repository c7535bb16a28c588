//! A value in the form in which the framework's serialiser wrote it.

use super::damaged;
use forge_store::error::Result;
use forge_store::model::Value;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that cannot change. A clone shares them. Their owner is a vector, or another value that
/// holds bytes, such as an object of Python.
#[derive(Clone)]
pub struct SharedBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl SharedBytes {
    /// Makes shared bytes from their owner, without a copy.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl Default for SharedBytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

/// The bytes of a value, and the word for their encoding. They are kept unchanged and unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedBytes {
    /// The serialiser's word for the encoding, such as `msgpack`.
    pub encoding: String,
    /// The encoded value.
    pub bytes: SharedBytes,
}

impl TypedBytes {
    /// Returns it as a stored value.
    pub(super) fn to_value(&self) -> Value {
        Value::from([
            ("type", self.encoding.as_str().into()),
            ("bytes", Value::Bytes(self.bytes.to_vec())),
        ])
    }

    /// Reads it from a stored value.
    pub(super) fn of_value(value: &Value) -> Result<Self> {
        let Value::Map(fields) = value else {
            return Err(damaged("a value of a graph", "it is not a map"));
        };
        match (fields.get("type"), fields.get("bytes")) {
            (Some(Value::Text(encoding)), Some(Value::Bytes(bytes))) => {
                Ok(Self { encoding: encoding.clone(), bytes: bytes.clone().into() })
            }
            _ => Err(damaged("a value of a graph", "it has no type or no bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_the_bytes_of_any_owner() {
        for bytes in [SharedBytes::new("abc"), SharedBytes::from(b"abc".to_vec())] {
            assert_eq!(bytes.clone().as_ptr(), bytes.as_ptr());
            assert_eq!(&*bytes, b"abc");
            assert_eq!(bytes, SharedBytes::new(*b"abc"));
            assert_ne!(bytes, SharedBytes::default());
        }
    }
}
