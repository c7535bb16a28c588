//! Bedrock's Converse API: a content block is an object with one field, whose name is its type.

use super::blocks::{NormalizedBlocks, trimmed_end, trimmed_text, without_blocks};
use super::image_block::shown_type;
use super::{
    ARGUMENTS, CheckedMessage, ContentField, FAILED, MessageForm, MessageRole, RESULTS,
    ToolCallPart, ToolResultPart, adopt, adopt_id, as_object, content, has_failed, id_in, is_blank,
    nonempty_text, own_id,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};
use std::borrow::Cow;

/// The type fields of content blocks other than calls and results.
pub(super) const BLOCKS: [&str; 12] = [
    "text", "image", "document", "video", "audio", "guardContent", "cachePoint",
    "reasoningContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval",
];

pub(super) fn check_message<'a>(text: &'a str, object: RawObject<'_>) -> CheckedMessage<'a> {
    let mut checked = CheckedMessage::new(text, MessageRole::Other, own_id(&object));
    checked.role = match object.text("role").as_deref() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("system") => MessageRole::Other,
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    let blocks: Vec<String> = match content(&object, "content") {
        ContentField::Text(said) => {
            checked.note_repaired(FaultKind::MalformedBlock, None);
            vec![text_block(&said)]
        }
        ContentField::Nothing => return checked.into_unusable(FaultKind::EmptyMessage),
        ContentField::Other(json) => {
            checked.note_repaired(FaultKind::MalformedBlock, None);
            vec![json.to_owned()]
        }
        ContentField::Blocks(blocks) => blocks.into_iter().map(str::to_owned).collect(),
    };
    let mut tidied = NormalizedBlocks::new();
    for block in &blocks {
        tidy_block(block, &mut checked, &mut tidied);
    }
    let changed = !checked.problems.is_empty();
    tidied.finish(checked, object, MessageForm::Bedrock, changed)
}

pub(super) fn text_block(said: &str) -> String {
    format!(r#"{{"text":{}}}"#, quoted(said))
}

/// Splits a block with other fields beside its type field into a block with only the type field and
/// one with the rest. `None` for other blocks.
fn members(block: &RawObject<'_>) -> Option<[String; 2]> {
    let mut names = block.names();
    // A repeated name counts once: otherwise a block with only that name would be split endlessly.
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let is_member =
        |name: &&&str| ["toolUse", "toolResult"].contains(*name) || BLOCKS.contains(*name);
    let member = names.iter().find(is_member).filter(|_| names.len() > 1)?;
    let part = |is_kept: &dyn Fn(&str) -> bool| {
        let kept = names.iter().filter(|name| is_kept(name));
        let kept =
            kept.map(|name| format!("{}:{}", quoted(name), block.get(name).unwrap_or("null")));
        format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
    };
    Some([part(&|name| name == *member), part(&|name| name != *member)])
}

/// Gives the id of a use or a result, and its content, the names that they have in this API.
/// Returns whether any had another name.
fn adopt_fields(block: &mut RawObject<'_>, names: &[&str], own: &str) -> bool {
    let mut is_moved = adopt_id(block, "toolUseId");
    is_moved |= adopt(block, &["id"], "toolUseId");
    is_moved |= adopt(block, names, own);
    is_moved
}

/// Adds a block to `tidied` as far as it is valid, and its call or result to `checked`.
fn tidy_block(json: &str, checked: &mut CheckedMessage<'_>, tidied: &mut NormalizedBlocks) {
    let Some(mut block) = RawObject::parse(json) else {
        return tidied.keep_text(json, text_block);
    };
    if let Some(parts) = members(&block) {
        checked.note_repaired(FaultKind::MalformedBlock, None);
        tidied.changed = true;
        return parts.iter().for_each(|part| tidy_block(part, checked, tidied));
    }
    if let Some(mut used) = block.object("toolUse") {
        // Bedrock runs some tools itself: their uses need no result from outside.
        if used.has("type") {
            return tidied.keep(json);
        }
        if adopt_fields(&mut used, &ARGUMENTS, "input") {
            block.set("toolUse", used.write());
            checked.note_repaired(FaultKind::MalformedCall, None);
            return tidy_block(&block.write(), checked, tidied);
        }
        let id = id_in(&used, "toolUseId");
        let name = nonempty_text(&used, "name").filter(|_| checked.role == MessageRole::Assistant);
        let Some(name) = name else {
            return tidied.leave_out(FaultKind::MalformedCall, Some(&id));
        };
        if let Some(accepted) = MessageForm::Bedrock.replacement_name(&name) {
            used.set("name", quoted(&accepted));
            block.set("toolUse", used.write());
            checked.note_repaired(FaultKind::RefusedName, Some(&id));
            return tidy_block(&block.write(), checked, tidied);
        }
        let mistyped = as_object(used.get("input"));
        let arguments =
            mistyped.clone().unwrap_or_else(|| used.get("input").unwrap_or("").to_owned());
        if let Some(input) = mistyped {
            used.set("input", input);
            block.set("toolUse", used.write());
            tidied.put(block.write(), FaultKind::MistypedArguments, Some(&id));
        } else {
            tidied.keep(json);
        }
        checked.calls.push(ToolCallPart::new(id, name, arguments));
    } else if let Some(mut result) = block.object("toolResult") {
        if result.has("type") {
            return tidied.keep(json);
        }
        if adopt_fields(&mut result, &RESULTS, "content") {
            block.set("toolResult", result.write());
            checked.note_repaired(FaultKind::MalformedResult, None);
            return tidy_block(&block.write(), checked, tidied);
        }
        let id = id_in(&result, "toolUseId");
        let wrong = tidy_result(&mut result);
        let answer = ToolResultPart::new(id.clone(), result.get("content").unwrap_or_default());
        let calls_before = checked.calls.len();
        checked.answers.push(ToolResultPart { at: tidied.kept.len(), calls_before, ..answer });
        if let Some(fault) = wrong {
            block.set("toolResult", result.write());
            tidied.put(block.write(), fault, Some(&id));
        } else {
            tidied.keep(json);
        }
    } else if let Some(bare) = block.get("text").filter(|json| text(json).is_none()) {
        tidied.put(text_block(bare), FaultKind::MalformedBlock, None);
    } else if block.has("text") && is_blank(&block) {
        tidied.leave_out(FaultKind::EmptyMessage, None);
    } else if let Some(named) = with_accepted_name(&block) {
        tidied.put(named, FaultKind::RefusedName, None);
    } else if let Some(image) = with_accepted_format(&block) {
        tidied.put(image, FaultKind::MalformedBlock, None);
    } else if BLOCKS.iter().any(|name| block.get(name).is_some()) {
        tidied.keep(json);
    } else {
        tidied.keep_text(json, text_block);
    }
}

/// Returns a block of a document with a name that the service accepts: letters, digits, single
/// spaces, hyphens, parentheses and square brackets. `None` if nothing changes.
fn with_accepted_name(block: &RawObject<'_>) -> Option<String> {
    let mut document = block.object("document")?;
    let name = document.text("name")?.into_owned();
    let is_refused =
        |next: char| !next.is_alphanumeric() && !next.is_whitespace() && !"-()[]".contains(next);
    let accepted = name.replace(is_refused, "-");
    let accepted = accepted.split_whitespace().collect::<Vec<_>>().join(" ");
    if accepted == name {
        return None;
    }
    document.set("name", quoted(&accepted));
    let (mut block, document) = (block.clone(), document.write());
    block.set("document", document);
    Some(block.write())
}

/// Returns a block of an image with a format that the service accepts and that the data show.
/// `None` if nothing changes.
fn with_accepted_format(block: &RawObject<'_>) -> Option<String> {
    let mut image = block.object("image")?;
    let given = image.text("format")?.to_ascii_lowercase();
    let bytes = image.object("source").and_then(|source| shown_type(&source.text("bytes")?));
    let kind = bytes.unwrap_or(&given);
    let kind = kind.strip_prefix("image/").unwrap_or(kind);
    let kind = quoted(if kind == "jpg" { "jpeg" } else { kind });
    if image.get("format") == Some(kind.as_str()) {
        return None;
    }
    image.set("format", kind);
    let image = image.write();
    let mut block = block.clone();
    block.set("image", image);
    Some(block.write())
}

/// Replaces a status that the service refuses, and removes one that does not say whether the call
/// failed. Returns whether it changed.
fn repair_status(result: &mut RawObject<'_>) -> bool {
    let Some(given) = result.text("status").map(Cow::into_owned) else { return false };
    if matches!(given.as_str(), "success" | "error") {
        return false;
    }
    match has_failed(&given) {
        Some(has_failed) => {
            result.set("status", quoted(if has_failed { "error" } else { "success" }));
        }
        None => result.remove("status"),
    }
    true
}

/// Repairs a result. Returns the fault; `None` if it is valid.
fn tidy_result(result: &mut RawObject<'_>) -> Option<FaultKind> {
    const BLOCKS: [&str; 6] = ["json", "text", "image", "document", "video", "searchResult"];
    let given = result.get("content").unwrap_or("[]").to_owned();
    let is_wrong = repair_status(result) || result.get("content").is_none();
    let mut wrong = is_wrong.then_some(FaultKind::MalformedResult);
    let blocks = list(&given).unwrap_or_else(|| {
        wrong = Some(FaultKind::MalformedResult);
        vec![given.as_str()]
    });
    let mut kept: Vec<String> = Vec::new();
    for json in blocks {
        let block = RawObject::parse(json);
        let is_one = |block: &RawObject<'_>| BLOCKS.iter().any(|name| block.get(name).is_some());
        let repaired = match block.filter(is_one) {
            Some(block) if block.has("text") && block.text("text").is_none() => {
                text_block(block.get("text").unwrap_or_default())
            }
            Some(block) if block.has("text") && is_blank(&block) => {
                wrong = wrong.or(Some(FaultKind::EmptyMessage));
                continue;
            }
            Some(block) if block.has("text") && block.has("type") => {
                text_block(&block.text("text").unwrap_or_default())
            }
            Some(block) if block.has("json") && block.object("json").is_none() => {
                text_block(block.get("json").unwrap_or_default())
            }
            Some(block) => {
                let Some(image) = with_accepted_format(&block) else {
                    kept.push(json.to_owned());
                    continue;
                };
                image
            }
            None => match text(json) {
                Some(said) if said.trim().is_empty() => {
                    wrong = Some(FaultKind::MalformedResult);
                    continue;
                }
                Some(said) => text_block(&said),
                None if RawObject::parse(json).is_some() => format!(r#"{{"json":{json}}}"#),
                None => text_block(json),
            },
        };
        wrong = Some(FaultKind::MalformedResult);
        kept.push(repaired);
    }
    if kept.is_empty() && result.text("status").as_deref() == Some("error") {
        kept.push(text_block(FAILED));
        wrong = Some(FaultKind::MalformedResult);
    }
    if wrong.is_some() {
        result.set("content", written_list(&kept));
    }
    wrong
}

pub(super) fn trimmed(object: RawObject<'_>) -> Option<String> {
    trimmed_end(object, |block| block.get("text").is_some_and(|json| trimmed_text(json).is_some()))
}

pub(super) fn without_calls(object: RawObject<'_>, ids: &[&str]) -> Option<String> {
    without_blocks(object, MessageForm::Bedrock, |block| {
        let used = block.object("toolUse");
        used.is_some_and(|used| ids.contains(&id_in(&used, "toolUseId").as_str()))
    })
}
