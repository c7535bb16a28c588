//! The error for a field with an invalid value.

use crate::model::{Kind, Value};
use std::fmt;

/// Maximum number of characters of an invalid value in an error.
const SHOWN_CHARS: usize = 60;

/// The error for a field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidField {
    /// The kind of the entity.
    pub kind: Kind,
    /// The field; `None` if the value as a whole is invalid.
    pub field: Option<String>,
    /// Its value as JSON; truncated if long, control characters escaped.
    pub found: String,
    /// The allowed values, in words.
    pub allowed: String,
}

impl InvalidField {
    pub(super) fn new(kind: Kind, field: &str, found: &Value, allowed: String) -> Self {
        Self { kind, field: Some(field.to_owned()), found: shown(found), allowed }
    }

    pub(super) fn no_map(kind: Kind, found: &Value) -> Self {
        Self { kind, field: None, found: shown(found), allowed: "a map of fields".to_owned() }
    }
}

impl fmt::Display for InvalidField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, field, found, allowed } = self;
        match field {
            Some(field) => {
                write!(out, "field '{}' of {kind} is {found}: use {allowed}", field.escape_debug())
            }
            None => write!(out, "{kind} is {found}: use {allowed}"),
        }
    }
}

/// Formats a value for an error message.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => quoted(text),
        Value::Bytes(_) => "bytes".to_owned(),
        Value::List(items) => {
            let odd = items.iter().find(|item| !matches!(item, Value::Text(_)));
            odd.map_or_else(
                || "a list".to_owned(),
                |odd| match odd {
                    Value::List(_) | Value::Map(_) => "a list".to_owned(),
                    plain => format!("a list with {}", shown(plain)),
                },
            )
        }
        Value::Map(_) => "a map".to_owned(),
    }
}

/// Quotes a text for an error message: truncated if long, control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN_CHARS).collect();
    if start.len() < text.len() {
        start.push('\u{2026}');
    }
    format!("{start:?}")
}
