//! OpenAI chat completions, and messages with only a role and content.

use super::image_block::ImageForm;
use super::recover_content::{BlockTypes, is_openai_block, move_user_blocks, repair_blocks};
use super::{
    ARGUMENTS, CheckedMessage, ContentField, MessageForm, MessageProblem, MessageRole, RESULTS,
    ToolCallPart, ToolResultPart, adopt, adopt_id, as_text, content, id_in, nonempty_text, own_id,
    repair_result, result_as_user_message, typed_text,
};
use crate::thread::fault::{FaultKind, Remedy};
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};
use std::borrow::Cow;
use std::collections::HashMap;

pub(super) fn check_message<'a>(text: &'a str, mut object: RawObject<'_>) -> CheckedMessage<'a> {
    let id = own_id(&object);
    let role = object.text("role").unwrap_or_default().into_owned();
    let mut checked = CheckedMessage::new(text, MessageRole::Other, id);
    let mut changed = false;
    match role.as_str() {
        "system" | "developer" | "user" => {
            if role == "user" {
                checked.role = MessageRole::User;
            } else {
                changed = move_files(&mut object, &mut checked);
            }
            match tidy_content(&mut object, &mut checked) {
                Some(rewritten) => changed |= rewritten,
                None => return checked.into_unusable(FaultKind::EmptyMessage),
            }
        }
        "assistant" => {
            checked.role = MessageRole::Assistant;
            if list_calls(&mut object) {
                checked.note_repaired(FaultKind::MalformedCall, None);
                changed = true;
            }
            changed |= fold_blocks(&mut object, &mut checked);
            changed |= move_files(&mut object, &mut checked);
            changed |= tidy_calls(&mut object, &mut checked);
            changed |= tidy_function_call(&mut object, &mut checked);
            let says = ["function_call", "refusal", "audio"];
            let says =
                !checked.calls.is_empty() || says.iter().any(|name| object.get(name).is_some());
            match tidy_content(&mut object, &mut checked) {
                Some(rewritten) => changed |= rewritten,
                None if !says => return checked.into_unusable(FaultKind::EmptyMessage),
                None if object.get("content").is_some() => {
                    object.remove("content");
                    checked.note_removed(FaultKind::EmptyMessage, None);
                    changed = true;
                }
                None => {}
            }
        }
        "tool" => {
            checked.role = MessageRole::Tool;
            let mut is_changed = adopt_id(&mut object, "tool_call_id");
            is_changed |= adopt(&mut object, &RESULTS, "content");
            is_changed |= repair_result(&mut object, "content");
            let id = id_in(&object, "tool_call_id");
            if is_changed {
                checked.note_repaired(FaultKind::MalformedResult, Some(&id));
                changed = true;
            }
            // Ollama has its own field for the tool name.
            let name =
                nonempty_text(&object, "name").or_else(|| nonempty_text(&object, "tool_name"));
            let given = object.get("content").unwrap_or_default();
            let answer = ToolResultPart::new(id.clone(), given);
            checked.answers.push(ToolResultPart { name, ..answer });
            if let Some(texts) = keep_texts(&object, &mut checked.user_blocks) {
                object.set("content", texts);
                checked.note_repaired(FaultKind::MalformedResult, Some(&id));
                changed = true;
            }
        }
        "function" => return function_result(checked, object),
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    }
    changed |= role != "tool" && tidy_name(&mut object, &mut checked);
    if changed {
        checked.text = Cow::Owned(object.write());
    }
    checked
}

/// Moves images, audio and files to a message of the user. Returns whether there were any.
fn move_files(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    move_user_blocks(object, checked, &TYPES, TYPES.text, |block| {
        block.text("type").is_some_and(|kind| USER_TYPES.contains(&&*kind))
    })
}

/// The types of blocks that only a message of the user can contain.
const USER_TYPES: [&str; 3] = ["image_url", "input_audio", "file"];

/// Replaces the characters in the name of a speaker that the API refuses, cuts a long name and
/// removes an empty one. Returns whether it changed.
fn tidy_name(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    const LONGEST: usize = 64;
    let is_refused = |next: char| next.is_whitespace() || "<|\\/>".contains(next);
    let Some(name) = object.text("name").map(Cow::into_owned) else { return false };
    let accepted: String = name.replace(is_refused, "_").chars().take(LONGEST).collect();
    if accepted.is_empty() {
        object.remove("name");
    } else if accepted == name {
        return false;
    } else {
        object.set("name", quoted(&accepted));
    }
    checked.note_repaired(FaultKind::RefusedName, None);
    true
}

/// Returns the content of a result with only texts; `None` if it has only texts already. A block
/// that a user message can contain is moved to `others`; any other block becomes a text.
fn keep_texts(object: &RawObject<'_>, others: &mut Vec<String>) -> Option<String> {
    let ContentField::Blocks(blocks) = content(object, "content") else { return None };
    let kind = |json: &str| {
        let block = RawObject::parse(json);
        block.and_then(|block| block.text("type").map(Cow::into_owned)).unwrap_or_default()
    };
    if blocks.iter().all(|json| kind(json) == "text") {
        return None;
    }
    let as_text = |said: &str| typed_text(TYPES.text, said);
    let mut texts = Vec::with_capacity(blocks.len());
    for json in blocks {
        let accepted = TYPES.with_accepted_type(json);
        let json = accepted.as_deref().unwrap_or(json);
        match &*kind(json) {
            "text" => texts.push(json.to_owned()),
            kind if USER_TYPES.contains(&kind) => others.push(json.to_owned()),
            _ => texts.push(as_text(json)),
        }
    }
    if texts.is_empty() {
        texts.push(as_text("The result is in a message of the user below."));
    }
    Some(written_list(&texts))
}

/// Repairs the legacy `function_call` of an answer, or removes it if it is not a call with a name.
/// Returns whether it changed.
fn tidy_function_call(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    if !object.has("function_call") {
        return false;
    }
    let Some(mut call) = object.object("function_call") else {
        object.remove("function_call");
        checked.note_removed(FaultKind::EmptyToolCalls, None);
        return true;
    };
    let Some(name) = nonempty_text(&call, "name") else {
        object.remove("function_call");
        checked.note_removed(FaultKind::MalformedCall, None);
        return true;
    };
    let accepted = MessageForm::OpenaiChat.replacement_name(&name);
    let arguments = as_text(call.get("arguments"));
    if accepted.is_none() && arguments.is_none() {
        return false;
    }
    if let Some(accepted) = accepted {
        call.set("name", quoted(&accepted));
        checked.note_repaired(FaultKind::RefusedName, None);
    }
    if let Some(text) = arguments {
        call.set("arguments", text);
        checked.note_repaired(FaultKind::MistypedArguments, None);
    }
    object.set("function_call", call.write());
    true
}

/// Checks the result of a legacy `function_call`: its content must be a text. Without a function
/// name, its content is kept as text in a user message.
fn function_result<'a>(
    mut checked: CheckedMessage<'a>,
    mut object: RawObject<'_>,
) -> CheckedMessage<'a> {
    let whole = match content(&object, "content") {
        ContentField::Text(_) => None,
        // The API accepts null.
        ContentField::Nothing if object.has("content") && object.list("content").is_none() => None,
        ContentField::Nothing => Some(quoted("")),
        ContentField::Blocks(_) | ContentField::Other(_) => {
            Some(quoted(object.get("content").unwrap_or_default()))
        }
    };
    let Some(name) = nonempty_text(&object, "name") else {
        let given = whole.as_deref().or_else(|| object.get("content")).unwrap_or_default();
        let answer = ToolResultPart::new(String::new(), given);
        let user_text = result_as_user_message(MessageForm::OpenaiChat, &answer, false);
        checked.role = MessageRole::User;
        let remedy = Remedy::KeptAsText;
        checked.problems.push(MessageProblem::new(FaultKind::MalformedResult, None, remedy));
        checked.text = Cow::Owned(user_text);
        return checked;
    };
    if let Some(accepted) = MessageForm::OpenaiChat.replacement_name(&name) {
        object.set("name", quoted(&accepted));
        checked.note_repaired(FaultKind::RefusedName, None);
    }
    if let Some(content) = whole {
        object.set("content", content);
        checked.note_repaired(FaultKind::MalformedResult, None);
    }
    if !checked.problems.is_empty() {
        checked.text = Cow::Owned(object.write());
    }
    checked
}

/// Repairs the content so that it has only valid blocks. Returns whether it changed; `None` if
/// nothing is left.
fn tidy_content(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> Option<bool> {
    let kept = match content(object, "content") {
        ContentField::Text(_) => return Some(false),
        ContentField::Nothing => return None,
        ContentField::Other(json) => {
            repair_blocks(&[json], &TYPES, |_| false, &mut checked.problems)
        }
        ContentField::Blocks(blocks) => {
            repair_blocks(&blocks, &TYPES, is_openai_block, &mut checked.problems)
        }
    };
    let Some(kept) = kept else { return Some(false) };
    if kept.is_empty() {
        return None;
    }
    object.set("content", written_list(&kept));
    Some(true)
}

/// Fields by which the type of a content block without one is inferred.
pub(super) const TYPES: BlockTypes = BlockTypes {
    fields: &[("text", "text"), ("image_url", "image_url"), ("input_audio", "input_audio")],
    text: "text",
    refused_texts: &["input_text", "output_text"],
    images: Some(ImageForm::Chat),
};

/// Moves calls in Anthropic's form from the content to `tool_calls`. A call that is also there,
/// or has no name, is removed. Returns whether there were any.
fn fold_blocks(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    let blocks = object.list("content").unwrap_or_default();
    let used = |json: &str| {
        let block = RawObject::parse(json)?;
        let kind = block.text("type")?;
        (kind == "tool_use")
            .then(|| (id_in(&block, "id"), nonempty_text(&block, "name"), input_text(&block)))
    };
    let (mut kept, mut found) = (Vec::new(), Vec::new());
    for json in blocks {
        match used(json) {
            Some(call) => found.push(call),
            None => kept.push(json.to_owned()),
        }
    }
    if found.is_empty() {
        return false;
    }
    let mut entries: Vec<String> =
        object.list("tool_calls").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let id_of = |entry: &String| RawObject::parse(entry).map(|entry| id_in(&entry, "id"));
    let known: Vec<String> = entries.iter().filter_map(id_of).collect();
    for (id, name, arguments) in found {
        match name {
            Some(name) if !known.contains(&id) => {
                entries.push(format!(
                    r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{arguments}}}}}"#,
                    quoted(&id),
                    quoted(&name)
                ));
                checked.note_repaired(FaultKind::MixedForms, Some(&id));
            }
            _ => checked.note_removed(FaultKind::MixedForms, Some(&id)),
        }
    }
    let content = if kept.is_empty() { "null".to_owned() } else { written_list(&kept) };
    object.set("content", content);
    if !entries.is_empty() {
        object.set("tool_calls", written_list(&entries));
    }
    true
}

/// Returns the input of a call in Anthropic's form as a JSON text, as OpenAI requires.
fn input_text(block: &RawObject<'_>) -> String {
    let input = block.get("input");
    as_text(input).or_else(|| input.map(str::to_owned)).unwrap_or_default()
}

/// Gives the calls of a message the field that they have in this API: other clients write the name
/// of the field in camel case. Makes `tool_calls` a list if it is a text with the list in it, as a
/// column of a database holds it, one call without a list, or calls by their index. Returns whether
/// it changed.
pub(super) fn list_calls(object: &mut RawObject<'_>) -> bool {
    let mut is_renamed = has_camel_calls(object) && adopt(object, &["toolCalls"], "tool_calls");
    is_renamed |= has_camel_call(object) && adopt(object, &["functionCall"], "function_call");
    let Some(calls) = object.get("tool_calls").and_then(calls_as_list) else { return is_renamed };
    object.set("tool_calls", calls);
    true
}

/// Returns whether a message has calls in the field `toolCalls`. An empty list, or calls together
/// with their results, are no such calls: programs add them to messages of any API for display. The
/// AI SDK has the results of a step in `toolResults`.
pub(super) fn has_camel_calls(object: &RawObject<'_>) -> bool {
    let Some(given) = object.get("toolCalls") else { return false };
    let listed = calls_as_list(given);
    let entries = list(listed.as_deref().unwrap_or(given)).unwrap_or_default();
    let has_result = |entry: &RawObject<'_>| {
        RESULTS.iter().chain(&["error"]).any(|name| entry.get(name).is_some())
    };
    let is_shown = |entry: &str| {
        RawObject::parse(entry).is_some_and(|entry| {
            has_result(&entry) || entry.object("function").is_some_and(|tool| has_result(&tool))
        })
    };
    object.list("toolResults").is_none_or(|results| results.is_empty())
        && entries.iter().any(|entry| call(entry).is_some())
        && !entries.iter().any(|entry| is_shown(entry))
}

/// Returns whether a message has a legacy call in the field `functionCall`.
pub(super) fn has_camel_call(object: &RawObject<'_>) -> bool {
    object.object("functionCall").is_some_and(|call| nonempty_text(&call, "name").is_some())
}

/// Returns the calls in this value of `tool_calls` as a list; `None` if it is one, or has no calls.
fn calls_as_list(given: &str) -> Option<String> {
    let said = text(given);
    let json = said.as_deref().unwrap_or(given).trim();
    if let Some(entries) = list(json) {
        return said.is_some().then(|| written_list(&entries));
    }
    if call(json).is_some() {
        return Some(written_list(&[json]));
    }
    // Calls by their index, as a program collects them from a stream. Another key may be the id.
    let object = RawObject::parse(json)?;
    let is_call = |(key, entry): (&str, &str)| {
        let call = call(entry).map(|(call, _)| call);
        call.is_some_and(|call| !call.id.is_empty() || key.parse::<usize>().is_ok())
    };
    let entries: Vec<&str> = object.fields().map(|(_, entry)| entry).collect();
    let is_calls = !entries.is_empty() && object.fields().all(is_call);
    is_calls.then(|| written_list(&entries))
}

/// Returns the entries of `tool_calls` with the pieces of a stream joined: an entry without an id
/// and a name has more arguments of the entry before it with its index. `None` if there are none.
fn joined_pieces(entries: &[&str]) -> Option<Vec<String>> {
    // The entries that are no pieces, each with the arguments in its pieces.
    let mut calls: Vec<(&str, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for json in entries.iter().copied() {
        let entry = RawObject::parse(json);
        let index = entry.as_ref().and_then(|entry| entry.get("index")).unwrap_or_default();
        let tool = entry.as_ref().and_then(|entry| entry.object("function"));
        let has_id = entry.as_ref().is_some_and(|entry| !id_in(entry, "id").is_empty());
        let piece = tool.filter(|tool| !has_id && nonempty_text(tool, "name").is_none());
        match (piece, places.get(index).copied()) {
            (Some(piece), Some(place)) => {
                calls[place].1.push_str(&piece.text("arguments").unwrap_or_default());
            }
            _ => {
                if !index.is_empty() {
                    places.insert(index.to_owned(), calls.len());
                }
                calls.push((json, String::new()));
            }
        }
    }
    let is_joined = calls.len() < entries.len();
    let whole = |(json, more): (&str, String)| {
        with_more_arguments(json, &more).unwrap_or_else(|| json.to_owned())
    };
    is_joined.then(|| calls.into_iter().map(whole).collect())
}

/// Returns an entry of `tool_calls` with these arguments after its own; `None` if nothing changes.
fn with_more_arguments(json: &str, more: &str) -> Option<String> {
    if more.trim().is_empty() {
        return None;
    }
    let mut entry = RawObject::parse(json)?;
    let mut tool = entry.object("function")?;
    // Some services begin with an object that is empty and whole.
    let begun = tool.text("arguments").filter(|said| said != "{}");
    let arguments = begun.unwrap_or_default().into_owned() + more;
    tool.set("arguments", quoted(&arguments));
    entry.set("function", tool.write());
    Some(entry.write())
}

/// Keeps only valid calls in `tool_calls`. Returns whether it changed.
fn tidy_calls(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    if !object.has("tool_calls") {
        return false;
    }
    let Some(entries) = object.list("tool_calls").filter(|entries| !entries.is_empty()) else {
        object.remove("tool_calls");
        checked.note_removed(FaultKind::EmptyToolCalls, None);
        return true;
    };
    let joined = joined_pieces(&entries);
    let mut changed = joined.is_some();
    if changed {
        checked.note_repaired(FaultKind::MalformedCall, None);
    }
    let entries: Vec<&str> =
        joined.as_ref().map_or(entries, |joined| joined.iter().map(String::as_str).collect());
    let mut kept: Vec<String> = Vec::new();
    for entry in &entries {
        match call(entry) {
            Some((call, repaired)) => {
                if let Some((_, fault)) = &repaired {
                    checked.note_repaired(*fault, Some(&call.id));
                    changed = true;
                }
                let entry = repaired.map_or_else(|| (*entry).to_owned(), |(entry, _)| entry);
                let renamed = with_accepted_name(&entry, &call.name);
                if renamed.is_some() {
                    checked.note_repaired(FaultKind::RefusedName, Some(&call.id));
                    changed = true;
                }
                kept.push(renamed.unwrap_or(entry));
                checked.calls.push(call);
            }
            None => {
                let id = RawObject::parse(entry).map(|entry| id_in(&entry, "id"));
                checked.note_removed(FaultKind::MalformedCall, id.as_deref());
                changed = true;
            }
        }
    }
    if changed {
        set_or_remove(object, "tool_calls", &kept);
    }
    changed
}

/// Returns the entry with a function name that the API accepts; `None` if it accepts `name`.
fn with_accepted_name(entry: &str, name: &str) -> Option<String> {
    let accepted = MessageForm::OpenaiChat.replacement_name(name)?;
    let mut entry = RawObject::parse(entry)?;
    let mut function = entry.object("function")?;
    function.set("name", quoted(&accepted));
    entry.set("function", function.write());
    Some(entry.write())
}

pub(super) fn set_or_remove(object: &mut RawObject<'_>, field: &str, entries: &[String]) {
    if entries.is_empty() {
        object.remove(field);
    } else {
        object.set(field, written_list(entries));
    }
}

/// Returns the call of an entry of `tool_calls` if it is readable, and the repaired entry if it was
/// invalid.
pub(super) fn call(json: &str) -> Option<(ToolCallPart, Option<(String, FaultKind)>)> {
    let mut entry = RawObject::parse(json)?;
    let mut fault = adopt_id(&mut entry, "id").then_some(FaultKind::MalformedCall);
    let custom = entry.object("custom").is_some();
    let (kind, field) = if custom { ("custom", "input") } else { ("function", "arguments") };
    let tool = match entry.object(kind) {
        Some(tool) => tool.write(),
        // Name and arguments next to the id, as LangChain and others write them.
        None => flat_tool(&entry)?,
    };
    if entry.object(kind).is_none() {
        for name in NAMES.iter().chain(&ARGUMENTS) {
            entry.remove(name);
        }
        fault = Some(FaultKind::MalformedCall);
    }
    if entry.text("type").as_deref() != Some(kind) {
        entry.set("type", quoted(kind));
        fault = Some(FaultKind::MalformedCall);
    }
    let mut inner = RawObject::parse(&tool)?;
    let name = nonempty_text(&inner, "name")?;
    if adopt(&mut inner, &ARGUMENTS, field) {
        fault = Some(FaultKind::MalformedCall);
    }
    if let Some(text) = as_text(inner.get(field)) {
        inner.set(field, text);
        fault = Some(FaultKind::MistypedArguments);
    }
    let arguments = inner.text(field)?.into_owned();
    let call = ToolCallPart::new(id_in(&entry, "id"), name, arguments);
    let repaired = fault.map(|fault| {
        entry.set(kind, inner.write());
        (entry.write(), fault)
    });
    Some((call, repaired))
}

/// The fields in which a call that is flat has the name of its tool.
const NAMES: [&str; 3] = ["name", "toolName", "tool_name"];

/// Returns the function of an entry that has the name and the arguments next to its id.
fn flat_tool(entry: &RawObject<'_>) -> Option<String> {
    let name = NAMES.iter().find_map(|field| nonempty_text(entry, field))?;
    let arguments = ARGUMENTS.iter().find_map(|name| entry.get(name));
    let arguments = as_text(arguments).or_else(|| arguments.map(str::to_owned))?;
    Some(format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(&name)))
}

/// Returns the entries of a list of calls whose ids are not among these.
pub(super) fn without_entries(entries: &[&str], field: &str, ids: &[&str]) -> Vec<String> {
    let is_cut = |entry: &str| {
        let id = RawObject::parse(entry).map(|entry| id_in(&entry, field));
        id.is_some_and(|id| ids.contains(&id.as_str()))
    };
    entries.iter().filter(|entry| !is_cut(entry)).map(|entry| (*entry).to_owned()).collect()
}

pub(super) fn without_calls(mut object: RawObject<'_>, ids: &[&str]) -> Option<String> {
    let entries = object.list("tool_calls").unwrap_or_default();
    let kept = without_entries(&entries, "id", ids);
    if kept.is_empty() {
        object.remove("tool_calls");
        let says = match content(&object, "content") {
            ContentField::Text(text) => !text.trim().is_empty(),
            ContentField::Blocks(_) => true,
            ContentField::Nothing | ContentField::Other(_) => false,
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
