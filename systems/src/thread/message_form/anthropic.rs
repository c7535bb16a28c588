//! Anthropic messages: calls and results are content blocks.

use super::ServerToolHalf;
use super::blocks::{
    NormalizedBlocks, put_blocks, replace_blocks, split, trimmed_end, without_blocks,
};
use super::cache_marks::CACHE_MARK;
use super::held_content::holds_content;
use super::image_block::ImageForm;
use super::recover_content::{BlockTypes, move_user_blocks, repair_result_blocks};
use super::{
    ARGUMENTS, CheckedMessage, ContentField, FAILED, MessageForm, MessageProblem, MessageRole,
    RESULTS, ToolCallPart, ToolResultPart, adopt, adopt_id, as_object, content, has_failed, id_in,
    is_blank, is_typed, nonempty_text, own_id, typed, typed_text,
};
use crate::thread::fault::{FaultKind, Remedy};
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn check_message<'a>(
    text: &'a str,
    object: RawObject<'_>,
    last: bool,
) -> CheckedMessage<'a> {
    let is_system = object.text("role").as_deref() == Some("system");
    let fields = if is_system { &MESSAGE_FIELDS[..] } else { &MESSAGE_FIELDS[..3] };
    let Some(whole) = without_other_fields(&object, fields) else {
        return check_turn(text, object, last);
    };
    let id = own_id(&object);
    let Some(object) = RawObject::parse(&whole) else { return check_turn(text, object, last) };
    let mut checked = check_turn(&whole, object, last);
    if checked.is_unusable {
        // The other fields may have the content of the message.
        return CheckedMessage { text: Cow::Borrowed(text), id, ..checked };
    }
    checked.note_repaired(FaultKind::MalformedBlock, None);
    CheckedMessage { text: Cow::Owned(checked.text.into_owned()), id, ..checked }
}

/// The fields of a message, and the calls of OpenAI, which become blocks. Only instructions have
/// the last two.
const MESSAGE_FIELDS: [&str; 5] = ["role", "content", "tool_calls", "clear_at", "output_config"];

/// Returns the object without fields other than these, because the API refuses them: "Extra inputs
/// are not permitted". `None` if it has no others.
fn without_other_fields(object: &RawObject<'_>, fields: &[&str]) -> Option<String> {
    if object.names().iter().all(|name| fields.contains(name)) {
        return None;
    }
    let mut object = object.clone();
    object.keep(fields);
    Some(object.write())
}

fn check_turn<'a>(text: &'a str, mut object: RawObject<'_>, last: bool) -> CheckedMessage<'a> {
    let mut checked = CheckedMessage::new(text, MessageRole::Other, own_id(&object));
    checked.role = match object.text("role").as_deref() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("system") => MessageRole::Other,
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    let mut changed = fold_tool_calls(&mut object, &mut checked);
    if checked.role == MessageRole::Assistant {
        changed |= move_user_blocks(&mut object, &mut checked, &ACCEPTED, "text", is_for_user);
    }
    match content(&object, "content") {
        ContentField::Text(said) => {
            // Only at the end of a history may an answer be without text: it may be unfinished.
            checked.unwritten = last && checked.role == MessageRole::Assistant;
            checked.unwritten &= said.trim().is_empty();
            if said.trim().is_empty() && !checked.unwritten {
                return checked.into_unusable(FaultKind::EmptyMessage);
            }
        }
        // Instructions may only change the configuration of the output.
        ContentField::Nothing if configures(&object) => return checked,
        ContentField::Nothing => return checked.into_unusable(FaultKind::EmptyMessage),
        ContentField::Blocks(_) | ContentField::Other(_) => {
            let given = object.get("content").unwrap_or_default();
            let blocks = list(given).unwrap_or_else(|| vec![given]);
            let changed = changed || list(given).is_none();
            let mut tidied = NormalizedBlocks::new();
            for block in blocks {
                tidy_block(block, &mut checked, &mut tidied);
            }
            return tidied.finish(checked, object, MessageForm::Anthropic, changed);
        }
    }
    if changed {
        checked.text = Cow::Owned(object.write());
    }
    checked
}

/// Returns whether instructions change the configuration of the output.
fn configures(object: &RawObject<'_>) -> bool {
    object.object("output_config").is_some_and(|config| !config.names().is_empty())
}

/// Converts the calls in OpenAI's field `tool_calls` to blocks. Returns whether the field existed.
fn fold_tool_calls(object: &mut RawObject<'_>, checked: &mut CheckedMessage<'_>) -> bool {
    if !object.has("tool_calls") {
        return false;
    }
    super::openai_chat::list_calls(object);
    let entries: Vec<String> =
        object.list("tool_calls").unwrap_or_default().into_iter().map(str::to_owned).collect();
    object.remove("tool_calls");
    let mut blocks = content_blocks(object);
    let ids: HashSet<String> = blocks
        .iter()
        .filter_map(|block| RawObject::parse(block).filter(|block| is_a(block, "tool_use")))
        .map(|block| id_in(&block, "id"))
        .collect();
    let before = blocks.len();
    for entry in &entries {
        let Some((call, _)) = super::openai_chat::call(entry) else {
            checked.note_removed(FaultKind::MalformedCall, None);
            continue;
        };
        if ids.contains(&call.id) {
            checked.note_removed(FaultKind::MixedForms, Some(&call.id));
            continue;
        }
        let arguments = quoted(&call.arguments);
        let input = as_object(Some(&arguments)).unwrap_or(arguments);
        blocks.push(format!(
            r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
            quoted(&call.id),
            quoted(&call.name)
        ));
        checked.note_repaired(FaultKind::MixedForms, Some(&call.id));
    }
    if blocks.len() > before {
        object.set("content", written_list(&blocks));
    }
    if entries.is_empty() {
        checked.note_removed(FaultKind::EmptyToolCalls, None);
    }
    true
}

/// Returns the blocks in the content of a message or a result. A text is one block, or none if it
/// is blank.
fn content_blocks(object: &RawObject<'_>) -> Vec<String> {
    match content(object, "content") {
        ContentField::Text(said) if !said.trim().is_empty() => vec![text_block(&said)],
        ContentField::Blocks(blocks) => blocks.into_iter().map(str::to_owned).collect(),
        ContentField::Text(_) | ContentField::Nothing | ContentField::Other(_) => Vec::new(),
    }
}

fn is_a(block: &RawObject<'_>, kind: &str) -> bool {
    block.text("type").is_some_and(|found| found == kind)
}

/// Returns whether a block of thinking lacks what proves its origin. Other providers give an empty
/// signature, which Anthropic refuses.
fn is_unsigned(block: &RawObject<'_>, kind: &str) -> bool {
    if kind == "redacted_thinking" {
        return nonempty_text(block, "data").is_none();
    }
    nonempty_text(block, "signature").is_none() || block.text("thinking").is_none()
}

/// The types of texts and images of other APIs, which Anthropic refuses.
const ACCEPTED: BlockTypes = BlockTypes {
    fields: &[],
    text: "text",
    refused_texts: &["input_text", "output_text"],
    images: Some(ImageForm::Anthropic),
};

/// Fields by which the type of a block without one is inferred, with the type.
const TYPES: [(&str, &str); 4] = [
    ("tool_use_id", "tool_result"),
    ("input", "tool_use"),
    ("thinking", "thinking"),
    ("text", "text"),
];

/// Types of blocks of other APIs and of MCP.
const REFUSED_TYPES: [&str; 12] = [
    "audio", "file", "image_url", "input_audio", "input_file", "input_image", "json", "refusal",
    "resource", "resource_link", "video", "video_url",
];

/// The types of blocks that a result can contain.
const RESULT_TYPES: [&str; 6] =
    ["text", "image", "document", "search_result", "tool_reference", "browser_state"];

/// All fields of blocks of these types. A block without the second one is not changed.
const FIELDS: [(&str, &[&str]); 6] = [
    ("text", &["type", "text", "citations", CACHE_MARK]),
    ("thinking", &["type", "thinking", "signature"]),
    ("redacted_thinking", &["type", "data"]),
    ("tool_use", &["type", "name", "id", "input", "caller", "toolset_name", CACHE_MARK]),
    ("image", &["type", "source", "transformations", CACHE_MARK]),
    ("document", &["type", "source", "title", "context", "citations", CACHE_MARK]),
];

/// Returns the block without the fields that clients and other APIs add to it, and that the API
/// refuses; `None` if it has none of them.
fn without_refused_fields(json: &str) -> Option<String> {
    let mut block = RawObject::parse(json)?;
    let (kind, fields) = FIELDS.iter().find(|(kind, _)| is_a(&block, kind))?;
    block.get(fields.get(1)?)?;
    let mut is_moved = false;
    if *kind == "tool_use" {
        is_moved = adopt_id(&mut block, "id");
        is_moved |= adopt(&mut block, &ARGUMENTS, "input");
    }
    without_other_fields(&block, fields).or_else(|| is_moved.then(|| block.write()))
}

/// Returns whether only a message of the user can contain this block.
fn is_for_user(block: &RawObject<'_>) -> bool {
    (is_a(block, "document") || is_a(block, "image")) && !is_refused_file(block)
}

/// Returns whether this is a block of an image or a document that has none, or one of a type that
/// the API refuses.
fn is_refused_file(block: &RawObject<'_>) -> bool {
    let types: &[&str] = match block.text("type").as_deref() {
        Some("image") => &["image/jpeg", "image/png", "image/gif", "image/webp"],
        Some("document") => &["application/pdf"],
        _ => return false,
    };
    let Some(source) = block.object("source") else { return true };
    let is_type = |kind: Cow<'_, str>| types.contains(&&*kind);
    source.text("data").is_some_and(|data| data.is_empty())
        || source.text("type").as_deref() == Some("base64")
            && !source.text("media_type").is_some_and(is_type)
}

/// Returns the id of a use of a server tool that the API refuses, in the use or in its result, and
/// the block with an accepted id. One id always gets the same other one.
fn with_server_id(block: &RawObject<'_>) -> Option<(String, String)> {
    const BEGIN: &str = "srvtoolu_";
    let kind = block.text("type")?;
    let field = match &*kind {
        "server_tool_use" => "id",
        "mcp_tool_result" => return None,
        kind if kind.ends_with("_tool_result") => "tool_use_id",
        _ => return None,
    };
    let id = Some(id_in(block, field)).filter(|id| !id.is_empty())?;
    let is_plain = |next: char| next.is_ascii_alphanumeric() || next == '_';
    let rest = id.strip_prefix(BEGIN);
    if rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain)) {
        return None;
    }
    let plain = |next: char| if is_plain(next) { next } else { '_' };
    let rest = rest.unwrap_or(&id);
    let rest: String = if rest.is_empty() { "_" } else { rest }.chars().map(plain).collect();
    let mut block = block.clone();
    block.set(field, quoted(&format!("{BEGIN}{rest}")));
    let renamed = block.write();
    Some((id, renamed))
}

fn text_block(said: &str) -> String {
    typed_text("text", said)
}

/// Adds a block to `tidied` as far as it is valid, and its call or result to `checked`.
fn tidy_block(json: &str, checked: &mut CheckedMessage<'_>, tidied: &mut NormalizedBlocks) {
    let repaired = typed(json, &TYPES)
        .or_else(|| ACCEPTED.with_accepted_type(json))
        .or_else(|| without_refused_fields(json));
    if let Some(json) = repaired {
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return tidy_block(&json, checked, tidied);
    }
    let Some(mut block) = RawObject::parse(json).filter(is_typed) else {
        return tidied.keep_text(json, text_block);
    };
    if let Some((id, renamed)) = with_server_id(&block) {
        let renaming = MessageProblem::new(FaultKind::RefusedId, Some(&id), Remedy::Renamed);
        checked.problems.push(renaming);
        tidied.changed = true;
        return tidy_block(&renamed, checked, tidied);
    }
    let kind = block.text("type").unwrap_or_default().into_owned();
    match kind.as_str() {
        "text" if is_blank(&block) => tidied.leave_out(FaultKind::EmptyMessage, None),
        "thinking" | "redacted_thinking" if checked.role != MessageRole::Assistant => {
            tidied.leave_out(FaultKind::MalformedBlock, None);
        }
        "thinking" | "redacted_thinking" if is_unsigned(&block, &kind) => {
            tidied.leave_out(FaultKind::UnsignedThinking, None);
        }
        "reasoning" => tidied.leave_out(FaultKind::UnsignedThinking, None),
        "image" | "document" if is_refused_file(&block) => tidied.keep_text(json, text_block),
        kind if REFUSED_TYPES.contains(&kind) => tidied.keep_text(json, text_block),
        "tool_use" => {
            let id = id_in(&block, "id");
            let name =
                nonempty_text(&block, "name").filter(|_| checked.role == MessageRole::Assistant);
            let Some(name) = name else {
                return tidied.leave_out(FaultKind::MalformedCall, Some(&id));
            };
            if let Some(accepted) = MessageForm::Anthropic.replacement_name(&name) {
                block.set("name", quoted(&accepted));
                checked.note_repaired(FaultKind::RefusedName, Some(&id));
                tidied.changed = true;
                return tidy_block(&block.write(), checked, tidied);
            }
            let mistyped = as_object(block.get("input"));
            if let Some(input) = mistyped {
                block.set("input", input);
                tidied.put(block.write(), FaultKind::MistypedArguments, Some(&id));
            } else {
                tidied.keep(json);
            }
            let arguments = block.get("input").unwrap_or_default().to_owned();
            checked.calls.push(ToolCallPart::new(id, name, arguments));
        }
        "tool_result" => {
            let repaired = tidy_result(&mut block);
            let id = id_in(&block, "tool_use_id");
            let answer = ToolResultPart::new(id.clone(), block.get("content").unwrap_or_default());
            let calls_before = checked.calls.len();
            checked.answers.push(ToolResultPart { at: tidied.kept.len(), calls_before, ..answer });
            match repaired {
                Some(fault) => tidied.put(block.write(), fault, Some(&id)),
                None => tidied.keep(json),
            }
        }
        _ => tidied.keep(json),
    }
}

/// Marks a result as an error if its status, which it has in other APIs, says so.
fn mark_failure(block: &mut RawObject<'_>) {
    let is_failure = block.text("status").is_some_and(|status| has_failed(&status) == Some(true));
    if is_failure && block.get("is_error").is_none() {
        block.set("is_error", "true".to_owned());
    }
}

/// Removes the fields of a result that the API refuses. Some fields only label it, and so do
/// numbers, truth values and words, unless their field is for content; anything else becomes a text
/// in it, but what repeats its content or is the input of its call. Returns whether there were any.
fn fold_other_fields(block: &mut RawObject<'_>) -> bool {
    const FIELDS: [&str; 6] =
        ["type", "tool_use_id", "content", "is_error", "toolset_name", CACHE_MARK];
    const LABELS: [&str; 6] = ["id", "index", "name", "status", "toolName", "tool_name"];
    const SAID: [&str; 4] = ["error", "stderr", "stdout", "value"];
    if block.names().iter().all(|name| FIELDS.contains(name)) {
        return false;
    }
    let is_word = |said: Cow<'_, str>| said.bytes().all(|byte| byte.is_ascii_graphic());
    let is_label = |json: &str| text(json).map_or(!json.starts_with(['[', '{']), is_word);
    let given = block.get("content");
    let is_said = |name: &str, json: &str| {
        !FIELDS.contains(&name)
            && !LABELS.contains(&name)
            && !ARGUMENTS.contains(&name)
            && (RESULTS.contains(&name) || SAID.contains(&name) || !is_label(json))
            && given != Some(json)
            && holds_content(json)
    };
    let others = block.fields().filter(|(name, json)| is_said(name, json));
    let others: Vec<String> =
        others.map(|(name, json)| format!("{}:{json}", quoted(name))).collect();
    block.keep(&FIELDS);
    if others.is_empty() {
        return true;
    }
    let mut blocks = content_blocks(block);
    blocks.push(text_block(&format!("{{{}}}", others.join(","))));
    block.set("content", written_list(&blocks));
    true
}

/// Returns a block of a result without the fields that the API refuses, or its text if it is an
/// image or a document of a refused type; `None` if nothing changes.
fn tidied_inner(json: &str) -> Option<String> {
    let converted = ACCEPTED.with_accepted_type(json);
    let given = converted.as_deref().unwrap_or(json);
    let whole = without_refused_fields(given);
    let given = whole.as_deref().unwrap_or(given);
    if RawObject::parse(given).is_some_and(|block| is_refused_file(&block)) {
        return Some(text_block(given));
    }
    whole.or(converted)
}

/// Repairs a result. Returns the fault; `None` if it is valid.
fn tidy_result(block: &mut RawObject<'_>) -> Option<FaultKind> {
    let mut is_changed = adopt_id(block, "tool_use_id");
    is_changed |= adopt(block, &["id"], "tool_use_id");
    is_changed |= adopt(block, &RESULTS, "content");
    is_changed |= adopt(block, &["isError"], "is_error");
    mark_failure(block);
    let mut wrong = is_changed.then_some(FaultKind::MalformedResult);
    let is_empty = block.list("content").is_some_and(|blocks| blocks.is_empty());
    let is_given = block.has("content") && !is_empty;
    if is_given && super::repair_result(block, "content") {
        wrong = Some(FaultKind::MalformedResult);
    }
    if fold_other_fields(block) {
        wrong = Some(FaultKind::MalformedResult);
    }
    let blocks = block.list("content").unwrap_or_default();
    if let Some(blocks) = replace_blocks(&blocks, tidied_inner) {
        block.set("content", written_list(&blocks));
        wrong = Some(FaultKind::MalformedResult);
    }
    let blocks = block.list("content").unwrap_or_default();
    if let Some(blocks) = repair_result_blocks(&blocks, &ACCEPTED, &RESULT_TYPES) {
        block.set("content", written_list(&blocks));
        wrong = Some(FaultKind::MalformedResult);
    }
    // A text block must not be blank; a result without content is valid.
    if let ContentField::Blocks(blocks) = content(block, "content") {
        let says = |json: &&str| {
            !RawObject::parse(json).is_some_and(|block| is_a(&block, "text") && is_blank(&block))
        };
        let kept: Vec<String> = blocks.iter().copied().filter(says).map(str::to_owned).collect();
        if kept.len() < blocks.len() {
            if kept.is_empty() {
                block.remove("content");
            } else {
                block.set("content", written_list(&kept));
            }
            wrong = Some(FaultKind::EmptyMessage);
        }
    }
    if block.get("is_error") != Some("true") {
        return wrong;
    }
    let is_text = |json: &str| RawObject::parse(json).is_some_and(|block| is_a(&block, "text"));
    let content = match content(block, "content") {
        ContentField::Text(said) if !said.trim().is_empty() => return wrong,
        ContentField::Blocks(blocks) if blocks.iter().all(|json| is_text(json)) => return wrong,
        ContentField::Blocks(blocks) => {
            let said = text_block(FAILED);
            let blocks: Vec<&str> = std::iter::once(said.as_str()).chain(blocks).collect();
            let blocks = written_list(&blocks);
            block.remove("is_error");
            block.set("content", blocks);
            return Some(FaultKind::ErrorNotText);
        }
        ContentField::Text(_) | ContentField::Nothing | ContentField::Other(_) => quoted(FAILED),
    };
    block.set("content", content);
    Some(FaultKind::MalformedResult)
}

pub(super) fn trimmed(object: RawObject<'_>) -> Option<String> {
    trimmed_end(object, |block| is_a(block, "text"))
}

pub(super) fn without_calls(object: RawObject<'_>, ids: &[&str]) -> Option<String> {
    without_blocks(object, MessageForm::Anthropic, |block| {
        is_a(&block, "tool_use") && ids.contains(&id_in(&block, "id").as_str())
    })
}

/// Returns the id of the use if this block is the use of a server tool or of an MCP connector.
fn server_use(block: &RawObject<'_>) -> Option<String> {
    let kind = block.text("type")?;
    matches!(&*kind, "server_tool_use" | "mcp_tool_use").then(|| id_in(block, "id"))
}

/// Returns the id of the use if this block is the result of one.
fn server_result(block: &RawObject<'_>) -> Option<String> {
    block.text("type")?.ends_with("_tool_result").then(|| id_in(block, "tool_use_id"))
}

/// Returns the uses and results of server tools in a message, in order.
pub(super) fn server_tool_halves(text: &str) -> Vec<ServerToolHalf> {
    if !(text.contains("_tool_use") || text.contains("_tool_result")) {
        return Vec::new();
    }
    let object = RawObject::parse(text);
    let blocks = object.as_ref().and_then(|object| object.list("content")).unwrap_or_default();
    let half = |json: &str| {
        let block = RawObject::parse(json)?;
        server_use(&block)
            .map(ServerToolHalf::Use)
            .or_else(|| server_result(&block).map(ServerToolHalf::Result))
    };
    blocks.into_iter().filter_map(half).collect()
}

/// A block to remove from a message: its position, the fault, and the id of the use.
type ServerToolCut = (usize, FaultKind, String);

/// Returns the index of the last answer if its server tools may still wait for their results: no
/// user message after it has anything but the results of its own calls.
fn waiting_answer(checked: &[CheckedMessage<'_>]) -> Option<usize> {
    let last =
        checked.iter().rposition(|one| !one.is_unusable && one.role == MessageRole::Assistant)?;
    let mut open: HashSet<&str> = checked[last].calls.iter().map(|call| call.id.as_str()).collect();
    let is_turn = |one: &&CheckedMessage<'_>| !one.is_unusable && one.role == MessageRole::User;
    let mut turns = checked[last + 1..].iter().filter(is_turn);
    let is_waiting = turns.all(|one| {
        !one.answers.is_empty()
            && one.answers.iter().all(|answer| open.remove(answer.id.as_str()))
            && split(&one.text, MessageForm::Anthropic, &one.answers).others.is_empty()
    });
    is_waiting.then_some(last)
}

/// Removes results of server tools without a preceding use, and uses without a result, unless the
/// use still waits for it.
pub(super) fn pair_server_tools(checked: &mut [CheckedMessage<'_>]) {
    let last = waiting_answer(checked);
    // The message and position of each use that has no result so far.
    let mut open: HashMap<String, (usize, usize)> = HashMap::new();
    let mut cuts: BTreeMap<usize, Vec<ServerToolCut>> = BTreeMap::new();
    for (index, one) in checked.iter().enumerate() {
        if one.is_unusable || !(one.text.contains("_tool_use") || one.text.contains("_tool_result"))
        {
            continue;
        }
        let is_answer = one.role == MessageRole::Assistant;
        let object = RawObject::parse(&one.text);
        let blocks = object.as_ref().and_then(|object| object.list("content")).unwrap_or_default();
        for (at, json) in blocks.into_iter().enumerate() {
            let Some(block) = RawObject::parse(json) else { continue };
            if let Some(id) = server_use(&block) {
                if let Some((before, place)) = open.insert(id.clone(), (index, at)) {
                    let cut = (place, FaultKind::ServerUseWithoutResult, id);
                    cuts.entry(before).or_default().push(cut);
                }
            } else if let Some(id) = server_result(&block)
                && (!is_answer || open.remove(&id).is_none())
            {
                let cut = (at, FaultKind::ServerResultWithoutUse, id);
                cuts.entry(index).or_default().push(cut);
            }
        }
    }
    for (id, (index, at)) in open {
        if Some(index) != last {
            let cut = (at, FaultKind::ServerUseWithoutResult, id);
            cuts.entry(index).or_default().push(cut);
        }
    }
    for (index, mut cuts) in cuts {
        cuts.sort();
        cut_blocks(&mut checked[index], &cuts);
    }
}

fn cut_blocks(checked: &mut CheckedMessage<'_>, cuts: &[ServerToolCut]) {
    let Some(object) = RawObject::parse(&checked.text) else { return };
    let is_cut = |at: usize| cuts.iter().any(|(place, ..)| *place == at);
    let blocks = object.list("content").unwrap_or_default().into_iter().enumerate();
    let kept = blocks.filter(|(at, _)| !is_cut(*at)).map(|(_, json)| json.to_owned()).collect();
    let text = put_blocks(object, MessageForm::Anthropic, kept);
    for answer in &mut checked.answers {
        answer.at -= cuts.iter().filter(|(place, ..)| *place < answer.at).count();
    }
    for (_, fault, id) in cuts {
        checked.note_removed(*fault, Some(id));
    }
    checked.is_unusable = text.is_none();
    if let Some(text) = text {
        checked.text = Cow::Owned(text);
    }
}
