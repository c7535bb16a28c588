//! OpenAI chat completions, and messages that have a role and content alone.

use super::{
    Answer, Call, Content, Looked, Sort, Speaker, content, is_block, mend_result, named, own_id,
};
use crate::systems::thread::fault::FaultKind;
use crate::systems::thread::json::{Object, written_list};
use std::borrow::Cow;

pub(super) fn look<'a>(text: &'a str, mut object: Object<'_>) -> Looked<'a> {
    let id = own_id(&object);
    let role = object.text("role").unwrap_or_default().into_owned();
    let mut looked = Looked::new(text, Speaker::Other, id);
    let mut changed = false;
    match role.as_str() {
        "system" | "developer" | "user" => {
            if role == "user" {
                looked.speaker = Speaker::User;
            }
            match tidy_content(&mut object, &mut looked) {
                Some(rewritten) => changed = rewritten,
                None => return looked.gone(FaultKind::EmptyMessage),
            }
        }
        "assistant" => {
            looked.speaker = Speaker::Assistant;
            changed |= tidy_calls(&mut object, &mut looked);
            if object.has("function_call") && object.object("function_call").is_none() {
                object.remove("function_call");
                looked.problem(FaultKind::EmptyToolCalls, None);
                changed = true;
            }
            let says = ["function_call", "refusal", "audio"];
            let says =
                !looked.calls.is_empty() || says.iter().any(|name| object.get(name).is_some());
            match tidy_content(&mut object, &mut looked) {
                Some(rewritten) => changed |= rewritten,
                None if !says => return looked.gone(FaultKind::EmptyMessage),
                None if object.get("content").is_some() => {
                    object.remove("content");
                    looked.problem(FaultKind::EmptyMessage, None);
                    changed = true;
                }
                None => {}
            }
        }
        "tool" => {
            looked.speaker = Speaker::Tool;
            let Some(id) = named(&object, "tool_call_id") else {
                return looked.gone(FaultKind::MalformedResult);
            };
            if mend_result(&mut object, "content") {
                looked.problem(FaultKind::MalformedResult, Some(id.clone()));
                changed = true;
            }
            looked.answers.push(Answer { id, sort: Sort::Function });
        }
        "function" => {
            let is_result = named(&object, "name").is_some()
                && matches!(content(&object, "content"), Content::Text(_));
            if !is_result {
                return looked.gone(FaultKind::MalformedResult);
            }
        }
        _ => return looked.gone(FaultKind::NotAMessage),
    }
    if changed {
        looked.text = Cow::Owned(object.write());
    }
    looked
}

/// Leaves only real blocks in the content. `None` if there is none, else whether it was changed.
fn tidy_content(object: &mut Object<'_>, looked: &mut Looked<'_>) -> Option<bool> {
    let kept = match content(object, "content") {
        Content::Text(_) => return Some(false),
        Content::Nothing | Content::Other(_) => return None,
        Content::Blocks(blocks) => {
            let kept: Vec<&str> = blocks.iter().copied().filter(|block| is_block(block)).collect();
            if kept.len() == blocks.len() {
                return Some(false);
            }
            (!kept.is_empty()).then(|| written_list(&kept))
        }
    };
    let kept = kept?;
    object.set("content", kept);
    looked.problem(FaultKind::MalformedBlock, None);
    Some(true)
}

/// Leaves only real calls in `tool_calls`. Returns whether that was changed.
fn tidy_calls(object: &mut Object<'_>, looked: &mut Looked<'_>) -> bool {
    if !object.has("tool_calls") {
        return false;
    }
    let Some(entries) = object.list("tool_calls").filter(|entries| !entries.is_empty()) else {
        object.remove("tool_calls");
        looked.problem(FaultKind::EmptyToolCalls, None);
        return true;
    };
    let mut kept = Vec::new();
    for entry in &entries {
        match call(entry) {
            Some(call) => {
                if looked.call(call) {
                    kept.push(*entry);
                }
            }
            None => {
                let id = Object::parse(entry).and_then(|entry| named(&entry, "id"));
                looked.problem(FaultKind::MalformedCall, id);
            }
        }
    }
    if kept.len() == entries.len() {
        return false;
    }
    let kept = (!kept.is_empty()).then(|| written_list(&kept));
    match kept {
        Some(kept) => object.set("tool_calls", kept),
        None => object.remove("tool_calls"),
    }
    true
}

/// The call that an entry of `tool_calls` is, if it is one.
pub(super) fn call(entry: &str) -> Option<Call> {
    let entry = Object::parse(entry)?;
    let id = named(&entry, "id")?;
    let (field, arguments) = match &*entry.text("type")? {
        "function" => ("function", "arguments"),
        "custom" => ("custom", "input"),
        _ => return None,
    };
    let tool = entry.object(field)?;
    let name = named(&tool, "name")?;
    let arguments = tool.text(arguments)?.into_owned();
    Some(Call { id, name, arguments, sort: Sort::Function })
}

/// The entries of a list of calls without those of these ids.
pub(super) fn without_entries(entries: &[&str], field: &str, ids: &[&str]) -> Vec<String> {
    let is_cut = |entry: &str| {
        let id = Object::parse(entry).and_then(|entry| named(&entry, field));
        id.is_some_and(|id| ids.contains(&id.as_str()))
    };
    entries.iter().filter(|entry| !is_cut(entry)).map(|entry| (*entry).to_owned()).collect()
}

pub(super) fn without_calls(mut object: Object<'_>, ids: &[&str]) -> Option<String> {
    let entries = object.list("tool_calls").unwrap_or_default();
    let kept = without_entries(&entries, "id", ids);
    if kept.is_empty() {
        object.remove("tool_calls");
        let says = match content(&object, "content") {
            Content::Text(text) => !text.trim().is_empty(),
            Content::Blocks(_) => true,
            Content::Nothing | Content::Other(_) => false,
        };
        let more = ["function_call", "refusal", "audio"];
        if !says && !more.iter().any(|name| object.get(name).is_some()) {
            return None;
        }
    } else {
        object.set("tool_calls", written_list(&kept));
    }
    Some(object.write())
}
