//! The rules of LangChain.

use super::{Verdict, openai, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks LangChain's messages as `langchain-openai` sends them: the rules of chat completions
/// apply to the result.
pub(super) fn messages(messages: &[Value]) -> Verdict {
    let sent = messages.iter().map(sent).collect::<Result<Vec<_>, _>>()?;
    openai::chat(&sent, usize::MAX, false)
}

/// Converts a message to its form in chat completions.
fn sent(message: &Value) -> Result<Value, String> {
    let (kind, body) = if message.get("lc").is_some() {
        let class = message["id"].as_array().and_then(|id| id.last()).and_then(Value::as_str);
        let class = class.ok_or(format!("no class: {message}"))?;
        (
            class.trim_end_matches("Chunk").trim_end_matches("Message").to_lowercase(),
            &message["kwargs"],
        )
    } else if let Some(kind) = text(message, "type") {
        let kind = kind.trim_end_matches("Chunk").trim_end_matches("Message").to_lowercase();
        // A dumped message may have a field of this name that is not a message.
        (kind, message.get("data").filter(|data| data.is_object()).unwrap_or(message))
    } else {
        return Ok(message.clone());
    };
    // Blocks of calls are omitted: the calls themselves are sent.
    let content = match &body["content"] {
        Value::Array(parts) if parts.is_empty() && kind != "ai" => {
            return Err(format!("empty content: {message}"));
        }
        // A text next to blocks becomes a text block.
        Value::Array(parts) => {
            let part = |part: &Value| match part {
                Value::String(text) => serde_json::json!({"type": "text", "text": text}),
                block => block.clone(),
            };
            Value::Array(parts.iter().map(part).collect())
        }
        other => other.clone(),
    };
    built(&kind, body, content)
}

fn built(kind: &str, body: &Value, content: Value) -> Result<Value, String> {
    match kind {
        "human" => Ok(serde_json::json!({"role": "user", "content": content})),
        "system" => Ok(serde_json::json!({"role": "system", "content": content})),
        "tool" => Ok(
            serde_json::json!({"role": "tool", "tool_call_id": body["tool_call_id"], "content": content}),
        ),
        "ai" => {
            let mut calls = Vec::new();
            let mut ids = BTreeSet::new();
            let mut add = |id: &Value, name: &Value, arguments: String| {
                if ids.insert(id.to_string()) {
                    calls.push(serde_json::json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}));
                }
            };
            for call in body["tool_calls"].as_array().unwrap_or(&Vec::new()) {
                if !call["args"].is_object() {
                    return Err(format!("args: {call}"));
                }
                add(&call["id"], &call["name"], call["args"].to_string());
            }
            for call in body["invalid_tool_calls"].as_array().unwrap_or(&Vec::new()) {
                let arguments = text(call, "args").ok_or(format!("args: {call}"))?;
                add(&call["id"], &call["name"], arguments.to_owned());
            }
            let mut blocks = Vec::new();
            for block in content.as_array().unwrap_or(&Vec::new()) {
                match text(block, "type") {
                    Some("tool_use" | "tool_call") => {
                        add(&block["id"], &block["name"], String::new());
                    }
                    // The form of the Responses API, which it also accepts.
                    Some("function_call") => {
                        add(&block["call_id"], &block["name"], String::new());
                    }
                    _ => blocks.push(block.clone()),
                }
            }
            if calls.is_empty() {
                calls.extend(
                    body["additional_kwargs"]["tool_calls"].as_array().cloned().unwrap_or_default(),
                );
            }
            let content = if content.is_array() { Value::from(blocks) } else { content };
            let content = if content == "" || content == Value::Array(Vec::new()) {
                Value::Null
            } else {
                content
            };
            let mut sent = serde_json::json!({"role": "assistant", "content": content});
            if calls.is_empty() {
                sent["content"] = if content.is_null() { Value::from("") } else { content };
            } else {
                sent["tool_calls"] = Value::from(calls);
            }
            Ok(sent)
        }
        other => Err(format!("unexpected message type {other}")),
    }
}
