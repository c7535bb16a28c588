//! The fields of a value, sorted by name.

use super::Value;
use litemap::LiteMap;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::ops::{Deref, DerefMut, Index};

/// The fields of a value, sorted by name, so that equal values have equal bytes.
///
/// They are in one sorted vector. Most values have few fields, and a node of a `BTreeMap` takes
/// more memory than these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldMap(LiteMap<String, Value>);

/// The number of fields for which memory is reserved before they are read: the declared number is
/// not trusted.
const MAX_RESERVED: usize = 16;

impl FieldMap {
    /// Creates a map without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(LiteMap::new())
    }

    /// Reads the fields of a map.
    ///
    /// # Errors
    /// If a field occurs twice.
    pub(super) fn read<'de, A: MapAccess<'de>>(mut from: A) -> Result<Self, A::Error> {
        let reserved = from.size_hint().unwrap_or_default().min(MAX_RESERVED);
        let mut fields: Vec<(String, Value)> = Vec::with_capacity(reserved);
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        if let Some(twice) = fields.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(A::Error::custom(format!("field '{}' occurs twice", twice[0].0)));
        }
        Ok(Self(LiteMap::from_sorted_store_unchecked(fields)))
    }
}

impl Deref for FieldMap {
    type Target = LiteMap<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for FieldMap {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Index<&str> for FieldMap {
    type Output = Value;

    /// Returns the field of this name. Panics if there is none.
    fn index(&self, name: &str) -> &Value {
        self.0.get(name).expect("a field of this name")
    }
}

impl FromIterator<(String, Value)> for FieldMap {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl<const N: usize> From<[(String, Value); N]> for FieldMap {
    fn from(fields: [(String, Value); N]) -> Self {
        fields.into_iter().collect()
    }
}

impl IntoIterator for FieldMap {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldMap {
    type Item = (&'a String, &'a Value);
    type IntoIter = <&'a LiteMap<String, Value> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a mut FieldMap {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = <&'a mut LiteMap<String, Value> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&mut self.0).into_iter()
    }
}

impl Serialize for FieldMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for FieldMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = FieldMap;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<FieldMap, A::Error> {
                FieldMap::read(fields)
            }
        }
        deserializer.deserialize_map(FieldVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_whatever_their_order_was() {
        let fields: FieldMap = serde_json::from_str(r#"{"b":1,"c":2,"a":3}"#).unwrap();
        assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"a":3,"b":1,"c":2}"#);
        let empty: FieldMap = serde_json::from_str("{}").unwrap();
        assert_eq!(serde_json::to_string(&empty).unwrap(), "{}");
    }

    #[test]
    fn a_field_that_occurs_twice_is_refused() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"b":2,"a":1}"#] {
            assert!(serde_json::from_str::<FieldMap>(text).is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
