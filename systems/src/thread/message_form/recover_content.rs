//! Recovers blocks that lost the field with their type, and what invalid blocks hold.

use super::blocks::replace_blocks;
use super::held_content::holds_content;
use super::image_block::ImageForm;
use super::{CheckedMessage, is_block, is_typed, typed, typed_text};
use crate::thread::fault::{FaultKind, Remedy};
use crate::thread::message_form::MessageProblem;
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};

/// Returns the text to keep of an invalid content block: its text, or its JSON if it has other
/// content. `None` if it has no content, or is thinking or a call: an object with arguments and no
/// result.
pub(super) fn kept_text(json: &str) -> Option<String> {
    const RESULTS: [&str; 6] = ["content", "output", "result", "response", "value", "error"];
    if let Some(said) = text(json) {
        return Some(said.into_owned()).filter(|said| !said.trim().is_empty());
    }
    if let Some(block) = RawObject::parse(json) {
        if is_thinking(&block) {
            return None;
        }
        if let Some(said) = block.text("text").filter(|said| !said.trim().is_empty()) {
            return Some(said.into_owned());
        }
        let has = |names: &[&str]| names.iter().any(|name| block.get(name).is_some());
        if has(&["input", "arguments", "args"]) && !has(&RESULTS) {
            return None;
        }
    } else {
        list(json)?;
    }
    holds_content(json).then(|| json.to_owned())
}

/// Returns whether this block is thinking of another API than Mistral's, in which it is a list of
/// blocks.
fn is_thinking(block: &RawObject<'_>) -> bool {
    match block.text("type").as_deref() {
        Some("thinking") => block.list("thinking").is_none(),
        Some("redacted_thinking" | "reasoning") => true,
        _ => false,
    }
}

/// Returns whether a message of an API of OpenAI can have this block: it is no thinking.
pub(super) fn is_openai_block(json: &str) -> bool {
    RawObject::parse(json).is_some_and(|block| is_typed(&block) && !is_thinking(&block))
}

/// Returns the blocks of a result. Blocks of other types than `accepted` are in a form that the
/// provider accepts, or texts with their JSON. `None` if all are accepted.
pub(super) fn repair_result_blocks(
    blocks: &[&str],
    types: &BlockTypes,
    accepted: &[&str],
) -> Option<Vec<String>> {
    replace_blocks(blocks, |json| {
        let converted = types.with_accepted_type(json);
        converted.or_else(|| {
            let block = RawObject::parse(json);
            let kind = block.as_ref().and_then(|block| block.text("type")).unwrap_or_default();
            (!accepted.contains(&&*kind)).then(|| typed_text(types.text, json))
        })
    })
}

/// Moves the blocks for which `is_moved` returns true from a message to the blocks of a message of
/// the user, which alone can contain them, and leaves a text of this type in their place. Returns
/// whether there were any.
pub(super) fn move_user_blocks(
    object: &mut RawObject<'_>,
    checked: &mut CheckedMessage<'_>,
    types: &BlockTypes,
    text_type: &str,
    is_moved: fn(&RawObject<'_>) -> bool,
) -> bool {
    let blocks = object.list("content").unwrap_or_default();
    let kept = replace_blocks(&blocks, |json| {
        let converted = types.with_accepted_type(json);
        let block = converted.as_deref().unwrap_or(json);
        RawObject::parse(block).filter(is_moved)?;
        checked.user_blocks.push(block.to_owned());
        checked.note_repaired(FaultKind::MalformedBlock, None);
        Some(typed_text(text_type, "This content is in a message of the user below."))
    });
    let Some(kept) = kept else { return false };
    object.set("content", written_list(&kept));
    true
}

/// The types of blocks without a type, by a field that only they have; the type of text blocks; the
/// types that text blocks have elsewhere and that the provider refuses here; and the form of
/// images, if images of other APIs are converted.
pub(super) struct BlockTypes {
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) text: &'static str,
    pub(super) refused_texts: &'static [&'static str],
    pub(super) images: Option<ImageForm>,
}

impl BlockTypes {
    /// Returns the text or image block with the type that the provider accepts here; `None` if this
    /// is not a text or an image with a refused type.
    pub(super) fn with_accepted_type(&self, json: &str) -> Option<String> {
        let mut block = RawObject::parse(json)?;
        let kind = block.text("type")?.into_owned();
        if kind == "output_text" && self.text == kind && block.has("parsed") {
            // What the client of OpenAI reads from the text: the API does not know the field.
            block.remove("parsed");
            return Some(block.write());
        }
        if block.text("text").is_none() || !self.refused_texts.contains(&kind.as_str()) {
            return self.images?.converted(&block);
        }
        block.set("type", quoted(self.text));
        if kind == "output_text" {
            // Only a text of an answer of the Responses API has these fields.
            for name in ["annotations", "logprobs", "parsed"] {
                block.remove(name);
            }
        }
        Some(block.write())
    }
}

/// Returns the content blocks of a message with the invalid ones (by `is_valid`) repaired, or left
/// out if they have no content. `None` if all are valid.
pub(super) fn repair_blocks(
    blocks: &[&str],
    types: &BlockTypes,
    is_valid: fn(&str) -> bool,
    problems: &mut Vec<MessageProblem>,
) -> Option<Vec<String>> {
    if blocks.iter().all(|json| is_valid(json) && types.with_accepted_type(json).is_none()) {
        return None;
    }
    let mut kept = Vec::with_capacity(blocks.len());
    for json in blocks {
        if let Some(json) = types.with_accepted_type(json) {
            problems.push(MessageProblem::new(FaultKind::MalformedBlock, None, Remedy::Changed));
            kept.push(json);
            continue;
        }
        if is_valid(json) {
            kept.push((*json).to_owned());
            continue;
        }
        let repaired = typed(json, types.fields).filter(|json| is_block(json)).or_else(|| {
            let said = kept_text(json)?;
            Some(typed_text(types.text, &said))
        });
        let remedy = if repaired.is_some() { Remedy::Changed } else { Remedy::Removed };
        problems.push(MessageProblem::new(FaultKind::MalformedBlock, None, remedy));
        kept.extend(repaired);
    }
    Some(kept)
}
