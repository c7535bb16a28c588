//! Pages of facts: facts that were recorded together and are compressed together.

use super::codec::{DecodeError, packed, unpack};
use crate::model::{Fact, FactOrigin, Kind, ObjectId, TextRef, Timestamp, Value};
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Facts that were recorded together. The ordinal of a fact is its index in the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactPage {
    version: u8,
    /// The name of the source to which the long texts of these facts refer, if any.
    pub source: Option<String>,
    /// The facts.
    pub facts: Vec<Fact>,
}

const VERSION: u8 = 1;

impl FactPage {
    /// Creates a page.
    #[must_use]
    pub const fn new(source: Option<String>, facts: Vec<Fact>) -> Self {
        Self { version: VERSION, source, facts }
    }
}
packed!(FactPage, "page of facts", check = |page| check_version(page.version));

/// The part of a page of facts that the index needs. It has no values: they take most of the time
/// of decoding a page.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct FactPageOutline {
    version: u8,
    pub(crate) facts: Vec<FactOutline>,
}

/// The part of a fact that the index needs.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct FactOutline {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) origin: FactOrigin,
    pub(crate) place: u64,
    #[serde(rename = "value")]
    pub(crate) texts: ObjectTexts,
}

impl FactPageOutline {
    /// Decodes the outline of a page.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: Self = unpack("page of facts", bytes)?;
        check_version(page.version).map_err(|reason| DecodeError::new("page of facts", reason))?;
        Ok(page)
    }
}

impl From<FactPage> for FactPageOutline {
    fn from(page: FactPage) -> Self {
        let outline = |fact: Fact| FactOutline {
            kind: fact.kind,
            texts: ObjectTexts(TextRef::objects_in(&fact.value)),
            id: fact.id,
            at: fact.at,
            origin: fact.origin,
            place: fact.place,
        };
        Self { version: page.version, facts: page.facts.into_iter().map(outline).collect() }
    }
}

fn check_version(version: u8) -> Result<(), &'static str> {
    if version == VERSION { Ok(()) } else { Err("unknown version") }
}

/// The ids of the long texts in a value that are objects: the result of [`TextRef::objects_in`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectTexts(pub(crate) Vec<ObjectId>);

impl<'de> Deserialize<'de> for ObjectTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectTextsVisitor)
    }
}

struct ObjectTextsVisitor;

impl<'de> Visitor<'de> for ObjectTextsVisitor {
    type Value = ObjectTexts;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<ObjectTexts, E> {
        Ok(ObjectTexts::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ObjectTexts, A::Error> {
        let mut texts = ObjectTexts::default();
        while let Some(ObjectTexts(more)) = items.next_element()? {
            texts.0.extend(more);
        }
        Ok(texts)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<ObjectTexts, A::Error> {
        let mut texts = ObjectTexts::default();
        while let Some(name) = fields.next_key::<&str>()? {
            if name != TextRef::FIELD {
                let ObjectTexts(more) = fields.next_value()?;
                texts.0.extend(more);
                continue;
            }
            let value: Value = fields.next_value()?;
            if let Some(text) = TextRef::from_fields(&value) {
                // Other fields beside a reference are ignored.
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(ObjectTexts(text.object().into_iter().collect()));
            }
            texts.0.extend(TextRef::objects_in(&value));
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(byte: u8, place: Option<(u64, u64)>) -> Value {
        TextRef {
            preview: "be".to_owned(),
            bytes: 5000,
            hash: ObjectId::from_bytes([byte; 32]),
            place,
            pointer: String::new(),
        }
        .into_value()
    }

    /// Values with references to texts, and with fields of the same name that are no references.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_map(Value::Float),
            "[a-z]{0,3}".prop_map(Value::Text),
            any::<[u8; 2]>().prop_map(|bytes| Value::Bytes(bytes.to_vec())),
            any::<u8>().prop_map(|byte| text(byte, None)),
            any::<u8>().prop_map(|byte| text(byte, Some((1, 2)))),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let name = prop_oneof!["[a-z]{1,2}", Just(TextRef::FIELD.to_owned())];
            let fields = proptest::collection::btree_map(name, inner.clone(), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::List),
                fields.prop_map(|fields| Value::Map(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_outline_of_a_fact_page_has_everything_except_the_values(
            facts in proptest::collection::vec((value(), "[a-z]{1,4}", any::<u64>()), 0..4)
        ) {
            let fact = |(value, id, place)| Fact {
                kind: Kind::Message,
                id,
                at: Timestamp::from_micros(7),
                origin: FactOrigin::Imported,
                place,
                recorded_at: Timestamp::from_micros(9),
                value,
            };
            let facts = facts.into_iter().map(fact).collect();
            let page = FactPage::new(Some("log.jsonl".to_owned()), facts);
            let outline = FactPageOutline::decode(&page.encode()).unwrap();
            prop_assert_eq!(outline, FactPageOutline::from(page));
        }
    }

    #[test]
    fn a_page_of_another_version_has_no_outline() {
        let mut page = FactPage::new(None, Vec::new());
        page.version = VERSION + 1;
        assert!(FactPageOutline::decode(&page.encode()).is_err());
    }
}
