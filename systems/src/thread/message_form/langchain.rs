//! LangChain's messages, as `messages_to_dict`, `model_dump` and `dumpd` write them.

use super::openai_chat::{self, set_or_remove, without_entries};
use super::recover_content::{BlockTypes, repair_blocks};
use super::{
    ARGUMENTS, CheckedMessage, ContentField, FormEvidence, MessageRole, RESULTS, ToolCallPart,
    ToolResultPart, adopt, adopt_id, as_object, as_text, content, evidence, id_in, is_block,
    nonempty_text, own_id, repair_result,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};
use std::borrow::Cow;
use std::collections::HashMap;

/// Returns the message's own fields, and the name of the field that contains them if they are
/// nested. `None` if that field is not an object.
pub(super) fn own_fields<'o>(
    object: &'o RawObject<'_>,
) -> Option<(RawObject<'o>, Option<&'static str>)> {
    if object.has("lc") && object.has("kwargs") {
        return Some((object.object("kwargs")?, Some("kwargs")));
    }
    let data = object.object("data").map(|data| (data, Some("data")));
    Some(data.unwrap_or_else(|| (object.clone(), None)))
}

/// Returns the type of a message in lower case, without `Message` and `Chunk` at its end.
fn kind(object: &RawObject<'_>) -> Option<String> {
    let kind = if object.has("lc") {
        text(object.list("id")?.last()?)?.into_owned()
    } else {
        object.text("type")?.into_owned()
    };
    Some(kind.trim_end_matches("Chunk").trim_end_matches("Message").to_ascii_lowercase())
}

pub(super) fn check_message<'a>(text: &'a str, mut object: RawObject<'_>) -> CheckedMessage<'a> {
    let Some(kind) = kind(&object) else { return openai_chat::check_message(text, object) };
    // A message must show its form. For example, `lc` without `kwargs` does not.
    let is_shown = matches!(evidence(&object), FormEvidence::Strong(_));
    let Some((mut body, nested)) = own_fields(&object).filter(|_| is_shown) else {
        return CheckedMessage::new(text, MessageRole::Other, None)
            .into_unusable(FaultKind::NotAMessage);
    };
    let mut checked = CheckedMessage::new(text, MessageRole::Other, own_id(&body));
    let changed = match kind.as_str() {
        "human" | "system" | "chat" | "function" | "developer" => {
            if kind == "human" {
                checked.role = MessageRole::User;
            }
            let changed = keep_blocks(&mut body, &mut checked);
            if let ContentField::Nothing | ContentField::Other(_) = content(&body, "content") {
                return checked.into_unusable(FaultKind::EmptyMessage);
            }
            changed
        }
        "ai" => {
            checked.role = MessageRole::Assistant;
            let mut changed = keep_blocks(&mut body, &mut checked);
            changed |= tidy_calls(&mut body, &mut checked);
            if let ContentField::Nothing | ContentField::Other(_) = content(&body, "content")
                && body.get("content") != Some("[]")
            {
                if checked.calls.is_empty() {
                    return checked.into_unusable(FaultKind::EmptyMessage);
                }
                body.set("content", "\"\"".to_owned());
                checked.note_repaired(FaultKind::EmptyMessage, None);
                changed = true;
            } else if body.get("content") == Some("[]") && checked.calls.is_empty() {
                return checked.into_unusable(FaultKind::EmptyMessage);
            }
            changed
        }
        "tool" => {
            checked.role = MessageRole::Tool;
            let mut changed = adopt_id(&mut body, "tool_call_id");
            changed |= adopt(&mut body, &RESULTS, "content");
            changed |= repair_tool_content(&mut body);
            let id = id_in(&body, "tool_call_id");
            if changed {
                checked.note_repaired(FaultKind::MalformedResult, Some(&id));
            }
            let answer = ToolResultPart::new(id, body.get("content").unwrap_or_default());
            checked.answers.push(ToolResultPart { name: nonempty_text(&body, "name"), ..answer });
            changed
        }
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    if changed {
        let written = body.write();
        checked.text = Cow::Owned(wrapped(&mut object, nested, written));
    }
    checked
}

pub(super) fn wrapped(object: &mut RawObject<'_>, nested: Option<&str>, body: String) -> String {
    match nested {
        Some(field) => {
            object.set(field, body);
            object.write()
        }
        None => body,
    }
}

/// Repairs the content so that it has only valid blocks and texts. Returns whether it changed.
fn keep_blocks(body: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    // LangChain itself converts the texts of both APIs of OpenAI, and images.
    let types = &BlockTypes { refused_texts: &[], images: None, ..openai_chat::TYPES };
    let kept = match content(body, "content") {
        ContentField::Text(_) | ContentField::Nothing => return false,
        ContentField::Other(json) => {
            repair_blocks(&[json], types, |_| false, &mut checked.problems)
        }
        ContentField::Blocks(blocks) => {
            repair_blocks(&blocks, types, is_block_or_text, &mut checked.problems)
        }
    };
    let Some(kept) = kept else { return false };
    body.set("content", written_list(&kept));
    true
}

/// Returns whether this is a block or a text, which LangChain accepts next to blocks in a list.
fn is_block_or_text(json: &str) -> bool {
    is_block(json) || text(json).is_some()
}

fn repair_tool_content(body: &mut RawObject<'_>) -> bool {
    if let ContentField::Blocks(blocks) = content(body, "content")
        && blocks.iter().all(|block| is_block_or_text(block))
    {
        return false;
    }
    repair_result(body, "content")
}

/// The fields in which an AI message may list its calls.
pub(super) const LISTS: [&str; 3] = ["tool_calls", "invalid_tool_calls", "tool_call_chunks"];

/// The calls of a message. A call may be listed in several places.
#[derive(Default)]
struct CollectedCalls {
    calls: Vec<ToolCallPart>,
    /// How often each id occurred so far in the place that is being read.
    seen: HashMap<String, usize>,
}

impl CollectedCalls {
    fn next_place(&mut self) {
        self.seen.clear();
    }

    /// Adds a call, unless an earlier place lists it too.
    fn add(&mut self, call: ToolCallPart) {
        let seen = self.seen.entry(call.id.clone()).or_default();
        *seen += 1;
        let known = self.calls.iter().filter(|known| known.id == call.id).count();
        if known < *seen {
            self.calls.push(call);
        }
    }
}

/// Keeps only valid calls in every place where a message lists calls. Returns whether any place
/// changed.
fn tidy_calls(body: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    let mut calls = CollectedCalls::default();
    let mut changed = false;
    for field in ["tool_calls", "invalid_tool_calls"] {
        calls.next_place();
        changed |= tidy_list(body, field, checked, &mut calls);
    }
    calls.next_place();
    changed |= tidy_own(body, checked, &mut calls);
    calls.next_place();
    changed |= tidy_blocks(body, checked, &mut calls);
    checked.calls = calls.calls;
    changed
}

fn tidy_list(
    body: &mut RawObject<'_>,
    field: &str,
    checked: &mut CheckedMessage<'_>,
    calls: &mut CollectedCalls,
) -> bool {
    let Some(json) = body.get(field) else { return false };
    let Some(entries) = list(json) else {
        checked.note_removed(FaultKind::MalformedCall, None);
        body.set(field, "[]".to_owned());
        return true;
    };
    let parse = |entry: &str| {
        let (call, repaired) = call(entry, field == "invalid_tool_calls")?;
        Some((call, repaired.map(|repaired| (repaired, FaultKind::MistypedArguments))))
    };
    let (kept, changed) = keep_calls(&entries, parse, checked, calls);
    if changed {
        body.set(field, written_list(&kept));
    }
    changed
}

/// Returns the entries of a list that `parse` can read, repaired, and whether any changed. `parse`
/// returns the call of an entry, and the repaired text with the fault if it has a fault.
fn keep_calls(
    entries: &[&str],
    parse: impl Fn(&str) -> Option<(ToolCallPart, Option<(String, FaultKind)>)>,
    checked: &mut CheckedMessage<'_>,
    calls: &mut CollectedCalls,
) -> (Vec<String>, bool) {
    let (mut kept, mut changed) = (Vec::new(), false);
    for entry in entries {
        if let Some((call, repaired)) = parse(entry) {
            if let Some((_, fault)) = &repaired {
                checked.note_repaired(*fault, Some(&call.id));
                changed = true;
            }
            kept.push(repaired.map_or_else(|| (*entry).to_owned(), |(repaired, _)| repaired));
            calls.add(call);
        } else {
            let id = RawObject::parse(entry).map(|entry| id_in(&entry, "id"));
            checked.note_removed(FaultKind::MalformedCall, id.as_deref());
            changed = true;
        }
    }
    (kept, changed)
}

/// Checks the calls in the provider's own form, which count only if no list has a call.
fn tidy_own(
    body: &mut RawObject<'_>,
    checked: &mut CheckedMessage<'_>,
    calls: &mut CollectedCalls,
) -> bool {
    if !calls.calls.is_empty() {
        return false;
    }
    let Some(mut more) = body.object("additional_kwargs") else {
        return false;
    };
    let entries = more.list("tool_calls").unwrap_or_default();
    let (kept, changed) = keep_calls(&entries, openai_chat::call, checked, calls);
    if changed {
        set_or_remove(&mut more, "tool_calls", &kept);
        body.set("additional_kwargs", more.write());
    }
    changed
}

/// Adds the calls in the content, and removes the invalid ones. Returns whether it removed any.
fn tidy_blocks(
    body: &mut RawObject<'_>,
    checked: &mut CheckedMessage<'_>,
    calls: &mut CollectedCalls,
) -> bool {
    let Some(blocks) = body.list("content") else { return false };
    let mut kept = Vec::new();
    for json in &blocks {
        let Some((block, field)) = call_block(json) else {
            kept.push((*json).to_owned());
            continue;
        };
        let id = id_in(&block, field);
        match nonempty_text(&block, "name") {
            Some(name) => {
                let arguments =
                    ["input", "args", "arguments"].iter().find_map(|name| block.get(name));
                kept.push((*json).to_owned());
                calls.add(ToolCallPart::new(id, name, arguments.unwrap_or_default().to_owned()));
            }
            None => checked.note_removed(FaultKind::MalformedCall, Some(&id)),
        }
    }
    if kept.len() == blocks.len() {
        return false;
    }
    body.set("content", written_list(&kept));
    true
}

/// Returns the name of the id field if this block is a call.
pub(super) fn call_field(block: &RawObject<'_>) -> Option<&'static str> {
    match &*block.text("type")? {
        "tool_use" | "tool_call" => Some("id"),
        "function_call" => Some("call_id"),
        _ => None,
    }
}

/// Returns the block and the name of its id field if it is a call.
fn call_block(json: &str) -> Option<(RawObject<'_>, &'static str)> {
    let block = RawObject::parse(json)?;
    let field = call_field(&block)?;
    Some((block, field))
}

/// Returns the call of an entry if it is readable, and the repaired entry if it was invalid.
fn call(json: &str, invalid: bool) -> Option<(ToolCallPart, Option<String>)> {
    let mut entry = RawObject::parse(json)?;
    let mut is_moved = adopt_id(&mut entry, "id");
    if entry.get("name").is_none()
        && let Some((call, _)) = openai_chat::call(json)
    {
        // A call in OpenAI's form.
        entry.remove("function");
        entry.set("name", quoted(&call.name));
        entry.set("args", quoted(&call.arguments));
        entry.set("type", quoted("tool_call"));
        is_moved = true;
    }
    let (id, name) = (id_in(&entry, "id"), nonempty_text(&entry, "name")?);
    is_moved |= adopt(&mut entry, &ARGUMENTS, "args");
    let args = entry.get("args");
    let repaired = if invalid { as_text(args) } else { as_object(args) };
    if let Some(args) = repaired {
        entry.set("args", args);
        is_moved = true;
    }
    let written = is_moved.then(|| entry.write());
    let arguments = entry.text("args").filter(|_| invalid).map(Cow::into_owned);
    let arguments = arguments.or_else(|| entry.get("args").map(str::to_owned)).unwrap_or_default();
    Some((ToolCallPart::new(id, name, arguments), written))
}

pub(super) fn without_calls(mut object: RawObject<'_>, ids: &[&str]) -> Option<String> {
    let (mut body, nested) = own_fields(&object)?;
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
        // These calls are ignored if a list has calls, but would count once all lists are empty.
        if listed > 0 && left == 0 {
            kept.clear();
        }
        left += kept.len();
        set_or_remove(&mut more, "tool_calls", &kept);
        body.set("additional_kwargs", more.write());
    }
    let says = match content(&body, "content") {
        ContentField::Text(text) => !text.trim().is_empty(),
        ContentField::Blocks(blocks) => {
            let is_cut = |json: &&str| {
                let id = call_block(json).map(|(block, field)| id_in(&block, field));
                id.is_some_and(|id| ids.contains(&id.as_str()))
            };
            let kept: Vec<&str> = blocks.into_iter().filter(|block| !is_cut(block)).collect();
            let says = kept.iter().any(|block| {
                let kind = RawObject::parse(block)
                    .and_then(|block| block.text("type").map(Cow::into_owned));
                !matches!(kind.as_deref(), Some("thinking" | "redacted_thinking" | "reasoning"))
            });
            let kept = written_list(&kept);
            body.set("content", kept);
            says
        }
        ContentField::Nothing | ContentField::Other(_) => false,
    };
    if left == 0 && !says {
        return None;
    }
    let written = body.write();
    Some(wrapped(&mut object, nested, written))
}
