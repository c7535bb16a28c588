//! Field types, and the macro that builds typed records from them.

use super::InvalidField;
use crate::model::text::with_ellipsis;
use crate::model::{FieldMap, Kind, TextRef, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A known field of a kind.
#[derive(Clone, Copy)]
pub struct FieldDefinition {
    /// The name of the field in a value.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The shape of its values.
    pub shape: FieldShape,
    pub(super) allowed: fn() -> String,
}

impl FieldDefinition {
    /// Returns the allowed values, in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }
}

impl fmt::Debug for FieldDefinition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name, self.allowed())
    }
}

/// The shape of a field's values, for programs that offer a form or a command line for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldShape {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number from the first to the second.
    Number(f64, f64),
    /// Any other value.
    Other,
}

/// The type of a field: how it is read from a value and written to one.
///
/// Law: for a value without nulls, `write(read(v))` is `v`, except that an integer may become a
/// float (or a float without a fraction an integer) where the field requires it.
pub trait FieldValue: Sized {
    /// The shape of its values.
    const SHAPE: FieldShape = FieldShape::Other;

    /// Converts a value to this type; `None` if it does not fit.
    fn read(value: &Value) -> Option<Self>;
    /// Converts this to a value.
    fn write(&self) -> Value;
    /// The allowed values, in words.
    fn allowed() -> String;

    /// Returns whether reading and writing would return this same value, so that neither is needed.
    fn is_written(value: &Value) -> bool {
        Self::read(value).is_some_and(|read| read.write() == *value)
    }
}

/// A number within bounds that are part of its type.
macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $low:literal, $high:literal, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// Creates the number if it is within bounds (NaN never is).
            #[must_use]
            pub fn new(number: f64) -> Option<Self> {
                // Adding zero turns negative zero into positive zero, so that equal values have
                // equal bytes.
                ($low..=$high).contains(&number).then_some(Self(number + 0.0))
            }

            /// Returns the number.
            #[must_use]
            pub const fn value(self) -> f64 {
                self.0
            }
        }

        impl FieldValue for $name {
            const SHAPE: FieldShape = FieldShape::Number($low, $high);

            fn read(value: &Value) -> Option<Self> {
                Self::new(value.as_f64()?)
            }

            fn write(&self) -> Value {
                Value::Float(self.0)
            }

            fn allowed() -> String {
                $allowed.to_owned()
            }

            fn is_written(value: &Value) -> bool {
                matches!(value, Value::Float(number) if Self::new(*number).is_some())
            }
        }
    };
}

bounded!(
    /// A confidence, from 0 (certainly not) to 1 (certainly).
    Confidence, 0.0, 1.0, "a number from 0 to 1"
);
bounded!(
    /// The strength of evidence: for something (up to 1) or against it (down to -1).
    Strength, -1.0, 1.0, "a number from -1 to 1"
);

impl Confidence {
    /// Neither more likely nor less likely than not.
    pub const EVEN: Self = Self(0.5);
}

/// A record of one kind of claim or fact: its fields as a struct. Any field may be absent.
///
/// A struct is made from [`Default`] and the setters named like its fields, or as a literal:
///
/// ```
/// use forge_store::{Confidence, Hypothesis};
///
/// let one = Hypothesis::default().description("the cache is stale").confidence(Confidence::EVEN);
/// let other = Hypothesis {
///     description: Some("the cache is stale".to_owned()),
///     confidence: Confidence::new(0.5),
///     ..Hypothesis::default()
/// };
/// assert_eq!(one, other);
/// ```
pub trait TypedRecord: Clone {
    /// The kind that has these fields.
    const KIND: Kind;

    /// Parses the fields of a value.
    ///
    /// # Errors
    /// [`InvalidField`] for the first known field that does not fit, or a value that is not a map.
    fn from_value(value: &Value) -> Result<Self, InvalidField>;

    /// Converts this to the value with these fields.
    fn into_value(self) -> Value;
}

/// A text of a fact. Of a long text, only the beginning and the location of the rest are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct FactText(Value);

impl FactText {
    /// Returns the text, or the beginning of a long one.
    #[must_use]
    pub fn preview(&self) -> &str {
        match &self.0 {
            Value::Text(text) => text,
            long => long
                .field(TextRef::FIELD)
                .and_then(|fields| fields.field("preview")?.as_text())
                .unwrap_or_default(),
        }
    }

    /// Returns the text for display: the beginning of a long one ends with `…`.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        let text = self.preview();
        if self.whole().is_none_or(|whole| text.len() as u64 >= whole.bytes) {
            return text.into();
        }
        with_ellipsis(text).into()
    }

    /// Returns the location of the whole text, if only its beginning is stored here.
    #[must_use]
    pub fn whole(&self) -> Option<TextRef> {
        TextRef::from_value(&self.0)
    }
}

impl From<&str> for FactText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<TextRef> for FactText {
    fn from(text: TextRef) -> Self {
        Self(text.into_value())
    }
}

impl FieldValue for FactText {
    const SHAPE: FieldShape = FieldShape::Text;

    fn read(value: &Value) -> Option<Self> {
        let fits = matches!(value, Value::Text(_)) || TextRef::from_value(value).is_some();
        fits.then(|| Self(value.clone()))
    }

    fn write(&self) -> Value {
        self.0.clone()
    }

    fn allowed() -> String {
        "a text".to_owned()
    }
}

impl FieldValue for String {
    const SHAPE: FieldShape = FieldShape::Text;

    fn read(value: &Value) -> Option<Self> {
        value.as_text().map(str::to_owned)
    }

    fn write(&self) -> Value {
        self.as_str().into()
    }

    fn allowed() -> String {
        "a text".to_owned()
    }

    fn is_written(value: &Value) -> bool {
        matches!(value, Value::Text(_))
    }
}

impl FieldValue for bool {
    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn write(&self) -> Value {
        (*self).into()
    }

    fn allowed() -> String {
        "true or false".to_owned()
    }
}

impl FieldValue for i64 {
    #[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 get there")]
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => {
                Some(*number as Self)
            }
            other => other.as_i64(),
        }
    }

    fn write(&self) -> Value {
        (*self).into()
    }

    fn allowed() -> String {
        "a whole number".to_owned()
    }
}

impl FieldValue for u64 {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::UInt(number) => Some(*number),
            other => i64::read(other)?.try_into().ok(),
        }
    }

    fn write(&self) -> Value {
        (*self).into()
    }

    fn allowed() -> String {
        "a whole number from 0 on".to_owned()
    }
}

/// Any value, passed through unchanged.
impl FieldValue for Value {
    fn read(value: &Value) -> Option<Self> {
        Some(value.clone())
    }

    fn write(&self) -> Value {
        self.clone()
    }

    fn allowed() -> String {
        "any value".to_owned()
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    const SHAPE: FieldShape = match T::SHAPE {
        FieldShape::Text => FieldShape::Texts,
        _ => FieldShape::Other,
    };

    fn read(value: &Value) -> Option<Self> {
        value.as_list()?.iter().map(T::read).collect()
    }

    fn write(&self) -> Value {
        Value::List(self.iter().map(T::write).collect())
    }

    fn allowed() -> String {
        format!("a list, each {}", T::allowed())
    }

    fn is_written(value: &Value) -> bool {
        value.as_list().is_some_and(|items| items.iter().all(T::is_written))
    }
}

impl<T: FieldValue> FieldValue for BTreeMap<String, T> {
    fn read(value: &Value) -> Option<Self> {
        let fields = value.as_map()?;
        fields.iter().map(|(name, value)| Some((name.clone(), T::read(value)?))).collect()
    }

    fn write(&self) -> Value {
        Value::Map(self.iter().map(|(name, value)| (name.clone(), value.write())).collect())
    }

    fn allowed() -> String {
        format!("a map, each {}", T::allowed())
    }
}

/// A measured value: a number, a boolean or a text.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValue(Value);

impl MeasuredValue {
    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }
}

impl FieldValue for MeasuredValue {
    fn read(value: &Value) -> Option<Self> {
        let fits = !matches!(value, Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_));
        fits.then(|| Self(value.clone()))
    }

    fn write(&self) -> Value {
        self.0.clone()
    }

    fn allowed() -> String {
        "a number, a text, true or false".to_owned()
    }
}

/// Parses the field of this name; if it does not fit, returns its value and the allowed values in
/// words.
pub(super) fn read<T: FieldValue>(
    fields: &FieldMap,
    name: &str,
) -> Result<Option<T>, (Value, String)> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    T::read(value).map(Some).ok_or_else(|| (value.clone(), T::allowed()))
}

/// Adds a field to `fields` if it is present.
pub(super) fn put<T: FieldValue>(fields: &mut FieldMap, name: &str, value: Option<&T>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.write());
    }
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident, $kind:ident {
        $($(#[doc = $about:literal])+ $key:literal => $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        ///
        /// Every field may be absent. Law: `to_value(from_value(v)) == v.without_nulls()` for every
        /// value returned by [`check`](crate::model::claim::check).
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])+ pub $field: Option<$type>,)*
            /// Fields that forge does not know.
            pub extra: $crate::model::FieldMap,
        }

        impl $name {
            /// The kind that has these fields.
            pub const KIND: $crate::model::Kind = $crate::model::Kind::$kind;

            /// The known fields.
            pub const FIELDS: &'static [$crate::model::claim::FieldDefinition] = &[
                $($crate::model::claim::FieldDefinition {
                    name: $key,
                    about: concat!($($about),+).trim_ascii(),
                    shape: <$type as $crate::model::claim::field::FieldValue>::SHAPE,
                    allowed: <$type as $crate::model::claim::field::FieldValue>::allowed,
                },)*
            ];

            $(
                #[doc = concat!("Sets the field `", $key, "`.")]
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> Self {
                    self.$field = Some($field.into());
                    self
                }
            )*

            /// Parses the fields of a value. Nulls count as absent, at any depth.
            ///
            /// # Errors
            /// [`InvalidField`](crate::model::claim::InvalidField) for the first known field that
            /// does not fit, or a value that is not a map.
            pub fn from_value(
                value: &$crate::model::Value,
            ) -> Result<Self, $crate::model::claim::InvalidField> {
                use $crate::model::{Value, claim::{InvalidField, field}};
                let cleaned = value.has_nulls().then(|| value.clone().without_nulls());
                let Value::Map(fields) = cleaned.as_ref().unwrap_or(value) else {
                    return Err(InvalidField::no_map(Self::KIND, value));
                };
                let extra = fields.iter().filter(|(name, _)| !matches!(name.as_str(), $($key)|*));
                Ok(Self {
                    $($field: field::read(fields, $key).map_err(|(found, allowed)| {
                        InvalidField::new(Self::KIND, $key, &found, allowed)
                    })?,)*
                    extra: extra.map(|(name, value)| (name.clone(), value.clone())).collect(),
                })
            }

            /// Returns whether [`to_value`](Self::to_value) of [`from_value`](Self::from_value)
            /// returns this same value, which has no nulls.
            pub(super) fn is_written(value: &$crate::model::Value) -> bool {
                value.as_map().is_some_and(|fields| {
                    $(fields.get($key).is_none_or(
                        <$type as $crate::model::claim::field::FieldValue>::is_written
                    ))&&*
                })
            }

            /// Returns the value with these fields; absent ones are omitted.
            #[must_use]
            pub fn to_value(&self) -> $crate::model::Value {
                let mut fields = self.extra.clone();
                $($crate::model::claim::field::put(&mut fields, $key, self.$field.as_ref());)*
                $crate::model::Value::Map(fields)
            }
        }

        impl $crate::model::claim::TypedRecord for $name {
            const KIND: $crate::model::Kind = $crate::model::Kind::$kind;

            fn from_value(
                value: &$crate::model::Value,
            ) -> Result<Self, $crate::model::claim::InvalidField> {
                Self::from_value(value)
            }

            fn into_value(self) -> $crate::model::Value {
                self.to_value()
            }
        }
    };
}
pub(super) use record;
