//! Which form a message shows.

use super::Form;
use super::unknown::foreign;
use crate::systems::thread::json::{Object, text};

/// What a message says of the form of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::systems::thread) enum Evidence {
    /// It can be nothing else.
    Strong(Form),
    /// It looks like it.
    Weak(Form),
    /// It could be of several.
    Any,
    /// It is no message of any.
    None,
    /// It is of a form that is not known here, and this is what it seems to be.
    Foreign(&'static str),
}

/// The words for LangChain's sorts of messages.
pub(super) const LANGCHAIN_TYPES: [&str; 13] = [
    "human",
    "ai",
    "tool",
    "system",
    "function",
    "chat",
    "developer",
    "HumanMessageChunk",
    "AIMessageChunk",
    "ToolMessageChunk",
    "SystemMessageChunk",
    "FunctionMessageChunk",
    "ChatMessageChunk",
];

/// What a message says of the form of its thread.
pub(in crate::systems::thread) fn evidence(object: &Object<'_>) -> Evidence {
    if object.has("lc") && object.has("kwargs") {
        return Evidence::Strong(Form::LangchainLc);
    }
    if let Some(seems) = foreign(object) {
        return Evidence::Foreign(seems);
    }
    if let Some(kind) = object.text("type") {
        return of_type(object, &kind);
    }
    if object.has("parts") {
        return of_parts(object);
    }
    let Some(role) = object.text("role") else { return Evidence::None };
    let is_role =
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&&*role);
    let names = ["content", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"];
    if !is_role || !names.iter().any(|name| object.has(name)) {
        return Evidence::None;
    }
    of_role(object, &role)
}

/// What a message with a `type` says.
fn of_type(object: &Object<'_>, kind: &str) -> Evidence {
    if LANGCHAIN_TYPES.contains(&kind) {
        let nested = object.object("data").is_some();
        return Evidence::Strong(if nested { Form::Langchain } else { Form::LangchainFlat });
    }
    if kind != "message" {
        return match object.has("role") {
            _ if is_item(kind) => Evidence::Strong(Form::OpenaiResponses),
            true => of_content(object, Evidence::Any),
            false => Evidence::None,
        };
    }
    // Anthropic's answers say that they are messages too.
    let stopped = object.has("stop_reason");
    let weak = if stopped { Form::Anthropic } else { Form::OpenaiResponses };
    of_content(object, Evidence::Weak(weak))
}

/// What a message with a role says.
fn of_role(object: &Object<'_>, role: &str) -> Evidence {
    let found = of_content(object, Evidence::Any);
    if found == Evidence::Strong(Form::AiSdk) {
        return found;
    }
    if object.get("tool_calls").is_some() {
        // The same call may stand there in the form of Anthropic's: the other messages say which form it is.
        let both = found == Evidence::Strong(Form::Anthropic);
        let chat = Form::OpenaiChat;
        return if both { Evidence::Weak(chat) } else { Evidence::Strong(chat) };
    }
    if role == "tool" || object.get("tool_call_id").is_some() {
        return Evidence::Strong(Form::OpenaiChat);
    }
    if role == "function" || object.has("function_call") || object.has("tool_calls") {
        return Evidence::Weak(Form::OpenaiChat);
    }
    found
}

/// What a message with parts says: that it is Gemini's, if its parts have no type.
fn of_parts(object: &Object<'_>) -> Evidence {
    let role = object.text("role");
    if !matches!(role.as_deref(), None | Some("user" | "model" | "function" | "system")) {
        return Evidence::None;
    }
    let parts = object.list("parts");
    let is_part = |json: &&str| {
        let named = |part: Object<'_>| super::gemini::PARTS.iter().any(|name| part.has(name));
        text(json).is_some() || Object::parse(json).is_some_and(named)
    };
    let shown = match (&parts, role.as_deref()) {
        (Some(parts), _) if parts.iter().any(is_part) => true,
        (_, Some("model")) => true,
        (None, Some(_)) => object.text("parts").is_some(),
        _ => false,
    };
    match (shown, role.is_some()) {
        (true, _) => Evidence::Strong(Form::Gemini),
        (false, true) => Evidence::Weak(Form::Gemini),
        (false, false) => Evidence::None,
    }
}

/// Whether items of the Responses API say that they are of this type.
pub(super) fn is_item(kind: &str) -> bool {
    const ENDS: [&str; 3] = ["_call", "_output", "_response"];
    const WHOLE: [&str; 5] =
        ["reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request"];
    WHOLE.contains(&kind) || ENDS.iter().any(|end| kind.ends_with(end))
}

fn of_content(object: &Object<'_>, otherwise: Evidence) -> Evidence {
    let mut found = otherwise;
    for block in object.list("content").unwrap_or_default() {
        let Some(block) = Object::parse(block) else { continue };
        let Some(kind) = block.text("type") else {
            if block.has("toolUse") || block.has("toolResult") {
                return Evidence::Strong(Form::Bedrock);
            }
            if super::bedrock::BLOCKS.iter().any(|name| block.has(name)) {
                found = Evidence::Weak(Form::Bedrock);
            }
            continue;
        };
        found = match &*kind {
            "tool_use" | "tool_result" => return Evidence::Strong(Form::Anthropic),
            kind if kind.starts_with("tool-") => return Evidence::Strong(Form::AiSdk),
            kind if kind.ends_with("_tool_result") => Evidence::Weak(Form::Anthropic),
            "thinking" | "redacted_thinking" | "server_tool_use" | "document" => {
                Evidence::Weak(Form::Anthropic)
            }
            "input_text" | "output_text" | "input_image" | "input_file" => {
                Evidence::Weak(Form::OpenaiResponses)
            }
            "file" if block.has("mediaType") => Evidence::Weak(Form::AiSdk),
            "reasoning" if block.has("text") => Evidence::Weak(Form::AiSdk),
            "image" if block.has("image") => Evidence::Weak(Form::AiSdk),
            "image_url" | "input_audio" | "file" | "refusal" => Evidence::Weak(Form::OpenaiChat),
            _ => continue,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_recognised_by_what_only_it_has() {
        let of = |text: &str| evidence(&Object::parse(text).unwrap());
        for (text, expected) in [
            (r#"{"role":"user","content":"hi"}"#, Evidence::Any),
            (r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#, Evidence::Any),
            (r#"{"role":"assistant","tool_calls":[]}"#, Evidence::Strong(Form::OpenaiChat)),
            (
                r#"{"role":"assistant","content":"","tool_calls":null}"#,
                Evidence::Weak(Form::OpenaiChat),
            ),
            (r#"{"role":"tool","tool_call_id":"a"}"#, Evidence::Strong(Form::OpenaiChat)),
            (r#"{"type":"function_call","call_id":"a"}"#, Evidence::Strong(Form::OpenaiResponses)),
            (
                r#"{"type":"message","role":"user","content":"x"}"#,
                Evidence::Weak(Form::OpenaiResponses),
            ),
            (
                r#"{"type":"message","role":"assistant","content":[{"type":"tool_use"}]}"#,
                Evidence::Strong(Form::Anthropic),
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result"}]}"#,
                Evidence::Strong(Form::Anthropic),
            ),
            (r#"{"type":"ai","data":{}}"#, Evidence::Strong(Form::Langchain)),
            (r#"{"type":"ai","content":""}"#, Evidence::Strong(Form::LangchainFlat)),
            (
                r#"{"lc":1,"type":"constructor","id":[],"kwargs":{}}"#,
                Evidence::Strong(Form::LangchainLc),
            ),
            (r#"{"role":"user","content":[{"toolResult":{}}]}"#, Evidence::Strong(Form::Bedrock)),
            (r#"{"role":"user","content":[{"text":"hi"}]}"#, Evidence::Weak(Form::Bedrock)),
            (r#"{"role":"model","parts":[]}"#, Evidence::Strong(Form::Gemini)),
            (r#"{"role":"user","parts":[{"text":"hi"}]}"#, Evidence::Strong(Form::Gemini)),
            (r#"{"parts":[{"function_call":{}}]}"#, Evidence::Strong(Form::Gemini)),
            (
                r#"{"role":"tool","content":[{"type":"tool-result"}]}"#,
                Evidence::Strong(Form::AiSdk),
            ),
            (
                r#"{"role":"assistant","content":[{"type":"tool_use"}],"tool_calls":[]}"#,
                Evidence::Weak(Form::OpenaiChat),
            ),
            (r#"{"hello":1}"#, Evidence::None),
            (r#"{"role":"user"}"#, Evidence::None),
            (r#"{"type":"weather"}"#, Evidence::None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
