//! The actions of sanitising, which a program can apply to its own copy of a history.

use super::fault::FaultKind;
use serde::{Serialize, Serializer};

/// What an action does to the list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizeActionKind {
    /// Inserts `message` at `index`. The messages from there on move to the next index.
    Insert,
    /// Removes the message at `index`.
    Remove,
    /// Moves the message at `index` to `to`: removes it, then inserts it.
    Move,
}

/// An action on the list of messages. Actions are applied in order, each to the result of the one
/// before. To change a message, one action removes it and the next inserts its new text in its
/// place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SanitizeAction {
    /// The kind of action.
    pub action: SanitizeActionKind,
    /// The index of the message, from 0.
    pub index: usize,
    /// For a move: the new index.
    pub to: Option<usize>,
    /// The message's own id.
    pub message_id: Option<String>,
    /// The id of the call concerned.
    pub tool_call_id: Option<String>,
    /// The fault that the action repairs.
    pub reason: FaultKind,
    /// For an insertion: the message.
    #[serde(serialize_with = "as_json")]
    pub message: Option<String>,
}

fn as_json<S: Serializer>(message: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = message.clone().map(serde_json::value::RawValue::from_string).transpose();
    raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Applies these actions to a list of messages. Stops at the first action whose index is not in the
/// list.
pub fn apply(messages: &mut Vec<String>, actions: &[SanitizeAction]) {
    for action in actions {
        let fits = match action.action {
            SanitizeActionKind::Insert => action.index <= messages.len(),
            SanitizeActionKind::Remove | SanitizeActionKind::Move => action.index < messages.len(),
        };
        if !fits {
            return;
        }
        match action.action {
            SanitizeActionKind::Insert => {
                messages.insert(action.index, action.message.clone().unwrap_or_default());
            }
            SanitizeActionKind::Remove => drop(messages.remove(action.index)),
            SanitizeActionKind::Move => {
                let message = messages.remove(action.index);
                let to = action.to.unwrap_or(action.index).min(messages.len());
                messages.insert(to, message);
            }
        }
    }
}
