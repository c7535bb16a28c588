//! Converts JSON values from Python. A part that cannot be stored exactly is refused, with its
//! path.

use crate::error::invalid;
use crate::plain::scalar_from;
use forge_store::Value;
use forge_store::model::claim::MAX_DEPTH;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyTuple};

/// Converts a JSON value. `path` names it in messages.
///
/// # Errors
/// Invalid if a part cannot be stored exactly, with its path; or if the value is nested too deeply.
pub(crate) fn json_from(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Value> {
    json_at(value, path, 1)
}

fn json_at(value: &Bound<'_, PyAny>, path: &str, depth: usize) -> PyResult<Value> {
    let refuse = |what: &str| {
        let next = "give None, a bool, an int of 64 bits, a finite float, a str, or a list or dict \
                    of these";
        Err(invalid(value.py(), &format!("{path} {what}"), next))
    };
    if let Some(known) = scalar_from(value, refuse)? {
        return Ok(known);
    }
    if value.is_instance_of::<PyFloat>() {
        let number = value.extract::<f64>()?;
        return if number.is_finite() {
            Ok(number.into())
        } else {
            refuse("is not a finite number")
        };
    }
    let map = value.cast::<PyDict>();
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if map.is_err() && !is_list {
        return refuse(&format!("is a {}", value.get_type().name()?));
    }
    if depth > MAX_DEPTH {
        let what = format!("a value is nested more than {MAX_DEPTH} deep");
        return Err(invalid(value.py(), &what, "make it flatter, or give its JSON text"));
    }
    if let Ok(map) = map {
        let fields = map.iter().map(|(name, item)| {
            let Ok(name) = name.extract::<String>() else {
                let what = format!("has the key {}, which is not a str", name.repr()?);
                // This is always an error: `map` only gives it the type of a field.
                return refuse(&what).map(|value| (String::new(), value));
            };
            let item = json_at(&item, &format!("{path}.{name}"), depth + 1)?;
            Ok((name, item))
        });
        return Ok(Value::Map(fields.collect::<PyResult<_>>()?));
    }
    let items = value.try_iter()?.enumerate();
    let items = items.map(|(index, item)| json_at(&item?, &format!("{path}[{index}]"), depth + 1));
    Ok(Value::List(items.collect::<PyResult<_>>()?))
}
