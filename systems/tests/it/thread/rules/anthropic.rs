//! The rules of Anthropic's Messages API.

use super::{Verdict, name, parts, plain_id, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks Anthropic messages. Clients move messages of role `system` to the request's own field.
pub(super) fn messages(messages: &[Value]) -> Verdict {
    let mut seen = BTreeSet::new();
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |what: String| format!("messages.{index}: {what}");
        let role = name(message, "role").map_err(at)?;
        if !["user", "assistant", "system"].contains(&role) {
            return Err(at(format!("unexpected role {role}")));
        }
        let known = ["role", "content", "clear_at", "output_config"];
        let mut fields = message.as_object().into_iter().flatten();
        if let Some((field, _)) = fields.find(|(field, _)| !known.contains(&field.as_str())) {
            return Err(at(format!("{field}: Extra inputs are not permitted")));
        }
        let last_answer = index + 1 == messages.len() && role == "assistant";
        let blocks: &[Value] = match &message["content"] {
            Value::String(string) if string.trim().is_empty() && !last_answer => {
                return Err(at("all messages must have non-empty content".into()));
            }
            Value::String(_) => &[],
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            Value::Null if message["output_config"].is_object() => &[],
            other => return Err(at(format!("invalid content {other}"))),
        };
        let mut calls = BTreeSet::new();
        let mut others = false;
        for block in blocks {
            match name(block, "type").map_err(at)? {
                "tool_use" => {
                    let id = tool_use(block, role).map_err(at)?;
                    if !seen.insert(id.clone()) {
                        return Err(at(format!("`tool_use` ids must be unique: {id}")));
                    }
                    calls.insert(id);
                }
                "tool_result" => {
                    let id = tool_result(block, role).map_err(at)?;
                    if others {
                        return Err(at("`tool_result` blocks must come first".into()));
                    }
                    if !waiting.remove(&id) {
                        return Err(at(format!(
                            "unexpected `tool_use_id` found in `tool_result` blocks: {id}"
                        )));
                    }
                }
                _ => {
                    other_block(block).map_err(at)?;
                    others = true;
                }
            }
        }
        if !waiting.is_empty() {
            return Err(at(format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {waiting:?}"
            )));
        }
        let last = blocks.last().and_then(|block| text(block, "type"));
        if role == "assistant" && matches!(last, Some("thinking" | "redacted_thinking")) {
            return Err(at("the final block in an assistant message cannot be `thinking`".into()));
        }
        waiting = calls;
    }
    if !waiting.is_empty() {
        return Err(format!("calls at the end without results: {waiting:?}"));
    }
    server_tools(messages)?;
    end(messages)
}

fn tool_use(block: &Value, role: &str) -> Result<String, String> {
    let id = plain_id(block, "id", usize::MAX)?;
    name(block, "name")?;
    if !block["input"].is_object() {
        return Err("tool_use.input: input should be a valid dictionary".into());
    }
    if role != "assistant" {
        return Err("`tool_use` blocks can only be in assistant messages".into());
    }
    Ok(id.to_owned())
}

fn tool_result(block: &Value, role: &str) -> Result<String, String> {
    let id = plain_id(block, "tool_use_id", usize::MAX)?;
    if role != "user" {
        return Err("`tool_result` blocks can only be in user messages".into());
    }
    let content = block.get("content");
    if let Some(content) = content.filter(|content| **content != Value::Array(Vec::new())) {
        parts(content)?;
    }
    let blocks: Vec<&Value> = content.and_then(Value::as_array).into_iter().flatten().collect();
    for inner in &blocks {
        if block_text(inner).is_some_and(|string| string.trim().is_empty()) {
            return Err("text content blocks must be non-empty".into());
        }
    }
    if block["is_error"] == true {
        if blocks.iter().any(|inner| text(inner, "type") != Some("text")) {
            return Err("all content must be type `text` if `is_error` is true".into());
        }
        let says = content.and_then(Value::as_str).is_some_and(|string| !string.is_empty());
        if !says && blocks.is_empty() {
            return Err("content cannot be empty if `is_error` is true".into());
        }
    }
    Ok(id.to_owned())
}

fn other_block(block: &Value) -> Verdict {
    match text(block, "type") {
        Some("text") if text(block, "text").is_none_or(|string| string.trim().is_empty()) => {
            Err("text content blocks must be non-empty".into())
        }
        Some("thinking") if text(block, "signature").is_none() => {
            Err("thinking.signature: Field required".into())
        }
        _ => Ok(()),
    }
}

/// Checks that a result of a server tool follows its use; only the last answer may wait for one, if
/// nothing but results of the client's tools follows it.
fn server_tools(messages: &[Value]) -> Verdict {
    let mut open: Vec<(usize, String)> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for block in message["content"].as_array().into_iter().flatten() {
            let kind = text(block, "type").unwrap_or_default();
            if matches!(kind, "server_tool_use" | "mcp_tool_use") {
                open.push((index, name(block, "id")?.to_owned()));
            } else if kind.ends_with("_tool_result") {
                let id = name(block, "tool_use_id")?;
                let place = open.iter().rposition(|(_, known)| known == id);
                let place = place
                    .ok_or(format!("unexpected `tool_use_id` found in `{kind}` blocks: {id}"))?;
                open.remove(place);
            }
        }
    }
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    let is_result = |block: &Value| block["type"] == "tool_result";
    let ends_there = last.is_some_and(|last| {
        let after = messages[last + 1..].iter().filter(|message| message["role"] == "user");
        after.into_iter().all(|message| {
            message["content"].as_array().is_some_and(|blocks| blocks.iter().all(is_result))
        })
    });
    let last = last.filter(|_| ends_there);
    match open.iter().find(|(index, _)| Some(*index) != last) {
        Some((_, id)) => Err(format!("tool use with id {id} was found without a result block")),
        None => Ok(()),
    }
}

/// The text of a text block. A block of another type may have a field of this name with its own meaning.
fn block_text(block: &Value) -> Option<&str> {
    text(block, "text").filter(|_| block["type"] == "text")
}

fn end(messages: &[Value]) -> Verdict {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else {
        return Ok(());
    };
    let block = last["content"].as_array().and_then(|blocks| blocks.last());
    let string = last["content"].as_str().or_else(|| block_text(block?));
    if string.is_some_and(|string| string.ends_with(char::is_whitespace)) {
        return Err("final assistant content cannot end with trailing whitespace".into());
    }
    Ok(())
}
