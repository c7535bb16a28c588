//! Returns whether JSON that has no valid form holds content worth keeping.

use crate::thread::raw_json::{RawObject, list, text};

/// Fields that only label a value, and have no content worth keeping.
const LABELS: [&str; 14] = [
    "type", "role", "id", "name", "status", "signature", "thoughtSignature", "cache_control",
    "call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "toolName",
];

/// The maximum depth of lists and objects that are searched for content. Whatever is deeper counts
/// as content, because a search of it could overflow the stack.
const MAX_DEPTH: usize = 64;

/// Returns whether this JSON contains a text or a number besides labels.
pub(super) fn holds_content(json: &str) -> bool {
    holds_content_within(json, MAX_DEPTH)
}

fn holds_content_within(json: &str, depth: usize) -> bool {
    let Some(inner) = depth.checked_sub(1) else { return true };
    if let Some(said) = text(json) {
        return !said.trim().is_empty();
    }
    if let Some(items) = list(json) {
        return items.into_iter().any(|item| holds_content_within(item, inner));
    }
    match RawObject::parse(json) {
        Some(object) => object
            .fields()
            .filter(|(name, _)| !LABELS.contains(name))
            .any(|(_, field)| holds_content_within(field, inner)),
        None => json.parse::<f64>().is_ok(),
    }
}

/// Returns whether this JSON, which is not a message, has the content of one.
pub(in crate::thread) fn holds_message(json: &str) -> bool {
    holds_message_within(json, MAX_DEPTH)
}

fn holds_message_within(json: &str, depth: usize) -> bool {
    // LangChain has `repr` in the dump of a message that it cannot dump otherwise.
    const FIELDS: [&str; 10] = [
        "content", "parts", "output", "result", "response", "text", "value", "message", "error",
        "repr",
    ];
    let Some(object) = RawObject::parse(json) else {
        let Some(inner) = depth.checked_sub(1) else { return true };
        let items = list(json).unwrap_or_default();
        return text(json).is_some_and(|said| !said.trim().is_empty())
            || items.into_iter().any(|item| holds_message_within(item, inner));
    };
    let holds = |name: &&str| object.get(name).is_some_and(holds_content);
    // LangChain nests the fields of a message in an object. If the message has no type, it is not
    // recognised as one of LangChain.
    let is_nested = object.get("type").is_none();
    FIELDS.iter().any(holds) || is_nested && ["data", "kwargs"].iter().any(holds)
}
