//! Finds out what a message reveals about the form of its thread.

use super::MessageForm::{
    self, AiSdk, Anthropic, Bedrock, Gemini, Langchain, LangchainFlat, LangchainLc, OpenaiChat,
    OpenaiResponses,
};
use super::foreign_form::foreign;
use super::openai_chat::{has_camel_call, has_camel_calls};
use crate::thread::raw_json::{RawObject, text};
use FormEvidence::{Any, Foreign, Strong, Weak};

/// What a message reveals about the form of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::thread) enum FormEvidence {
    /// Certainly this form.
    Strong(MessageForm),
    /// Probably this form.
    Weak(MessageForm),
    /// A message that several forms can have.
    Any,
    /// Not a message in any form.
    None,
    /// A message in a form that is not supported, and a description of what it seems to be.
    Foreign(&'static str),
}

/// The values of `type` in messages of LangChain.
pub(super) const LANGCHAIN_TYPES: [&str; 13] = [
    "human", "ai", "tool", "system", "function", "chat", "developer", "HumanMessageChunk",
    "AIMessageChunk", "ToolMessageChunk", "SystemMessageChunk", "FunctionMessageChunk",
    "ChatMessageChunk",
];

/// Returns what a message reveals about the form of its thread.
pub(in crate::thread) fn evidence(object: &RawObject<'_>) -> FormEvidence {
    if object.has("lc") && object.has("kwargs") {
        return Strong(LangchainLc);
    }
    if let Some(seems) = foreign(object) {
        return Foreign(seems);
    }
    if let Some(kind) = object.text("type") {
        return of_type(object, &kind);
    }
    if object.has("parts") {
        return of_parts(object);
    }
    let Some(role) = object.text("role") else { return FormEvidence::None };
    let is_role =
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&&*role);
    let names = [
        "content", "tool_calls", "toolCalls", "tool_call_id", "function_call", "functionCall",
        "refusal", "audio",
    ];
    if !is_role || !names.iter().any(|name| object.has(name)) {
        return FormEvidence::None;
    }
    of_role(object, &role)
}

/// Returns the evidence of a message with a `type`.
fn of_type(object: &RawObject<'_>, kind: &str) -> FormEvidence {
    if LANGCHAIN_TYPES.contains(&kind) {
        let nested = object.object("data").is_some();
        return Strong(if nested { Langchain } else { LangchainFlat });
    }
    if kind != "message" {
        return match object.has("role") && object.has("content") {
            _ if is_item(object, kind) => Strong(OpenaiResponses),
            true => of_content(object, Any),
            false => FormEvidence::None,
        };
    }
    // Anthropic's answers have the type `message` too.
    let stopped = object.has("stop_reason");
    let weak = if stopped { Anthropic } else { OpenaiResponses };
    of_content(object, Weak(weak))
}

/// Returns the evidence of a message with a role.
fn of_role(object: &RawObject<'_>, role: &str) -> FormEvidence {
    let found = of_content(object, Any);
    if found == Strong(AiSdk) {
        return found;
    }
    let may_call = role == "assistant" && !matches!(found, Strong(_));
    if object.get("tool_calls").is_some() || may_call && has_camel_calls(object) {
        // A message may have the same call in its content, in Anthropic's form. Then the other
        // messages decide.
        let both = found == Strong(Anthropic);
        return if both { Weak(OpenaiChat) } else { Strong(OpenaiChat) };
    }
    if role == "tool" || object.get("tool_call_id").is_some() {
        return Strong(OpenaiChat);
    }
    let has_call_field = object.has("function_call") || object.has("tool_calls");
    if role == "function" || has_call_field || may_call && has_camel_call(object) {
        // The fields may be null beside blocks in another form.
        return match found {
            Strong(form) => Weak(form),
            _ => Weak(OpenaiChat),
        };
    }
    found
}

/// Returns the evidence of a message with `parts`: it may be Gemini's. Messages of other programs
/// whose parts have a type were recognised before this.
fn of_parts(object: &RawObject<'_>) -> FormEvidence {
    let role = object.text("role");
    if !matches!(role.as_deref(), None | Some("user" | "model" | "function" | "tool" | "system")) {
        return FormEvidence::None;
    }
    let parts = object.list("parts");
    let is_part = |json: &&str| {
        let named = |part: RawObject<'_>| super::gemini::PARTS.iter().any(|name| part.has(name));
        text(json).is_some() || RawObject::parse(json).is_some_and(named)
    };
    let shown = match (&parts, role.as_deref()) {
        (Some(parts), _) if parts.iter().any(is_part) => true,
        (_, Some("model")) => true,
        (None, Some(_)) => object.text("parts").is_some(),
        _ => false,
    };
    match (shown, role.is_some()) {
        (true, _) => Strong(Gemini),
        (false, true) => Weak(Gemini),
        (false, false) => FormEvidence::None,
    }
}

/// Returns whether this object of this type is an item of the Responses API, other than a message.
pub(super) fn is_item(object: &RawObject<'_>, kind: &str) -> bool {
    const ENDS: [&str; 3] = ["_call", "_output", "_response"];
    const WHOLE: [&str; 7] = [
        "reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "program",
        "additional_tools", "configuration_update",
    ];
    WHOLE.contains(&kind)
        // Codex has this type for events with a text.
        || kind == "agent_message" && object.list("content").is_some()
        || kind.starts_with("compaction")
        || ENDS.iter().any(|end| kind.ends_with(end))
}

/// Returns the evidence of the blocks of a message's content; `otherwise` if they show nothing.
fn of_content(object: &RawObject<'_>, otherwise: FormEvidence) -> FormEvidence {
    let mut found = otherwise;
    for block in object.list("content").unwrap_or_default() {
        let Some(block) = RawObject::parse(block) else { continue };
        let Some(kind) = block.text("type") else {
            if block.has("toolUse") || block.has("toolResult") {
                return Strong(Bedrock);
            }
            if super::bedrock::BLOCKS.iter().any(|name| block.has(name)) {
                found = Weak(Bedrock);
            }
            continue;
        };
        found = match &*kind {
            "tool_use" | "tool_result" => return Strong(Anthropic),
            kind if kind.starts_with("tool-") => {
                return Strong(AiSdk);
            }
            kind if kind.ends_with("_tool_result") => Weak(Anthropic),
            // Mistral's thinking is a list of blocks.
            "thinking" if block.list("thinking").is_some() => continue,
            "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use" | "document" => {
                Weak(Anthropic)
            }
            "input_text" | "output_text" | "input_image" | "input_file" => Weak(OpenaiResponses),
            "file" if block.has("mediaType") || block.has("mimeType") => Weak(AiSdk),
            "reasoning" if block.has("text") => Weak(AiSdk),
            "image" if block.has("image") => Weak(AiSdk),
            "image" if block.has("source") => Weak(Anthropic),
            "image_url" | "input_audio" | "file" | "refusal" => Weak(OpenaiChat),
            _ => continue,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_form_is_recognised_by_its_own_fields() {
        let of = |text: &str| evidence(&RawObject::parse(text).unwrap());
        for (text, expected) in [
            (r#"{"role":"user","content":"hi"}"#, Any),
            (r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#, Any),
            (r#"{"role":"assistant","tool_calls":[]}"#, Strong(OpenaiChat)),
            (r#"{"role":"assistant","toolCalls":[{"name":"f"}]}"#, Strong(OpenaiChat)),
            (r#"{"role":"assistant","content":"hi","toolCalls":[ ]}"#, Any),
            (r#"{"role":"assistant","content":"hi","functionCall":null}"#, Any),
            (r#"{"role":"assistant","content":"hi","functionCall":{}}"#, Any),
            (r#"{"role":"user","content":"hi","toolCalls":[{"name":"f"}]}"#, Any),
            (r#"{"role":"user","content":"hi","functionCall":{"name":"f"}}"#, Any),
            (r#"{"role":"assistant","content":"hi","toolCalls":[{"name":"f","result":"r"}]}"#, Any),
            (
                r#"{"role":"assistant","content":[{"toolUse":{}}],"toolCalls":[{"name":"f"}]}"#,
                Strong(Bedrock),
            ),
            (r#"{"role":"assistant","content":"","tool_calls":null}"#, Weak(OpenaiChat)),
            (r#"{"role":"tool","tool_call_id":"a"}"#, Strong(OpenaiChat)),
            (r#"{"type":"function_call","call_id":"a"}"#, Strong(OpenaiResponses)),
            (r#"{"type":"message","role":"user","content":"x"}"#, Weak(OpenaiResponses)),
            (
                r#"{"type":"message","role":"assistant","content":[{"type":"tool_use"}]}"#,
                Strong(Anthropic),
            ),
            (r#"{"role":"user","content":[{"type":"tool_result"}]}"#, Strong(Anthropic)),
            (r#"{"role":"assistant","content":[{"type":"mcp_tool_use"}]}"#, Weak(Anthropic)),
            (r#"{"role":"tool","parts":[{"functionResponse":{}}]}"#, Strong(Gemini)),
            (r#"{"type":"ai","data":{}}"#, Strong(Langchain)),
            (r#"{"type":"ai","content":""}"#, Strong(LangchainFlat)),
            (r#"{"lc":1,"type":"constructor","id":[],"kwargs":{}}"#, Strong(LangchainLc)),
            (r#"{"role":"user","content":[{"toolResult":{}}]}"#, Strong(Bedrock)),
            (r#"{"role":"user","content":[{"text":"hi"}]}"#, Weak(Bedrock)),
            (r#"{"role":"model","parts":[]}"#, Strong(Gemini)),
            (r#"{"role":"user","parts":[{"text":"hi"}]}"#, Strong(Gemini)),
            (r#"{"parts":[{"function_call":{}}]}"#, Strong(Gemini)),
            (r#"{"role":"tool","content":[{"type":"tool-result"}]}"#, Strong(AiSdk)),
            (
                r#"{"role":"assistant","content":[{"type":"tool_use"}],"tool_calls":[]}"#,
                Weak(OpenaiChat),
            ),
            (
                r#"{"role":"assistant","content":[{"type":"tool_use"}],"tool_calls":null}"#,
                Weak(Anthropic),
            ),
            (r#"{"role":"assistant","content":[{"type":"thinking","thinking":[]}]}"#, Any),
            (r#"{"role":"user","content":[{"type":"image","source":{}}]}"#, Weak(Anthropic)),
            (
                r#"{"type":"agent_message","author":"a","recipient":"b","content":[]}"#,
                Strong(OpenaiResponses),
            ),
            (r#"{"id":"item_1","type":"agent_message","text":"done"}"#, FormEvidence::None),
            (r#"{"hello":1}"#, FormEvidence::None),
            (r#"{"role":"user"}"#, FormEvidence::None),
            (r#"{"type":"weather"}"#, FormEvidence::None),
            (r#"{"type":"TEXT_MESSAGE_START","role":"assistant"}"#, FormEvidence::None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
