//! The rules of Bedrock's Converse API.

use super::{Verdict, name, plain_id, plain_name, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks messages of Converse.
pub(super) fn messages(messages: &[Value]) -> Verdict {
    let mut seen = BTreeSet::new();
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let at = |what: String| format!("messages.{index}: {what}");
        let role = name(message, "role").map_err(at)?;
        match role {
            // Whether a role may be repeated after instructions is not published.
            "system" => before = "system",
            "user" | "assistant" if before == role => {
                return Err(at(
                    "A conversation must alternate between user and assistant roles".into()
                ));
            }
            "assistant" if before.is_empty() => {
                return Err(at("A conversation must start with a user message".into()));
            }
            "user" | "assistant" => before = role,
            other => return Err(at(format!("invalid role {other}"))),
        }
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or(at("The content field is empty".into()))?;
        let mut calls = BTreeSet::new();
        let mut others = false;
        for block in blocks {
            let fields = block.as_object().filter(|fields| fields.len() == 1);
            let fields = fields.ok_or(at(format!("not a block of one member: {block}")))?;
            let (member, value) = fields.iter().next().ok_or(at("an empty block".into()))?;
            match member.as_str() {
                "toolUse" if value.get("type").is_none() => {
                    let id = plain_id(value, "toolUseId", 64).map_err(at)?;
                    plain_name(value, 64).map_err(at)?;
                    if !value["input"].is_object() {
                        return Err(at("toolUse.input is invalid. Provide a json object".into()));
                    }
                    if role != "assistant" || !seen.insert(id.to_owned()) {
                        return Err(at(format!("a toolUse that cannot stand there: {id}")));
                    }
                    calls.insert(id.to_owned());
                }
                "toolResult" if value.get("type").is_none() => {
                    let id = plain_id(value, "toolUseId", 64).map_err(at)?;
                    if others || !waiting.remove(id) {
                        return Err(at(format!("a toolResult that nothing asked for there: {id}")));
                    }
                    result(value).map_err(at)?;
                }
                "text" => {
                    let string = value.as_str().unwrap_or_default();
                    if string.trim().is_empty() {
                        return Err(
                            at("The text field in the ContentBlock object is blank".into()),
                        );
                    }
                    others = true;
                }
                _ => others = true,
            }
        }
        if role != "system" {
            if !waiting.is_empty() {
                return Err(at(format!("Expected toolResult blocks for the Ids: {waiting:?}")));
            }
            waiting = calls;
        }
    }
    let last = messages.last().filter(|last| last["role"] == "assistant");
    let string = last.and_then(|last| text(last["content"].as_array()?.last()?, "text"));
    if string.is_some_and(|string| string.ends_with(char::is_whitespace)) {
        return Err("final assistant content cannot end with trailing whitespace".into());
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("no results at the end: {waiting:?}")) }
}

fn result(value: &Value) -> Verdict {
    let content = value["content"].as_array().ok_or("toolResult without content")?;
    if content.is_empty() && value["status"] == "error" {
        return Err("The content field cannot be empty when status value is error".into());
    }
    for block in content {
        let fields = block.as_object().filter(|fields| fields.len() == 1);
        let (member, inner) =
            fields.and_then(|fields| fields.iter().next()).ok_or(format!("no block: {block}"))?;
        match member.as_str() {
            "text" if inner.as_str().is_none_or(|string| string.trim().is_empty()) => {
                return Err("a blank text in a toolResult".into());
            }
            "json" if !inner.is_object() => {
                return Err("toolResult.content.json is invalid. Provide a json object".into());
            }
            "text" | "json" | "image" | "document" | "video" | "searchResult" => {}
            other => return Err(format!("unknown member {other}")),
        }
    }
    Ok(())
}
