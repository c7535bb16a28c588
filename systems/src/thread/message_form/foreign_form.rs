//! Guesses in which unsupported form a message is.

use crate::thread::raw_json::{RawObject, list, text};

/// Describes what this object seems to be, if it is certainly not a message in a supported form.
pub(super) fn foreign(object: &RawObject<'_>) -> Option<&'static str> {
    let has = |name: &str| object.get(name).is_some();
    let kind = object.text("type").unwrap_or_default();
    Some(match () {
        () if has("payload") && CODEX.contains(&&*kind) => "a line of a Codex rollout",
        () if has("parentUuid") || has("sessionId") && has("uuid") => CLAUDE,
        () if object.object("message").is_some() && !kind.is_empty() => CLAUDE,
        () if kind == "gemini" || has("sessionId") && has("projectHash") => "a Gemini CLI session",
        () if object.object("info").is_some() && has("parts") => "a message of OpenCode",
        () if has("toolInvocations") => UI_MESSAGE,
        () if object.object("values").is_some_and(|values| values.has("messages")) => {
            "a state of LangGraph, whose messages are in 'values'"
        }
        () if object.list("choices").is_some() => "an answer of OpenAI's API",
        () if object.list("candidates").is_some() => "an answer of Gemini's API",
        () if has("conversations") || has("from") && has("value") => "a conversation of ShareGPT",
        () if object.object("mapping").is_some() => "an export of ChatGPT",
        () if has("chat_messages") => "an export of Claude",
        () if object.text("object").as_deref() == Some("thread.message") => {
            "a message of OpenAI's Assistants"
        }
        () if has("role") && object.list("blocks").is_some() => "a message of LlamaIndex",
        () if has("role") && object.list("items").is_some() => "a message of Semantic Kernel",
        () if has("role") && object.text("message").is_some() => "a message of Cohere",
        () if kind.is_empty()
            && has("role")
            && holds_any(object, "additional_kwargs", &["tool_calls", "tool_call_id"]) =>
        {
            "a message of LlamaIndex"
        }
        () if has("role") && holds_any(object, "options", &["toolCall", "toolResult"]) => {
            "a message of LlamaIndex"
        }
        () if has("role") && object.list("tool_responses").is_some() => "a message of AutoGen",
        () if object.object("content").is_some_and(|content| content.has("format")) => {
            "a message of Mastra"
        }
        () => return of_parts(object).or_else(|| of_content(object)),
    })
}

const CLAUDE: &str = "a line of a Claude Code transcript";
const UI_MESSAGE: &str =
    "a UIMessage of the Vercel AI SDK: convert it with 'convertToModelMessages'";
const CODEX: [&str; 5] =
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];

/// Describes a message whose parts say what kind they are: parts of Gemini do not.
fn of_parts(object: &RawObject<'_>) -> Option<&'static str> {
    object.list("parts")?.into_iter().filter_map(RawObject::parse).find_map(|part| match () {
        () if part.has("part_kind") => Some("a message of Pydantic AI"),
        () if part.has("kind") => Some("a message of A2A"),
        () => part.has("type").then_some(UI_MESSAGE),
    })
}

/// Returns whether this field is an object that has one of these fields.
fn holds_any(object: &RawObject<'_>, field: &str, names: &[&str]) -> bool {
    let more = object.object(field);
    more.is_some_and(|more| names.iter().any(|name| more.get(name).is_some()))
}

/// Describes a message by a block of its content: the blocks of version 4 of the AI SDK, which has
/// other names for the arguments and the result of a call, and calls and results in a form of none
/// of the supported APIs.
fn of_content(object: &RawObject<'_>) -> Option<&'static str> {
    let is_own = ["type", "tool_call_id"].iter().any(|name| object.get(name).is_some());
    let is_role = object.get("role").is_some() && !is_own;
    object.list("content")?.into_iter().filter_map(RawObject::parse).find_map(|part| {
        let kind = part.text("type").unwrap_or_default();
        let old = match &*kind {
            "tool-call" => part.has("args") && !part.has("input"),
            "tool-result" => part.has("result") && !part.has("output"),
            _ => false,
        };
        match () {
            () if old => Some("a CoreMessage of version 4 of the Vercel AI SDK"),
            // The parts of a UIMessage as content.
            () if part.has("toolInvocation") || is_tool_part(&kind) && part.has("state") => {
                Some(UI_MESSAGE)
            }
            () if is_role
                && kind.is_empty()
                && MEDIA.iter().any(|name| part.text(name).is_some()) =>
            {
                Some("a message of DashScope")
            }
            () if part.object("document").is_some() && kind == "document" => {
                Some("a message of Cohere")
            }
            () if kind == "tool_result" && part.has("toolUseID") => Some("a message of Amp"),
            () if is_role && is_foreign_call(&part, &kind) => {
                Some("a message with a call or a result in another form")
            }
            () => None,
        }
    })
}

/// The fields in which DashScope has the address of a file.
const MEDIA: [&str; 3] = ["image", "audio", "video"];

/// Returns whether this is the type of a part with a call in a UIMessage of the AI SDK, and not of
/// one in a `ModelMessage`.
fn is_tool_part(kind: &str) -> bool {
    const OF_MODEL: [&str; 4] =
        ["tool-call", "tool-result", "tool-approval-request", "tool-approval-response"];
    kind == "dynamic-tool" || kind.starts_with("tool-") && !OF_MODEL.contains(&kind)
}

/// Returns whether a block is a call or a result in a form of none of the supported APIs: by its
/// type or, if it has none, by a field.
fn is_foreign_call(part: &RawObject<'_>, kind: &str) -> bool {
    const KNOWN: [&str; 4] = ["toolUse", "toolResult", "toolAddition", "toolRemoval"];
    const ABOUT: [&str; 6] = ["call", "request", "response", "result", "return", "output"];
    let is_tool = |name: &str| name.contains("tool") || name.contains("function");
    if kind.is_empty() {
        let is_one = |name: &str| is_tool(name) && !KNOWN.contains(&name);
        return part.fields().any(|(name, json)| is_one(name) && RawObject::parse(json).is_some());
    }
    let kind = kind.to_ascii_lowercase();
    let is_known = kind.starts_with("tool-") || kind.ends_with("tool_result");
    is_tool(&kind) && !is_known && ABOUT.iter().any(|word| kind.contains(word))
}

/// Describes this JSON, for the error about a text that is not a message.
pub(in crate::thread) fn describe_unknown(json: &str) -> String {
    if let Some(object) = RawObject::parse(json) {
        if let Some(seems) = foreign(&object) {
            return seems.to_owned();
        }
        let fields = object.names();
        return match fields.len() {
            0 => "an empty object".to_owned(),
            count => {
                let shown: Vec<String> =
                    fields.iter().take(5).map(|name| format!("'{name}'")).collect();
                let more = if count > shown.len() { " and more" } else { "" };
                format!("an object with the fields {}{more}", shown.join(", "))
            }
        };
    }
    let what = if text(json).is_some() {
        "a text"
    } else if list(json).is_some() {
        "a list"
    } else if json == "null" || json == "true" || json == "false" || json.parse::<f64>().is_ok() {
        "a bare value"
    } else {
        "no JSON"
    };
    what.to_owned()
}
