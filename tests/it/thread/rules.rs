//! What providers publish of the histories they take, written down by itself: it knows nothing of the code it judges.
//!
//! OpenAI: the reference of chat completions and of Responses, and the messages of their errors. Anthropic: the pages on
//! messages and tool use, and the messages of their errors. LangChain: what `langchain-openai` makes of its messages.

use serde_json::Value;
use std::collections::BTreeSet;

type Verdict = Result<(), String>;

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

fn name<'v>(value: &'v Value, field: &str) -> Result<&'v str, String> {
    text(value, field).filter(|text| !text.is_empty()).ok_or(format!("missing '{field}': {value}"))
}

fn parts(content: &Value) -> Verdict {
    match content {
        Value::String(_) => Ok(()),
        Value::Array(parts) if !parts.is_empty() => parts.iter().try_for_each(|part| {
            let kind = name(part, "type")?;
            if kind == "text" && text(part, "text").is_none() {
                return Err(format!("a text part without text: {part}"));
            }
            Ok(())
        }),
        other => Err(format!("invalid content: {other}")),
    }
}

/// OpenAI chat completions.
pub(crate) fn openai_chat(messages: &[Value]) -> Verdict {
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
                parts(content).map_err(at)?;
            }
            "assistant" => {
                if let Some(calls) = message.get("tool_calls") {
                    let calls =
                        calls.as_array().ok_or(at("tool_calls: expected an array".into()))?;
                    if calls.is_empty() {
                        return Err(at("tool_calls: [] is too short".into()));
                    }
                    for call in calls {
                        let id = name(call, "id").map_err(at)?;
                        let (tool, arguments) = match name(call, "type").map_err(at)? {
                            "function" => (&call["function"], "arguments"),
                            "custom" => (&call["custom"], "input"),
                            other => return Err(at(format!("invalid type {other}"))),
                        };
                        name(tool, "name").map_err(at)?;
                        text(tool, arguments).ok_or(at(format!("missing arguments: {call}")))?;
                        if !waiting.insert(id.to_owned()) {
                            return Err(at(format!("duplicate tool call id {id}")));
                        }
                    }
                }
                if message.get("function_call").is_some_and(|call| !call.is_object()) {
                    return Err(at("function_call: expected an object".into()));
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

/// Items of OpenAI's Responses.
pub(crate) fn openai_responses(items: &[Value]) -> Verdict {
    let mut waiting: BTreeSet<(String, String)> = BTreeSet::new();
    let mut reasoning = false;
    for (index, item) in items.iter().enumerate() {
        let at = |what: String| format!("input[{index}]: {what}");
        if !item.is_object() {
            return Err(at("expected an object".into()));
        }
        let kind = text(item, "type").unwrap_or("message");
        let from_model = kind.ends_with("_call")
            || kind == "mcp_approval_request"
            || kind == "message" && text(item, "role") == Some("assistant");
        if reasoning && !from_model && kind != "reasoning" {
            return Err(at(
                "an item of type 'reasoning' was provided without its required following item"
                    .into(),
            ));
        }
        reasoning = kind == "reasoning";
        const ANSWERED: [&str; 6] = [
            "function_call",
            "custom_tool_call",
            "computer_call",
            "local_shell_call",
            "shell_call",
            "apply_patch_call",
        ];
        if kind == "message" {
            if !matches!(text(item, "role"), Some("user" | "assistant" | "system" | "developer")) {
                return Err(at(format!("invalid role: {item}")));
            }
            parts(&item["content"]).map_err(at)?;
        } else if ANSWERED.contains(&kind) {
            let id = name(item, "call_id").map_err(at)?;
            if kind == "function_call" || kind == "custom_tool_call" {
                name(item, "name").map_err(at)?;
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

/// Anthropic messages. Messages of role `system` are those that clients lift into the request's own field.
pub(crate) fn anthropic(messages: &[Value]) -> Verdict {
    let mut seen = BTreeSet::new();
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |what: String| format!("messages.{index}: {what}");
        let role = name(message, "role").map_err(at)?;
        if !["user", "assistant", "system"].contains(&role) {
            return Err(at(format!("unexpected role {role}")));
        }
        let last_answer = index + 1 == messages.len() && role == "assistant";
        let blocks: &[Value] = match &message["content"] {
            Value::String(said) if said.trim().is_empty() && !last_answer => {
                return Err(at("all messages must have non-empty content".into()));
            }
            Value::String(_) => &[],
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            other => return Err(at(format!("invalid content {other}"))),
        };
        let mut calls = BTreeSet::new();
        let mut others = false;
        for block in blocks {
            match name(block, "type").map_err(at)? {
                "text" => {
                    let said = text(block, "text").ok_or(at("a text block without text".into()))?;
                    if said.trim().is_empty() {
                        return Err(at("text content blocks must be non-empty".into()));
                    }
                    others = true;
                }
                "tool_use" => {
                    let id = name(block, "id").map_err(at)?;
                    name(block, "name").map_err(at)?;
                    if !block["input"].is_object() {
                        return Err(
                            at("tool_use.input: input should be a valid dictionary".into()),
                        );
                    }
                    if role != "assistant" {
                        return Err(at(
                            "`tool_use` blocks can only be in assistant messages".into()
                        ));
                    }
                    if !seen.insert(id.to_owned()) {
                        return Err(at(format!("`tool_use` ids must be unique: {id}")));
                    }
                    calls.insert(id.to_owned());
                }
                "tool_result" => {
                    let id = name(block, "tool_use_id").map_err(at)?;
                    if role != "user" {
                        return Err(at("`tool_result` blocks can only be in user messages".into()));
                    }
                    if others {
                        return Err(at("`tool_result` blocks must come first".into()));
                    }
                    if !waiting.remove(id) {
                        return Err(at(format!(
                            "unexpected `tool_use_id` found in `tool_result` blocks: {id}"
                        )));
                    }
                    if let Some(content) = block.get("content") {
                        parts(content).map_err(at)?;
                    }
                }
                _ => others = true,
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
    if waiting.is_empty() {
        Ok(())
    } else {
        Err(format!("calls at the end without results: {waiting:?}"))
    }
}

/// LangChain's messages, as `langchain-openai` sends them: then the rules of chat completions hold.
pub(crate) fn langchain(messages: &[Value]) -> Verdict {
    let sent = messages.iter().map(sent).collect::<Result<Vec<_>, _>>()?;
    openai_chat(&sent)
}

/// The message as chat completions get it.
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
        // A dumped message may have a field of this name that is no message.
        (kind, message.get("data").filter(|data| data.is_object()).unwrap_or(message))
    } else {
        return Ok(message.clone());
    };
    // Blocks of calls are left out: the calls themselves are sent.
    let content = match &body["content"] {
        Value::Array(parts) if parts.is_empty() && kind != "ai" => {
            return Err(format!("empty content: {message}"));
        }
        // A text beside blocks is a block of text.
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
            let mut said = Vec::new();
            for block in content.as_array().unwrap_or(&Vec::new()) {
                match text(block, "type") {
                    Some("tool_use" | "tool_call") => {
                        add(&block["id"], &block["name"], String::new());
                    }
                    // As the Responses API gives them, and takes them back.
                    Some("function_call") => {
                        add(&block["call_id"], &block["name"], String::new());
                    }
                    _ => said.push(block.clone()),
                }
            }
            if calls.is_empty() {
                calls.extend(
                    body["additional_kwargs"]["tool_calls"].as_array().cloned().unwrap_or_default(),
                );
            }
            let content = if content.is_array() { Value::from(said) } else { content };
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

/// The rules of the form of this word.
pub(crate) fn of(form: &str, messages: &[Value]) -> Verdict {
    match form {
        "plain" | "openai_chat" => openai_chat(messages),
        "openai_responses" => openai_responses(messages),
        "anthropic" => anthropic(messages),
        _ => langchain(messages),
    }
}
