//! What sanitising does, such that a program can do the same to its own copy.

use super::fault::FaultKind;
use serde::{Serialize, Serializer};

/// What is done to the list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizeActionKind {
    /// The message is put in at `index`; what stood there and after it moves up by one.
    Insert,
    /// The message at `index` is taken out.
    Remove,
    /// The message at `index` is taken out and put in at `to`.
    Move,
}

/// One step. Steps are taken in order, each on the list that the one before it left. A message that is changed is
/// removed and its new version inserted in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SanitizeAction {
    /// What is done.
    pub action: SanitizeActionKind,
    /// To which message, counted from 0.
    pub index: usize,
    /// Of a move: where it goes.
    pub to: Option<usize>,
    /// The id that the message has itself.
    pub message_id: Option<String>,
    /// The call it is about.
    pub tool_call_id: Option<String>,
    /// Why.
    pub reason: FaultKind,
    /// Of an insertion: the message.
    #[serde(serialize_with = "as_json")]
    pub message: Option<String>,
}

fn as_json<S: Serializer>(message: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = message.clone().map(serde_json::value::RawValue::from_string).transpose();
    raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Takes these steps on a list of messages. A step that does not fit ends it.
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
