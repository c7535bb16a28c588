//! The rules of OpenAI's chat completions and Responses.

use super::{Verdict, name, parts, plain_name, short_id, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks chat completions. Other providers with the same form may accept longer ids and other
/// names.
pub(super) fn chat(messages: &[Value], longest_id: usize, is_openai: bool) -> Verdict {
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |what: String| format!("messages[{index}]: {what}");
        let role = name(message, "role").map_err(at)?;
        if role != "tool" && !waiting.is_empty() {
            return Err(at(format!(
                "an assistant message with 'tool_calls' must be followed by tool messages: {waiting:?}"
            )));
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        match role {
            "system" | "developer" | "user" => parts(content).map_err(at)?,
            "function" => {
                name(message, "name").map_err(at)?;
                if is_openai {
                    plain_name(message, 64).map_err(at)?;
                }
                if message.get("content") != Some(&Value::Null) {
                    parts(content).map_err(at)?;
                }
            }
            "assistant" => {
                let blocks = content.as_array().into_iter().flatten();
                if blocks.clone().any(|block| text(block, "type") == Some("tool_use")) {
                    return Err(at("invalid content type 'tool_use'".into()));
                }
                if let Some(calls) = message.get("tool_calls") {
                    let calls =
                        calls.as_array().ok_or(at("tool_calls: expected an array".into()))?;
                    if calls.is_empty() {
                        return Err(at("tool_calls: [] is too short".into()));
                    }
                    for call in calls {
                        let id = short_id(call, "id", longest_id).map_err(at)?;
                        let (tool, arguments) = match name(call, "type").map_err(at)? {
                            "function" => (&call["function"], "arguments"),
                            "custom" => (&call["custom"], "input"),
                            other => return Err(at(format!("invalid type {other}"))),
                        };
                        name(tool, "name").map_err(at)?;
                        if arguments == "arguments" && is_openai {
                            plain_name(tool, 64).map_err(at)?;
                        }
                        text(tool, arguments).ok_or(at(format!("missing arguments: {call}")))?;
                        if !waiting.insert(id.to_owned()) {
                            return Err(at(format!("duplicate tool call id {id}")));
                        }
                    }
                }
                if let Some(call) = message.get("function_call") {
                    if !call.is_object() {
                        return Err(at("function_call: expected an object".into()));
                    }
                    if is_openai {
                        plain_name(call, 64).map_err(at)?;
                    }
                }
                let says = ["tool_calls", "function_call", "refusal", "audio"];
                let says =
                    says.iter().any(|field| message.get(*field).is_some_and(|v| !v.is_null()));
                if !(content.is_null() && says) {
                    parts(content).map_err(at)?;
                }
            }
            "tool" => {
                let id = name(message, "tool_call_id").map_err(at)?;
                if !waiting.remove(id) {
                    return Err(at(format!(
                        "a tool message must be a response to a preceding call: {id}"
                    )));
                }
                let mut blocks = content.as_array().into_iter().flatten();
                if is_openai && blocks.any(|block| text(block, "type") != Some("text")) {
                    return Err(at("tool messages can only have parts of type 'text'".into()));
                }
                parts(content).map_err(at)?;
            }
            other => return Err(at(format!("invalid role {other}"))),
        }
    }
    if waiting.is_empty() {
        Ok(())
    } else {
        Err(format!("calls at the end without responses: {waiting:?}"))
    }
}

/// Checks items of OpenAI's Responses.
pub(super) fn responses(items: &[Value]) -> Verdict {
    let mut waiting: BTreeSet<(String, String)> = BTreeSet::new();
    let mut reasoning = false;
    for (index, item) in items.iter().enumerate() {
        let at = |what: String| format!("input[{index}]: {what}");
        if !item.is_object() {
            return Err(at("expected an object".into()));
        }
        let kind = text(item, "type").unwrap_or("message");
        let from_model = kind.ends_with("_call")
            || ["mcp_approval_request", "mcp_list_tools", "item_reference", "program"]
                .contains(&kind)
            || kind == "message" && text(item, "role") == Some("assistant");
        if reasoning && !from_model && kind != "reasoning" {
            return Err(at(
                "an item of type 'reasoning' was provided without its required following item"
                    .into(),
            ));
        }
        reasoning = kind == "reasoning";
        const ANSWERED: [&str; 6] = [
            "function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
            "apply_patch_call",
        ];
        if kind == "message" {
            if !matches!(text(item, "role"), Some("user" | "assistant" | "system" | "developer")) {
                return Err(at(format!("invalid role: {item}")));
            }
            parts(&item["content"]).map_err(at)?;
        } else if ANSWERED.contains(&kind) {
            let id = short_id(item, "call_id", 64).map_err(at)?;
            if kind == "function_call" || kind == "custom_tool_call" {
                name(item, "name").map_err(at)?;
                if kind == "function_call" {
                    plain_name(item, 128).map_err(at)?;
                }
                let input = if kind == "function_call" { "arguments" } else { "input" };
                text(item, input).ok_or(at(format!("missing {input}")))?;
            }
            if !waiting.insert((kind.to_owned(), id.to_owned())) {
                return Err(at(format!("call {id} again before its output")));
            }
        } else if let Some(call) = kind.strip_suffix("_output")
            && ANSWERED.contains(&call)
        {
            let id = match (call, text(item, "call_id")) {
                ("local_shell_call", None) => name(item, "id").map_err(at)?,
                _ => name(item, "call_id").map_err(at)?,
            };
            if !waiting.remove(&(call.to_owned(), id.to_owned())) {
                return Err(at(format!(
                    "no tool call found for function call output with call_id {id}"
                )));
            }
            if call == "function_call" || call == "custom_tool_call" {
                match &item["output"] {
                    Value::String(_) => {}
                    other => parts(other).map_err(at)?,
                }
            }
        }
    }
    if reasoning {
        return Err("an item of type 'reasoning' at the end".into());
    }
    if waiting.is_empty() {
        Ok(())
    } else {
        Err(format!("no tool output found for function call {waiting:?}"))
    }
}
