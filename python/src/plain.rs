//! Converts plain values to Python and back: dictionaries, lists, texts, numbers, times.

use crate::error::invalid;
use forge_store::model::FieldMap;
use forge_store::{Checkpoint, Timestamp, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyTzInfo};
use std::convert::Infallible;

/// A value to be converted to Python. Making it does not need the GIL.
pub(crate) enum PlainValue {
    None,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Time(Timestamp),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl PlainValue {
    /// Returns this map with more fields. Other values stay as they are.
    pub(crate) fn with(self, more: impl IntoIterator<Item = (String, Self)>) -> Self {
        match self {
            Self::Map(mut fields) => {
                fields.extend(more);
                Self::Map(fields)
            }
            other => other,
        }
    }
}

/// Makes a [`PlainValue::Map`] from names and values.
macro_rules! plain_map {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::plain::PlainValue::Map(vec![
            $(($name.to_owned(), $crate::plain::PlainValue::from($value))),*
        ])
    };
}
pub(crate) use plain_map;

/// Implements `From` for [`PlainValue`] by a function for each type.
macro_rules! plain_from {
    ($($from:ty => $make:expr;)*) => {
        $(impl From<$from> for PlainValue {
            fn from(value: $from) -> Self {
                ($make)(value)
            }
        })*
    };
}

plain_from! {
    bool => Self::Bool;
    i64 => Self::Int;
    u64 => Self::UInt;
    usize => |number| Self::UInt(number as u64);
    f64 => Self::Float;
    String => Self::Text;
    &str => |text: &str| Self::Text(text.to_owned());
    Timestamp => Self::Time;
    Vec<(String, Self)> => Self::Map;
}

impl<T: Into<Self>> From<Option<T>> for PlainValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl<T: Into<Self>> From<Vec<T>> for PlainValue {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl From<Value> for PlainValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(number) => Self::Int(number),
            Value::UInt(number) => Self::UInt(number),
            Value::Float(number) => Self::Float(number),
            Value::Text(text) => Self::Text(text),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::List(items) => items.into(),
            Value::Map(fields) => {
                Self::Map(fields.into_iter().map(|(name, field)| (name, field.into())).collect())
            }
        }
    }
}

impl<'py> IntoPyObject<'py> for PlainValue {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let infallible = |never: Infallible| -> PyErr { match never {} };
        Ok(match self {
            Self::None => py.None().into_bound(py),
            Self::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            Self::Int(number) => number.into_pyobject(py).map_err(infallible)?.into_any(),
            Self::UInt(number) => number.into_pyobject(py).map_err(infallible)?.into_any(),
            Self::Float(number) => PyFloat::new(py, number).into_any(),
            Self::Text(text) => PyString::new(py, &text).into_any(),
            Self::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
            Self::Time(time) => time.to_datetime().into_pyobject(py)?.into_any(),
            Self::List(items) => PyList::new(py, items)?.into_any(),
            Self::Map(fields) => {
                let map = PyDict::new(py);
                for (name, field) in fields {
                    map.set_item(name, field)?;
                }
                map.into_any()
            }
        })
    }
}

/// Returns a checkpoint as fields; `branch` is the name of its branch.
pub(crate) fn checkpoint_fields(checkpoint: Checkpoint, branch: String) -> PlainValue {
    use forge_store::model::CheckpointTrigger;
    let trigger = match checkpoint.trigger {
        CheckpointTrigger::Manual => "manual".to_owned(),
        CheckpointTrigger::Scheduled => "scheduled".to_owned(),
        CheckpointTrigger::Automatic(event) => {
            let word = serde_json::to_value(event).ok();
            word.as_ref().and_then(|word| word.as_str()).unwrap_or("automatic").to_owned()
        }
    };
    plain_map! {
        "id": checkpoint.id.to_string(),
        "number": checkpoint.sequence,
        "time": checkpoint.time,
        "branch": branch,
        "revision": checkpoint.revision,
        "message": checkpoint.message,
        "tags": checkpoint.tags,
        "trigger": trigger,
        "data": checkpoint.body,
    }
}

/// Reads the time of an aware `datetime`.
///
/// # Errors
/// Invalid if it is no `datetime`, or is naive: without a time zone, its time is not known.
pub(crate) fn time_from(value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    let py = value.py();
    if !value.hasattr("astimezone")? {
        let what = format!("{} is not a datetime", value.repr()?);
        return Err(invalid(py, &what, "give an aware datetime.datetime"));
    }
    if value.call_method0("utcoffset")?.is_none() {
        let what = format!("the datetime {} is naive: it has no time zone", value.str()?);
        let next = "give it one, as with datetime.now(timezone.utc) or when.astimezone()";
        return Err(invalid(py, &what, next));
    }
    let utc = value.call_method1("astimezone", (PyTzInfo::utc(py)?,))?;
    Ok(utc.extract::<chrono::DateTime<chrono::Utc>>()?.into())
}

/// Reads the fields of an entity from a dictionary.
pub(crate) fn fields_from(fields: &Bound<'_, PyDict>) -> PyResult<FieldMap> {
    fields
        .iter()
        .map(|(name, value)| {
            let name = name.extract::<String>()?;
            let value = value_from(&value, &name, 0)?;
            Ok((name, value))
        })
        .collect()
}

/// Reads a Python None, bool, int or str. Returns `None` for any other value. `refuse` makes the
/// error for an int or str that no store can hold.
pub(crate) fn scalar_from(
    value: &Bound<'_, PyAny>,
    refuse: impl Fn(&str) -> PyResult<Value>,
) -> PyResult<Option<Value>> {
    if value.is_none() {
        return Ok(Some(Value::Null));
    }
    if let Ok(known) = value.cast::<PyBool>() {
        return Ok(Some(known.is_true().into()));
    }
    if value.is_instance_of::<PyInt>() {
        return match (value.extract::<i64>(), value.extract::<u64>()) {
            (Ok(number), _) => Ok(Some(number.into())),
            (_, Ok(number)) => Ok(Some(number.into())),
            _ => refuse("is an int of more than 64 bits").map(Some),
        };
    }
    if value.is_instance_of::<PyString>() {
        return match value.extract::<String>() {
            Ok(text) => Ok(Some(text.into())),
            Err(_) => refuse("is a str with a lone surrogate, which no store can hold").map(Some),
        };
    }
    Ok(None)
}

/// The maximum depth of a nested value.
const MAX_DEPTH: usize = 100;

/// Reads a value of a field. `depth` is the number of lists and dictionaries around it.
fn value_from(value: &Bound<'_, PyAny>, field: &str, depth: usize) -> PyResult<Value> {
    let py = value.py();
    let refuse = |what: &str| {
        let next = "give None, a bool, an int of 64 bits, a float, a str, an aware datetime, or a \
                    list or dict of these";
        Err(invalid(py, &format!("the field '{field}' {what}"), next))
    };
    if depth > MAX_DEPTH {
        let what = format!("the field '{field}' is nested more than {MAX_DEPTH} deep");
        return Err(invalid(py, &what, "make it flatter, or give its JSON text"));
    }
    if let Some(known) = scalar_from(value, refuse)? {
        return Ok(known);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(value.extract::<f64>()?.into());
    }
    if let Ok(map) = value.cast::<PyDict>() {
        let fields = map.iter().map(|(name, item)| {
            let Ok(name) = name.extract::<String>() else {
                return refuse("has a key that is not a str").map(|value| (String::new(), value));
            };
            let item = value_from(&item, field, depth + 1)?;
            Ok((name, item))
        });
        return Ok(Value::Map(fields.collect::<PyResult<_>>()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| value_from(&item?, field, depth + 1));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if value.hasattr("utcoffset")? {
        return Ok(time_from(value)?.to_string().into());
    }
    refuse(&format!("is a {}", value.get_type().name()?))
}
