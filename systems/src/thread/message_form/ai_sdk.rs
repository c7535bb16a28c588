//! `ModelMessage` of the Vercel AI SDK: calls are parts of answers, results are parts of messages
//! of role `tool`.

use super::blocks::{NormalizedBlocks, without_blocks};
use super::recover_content::kept_text;
use super::{
    ARGUMENTS, CheckedMessage, ContentField, MessageForm, MessageRole, RESULTS, ToolCallKind,
    ToolCallPart, ToolResultPart, adopt, adopt_id, content, id_in, nonempty_text, own_id, typed,
    typed_text,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, compact, quoted, text};
use std::borrow::Cow;
use std::collections::HashSet;

/// Returns the ids of the calls in this message that the provider runs itself.
pub(super) fn provider_calls(object: &RawObject<'_>) -> Vec<String> {
    let parts = object.list("content").unwrap_or_default();
    let is_one = |part: &RawObject<'_>| {
        part.text("type").as_deref() == Some("tool-call")
            && part.get("providerExecuted") == Some("true")
    };
    let parts = parts.into_iter().filter_map(RawObject::parse).filter(is_one);
    parts.map(|part| id_in(&part, "toolCallId")).collect()
}

pub(super) fn check_message<'a>(
    text: &'a str,
    mut object: RawObject<'_>,
    provider_calls: Option<&HashSet<String>>,
) -> CheckedMessage<'a> {
    let mut checked = CheckedMessage::new(text, MessageRole::Other, own_id(&object));
    checked.role = match object.text("role").as_deref() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("tool") => MessageRole::Tool,
        Some("system") => MessageRole::Other,
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    let parts: Vec<String> = match content(&object, "content") {
        ContentField::Text(_) if checked.role != MessageRole::Tool => return checked,
        ContentField::Nothing => return checked.into_unusable(FaultKind::EmptyMessage),
        ContentField::Other(_) if checked.role == MessageRole::Other => {
            return checked.into_unusable(FaultKind::NotAMessage);
        }
        ContentField::Text(_) | ContentField::Other(_) => {
            vec![object.get("content").unwrap_or_default().to_owned()]
        }
        // A system message must be a single text.
        ContentField::Blocks(parts) if checked.role == MessageRole::Other => {
            let parts = parts.into_iter().filter_map(RawObject::parse);
            let said: Vec<String> =
                parts.filter_map(|part| Some(part.text("text")?.into_owned())).collect();
            if said.is_empty() {
                return checked.into_unusable(FaultKind::EmptyMessage);
            }
            object.set("content", quoted(&said.join("\n")));
            checked.note_repaired(FaultKind::MalformedBlock, None);
            checked.text = Cow::Owned(object.write());
            return checked;
        }
        ContentField::Blocks(parts) => parts.into_iter().map(str::to_owned).collect(),
    };
    let own = self::provider_calls(&object);
    let by_provider =
        |id: &String| own.contains(id) || provider_calls.is_some_and(|calls| calls.contains(id));
    let mut tidied = NormalizedBlocks::new();
    for part in &parts {
        tidy_part(part, &mut checked, &mut tidied, &by_provider);
    }
    mark_waiting_calls(&parts, &mut checked);
    let changed = object.list("content").is_none();
    tidied.finish(checked, object, MessageForm::AiSdk, changed)
}

/// Marks the calls that wait for approval, which need no result yet.
fn mark_waiting_calls(parts: &[String], checked: &mut CheckedMessage<'_>) {
    let waiting: Vec<String> = parts
        .iter()
        .filter_map(|json| RawObject::parse(json))
        .filter(|part| part.text("type").as_deref() == Some("tool-approval-request"))
        .map(|part| id_in(&part, "toolCallId"))
        .collect();
    for call in &mut checked.calls {
        call.waits = waiting.contains(&call.id);
    }
}

/// Fields by which the type of a part without one is inferred, with the type.
const TYPES: [(&str, &str); 5] = [
    ("output", "tool-result"),
    ("input", "tool-call"),
    ("approved", "tool-approval-response"),
    ("approvalId", "tool-approval-request"),
    ("text", "text"),
];

/// Gives the id of a call or a result, and its content, the names that they have in the SDK.
/// Returns whether any had another name.
fn adopt_fields(part: &mut RawObject<'_>, names: &[&str], own: &str) -> bool {
    let mut is_moved = adopt_id(part, "toolCallId");
    is_moved |= adopt(part, names, own);
    is_moved
}

/// Adds a part to `tidied` as far as it is valid, and its call or result to `checked`.
fn tidy_part(
    json: &str,
    checked: &mut CheckedMessage<'_>,
    tidied: &mut NormalizedBlocks,
    by_provider: &dyn Fn(&String) -> bool,
) {
    if let Some(json) = typed(json, &TYPES) {
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return tidy_part(&json, checked, tidied, by_provider);
    }
    let Some(mut part) = RawObject::parse(json) else {
        return stray(json, checked, tidied);
    };
    // The SDK refuses null in these fields, as a database gives it.
    let is_null = |name: &&str| part.has(name) && part.get(name).is_none();
    let nulls: Vec<&str> =
        ["providerExecuted", "providerOptions"].into_iter().filter(is_null).collect();
    if !nulls.is_empty() {
        for name in nulls {
            part.remove(name);
        }
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return tidy_part(&part.write(), checked, tidied, by_provider);
    }
    // Version 4 of the SDK has another name for the type of a file.
    if part.text("type").as_deref() == Some("file")
        && part.get("mediaType").is_none()
        && let Some(kind) = part.get("mimeType").map(str::to_owned)
    {
        part.remove("mimeType");
        part.set("mediaType", kind);
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return tidy_part(&part.write(), checked, tidied, by_provider);
    }
    let kind = part.text("type").unwrap_or_default().into_owned();
    let is_moved = match kind.as_str() {
        "tool-call" => adopt_fields(&mut part, &ARGUMENTS, "input"),
        "tool-result" => adopt_fields(&mut part, &RESULTS, "output"),
        _ => false,
    };
    if is_moved {
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return tidy_part(&part.write(), checked, tidied, by_provider);
    }
    let id = id_in(&part, "toolCallId");
    match part.text("type").unwrap_or_default().as_ref() {
        // The parts of a result name the sources too, and a message cannot.
        "" | "source" => stray(json, checked, tidied),
        "text" | "reasoning" if part.text("text").is_none() => stray(json, checked, tidied),
        "text" if checked.role == MessageRole::Assistant && is_silent(&part) => {
            tidied.leave_out(FaultKind::EmptyMessage, None);
        }
        "tool-call" => {
            let name =
                nonempty_text(&part, "toolName").filter(|_| checked.role == MessageRole::Assistant);
            let Some(name) = name else {
                return tidied.leave_out(FaultKind::MalformedCall, Some(&id));
            };
            let own = part.get("providerExecuted") == Some("true");
            // A text is kept, because some tools take a text. A text that is JSON of an object is
            // replaced by the object.
            let mistyped = match part.get("input") {
                None => Some("{}".to_owned()),
                Some(json) => text(json)
                    .filter(|inner| RawObject::parse(inner.trim()).is_some())
                    .map(|inner| compact(inner.trim()).into_owned()),
            };
            match mistyped {
                Some(input) => {
                    part.set("input", input);
                    tidied.put(part.write(), FaultKind::MistypedArguments, Some(&id));
                }
                None => tidied.keep(json),
            }
            if !own {
                let arguments = part.get("input").unwrap_or_default().to_owned();
                checked.calls.push(ToolCallPart::new(id, name, arguments));
            }
        }
        "tool-result" if checked.role == MessageRole::Assistant && by_provider(&id) => {
            tidied.keep(json);
        }
        "tool-result" => result(json, part, &id, checked, tidied),
        // A stream gives an error as a part of its own.
        "tool-error" => {
            let output = match part.text("error") {
                Some(said) => format!(r#"{{"type":"error-text","value":{}}}"#, quoted(&said)),
                None => {
                    let error = part.get("error").unwrap_or("null");
                    format!(r#"{{"type":"error-json","value":{error}}}"#)
                }
            };
            for name in ["input", "error"] {
                part.remove(name);
            }
            part.set("type", quoted("tool-result"));
            part.set("output", output);
            tidied.changed = true;
            checked.note_repaired(FaultKind::MalformedResult, Some(&id));
            result(&part.write(), part, &id, checked, tidied);
        }
        "tool-approval-request" => {
            let call = ToolCallPart::new(id_in(&part, "approvalId"), String::new(), String::new());
            checked.calls.push(ToolCallPart { kind: ToolCallKind::Approval, ..call });
            tidied.keep(json);
        }
        "tool-approval-response" => {
            let answer = ToolResultPart::new(id_in(&part, "approvalId"), "");
            checked.answers.push(ToolResultPart {
                kind: ToolCallKind::Approval,
                at: tidied.kept.len(),
                calls_before: checked.calls.len(),
                ..answer
            });
            tidied.keep(json);
        }
        _ if checked.role == MessageRole::Tool => stray(json, checked, tidied),
        _ => tidied.keep(json),
    }
}

/// Keeps the content of an invalid part as text. In a message of role `tool`, which must contain
/// only results, it becomes a result.
fn stray(json: &str, checked: &mut CheckedMessage<'_>, tidied: &mut NormalizedBlocks) {
    if checked.role != MessageRole::Tool {
        return tidied.keep_text(json, |said| typed_text("text", said));
    }
    let Some(said) = kept_text(json) else {
        return tidied.leave_out(FaultKind::MalformedBlock, None);
    };
    let named = RawObject::parse(json);
    let named = |field: &str| named.as_ref().map(|part| id_in(part, field)).unwrap_or_default();
    let part = format!(
        r#"{{"type":"tool-result","toolCallId":{},"toolName":{},"output":{{"type":"text","value":{}}}}}"#,
        quoted(&named("toolCallId")),
        quoted(&named("toolName")),
        quoted(&said)
    );
    tidied.changed = true;
    checked.note_repaired(FaultKind::MalformedBlock, None);
    if let Some(object) = RawObject::parse(&part) {
        result(&part, object, &named("toolCallId"), checked, tidied);
    }
}

/// Returns whether a text part is empty and without options. The SDK itself omits these parts.
fn is_silent(part: &RawObject<'_>) -> bool {
    part.text("text").is_some_and(|text| text.is_empty()) && part.get("providerOptions").is_none()
}

/// Adds a result to `tidied` and `checked`, with its output repaired if necessary.
fn result(
    json: &str,
    mut part: RawObject<'_>,
    id: &str,
    checked: &mut CheckedMessage<'_>,
    tidied: &mut NormalizedBlocks,
) {
    let output = part.get("output").unwrap_or_default().to_owned();
    let answer = ToolResultPart::new(id.to_owned(), &output);
    checked.answers.push(ToolResultPart {
        name: nonempty_text(&part, "toolName"),
        at: tidied.kept.len(),
        calls_before: checked.calls.len(),
        ..answer
    });
    if is_output(&output) {
        return tidied.keep(json);
    }
    // Version 4 of the SDK marks a failure beside the result.
    let error = if part.get("isError") == Some("true") { "error-" } else { "" };
    let output = match text(&output) {
        Some(said) => format!(r#"{{"type":"{error}text","value":{}}}"#, quoted(&said)),
        None if output.is_empty() => format!(r#"{{"type":"{error}json","value":null}}"#),
        None => format!(r#"{{"type":"{error}json","value":{output}}}"#),
    };
    part.remove("isError");
    part.set("output", output);
    tidied.put(part.write(), FaultKind::MalformedResult, Some(id));
}

/// Returns whether this JSON is an output in the SDK's form.
fn is_output(json: &str) -> bool {
    let Some(output) = RawObject::parse(json) else { return false };
    match output.text("type").as_deref() {
        Some("text" | "error-text") => output.text("value").is_some(),
        Some("json" | "error-json") => output.has("value"),
        Some("content") => output.list("value").is_some(),
        Some("execution-denied") => true,
        _ => false,
    }
}

pub(super) fn without_calls(object: RawObject<'_>, ids: &[&str]) -> Option<String> {
    // The approval request of a call is removed too.
    let is_cut = |part: RawObject<'_>| {
        let kind = part.text("type").unwrap_or_default().into_owned();
        let of_call = matches!(kind.as_str(), "tool-call" | "tool-approval-request");
        of_call && ids.contains(&id_in(&part, "toolCallId").as_str())
    };
    without_blocks(object, MessageForm::AiSdk, is_cut)
}
