//! Which form a message shows.

use super::Form;
use crate::systems::thread::json::Object;

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
    let kind = object.text("type");
    if let Some(kind) = kind.as_deref() {
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
        return of_content(object, Evidence::Weak(weak));
    }
    let Some(role) = object.text("role") else { return Evidence::None };
    let has_calls = object.get("tool_calls").is_some();
    if has_calls || role == "tool" || object.get("tool_call_id").is_some() {
        return Evidence::Strong(Form::OpenaiChat);
    }
    if role == "function" || object.has("function_call") || object.has("tool_calls") {
        return Evidence::Weak(Form::OpenaiChat);
    }
    of_content(object, Evidence::Any)
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
        let kind = block.text("type");
        found = match kind.as_deref().unwrap_or_default() {
            "tool_use" | "tool_result" => return Evidence::Strong(Form::Anthropic),
            "thinking" | "redacted_thinking" | "server_tool_use" | "document" => {
                Evidence::Weak(Form::Anthropic)
            }
            "input_text" | "output_text" | "input_image" | "input_file" => {
                Evidence::Weak(Form::OpenaiResponses)
            }
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
            (r#"{"hello":1}"#, Evidence::None),
            (r#"{"type":"weather"}"#, Evidence::None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
