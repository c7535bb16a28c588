//! Validation of values and ids before they are stored.

use super::invalid_field::{InvalidField, quoted, shown};
use super::{
    Agent, Belief, CodeState, Dependency, Evidence, ExecutedCommand, FieldDefinition, FieldShape,
    FieldValue, Gap, Hypothesis, Inference, Measurement, Message, Note, Notice, Prompt, Task,
    ToolUse, VerificationResult,
};
use crate::model::{Kind, Value};

/// Maximum length of an id, in bytes.
pub const MAX_ID_BYTES: usize = 200;

/// Maximum nesting depth of lists and maps in a field.
pub const MAX_DEPTH: usize = 100;

/// The error for an invalid entity id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "id {found} {problem}: use 1 to 200 bytes without control characters, no space at either end"
)]
pub struct InvalidId {
    /// The id; truncated if long, control characters escaped.
    pub found: String,
    /// The reason why it is invalid.
    pub problem: &'static str,
}

/// Checks an entity id: 1 to [`MAX_ID_BYTES`] bytes, no control characters, no white space at
/// either end.
///
/// # Errors
/// [`InvalidId`] with the reason.
pub fn check_id(id: &str) -> Result<(), InvalidId> {
    let problem = if id.is_empty() {
        "is empty"
    } else if id.len() > MAX_ID_BYTES {
        "is too long"
    } else if id.chars().any(char::is_control) {
        "holds a control character"
    } else if id.trim() != id {
        "begins or ends with a space"
    } else {
        return Ok(());
    };
    Err(InvalidId { found: quoted(id), problem })
}

/// The fields of a kind, and how they are checked.
struct RecordType {
    fields: &'static [FieldDefinition],
    /// Returns the stored form of a value.
    stored: fn(&Value) -> Result<Value, InvalidField>,
    /// Returns whether the known fields of a value have the stored form.
    is_written: fn(&Value) -> bool,
}

/// Returns the record type of a kind; `None` for the kinds of the crate `systems`, whose fields are
/// not checked.
fn record_type(kind: Kind) -> Option<RecordType> {
    macro_rules! record_of {
        ($name:ident) => {
            RecordType {
                fields: $name::FIELDS,
                stored: |value| Ok($name::from_value(value)?.to_value()),
                is_written: $name::is_written,
            }
        };
    }
    Some(match kind {
        Kind::Hypothesis => record_of!(Hypothesis),
        Kind::Evidence => record_of!(Evidence),
        Kind::Belief => record_of!(Belief),
        Kind::Dependency => record_of!(Dependency),
        Kind::Gap => record_of!(Gap),
        Kind::Note => record_of!(Note),
        Kind::Message => record_of!(Message),
        Kind::Prompt => record_of!(Prompt),
        Kind::Command => record_of!(ExecutedCommand),
        Kind::Code => record_of!(CodeState),
        Kind::Verification => record_of!(VerificationResult),
        Kind::Measurement => record_of!(Measurement),
        Kind::Task => record_of!(Task),
        Kind::Agent => record_of!(Agent),
        Kind::Inference => record_of!(Inference),
        Kind::Tool => record_of!(ToolUse),
        Kind::Notice => record_of!(Notice),
        Kind::Output
        | Kind::Item
        | Kind::Progress
        | Kind::ThreadMessage
        | Kind::Program
        | Kind::Run
        | Kind::Thread
        | Kind::GraphStep
        | Kind::Channel
        | Kind::ChannelElement
        | Kind::MemoryItem
        | Kind::GraphWrite => return None,
    })
}

/// Returns the value in its stored form: without null fields, with known fields checked and their
/// numbers normalised (a confidence of 1 becomes 1.0, so that equal values have equal bytes), and
/// with zero instead of negative zero. Unknown fields are kept.
///
/// # Errors
/// [`InvalidField`] for the first invalid field: a wrong type or word, a number out of range, NaN
/// or infinity anywhere, lists and maps nested more than [`MAX_DEPTH`] deep, or a value that is not
/// a map.
///
/// ```
/// use forge_store::model::{Kind, Value, claim};
///
/// let fine = Value::from([("description", "stale cache".into()), ("confidence", 0.4.into())]);
/// assert_eq!(claim::check(Kind::Hypothesis, &fine), Ok(fine));
///
/// let wrong = Value::from([("confidence", 1.7.into())]);
/// assert_eq!(
///     claim::check(Kind::Hypothesis, &wrong).unwrap_err().to_string(),
///     "field 'confidence' of hypothesis is 1.7: use a number from 0 to 1"
/// );
/// ```
pub fn check(kind: Kind, value: &Value) -> Result<Value, InvalidField> {
    let Value::Map(fields) = value else { return Err(InvalidField::no_map(kind, value)) };
    for (name, field) in fields {
        check_json(field, 1).map_err(|(found, allowed)| InvalidField {
            kind,
            field: Some(name.clone()),
            found,
            allowed: allowed.to_owned(),
        })?;
    }
    let checked = match record_type(kind) {
        Some(record) => (record.stored)(value)?,
        None => value.clone().without_nulls(),
    };
    Ok(positive_zeros(checked))
}

/// Returns whether a value already has the stored form, as most values do: then [`check`] need not
/// rebuild it.
#[must_use]
pub fn is_checked(kind: Kind, value: &Value) -> bool {
    value.as_map().is_some_and(|fields| fields.values().all(|field| is_plain(field, 1)))
        && record_type(kind).is_none_or(|record| (record.is_written)(value))
}

/// Returns whether a value has only finite numbers, no null field, no negative zero, and no more
/// than [`MAX_DEPTH`] levels.
fn is_plain(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null => false,
        Value::Float(number) => {
            number.is_finite() && !(*number == 0.0 && number.is_sign_negative())
        }
        Value::List(_) | Value::Map(_) if depth > MAX_DEPTH => false,
        Value::List(items) => {
            items.iter().all(|item| *item == Value::Null || is_plain(item, depth + 1))
        }
        Value::Map(fields) => fields.values().all(|field| is_plain(field, depth + 1)),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Text(_) | Value::Bytes(_) => true,
    }
}

/// Returns the known fields of a kind, in display order. The fields of the kinds of the crate
/// `systems` are listed, but not checked.
#[must_use]
pub fn fields(kind: Kind) -> &'static [FieldDefinition] {
    record_type(kind).map_or_else(|| system_fields(kind), |record| record.fields)
}

/// Makes a list of fields that are described, but not checked.
macro_rules! unchecked {
    ($($name:literal: $about:literal,)*) => {
        &[$(FieldDefinition { name: $name, about: $about, shape: FieldShape::Other, allowed: <Value as FieldValue>::allowed },)*]
    };
}

/// Returns the fields of the kinds of the crate `systems`, which are not checked.
fn system_fields(kind: Kind) -> &'static [FieldDefinition] {
    match kind {
        Kind::Output => unchecked! {
            "item": "The item it was made for.",
            "step": "The step that made it.",
            "name": "The display name of the step.",
            "order": "The place of the step in the workflow.",
            "content": "What was made.",
        },
        Kind::Item => unchecked! {
            "status": "How far it is: active, terminal; of the progress of a pipeline: done, failed.",
            "step": "The step recorded last.",
            "name": "The display name of that step.",
            "next": "The step to be done next.",
            "order": "The place of the last step in the workflow.",
            "path": "The finished steps in the order in which they were done.",
            "data": "Further data of the item.",
            "recorded_at": "When it was last recorded.",
            "rows": "The numbers of the rows of a table that it was imported from.",
            "class": "Of a failed item of a pipeline: the class of its last failure.",
            "attempts": "Of a failed item of a pipeline: how often it was tried.",
            "error": "Its last error.",
        },
        Kind::Run => unchecked! {
            "status": "How far it is: running, finished, failed.",
            "input": "What it was given. It is in the claim `input`; all other fields are in the claim `run`.",
            "started_at": "When it began.",
            "ended_at": "When it ended.",
            "error": "Why it failed.",
            "items": "How many items it has.",
            "terminal": "How many of them have finished.",
        },
        Kind::Progress => unchecked! {
            "review_id": "The review that it belongs to.",
            "execution_id": "The execution that it belongs to.",
            "stage": "Its current stage.",
            "batch_info": "The last finished batch, the number of batches and their size.",
            "progress": "The numbers of processed, failed and all items.",
            "last_processed": "The item processed last, and when.",
            "context": "What is needed to resume: tokens of a server, versions, models.",
            "error_info": "Errors: what went wrong, how often, with which items, and whether it can resume.",
            "metadata": "Ids and versions that are needed to reproduce it.",
            "created_at": "When it was first saved.",
            "updated_at": "When it was last saved.",
        },
        Kind::ThreadMessage => unchecked! {
            "role": "The role of its author.",
            "message": "The message, as the JSON text that was given.",
            "message_id": "The id that the message has itself.",
            "place": "Its place in the thread: messages are in the order of their places.",
            "held": "Whether it is held back until the results of its calls are known.",
            "reason": "Why it was inserted or changed; absent if it is as it was given.",
        },
        Kind::Program => unchecked! {
            "agents": "The checkpoint of each of its agents.",
            "message": "A remark about it.",
        },
        Kind::Thread => unchecked! {
            "form": "The form of its messages.",
            "messages": "How many messages it has.",
            "pending": "The calls that have no result yet, with what is known of each.",
            "writer": "Its writer at present, and until when.",
            "marked": "Whether it contains something that no provider would accept.",
            "reset": "When sanitising could keep none of its messages, and how many they were.",
        },
        framework => framework_fields(framework),
    }
}

/// Returns the fields of the kinds for agent frameworks, which are not checked.
fn framework_fields(kind: Kind) -> &'static [FieldDefinition] {
    match kind {
        Kind::GraphStep => unchecked! {
            "namespace": "The namespace that made the step; empty for the graph itself.",
            "checkpoint": "The framework's id of the checkpoint.",
            "operation": "Identifies the put, so that a checkpoint that was replaced is not taken for the new one.",
            "head": "The checkpoint without the values of its channels: type, and the framework's bytes.",
            "calls": "In a claim of its own: the calls of subgraphs that have claims.",
        },
        Kind::Channel => unchecked! {
            "channel": "Its name, if the id does not say it.",
            "type": "The framework's word for the encoding of the value.",
            "form": "What its elements are: list, map, or whole for a value that is not divided.",
            "count": "How many elements it has.",
            "version": "The framework's version of the value.",
        },
        Kind::ChannelElement => unchecked! {
            "title": "What it says, in one line; absent if only the framework can read it.",
            "type": "The framework's word for the encoding, if it is not `msgpack`.",
            "bytes": "The element, as the framework's bytes. Elements are in the order of their ids.",
        },
        Kind::MemoryItem => unchecked! {
            "key": "Its key, if the id does not say it.",
            "value": "What it holds; absent if that is null.",
            "nulls": "Where the value has null fields, as JSON pointers.",
            "version": "How often it was written since it was added.",
            "updated_at": "When it was last written, if it was written again.",
            "name": "In a claim of its own: the name of the memory, if that of the session is not it.",
        },
        Kind::GraphWrite => unchecked! {
            "task": "The task that wrote.",
            "path": "The path of the task, by which writes are sorted.",
            "writes": "What it wrote: slot, channel, type and bytes of each value.",
            "dropped": "Whether the versions before this one were dropped with their checkpoint.",
        },
        _ => &[],
    }
}

/// Checks that all numbers are finite and that the depth is within the limit. Otherwise returns the
/// invalid part, in words, and what is allowed.
fn check_json(value: &Value, depth: usize) -> Result<(), (String, &'static str)> {
    match value {
        Value::Float(number) if !number.is_finite() => Err((shown(value), "a finite number")),
        Value::List(_) | Value::Map(_) if depth > MAX_DEPTH => {
            let found = "a list or map nested too deep".to_owned();
            Err((found, "lists and maps at most 100 deep"))
        }
        Value::List(items) => items.iter().try_for_each(|item| check_json(item, depth + 1)),
        Value::Map(fields) => fields.values().try_for_each(|field| check_json(field, depth + 1)),
        _ => Ok(()),
    }
}

/// Replaces every negative zero by zero, since equal numbers must have equal bytes.
fn positive_zeros(value: Value) -> Value {
    match value {
        Value::Float(number) => Value::Float(number + 0.0),
        Value::List(items) => Value::List(items.into_iter().map(positive_zeros).collect()),
        Value::Map(fields) => Value::Map(
            fields.into_iter().map(|(name, value)| (name, positive_zeros(value))).collect(),
        ),
        other => other,
    }
}
