//! The rules of the Vercel AI SDK.

use super::{Verdict, name, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks `ModelMessage`s, as `streamText` and `generateText` accept them: the schemas of the
/// messages, and that every call has a result before the next user message.
pub(super) fn messages(messages: &[Value]) -> Verdict {
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    let mut requested: BTreeSet<String> = BTreeSet::new();
    let mut approvals: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |what: String| format!("messages[{index}]: {what}");
        let role = name(message, "role").map_err(at)?;
        let content = &message["content"];
        if role != "tool" && !waiting.is_empty() {
            return Err(at(format!("Tool results are missing for tool calls {waiting:?}")));
        }
        match role {
            "system" => {
                content.as_str().ok_or(at("content: expected string".into()))?;
                continue;
            }
            "user" | "assistant" if content.is_string() => continue,
            "user" | "assistant" | "tool" => {}
            other => return Err(at(format!("invalid role {other}"))),
        }
        let parts = content.as_array().ok_or(at(format!("invalid content {content}")))?;
        let mut by_provider = BTreeSet::new();
        for part in parts {
            match (role, name(part, "type").map_err(at)?) {
                (_, "text" | "reasoning") if role != "tool" => {
                    text(part, "text").ok_or(at("a text part without text".into()))?;
                }
                ("assistant", "tool-call") => {
                    let id = name(part, "toolCallId").map_err(at)?.to_owned();
                    name(part, "toolName").map_err(at)?;
                    part.get("input").ok_or(at("a call without input".into()))?;
                    if part["providerExecuted"] == true {
                        by_provider.insert(id);
                    } else if !waiting.insert(id.clone()) {
                        return Err(at(format!("a second call of the id {id}")));
                    }
                }
                ("assistant", "tool-approval-request") => {
                    approvals.insert(name(part, "approvalId").map_err(at)?.to_owned());
                    requested.insert(name(part, "toolCallId").map_err(at)?.to_owned());
                }
                ("tool", "tool-approval-response") => {
                    let id = name(part, "approvalId").map_err(at)?;
                    if !approvals.contains(id) {
                        return Err(at(format!("an answer to no question: {id}")));
                    }
                }
                ("tool" | "assistant", "tool-result") => {
                    let id = name(part, "toolCallId").map_err(at)?;
                    name(part, "toolName").map_err(at)?;
                    output(&part["output"]).map_err(at)?;
                    let known = match role {
                        "tool" => waiting.remove(id),
                        _ => by_provider.contains(id),
                    };
                    if !known {
                        return Err(at(format!("a result of no call: {id}")));
                    }
                }
                ("tool", other) => return Err(at(format!("invalid part {other}"))),
                _ => {}
            }
        }
    }
    // A call that a person must approve may wait.
    waiting.retain(|id| !requested.contains(id));
    if waiting.is_empty() {
        Ok(())
    } else {
        Err(format!("Tool results are missing for tool calls {waiting:?}"))
    }
}

fn output(output: &Value) -> Verdict {
    let fits = match text(output, "type") {
        Some("text" | "error-text") => output["value"].is_string(),
        Some("json" | "error-json") => output.get("value").is_some(),
        Some("content") => output["value"].is_array(),
        Some("execution-denied") => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("invalid output {output}")) }
}
