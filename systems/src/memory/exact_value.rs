//! Turns JSON values into a form that a claim keeps exactly, and back.
//!
//! A claim drops the fields of maps that are null. This module takes them out, and notes them as
//! JSON pointers (RFC 6901) beside the value.

use forge_store::model::{BYTES_FIELD, Value};

/// Takes the null fields out of a value. Returns the pointers to them.
pub(super) fn take_nulls(value: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    take_from(value, "", &mut found);
    found
}

fn take_from(value: &mut Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Map(fields) => {
            for (name, field) in &mut *fields {
                let pointer = format!("{pointer}/{}", escaped(name));
                if *field == Value::Null {
                    found.push(pointer);
                } else {
                    take_from(field, &pointer, found);
                }
            }
            fields.retain(|_, field| *field != Value::Null);
        }
        Value::List(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                take_from(item, &format!("{pointer}/{place}"), found);
            }
        }
        _ => {}
    }
}

/// Puts null fields back to where these pointers say. A pointer that leads nowhere is skipped: its
/// map may have been removed by a command that changed the claim.
pub(super) fn put_nulls<'a>(value: &mut Value, pointers: impl IntoIterator<Item = &'a str>) {
    for pointer in pointers {
        let mut steps: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
        let Some(last) = steps.pop() else { continue };
        let parent = steps.iter().try_fold(&mut *value, |value, step| match value {
            Value::Map(fields) => fields.get_mut(step),
            Value::List(items) => items.get_mut(step.parse::<usize>().ok()?),
            _ => None,
        });
        if let Some(Value::Map(fields)) = parent {
            fields.entry(last).or_insert(Value::Null);
        }
    }
}

/// Turns bytes back into the JSON map that they were. No item has bytes, but if its claim came from
/// a file, a map that looks like the JSON form of bytes was read as bytes.
pub(super) fn without_bytes(value: Value) -> Value {
    match value {
        Value::Bytes(_) => {
            let text = serde_json::to_value(&value).ok();
            let text = text.as_ref().and_then(|map| map.get(BYTES_FIELD)?.as_str());
            Value::from([(BYTES_FIELD, text.unwrap_or_default().into())])
        }
        Value::List(items) => Value::List(items.into_iter().map(without_bytes).collect()),
        Value::Map(fields) => {
            let fields = fields.into_iter().map(|(name, field)| (name, without_bytes(field)));
            Value::Map(fields.collect())
        }
        other => other,
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
