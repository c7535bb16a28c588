//! LangChain's messages, as `messages_to_dict`, `model_dump` and `dumpd` write them.

use super::chat::{self, without_entries};
use super::{
    Answer, Call, Content, Evidence, Looked, Sort, Speaker, content, evidence, is_block,
    mend_result, named, own_id,
};
use crate::systems::thread::fault::FaultKind;
use crate::systems::thread::json::{Object, text, written_list};
use std::borrow::Cow;

/// The field that holds the message's own fields, if it is not the message itself.
fn nested(object: &Object<'_>) -> Option<&'static str> {
    if object.has("lc") && object.has("kwargs") {
        Some("kwargs")
    } else {
        object.object("data").map(|_| "data")
    }
}

/// What sort of message it is, in small letters.
fn kind(object: &Object<'_>) -> Option<String> {
    let kind = if object.has("lc") {
        text(object.list("id")?.last()?)?.into_owned()
    } else {
        object.text("type")?.into_owned()
    };
    let kind = kind.trim_end_matches("Chunk").trim_end_matches("Message").to_ascii_lowercase();
    Some(kind)
}

pub(super) fn look<'a>(text: &'a str, mut object: Object<'_>) -> Looked<'a> {
    let Some(kind) = kind(&object) else { return chat::look(text, object) };
    // What others must stand beside for its form to be known is taken by none without them.
    if !matches!(evidence(&object), Evidence::Strong(_)) {
        return Looked::new(text, Speaker::Other, None).gone(FaultKind::NotAMessage);
    }
    let nested = nested(&object);
    let inner = nested.map(|field| object.get(field).unwrap_or_default().to_owned());
    let body = inner.as_deref().map_or_else(|| Some(object.clone()), Object::parse);
    let Some(mut body) = body else {
        return Looked::new(text, Speaker::Other, None).gone(FaultKind::NotAMessage);
    };
    let mut looked =
        Looked::new(text, Speaker::Other, own_id(&body).filter(|_| !lc_id(&object, nested)));
    let changed = match kind.as_str() {
        "human" | "system" | "chat" | "function" | "developer" => {
            if kind == "human" {
                looked.speaker = Speaker::User;
            }
            let changed = keep_blocks(&mut body);
            match content(&body, "content") {
                Content::Nothing | Content::Other(_) => {
                    return looked.gone(FaultKind::EmptyMessage);
                }
                Content::Text(_) | Content::Blocks(_) if changed => {
                    looked.problem(FaultKind::MalformedBlock, None);
                }
                Content::Text(_) | Content::Blocks(_) => {}
            }
            changed
        }
        "ai" => {
            looked.speaker = Speaker::Assistant;
            let mut changed = keep_blocks(&mut body);
            if changed {
                looked.problem(FaultKind::MalformedBlock, None);
            }
            changed |= tidy_calls(&mut body, &mut looked);
            if let Content::Nothing | Content::Other(_) = content(&body, "content")
                && body.get("content") != Some("[]")
            {
                if looked.calls.is_empty() {
                    return looked.gone(FaultKind::EmptyMessage);
                }
                body.set("content", "\"\"".to_owned());
                looked.problem(FaultKind::EmptyMessage, None);
                changed = true;
            } else if body.get("content") == Some("[]") && looked.calls.is_empty() {
                return looked.gone(FaultKind::EmptyMessage);
            }
            changed
        }
        "tool" => {
            looked.speaker = Speaker::Tool;
            let Some(id) = named(&body, "tool_call_id") else {
                return looked.gone(FaultKind::MalformedResult);
            };
            let changed = mend_tool_content(&mut body);
            if changed {
                looked.problem(FaultKind::MalformedResult, Some(id.clone()));
            }
            looked.answers.push(Answer { id, sort: Sort::Function });
            changed
        }
        _ => return looked.gone(FaultKind::NotAMessage),
    };
    if changed {
        let written = body.write();
        looked.text = Cow::Owned(wrapped(&mut object, nested, written));
    }
    looked
}

/// Whether `id` of the whole is the name of a class.
fn lc_id(object: &Object<'_>, nested: Option<&str>) -> bool {
    nested.is_none() && object.has("lc")
}

fn wrapped(object: &mut Object<'_>, nested: Option<&str>, body: String) -> String {
    match nested {
        Some(field) => {
            object.set(field, body);
            object.write()
        }
        None => body,
    }
}

/// Leaves only blocks, and texts beside them, in a list. Returns whether anything else stood there.
fn keep_blocks(body: &mut Object<'_>) -> bool {
    let Some(blocks) = body.list("content") else { return false };
    let kept: Vec<&str> = blocks.iter().copied().filter(|json| is_block_or_text(json)).collect();
    if kept.len() == blocks.len() {
        return false;
    }
    let kept = written_list(&kept);
    body.set("content", kept);
    true
}

/// LangChain takes texts beside blocks in a list.
fn is_block_or_text(json: &str) -> bool {
    is_block(json) || text(json).is_some()
}

fn mend_tool_content(body: &mut Object<'_>) -> bool {
    if let Content::Blocks(blocks) = content(body, "content")
        && blocks.iter().all(|block| is_block_or_text(block))
    {
        return false;
    }
    mend_result(body, "content")
}

/// The lists in which an AI message may name its calls.
const LISTS: [&str; 3] = ["tool_calls", "invalid_tool_calls", "tool_call_chunks"];

/// Leaves only real calls in every place where a message names them. Returns whether any was changed.
fn tidy_calls(body: &mut Object<'_>, looked: &mut Looked<'_>) -> bool {
    let mut changed = false;
    let mut calls: Vec<Call> = Vec::new();
    for field in ["tool_calls", "invalid_tool_calls"] {
        let Some(json) = body.get(field) else { continue };
        let entries = super::super::json::list(json);
        let mut seen: Vec<String> = Vec::new();
        let mut kept = Vec::new();
        for entry in entries.iter().flatten() {
            match call(entry, field == "invalid_tool_calls") {
                Some(call) if seen.contains(&call.id) => {
                    looked.problem(FaultKind::DoubledCall, Some(call.id));
                }
                Some(call) => {
                    seen.push(call.id.clone());
                    kept.push((*entry).to_owned());
                    calls.push(call);
                }
                None => {
                    let id = Object::parse(entry).and_then(|entry| named(&entry, "id"));
                    looked.problem(FaultKind::MalformedCall, id);
                }
            }
        }
        if entries.as_ref().is_none_or(|entries| entries.len() > kept.len()) {
            if entries.is_none() {
                looked.problem(FaultKind::MalformedCall, None);
            }
            body.set(field, written_list(&kept));
            changed = true;
        }
    }
    // The provider's own form of the calls is used where the list of calls is empty.
    if calls.is_empty()
        && let Some(more) = body.object("additional_kwargs")
        && let Some(entries) = more.list("tool_calls").filter(|entries| !entries.is_empty())
    {
        let mut kept = Vec::new();
        for entry in &entries {
            match chat::call(entry) {
                Some(call) if !calls.iter().any(|known| known.id == call.id) => {
                    kept.push((*entry).to_owned());
                    calls.push(call);
                }
                other => {
                    let doubled = other.map(|call| call.id);
                    let fault = if doubled.is_some() {
                        FaultKind::DoubledCall
                    } else {
                        FaultKind::MalformedCall
                    };
                    looked.problem(fault, doubled);
                }
            }
        }
        if kept.len() < entries.len() {
            let mut more = more.clone();
            set_or_remove(&mut more, "tool_calls", &kept);
            let more = more.write();
            body.set("additional_kwargs", more);
            changed = true;
        }
    }
    changed |= tidy_blocks(body, looked, &mut calls);
    for call in calls {
        if !looked.calls.iter().any(|known| known.id == call.id) {
            looked.calls.push(call);
        }
    }
    changed
}

/// Adds the calls that stand in the content, and takes out those that are none.
fn tidy_blocks(body: &mut Object<'_>, looked: &mut Looked<'_>, calls: &mut Vec<Call>) -> bool {
    let Some(blocks) = body.list("content") else { return false };
    let mut kept = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for json in &blocks {
        let Some((block, field)) = call_block(json) else {
            kept.push((*json).to_owned());
            continue;
        };
        match named(&block, field).zip(named(&block, "name")) {
            Some((id, _)) if seen.contains(&id) => looked.problem(FaultKind::DoubledCall, Some(id)),
            Some((id, name)) => {
                let arguments =
                    ["input", "args", "arguments"].iter().find_map(|name| block.get(name));
                let arguments = arguments.unwrap_or_default().to_owned();
                seen.push(id.clone());
                kept.push((*json).to_owned());
                calls.push(Call { id, name, arguments, sort: Sort::Function });
            }
            None => looked.problem(FaultKind::MalformedCall, named(&block, field)),
        }
    }
    if kept.len() == blocks.len() {
        return false;
    }
    body.set("content", written_list(&kept));
    true
}

/// The block and the field of its id, if it is a call.
fn call_block(json: &str) -> Option<(Object<'_>, &'static str)> {
    let block = Object::parse(json)?;
    let field = match &*block.text("type")? {
        "tool_use" | "tool_call" => "id",
        "function_call" => "call_id",
        _ => return None,
    };
    Some((block, field))
}

fn call(entry: &str, invalid: bool) -> Option<Call> {
    let entry = Object::parse(entry)?;
    let (id, name) = (named(&entry, "id")?, named(&entry, "name")?);
    let arguments = if invalid {
        entry.text("args")?.into_owned()
    } else {
        entry.object("args")?;
        entry.get("args").unwrap_or_default().to_owned()
    };
    Some(Call { id, name, arguments, sort: Sort::Function })
}

fn set_or_remove(object: &mut Object<'_>, field: &str, entries: &[String]) {
    if entries.is_empty() {
        object.remove(field);
    } else {
        object.set(field, written_list(entries));
    }
}

pub(super) fn without_calls(mut object: Object<'_>, ids: &[&str]) -> Option<String> {
    let nested = nested(&object);
    let inner = nested.map(|field| object.get(field).unwrap_or_default().to_owned());
    let mut body = match &inner {
        Some(inner) => Object::parse(inner)?,
        None => object.clone(),
    };
    let (mut listed, mut left) = (0, 0);
    for field in LISTS {
        let Some(entries) = body.list(field) else { continue };
        let kept = without_entries(&entries, "id", ids);
        listed += entries.len();
        left += kept.len();
        body.set(field, written_list(&kept));
    }
    if let Some(mut more) = body.object("additional_kwargs")
        && let Some(entries) = more.list("tool_calls")
    {
        let mut kept = without_entries(&entries, "id", ids);
        // Beside a list of calls nobody looked at these; with the list empty they would be the calls.
        if listed > 0 && left == 0 {
            kept.clear();
        }
        left += kept.len();
        set_or_remove(&mut more, "tool_calls", &kept);
        let more = more.write();
        body.set("additional_kwargs", more);
    }
    let says = match content(&body, "content") {
        Content::Text(text) => !text.trim().is_empty(),
        Content::Blocks(blocks) => {
            let is_cut = |json: &&str| {
                let id = call_block(json).and_then(|(block, field)| named(&block, field));
                id.is_some_and(|id| ids.contains(&id.as_str()))
            };
            let kept: Vec<&str> = blocks.into_iter().filter(|block| !is_cut(block)).collect();
            let says = kept.iter().any(|block| {
                let kind =
                    Object::parse(block).and_then(|block| block.text("type").map(Cow::into_owned));
                !matches!(kind.as_deref(), Some("thinking" | "redacted_thinking" | "reasoning"))
            });
            let kept = written_list(&kept);
            body.set("content", kept);
            says
        }
        Content::Nothing | Content::Other(_) => false,
    };
    if left == 0 && !says {
        return None;
    }
    let written = body.write();
    Some(wrapped(&mut object, nested, written))
}
