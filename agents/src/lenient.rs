//! Field types that read a value of another type as absent, because transcripts have no schema.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The value of a field of any type.
enum LenientScalar<'a> {
    Text(Cow<'a, str>),
    Whole(i64),
    Bool(bool),
    Other,
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = LenientScalar<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_bool<E>(self, value: bool) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Bool(value))
    }
    fn visit_i64<E>(self, number: i64) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Whole(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<LenientScalar<'de>, E> {
        Ok(i64::try_from(number).map_or(LenientScalar::Other, LenientScalar::Whole))
    }
    fn visit_f64<E>(self, _: f64) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Other)
    }
    fn visit_unit<E>(self) -> Result<LenientScalar<'de>, E> {
        Ok(LenientScalar::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<LenientScalar<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientScalar::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<LenientScalar<'de>, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientScalar::Other)
    }
}

/// Implements `Deserialize` for a field type that is made of a scalar in this way.
macro_rules! of_scalar {
    ($name:ident: $($scalar:pat => $value:expr),+) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let scalar = deserializer.deserialize_any(ScalarVisitor)?;
                Ok(Self(match scalar { $($scalar => $value),+ }))
            }
        }
    };
}

/// A text; absent if the field holds anything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LenientText<'a>(pub(crate) Option<Cow<'a, str>>);

impl LenientText<'_> {
    /// Returns the text, unless it is empty.
    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Whether the field holds exactly this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.as_deref() == Some(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match deserializer.deserialize_any(ScalarVisitor)? {
            LenientScalar::Text(text) => Some(text),
            _ => None,
        }))
    }
}

/// An id: a text, or a whole number as text. Absent if it is empty or anything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LenientId(pub(crate) Option<String>);

of_scalar! { LenientId:
    LenientScalar::Text(text) => Some(text.into_owned()).filter(|text| !text.is_empty()),
    LenientScalar::Whole(number) => Some(number.to_string()),
    _ => None
}

/// `true` if the field is true, and `false` for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LenientFlag(pub(crate) bool);

of_scalar! { LenientFlag: LenientScalar::Bool(flag) => flag, _ => false }

/// `true` or `false`; absent if the field holds anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LenientBool(pub(crate) Option<bool>);

of_scalar! { LenientBool: LenientScalar::Bool(flag) => Some(flag), _ => None }

/// A whole number; absent if the field holds anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LenientInteger(pub(crate) Option<i64>);

of_scalar! { LenientInteger: LenientScalar::Whole(number) => Some(number), _ => None }

/// A JSON list. An unreadable element becomes the default at its place. Anything but a list has no
/// elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LenientList<T>(pub(crate) Vec<T>);

impl<T> Default for LenientList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Option::<&'de RawValue>::deserialize(deserializer)?;
        Ok(Self(list.map_or_else(Vec::new, |list| elements(list.get(), |_| None))))
    }
}

/// Parses the elements of a JSON list as [`LenientList`] does. `instead` reads an element that is
/// not a `T`; if it cannot, the element becomes the default.
pub(crate) fn elements<'a, T: Deserialize<'a> + Default>(
    json: &'a str,
    instead: impl Fn(&'a str) -> Option<T>,
) -> Vec<T> {
    if !json.starts_with('[') {
        return Vec::new();
    }
    serde_json::from_str(json).unwrap_or_else(|_| {
        let elements: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
        let read = |element: &&'a RawValue| {
            let element = element.get();
            serde_json::from_str(element).ok().or_else(|| instead(element)).unwrap_or_default()
        };
        elements.iter().map(read).collect()
    })
}

/// Parses an object; `None` for anything else. serde alone would also accept a list, as the fields
/// in their order.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    json.starts_with('{').then(|| serde_json::from_str(json).ok())?
}

/// Parses an object; anything else gives the default.
pub(crate) fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| parse_object(raw.get())).unwrap_or_default()
}

/// Parses one field of an object. Anything but an object, and a field that is absent or not a `T`,
/// give the default.
pub(crate) fn field<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>, name: &str) -> T {
    let fields: BTreeMap<String, &'a RawValue> = object(raw);
    fields.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Parses the objects of a list, each with its index. Other elements are skipped, so that one bad
/// element does not affect its neighbours.
pub(crate) fn objects<'a, T: Deserialize<'a>>(list: Option<&'a RawValue>) -> Vec<(usize, T)> {
    let items: Vec<&RawValue> =
        list.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let items = items.into_iter().enumerate();
    items.filter_map(|(at, item)| Some((at, parse_object(item.get())?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Fields<'a> {
        #[serde(borrow)]
        word: LenientText<'a>,
        name: LenientId,
        flag: LenientFlag,
        either: LenientBool,
        whole: LenientInteger,
    }

    #[test]
    fn a_field_of_another_type_reads_as_absent() {
        for other in ["null", "1.5", "[1,[2]]", r#"{"a":{"b":1}}"#] {
            let text = format!(
                r#"{{"word":{other},"name":{other},"flag":{other},"either":{other},"whole":{other},"more":{other}}}"#
            );
            let fields: Fields<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!((fields.word, fields.name), (LenientText(None), LenientId(None)));
            assert_eq!((fields.flag, fields.whole), (LenientFlag(false), LenientInteger(None)));
            assert_eq!(fields.either, LenientBool(None));
        }
    }

    #[test]
    fn a_bad_element_of_a_list_becomes_an_empty_element_at_the_same_place() {
        let list = |json: &str| {
            serde_json::from_str::<LenientList<Fields<'_>>>(json).map(|list| list.0.len())
        };
        let text = r#"[null,{"word":"a"},7]"#;
        let fields: LenientList<Fields<'_>> = serde_json::from_str(text).unwrap();
        assert_eq!(fields.0[1].word.text(), Some("a"));
        assert_eq!(list(text).unwrap(), 3);
        for other in ["null", "{}", "3", "\"[]\""] {
            assert_eq!(list(other).unwrap(), 0, "{other}");
        }
    }

    #[test]
    fn a_single_field_is_read_from_an_object_only() {
        let name = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            field::<LenientId>(Some(raw), "name").0
        };
        assert_eq!(name(r#"{"other":[1],"name":"a"}"#).as_deref(), Some("a"));
        for other in ["null", r#"["a"]"#, r#""name""#, r#"{"name":[]}"#, "{}"] {
            assert_eq!(name(other), None, "{other}");
        }
        assert_eq!(field::<LenientId>(None, "name"), LenientId(None));
    }

    #[test]
    fn an_empty_id_counts_as_absent() {
        // A message with the id "" would become a fact without an id, which the store refuses.
        let fields: Fields<'_> = serde_json::from_str(r#"{"name":""}"#).unwrap();
        assert_eq!(fields.name, LenientId(None));
    }

    #[test]
    fn a_bad_element_does_not_lose_its_neighbours() {
        let list = r#"[{"name":"a"},null,3,["b"],{"name":"c"},"d"]"#;
        let list: &RawValue = serde_json::from_str(list).unwrap();
        let read: Vec<(usize, Fields<'_>)> = objects(Some(list));
        let names: Vec<_> = read.iter().map(|(at, it)| (*at, it.name.0.as_deref())).collect();
        assert_eq!(names, [(0, Some("a")), (4, Some("c"))]);
        let none: Vec<(usize, Fields<'_>)> = objects(None);
        assert_eq!(none.len(), 0);
    }

    #[test]
    fn a_field_of_its_type_is_read() {
        let text = r#"{"word":"a\nb","name":7,"flag":true,"either":false,"whole":-3}"#;
        let fields: Fields<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(fields.word.text(), Some("a\nb"));
        assert_eq!(fields.name, LenientId(Some("7".to_owned())));
        assert_eq!((fields.flag, fields.whole), (LenientFlag(true), LenientInteger(Some(-3))));
        assert_eq!(fields.either, LenientBool(Some(false)));
    }
}
