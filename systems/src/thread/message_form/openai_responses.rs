//! Items of OpenAI's Responses API.

use super::form_evidence::is_item;
use super::image_block::ImageForm;
use super::recover_content::{
    BlockTypes, is_openai_block, move_user_blocks, repair_blocks, repair_result_blocks,
};
use super::{
    ARGUMENTS, CallIdRule, CheckedMessage, ContentField, MessageForm, MessageRole, RESULTS,
    ToolCallKind, ToolCallPart, ToolResultPart, adopt, adopt_id, as_text, content, id_in,
    nonempty_text, own_id, repair_result, typed_text,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, quoted, text, written_list};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub(super) fn check_message<'a>(text: &'a str, object: RawObject<'_>) -> CheckedMessage<'a> {
    let moved = with_own_fields(&object);
    let whole = moved.as_ref().and_then(|whole| Some((whole, RawObject::parse(whole)?)));
    let Some((whole, moved)) = whole else { return check_whole(text, object) };
    let mut checked = check_whole(whole, moved);
    if !checked.is_unusable {
        let is_result = checked.role == MessageRole::Tool;
        let fault = if is_result { FaultKind::MalformedResult } else { FaultKind::MalformedCall };
        checked.note_repaired(fault, None);
    }
    CheckedMessage { text: Cow::Owned(checked.text.into_owned()), ..checked }
}

/// Returns a call or a result with its id and its content in the fields of this API; `None` if they
/// are in no fields of other APIs.
fn with_own_fields(object: &RawObject<'_>) -> Option<String> {
    let kind = object.text("type")?;
    let (names, own): (&[&str], &str) = match &*kind {
        "function_call" => (&ARGUMENTS[..], "arguments"),
        "custom_tool_call" => (&ARGUMENTS[..], "input"),
        "function_call_output" | "custom_tool_call_output" => (&RESULTS[..], "output"),
        _ => return None,
    };
    let mut object = object.clone();
    let mut is_moved = adopt_id(&mut object, "call_id");
    if own != "output" {
        is_moved |= adopt(&mut object, &["id"], "call_id");
    }
    is_moved |= adopt(&mut object, names, own);
    is_moved.then(|| object.write())
}

fn check_whole<'a>(text: &'a str, object: RawObject<'_>) -> CheckedMessage<'a> {
    let Some((id, whole)) = without_refused_id(&object) else { return check_item(text, object) };
    let Some(object) = RawObject::parse(&whole) else { return check_item(text, object) };
    let mut checked = check_item(&whole, object);
    if !checked.is_unusable {
        checked.note_repaired(FaultKind::RefusedId, Some(&id));
    }
    let id = Some(id).filter(|id| !id.is_empty());
    CheckedMessage { text: Cow::Owned(checked.text.into_owned()), id, ..checked }
}

/// The rule for the ids of items.
const ITEM_IDS: CallIdRule =
    CallIdRule { max_chars: 64, plain_only: true, required: true, unique: true };

/// Returns the id of an item that the API refuses, also because it does not begin as the type of
/// the item requires, and the item without it: the API takes these items without an id.
fn without_refused_id(object: &RawObject<'_>) -> Option<(String, String)> {
    let begin = match &*object.text("type")? {
        "function_call" | "function_call_output" => "fc",
        "custom_tool_call" | "custom_tool_call_output" => "ctc",
        "reasoning" => "rs",
        "message" if object.text("role").as_deref() == Some("assistant") => "msg",
        _ => return None,
    };
    let id = object.text("id").filter(|id| !id.starts_with(begin) || !ITEM_IDS.accepts(id))?;
    let id = id.into_owned();
    let mut object = object.clone();
    object.remove("id");
    Some((id, object.write()))
}

/// Removes the ids that earlier items have, because the API refuses a second item of an id; and
/// reasoning and references that repeat another item.
pub(super) fn drop_repeated_ids(checked: &mut [CheckedMessage<'_>]) {
    let mut known: HashMap<String, &str> = HashMap::new();
    for one in checked.iter_mut().filter(|one| !one.is_unusable) {
        let Some(id) = item_id(&one.text) else { continue };
        let Some(first) = known.get(&id) else {
            known.insert(id, &one.text);
            continue;
        };
        if one.role == MessageRole::Reasoning && *first == one.text {
            one.is_unusable = true;
            one.note_removed(FaultKind::RepeatedItem, Some(&id));
            continue;
        }
        let Some(mut object) = RawObject::parse(&one.text) else { continue };
        object.remove("id");
        one.text = Cow::Owned(object.write());
        one.note_repaired(FaultKind::RepeatedItem, Some(&id));
    }
    let mut known: HashSet<String> = known.into_keys().collect();
    for one in checked.iter_mut().filter(|one| !one.is_unusable) {
        let Some(id) = referred_id(&one.text) else { continue };
        if !known.insert(id.clone()) {
            one.is_unusable = true;
            one.note_removed(FaultKind::RepeatedItem, Some(&id));
        }
    }
}

/// Returns the id of the stored item to which this item refers.
pub(super) fn referred_id(text: &str) -> Option<String> {
    const KIND: &str = "item_reference";
    if !text.contains(KIND) {
        return None;
    }
    let object = RawObject::parse(text)?;
    own_id(&object).filter(|_| object.text("type").as_deref() == Some(KIND))
}

/// Returns the id of an item, unless it is the id of another item to which this one refers.
fn item_id(text: &str) -> Option<String> {
    let object = RawObject::parse(text)?;
    let kind = object.text("type").unwrap_or_default();
    let refers = matches!(&*kind, "item_reference" | "local_shell_call_output");
    own_id(&object).filter(|_| !refers)
}

/// The types of items that may come from the model, besides calls. A reference may be to such an
/// item.
const FROM_MODEL: [&str; 5] =
    ["mcp_approval_request", "mcp_list_tools", "item_reference", "program", "agent_message"];

fn check_item<'a>(text: &'a str, mut object: RawObject<'_>) -> CheckedMessage<'a> {
    let checked = CheckedMessage::new(text, MessageRole::Other, own_id(&object));
    let kind = object.text("type").map(Cow::into_owned);
    match kind.as_deref() {
        None | Some("message") => message(checked, object),
        Some("reasoning") => reasoning(checked, object),
        Some(kind) if kind.ends_with("_output") => {
            let Some(call_kind) = call_kind(kind.trim_end_matches("_output")) else {
                return checked;
            };
            let mut checked = CheckedMessage { role: MessageRole::Tool, ..checked };
            let id = result_id(&object, call_kind);
            let takes_text = matches!(call_kind, ToolCallKind::Function | ToolCallKind::Custom);
            if takes_text && repair_output(&mut object) {
                checked.note_repaired(FaultKind::MalformedResult, Some(&id));
                checked.text = Cow::Owned(object.write());
            }
            let answer = ToolResultPart::new(id, object.get("output").unwrap_or_default());
            checked.answers.push(ToolResultPart { kind: call_kind, ..answer });
            checked
        }
        Some(kind) => {
            let mut checked = CheckedMessage { role: MessageRole::Assistant, ..checked };
            let Some(call_kind) = call_kind(kind) else {
                // The API refuses an unknown type, and an item of one does not show its form.
                if !is_item(&object, kind) {
                    return checked.into_unusable(FaultKind::NotAMessage);
                }
                let from_model = kind.ends_with("_call") || FROM_MODEL.contains(&kind);
                checked.role = if from_model { MessageRole::Assistant } else { MessageRole::Other };
                return checked;
            };
            let Some(call) = call(&mut object, call_kind, &mut checked) else {
                let id = id_in(&object, "call_id");
                checked.note_removed(FaultKind::MalformedCall, Some(&id));
                return checked.into_unusable(FaultKind::MalformedCall);
            };
            checked.calls.push(call);
            if !checked.problems.is_empty() {
                checked.text = Cow::Owned(object.write());
            }
            checked
        }
    }
}

/// Checks reasoning. Its summary must be a list, and two of its fields must not be null, as the
/// client of OpenAI writes them.
fn reasoning<'a>(checked: CheckedMessage<'a>, mut object: RawObject<'_>) -> CheckedMessage<'a> {
    let mut checked = CheckedMessage { role: MessageRole::Reasoning, ..checked };
    let mut changed = false;
    for name in ["status", "content"] {
        if object.has(name) && object.get(name).is_none() {
            object.remove(name);
            changed = true;
        }
    }
    let summary = object.list("summary");
    let is_part = |json: &&str| RawObject::parse(json).is_some();
    if !summary.as_ref().is_some_and(|parts| parts.iter().all(is_part)) {
        let said: Vec<String> = match summary {
            Some(parts) => parts.into_iter().map(summary_part).collect(),
            None => nonempty_text(&object, "summary")
                .map(|said| typed_text("summary_text", &said))
                .into_iter()
                .collect(),
        };
        object.set("summary", written_list(&said));
        changed = true;
    }
    if changed {
        checked.note_repaired(FaultKind::MalformedBlock, None);
        checked.text = Cow::Owned(object.write());
    }
    checked
}

/// Returns this part of a summary, which may be a text alone, in the form of the API.
fn summary_part(json: &str) -> String {
    if RawObject::parse(json).is_some() {
        return json.to_owned();
    }
    typed_text("summary_text", text(json).as_deref().unwrap_or(json))
}

/// Makes the output of a call valid: a text, or a list of input blocks. Returns whether it changed.
fn repair_output(object: &mut RawObject<'_>) -> bool {
    const ACCEPTED: [&str; 3] = ["input_text", "input_image", "input_file"];
    if repair_result(object, "output") {
        return true;
    }
    let blocks = object.list("output").unwrap_or_default();
    let Some(blocks) = repair_result_blocks(&blocks, &INPUTS, &ACCEPTED) else { return false };
    object.set("output", written_list(&blocks));
    true
}

/// Returns the kind of call that items of this type are, if the caller of the API must answer them.
fn call_kind(kind: &str) -> Option<ToolCallKind> {
    Some(match kind {
        "function_call" => ToolCallKind::Function,
        "custom_tool_call" => ToolCallKind::Custom,
        "computer_call" => ToolCallKind::Computer,
        "local_shell_call" => ToolCallKind::LocalShell,
        "shell_call" => ToolCallKind::Shell,
        "apply_patch_call" => ToolCallKind::ApplyPatch,
        _ => return None,
    })
}

/// Returns the call id of a result. The output of a local shell may have it in the field `id`.
pub(super) fn result_id(object: &RawObject<'_>, kind: ToolCallKind) -> String {
    let id = id_in(object, "call_id");
    if id.is_empty() && kind == ToolCallKind::LocalShell { id_in(object, "id") } else { id }
}

/// Returns the kind of result that this item is.
pub(super) fn result_kind(object: &RawObject<'_>) -> ToolCallKind {
    let kind = object.text("type");
    kind.and_then(|kind| call_kind(kind.strip_suffix("_output")?)).unwrap_or_default()
}

/// Returns the result as the result of a call of this kind; `None` if it cannot be one.
pub(super) fn with_result_kind(mut object: RawObject<'_>, kind: ToolCallKind) -> Option<String> {
    let id = quoted(&result_id(&object, result_kind(&object)));
    // An id of the item begins as its type requires, and the type changes.
    object.remove("id");
    let (kind, field) = match kind {
        ToolCallKind::Function => ("function_call_output", "call_id"),
        ToolCallKind::Custom => ("custom_tool_call_output", "call_id"),
        // The schema has no `call_id`: the field `id` is the id of the call.
        ToolCallKind::LocalShell => ("local_shell_call_output", "id"),
        _ => return None,
    };
    if field == "id" {
        object.remove("call_id");
    } else if kind == "custom_tool_call_output" {
        // The schema has no field `status`.
        object.remove("status");
    }
    object.set("type", quoted(kind));
    object.set(field, id);
    Some(object.write())
}

/// Returns the call that this item is, with repaired arguments.
fn call(
    object: &mut RawObject<'_>,
    kind: ToolCallKind,
    checked: &mut CheckedMessage<'_>,
) -> Option<ToolCallPart> {
    let id = id_in(object, "call_id");
    let field = match kind {
        ToolCallKind::Function => "arguments",
        ToolCallKind::Custom => "input",
        _ => {
            let name = object.text("type").unwrap_or_default().into_owned();
            let action = object.get("action").unwrap_or_default().to_owned();
            return Some(ToolCallPart { kind, ..ToolCallPart::new(id, name, action) });
        }
    };
    let name = nonempty_text(object, "name")?;
    // What the client of OpenAI reads from the arguments: the API does not know the field.
    if object.has("parsed_arguments") {
        object.remove("parsed_arguments");
        checked.note_repaired(FaultKind::MalformedCall, Some(&id));
    }
    let accepted = MessageForm::OpenaiResponses.replacement_name(&name);
    if let Some(accepted) = accepted.filter(|_| kind == ToolCallKind::Function) {
        object.set("name", quoted(&accepted));
        checked.note_repaired(FaultKind::RefusedName, Some(&id));
    }
    if let Some(text) = as_text(object.get(field)) {
        object.set(field, text);
        checked.note_repaired(FaultKind::MistypedArguments, Some(&id));
    }
    let arguments = object.text(field)?.into_owned();
    Some(ToolCallPart { kind, ..ToolCallPart::new(id, name, arguments) })
}

/// Fields by which the type of an input content block without one is inferred.
const INPUTS: BlockTypes = BlockTypes {
    fields: &[("text", "input_text"), ("image_url", "input_image"), ("file_data", "input_file")],
    text: "input_text",
    refused_texts: &["text", "output_text"],
    images: Some(ImageForm::Responses),
};

/// Fields by which the type of an output content block without one is inferred.
const OUTPUTS: BlockTypes = BlockTypes {
    fields: &[("text", "output_text"), ("refusal", "refusal")],
    text: "output_text",
    refused_texts: &["text", "input_text"],
    images: None,
};

/// Returns whether this is a block of an image or a file, which an answer cannot have.
fn is_file(block: &RawObject<'_>) -> bool {
    block.text("type").is_some_and(|kind| matches!(&*kind, "input_image" | "input_file"))
}

fn message<'a>(mut checked: CheckedMessage<'a>, mut object: RawObject<'_>) -> CheckedMessage<'a> {
    checked.role = match object.text("role").as_deref() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("system" | "developer") => MessageRole::Other,
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    let types = if checked.role == MessageRole::Assistant { &OUTPUTS } else { &INPUTS };
    if checked.role == MessageRole::Assistant
        && move_user_blocks(&mut object, &mut checked, &INPUTS, OUTPUTS.text, is_file)
    {
        checked.text = Cow::Owned(object.write());
    }
    let kept = match content(&object, "content") {
        ContentField::Text(_) => return checked,
        ContentField::Nothing => return checked.into_unusable(FaultKind::EmptyMessage),
        ContentField::Other(json) => {
            repair_blocks(&[json], types, |_| false, &mut checked.problems)
        }
        ContentField::Blocks(blocks) => {
            repair_blocks(&blocks, types, is_openai_block, &mut checked.problems)
        }
    };
    let Some(kept) = kept else { return checked };
    if kept.is_empty() {
        return checked.into_unusable(FaultKind::EmptyMessage);
    }
    object.set("content", written_list(&kept));
    checked.text = Cow::Owned(object.write());
    checked
}
