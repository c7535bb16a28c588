//! LangChain's messages, as `messages_to_dict`, `model_dump` and `dumpd` write them.

use super::chat::{self, set_or_remove, without_entries};
use super::rescue::mend_blocks;
use super::{
    Answer, Call, Content, Evidence, Looked, Speaker, as_object, as_text, content, evidence, id_in,
    is_block, mend_result, named, own_id,
};
use crate::systems::thread::fault::FaultKind;
use crate::systems::thread::json::{Object, list, text, written_list};
use std::borrow::Cow;
use std::collections::HashMap;

/// The field that holds the message's own fields, if it is not the message itself.
pub(super) fn nested(object: &Object<'_>) -> Option<&'static str> {
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
            let changed = keep_blocks(&mut body, &mut looked);
            if let Content::Nothing | Content::Other(_) = content(&body, "content") {
                return looked.gone(FaultKind::EmptyMessage);
            }
            changed
        }
        "ai" => {
            looked.speaker = Speaker::Assistant;
            let mut changed = keep_blocks(&mut body, &mut looked);
            changed |= tidy_calls(&mut body, &mut looked);
            if let Content::Nothing | Content::Other(_) = content(&body, "content")
                && body.get("content") != Some("[]")
            {
                if looked.calls.is_empty() {
                    return looked.gone(FaultKind::EmptyMessage);
                }
                body.set("content", "\"\"".to_owned());
                looked.mended(FaultKind::EmptyMessage, None);
                changed = true;
            } else if body.get("content") == Some("[]") && looked.calls.is_empty() {
                return looked.gone(FaultKind::EmptyMessage);
            }
            changed
        }
        "tool" => {
            looked.speaker = Speaker::Tool;
            let id = id_in(&body, "tool_call_id");
            let changed = mend_tool_content(&mut body);
            if changed {
                looked.mended(FaultKind::MalformedResult, Some(&id));
            }
            let answer = Answer::new(id, body.get("content").unwrap_or_default());
            looked.answers.push(Answer { name: named(&body, "name"), ..answer });
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

pub(super) fn wrapped(object: &mut Object<'_>, nested: Option<&str>, body: String) -> String {
    match nested {
        Some(field) => {
            object.set(field, body);
            object.write()
        }
        None => body,
    }
}

/// Leaves only blocks, and texts beside them, in the content. Returns whether anything else stood there.
fn keep_blocks(body: &mut Object<'_>, looked: &mut Looked<'_>) -> bool {
    let types = &chat::TYPES;
    let kept = match content(body, "content") {
        Content::Text(_) | Content::Nothing => return false,
        Content::Other(json) => mend_blocks(&[json], types, |_| false, &mut looked.problems),
        Content::Blocks(blocks) => {
            mend_blocks(&blocks, types, is_block_or_text, &mut looked.problems)
        }
    };
    let Some(kept) = kept else { return false };
    body.set("content", written_list(&kept));
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
pub(super) const LISTS: [&str; 3] = ["tool_calls", "invalid_tool_calls", "tool_call_chunks"];

/// The calls of a message, which may name each in several places.
#[derive(Default)]
struct Named {
    calls: Vec<Call>,
    /// How often each id was seen in the place that is being read.
    seen: HashMap<String, usize>,
}

impl Named {
    fn next_place(&mut self) {
        self.seen.clear();
    }

    /// Adds a call, unless another place names it.
    fn add(&mut self, call: Call) {
        let seen = self.seen.entry(call.id.clone()).or_default();
        *seen += 1;
        let known = self.calls.iter().filter(|known| known.id == call.id).count();
        if known < *seen {
            self.calls.push(call);
        }
    }
}

/// Leaves only real calls in every place where a message names them. Returns whether any was changed.
fn tidy_calls(body: &mut Object<'_>, looked: &mut Looked<'_>) -> bool {
    let mut calls = Named::default();
    let mut changed = false;
    for field in ["tool_calls", "invalid_tool_calls"] {
        calls.next_place();
        changed |= tidy_list(body, field, looked, &mut calls);
    }
    calls.next_place();
    changed |= tidy_own(body, looked, &mut calls);
    calls.next_place();
    changed |= tidy_blocks(body, looked, &mut calls);
    looked.calls = calls.calls;
    changed
}

fn tidy_list(
    body: &mut Object<'_>,
    field: &str,
    looked: &mut Looked<'_>,
    calls: &mut Named,
) -> bool {
    let Some(json) = body.get(field) else { return false };
    let Some(entries) = list(json) else {
        looked.removed(FaultKind::MalformedCall, None);
        body.set(field, "[]".to_owned());
        return true;
    };
    let mut kept = Vec::new();
    let mut changed = false;
    for entry in entries {
        match call(entry, field == "invalid_tool_calls") {
            Some((call, mended)) => {
                if mended.is_some() {
                    looked.mended(FaultKind::MistypedArguments, Some(&call.id));
                    changed = true;
                }
                kept.push(mended.unwrap_or_else(|| entry.to_owned()));
                calls.add(call);
            }
            None => {
                let id = Object::parse(entry).map(|entry| id_in(&entry, "id"));
                looked.removed(FaultKind::MalformedCall, id.as_deref());
                changed = true;
            }
        }
    }
    if changed {
        body.set(field, written_list(&kept));
    }
    changed
}

/// The provider's own form of the calls, which is used where the list of calls is empty.
fn tidy_own(body: &mut Object<'_>, looked: &mut Looked<'_>, calls: &mut Named) -> bool {
    if !calls.calls.is_empty() {
        return false;
    }
    let Some(mut more) = body.object("additional_kwargs") else {
        return false;
    };
    let entries: Vec<String> =
        more.list("tool_calls").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let mut kept = Vec::new();
    let mut changed = false;
    for entry in &entries {
        match chat::call(entry) {
            Some((call, mended)) => {
                if let Some((_, fault)) = &mended {
                    looked.mended(*fault, Some(&call.id));
                    changed = true;
                }
                kept.push(mended.map_or_else(|| entry.clone(), |(entry, _)| entry));
                calls.add(call);
            }
            None => {
                let id = Object::parse(entry).map(|entry| id_in(&entry, "id"));
                looked.removed(FaultKind::MalformedCall, id.as_deref());
                changed = true;
            }
        }
    }
    if changed {
        set_or_remove(&mut more, "tool_calls", &kept);
        let more = more.write();
        body.set("additional_kwargs", more);
    }
    changed
}

/// Adds the calls that stand in the content, and takes out those that are none.
fn tidy_blocks(body: &mut Object<'_>, looked: &mut Looked<'_>, calls: &mut Named) -> bool {
    let Some(blocks) = body.list("content") else { return false };
    let mut kept = Vec::new();
    for json in &blocks {
        let Some((block, field)) = call_block(json) else {
            kept.push((*json).to_owned());
            continue;
        };
        let id = id_in(&block, field);
        match named(&block, "name") {
            Some(name) => {
                let arguments =
                    ["input", "args", "arguments"].iter().find_map(|name| block.get(name));
                kept.push((*json).to_owned());
                calls.add(Call::new(id, name, arguments.unwrap_or_default().to_owned()));
            }
            None => looked.removed(FaultKind::MalformedCall, Some(&id)),
        }
    }
    if kept.len() == blocks.len() {
        return false;
    }
    body.set("content", written_list(&kept));
    true
}

/// The field of the id of the call that this block is, if it is one.
pub(super) fn call_field(block: &Object<'_>) -> Option<&'static str> {
    match &*block.text("type")? {
        "tool_use" | "tool_call" => Some("id"),
        "function_call" => Some("call_id"),
        _ => None,
    }
}

/// The block and the field of its id, if it is a call.
fn call_block(json: &str) -> Option<(Object<'_>, &'static str)> {
    let block = Object::parse(json)?;
    let field = call_field(&block)?;
    Some((block, field))
}

/// The call that an entry is, if it can be read; and the entry put right, if it had to be.
fn call(json: &str, invalid: bool) -> Option<(Call, Option<String>)> {
    let mut entry = Object::parse(json)?;
    let (id, name) = (id_in(&entry, "id"), named(&entry, "name")?);
    let args = entry.get("args");
    let mended = if invalid { as_text(args) } else { as_object(args) };
    let written = mended.map(|args| {
        entry.set("args", args);
        entry.write()
    });
    let arguments = entry.text("args").filter(|_| invalid).map(Cow::into_owned);
    let arguments = arguments.or_else(|| entry.get("args").map(str::to_owned)).unwrap_or_default();
    Some((Call::new(id, name, arguments), written))
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
                let id = call_block(json).map(|(block, field)| id_in(&block, field));
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
