//! Repairs messages that lost the field with their role or type, or whose content is a bare value.

use super::MessageForm;
use super::openai_chat::has_camel_calls;
use crate::thread::raw_json::{RawObject, quoted};

/// Infers the role or type of a message that lost this field but makes or answers calls. Returns
/// the name of the field and its value.
pub(super) fn lost_role(
    object: &RawObject<'_>,
    form: MessageForm,
) -> Option<(&'static str, &'static str)> {
    if object.get("role").is_some() || object.get("type").is_some() {
        return None;
    }
    let has = |name: &str| object.get(name).is_some();
    match form {
        MessageForm::Plain | MessageForm::OpenaiChat if has("tool_call_id") => {
            Some(("role", "tool"))
        }
        MessageForm::Plain | MessageForm::OpenaiChat
            if has("tool_calls") || has_camel_calls(object) =>
        {
            Some(("role", "assistant"))
        }
        MessageForm::LangchainFlat if has("tool_call_id") => Some(("type", "tool")),
        MessageForm::LangchainFlat if has("tool_calls") => Some(("type", "ai")),
        MessageForm::OpenaiResponses if !has("call_id") => None,
        MessageForm::OpenaiResponses if has("output") => Some(("type", "function_call_output")),
        MessageForm::OpenaiResponses if has("name") && has("arguments") => {
            Some(("type", "function_call"))
        }
        MessageForm::OpenaiResponses if has("name") && has("input") => {
            Some(("type", "custom_tool_call"))
        }
        MessageForm::Anthropic | MessageForm::Bedrock | MessageForm::AiSdk => {
            role_of_blocks(object)
        }
        MessageForm::Gemini if holds(object, "parts", &["functionCall", "function_call"]) => {
            Some(("role", "model"))
        }
        _ => None,
    }
}

/// Infers the role from the calls and results in the content blocks of a message.
fn role_of_blocks(object: &RawObject<'_>) -> Option<(&'static str, &'static str)> {
    let role = if holds(object, "content", &["tool_use", "toolUse", "tool-call"]) {
        "assistant"
    } else if holds(object, "content", &["tool_result", "toolResult"]) {
        "user"
    } else if holds(object, "content", &["tool-result"]) {
        "tool"
    } else {
        return None;
    };
    Some(("role", role))
}

/// Returns the content of a message as JSON text if it is a number or a truth value: a table of
/// messages may give the answer `5` as a number.
pub(super) fn bare_content(object: &RawObject<'_>) -> Option<String> {
    let role = object.text("role")?;
    let is_speaker = ["user", "assistant", "system", "developer"].contains(&&*role);
    let given = object.get("content")?;
    let is_bare = given.parse::<f64>().is_ok() || matches!(given, "true" | "false");
    (is_speaker && is_bare).then(|| quoted(given))
}

/// Returns whether this list contains a block of one of these types, or with one of these fields.
fn holds(object: &RawObject<'_>, field: &str, kinds: &[&str]) -> bool {
    let is_one = |json: &str| {
        let Some(block) = RawObject::parse(json) else { return false };
        let kind = block.text("type");
        kinds.iter().any(|name| kind.as_deref() == Some(name) || block.get(name).is_some())
    };
    object.list(field).is_some_and(|blocks| blocks.into_iter().any(is_one))
}
