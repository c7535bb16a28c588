//! Splits and assembles messages whose calls and results are content blocks.

use super::recover_content::kept_text;
use super::{CheckedMessage, MessageForm, MessageProblem, MessageRole, ToolResultPart};
use crate::thread::fault::{FaultKind, Remedy};
use crate::thread::raw_json::{RawObject, quoted, text, written_list};
use std::borrow::Cow;

/// Returns the name of the field with the list of blocks.
pub(super) const fn field(form: MessageForm) -> &'static str {
    match form {
        MessageForm::Gemini => "parts",
        _ => "content",
    }
}

/// A message split into results and other blocks.
pub(in crate::thread) struct SplitMessage {
    /// The results, in the order of the message's answers.
    pub(in crate::thread) results: Vec<String>,
    /// The other blocks.
    pub(in crate::thread) others: Vec<String>,
    /// Whether no other block precedes a result, or the provider allows it.
    pub(in crate::thread) results_first: bool,
}

/// Separates the results from the other blocks of a message.
pub(in crate::thread) fn split(
    text: &str,
    form: MessageForm,
    answers: &[ToolResultPart],
) -> SplitMessage {
    let mut split = SplitMessage { results: Vec::new(), others: Vec::new(), results_first: true };
    let object = RawObject::parse(text);
    let blocks = object.as_ref().and_then(|object| object.list(field(form))).unwrap_or_default();
    let mut answers = answers.iter().peekable();
    for (at, block) in blocks.into_iter().enumerate() {
        if answers.next_if(|answer| answer.at == at).is_some() {
            split.results_first &= split.others.is_empty() || form == MessageForm::Gemini;
            split.results.push(block.to_owned());
        } else {
            split.others.push(block.to_owned());
        }
    }
    split
}

/// Returns the message with these blocks instead of its own, without thinking at the end. `None` if
/// no block is left.
pub(in crate::thread) fn with_blocks(
    text: &str,
    form: MessageForm,
    blocks: &[String],
) -> Option<String> {
    put_blocks(RawObject::parse(text)?, form, blocks.to_vec())
}

/// Returns the message without the blocks that match `is_cut`, and without thinking at the end.
/// `None` if no block is left.
pub(super) fn without_blocks(
    object: RawObject<'_>,
    form: MessageForm,
    is_cut: impl Fn(RawObject<'_>) -> bool,
) -> Option<String> {
    let keep = |json: &&str| !RawObject::parse(json).is_some_and(&is_cut);
    let kept = object.list(field(form))?.into_iter().filter(keep).map(str::to_owned).collect();
    put_blocks(object, form, kept)
}

/// Returns the message with these blocks instead of its own, without thinking at the end, which the
/// provider refuses. `None` if no block is left.
pub(super) fn put_blocks(
    mut object: RawObject<'_>,
    form: MessageForm,
    mut blocks: Vec<String>,
) -> Option<String> {
    trim_thinking(&mut blocks, form);
    if blocks.is_empty() {
        return None;
    }
    object.set(field(form), written_list(&blocks));
    Some(object.write())
}

/// Returns the blocks with another in place of each for which `repaired` returns one. `None` if it
/// returns none.
pub(super) fn replace_blocks(
    blocks: &[&str],
    repaired: impl FnMut(&str) -> Option<String>,
) -> Option<Vec<String>> {
    let repaired: Vec<Option<String>> = blocks.iter().copied().map(repaired).collect();
    if repaired.iter().all(Option::is_none) {
        return None;
    }
    let blocks = repaired.into_iter().zip(blocks);
    Some(blocks.map(|(new, json)| new.unwrap_or_else(|| (*json).to_owned())).collect())
}

/// Returns a message with these blocks: of the user, or in the AI SDK of the tool.
pub(in crate::thread) fn results_message(form: MessageForm, blocks: &[String]) -> String {
    let role = if form == MessageForm::AiSdk { "tool" } else { "user" };
    format!(r#"{{"role":"{role}","{}":{}}}"#, field(form), written_list(blocks))
}

/// The blocks of a list while it is normalised, and whether anything changed.
pub(super) struct NormalizedBlocks {
    pub(super) kept: Vec<String>,
    pub(super) changed: bool,
    pub(super) problems: Vec<MessageProblem>,
}

impl NormalizedBlocks {
    pub(super) const fn new() -> Self {
        Self { kept: Vec::new(), changed: false, problems: Vec::new() }
    }

    pub(super) fn keep(&mut self, json: &str) {
        self.kept.push(json.to_owned());
    }

    /// Adds a block in place of an invalid one, with the fault that this repairs.
    pub(super) fn put(&mut self, json: String, fault: FaultKind, call: Option<&str>) {
        self.kept.push(json);
        self.changed = true;
        self.problems.push(MessageProblem::new(fault, call, Remedy::Changed));
    }

    /// Adds a block built by `text` with the content of an invalid block, or leaves it out if it
    /// has no content.
    pub(super) fn keep_text(&mut self, json: &str, text: impl FnOnce(&str) -> String) {
        match kept_text(json) {
            Some(said) => self.put(text(&said), FaultKind::MalformedBlock, None),
            None => self.leave_out(FaultKind::MalformedBlock, None),
        }
    }

    /// Records that an invalid block is removed.
    pub(super) fn leave_out(&mut self, fault: FaultKind, call: Option<&str>) {
        self.changed = true;
        self.problems.push(MessageProblem::new(fault, call, Remedy::Removed));
    }

    /// Returns the message with the blocks that are left, without thinking at the end of an answer.
    /// `changed`: whether anything other than the blocks changed.
    pub(super) fn finish<'a>(
        mut self,
        mut checked: CheckedMessage<'a>,
        mut object: RawObject<'_>,
        form: MessageForm,
        changed: bool,
    ) -> CheckedMessage<'a> {
        let mut changed = changed || self.changed;
        checked.problems.append(&mut self.problems);
        if checked.role == MessageRole::Assistant && trim_thinking(&mut self.kept, form) {
            checked.note_removed(FaultKind::TrailingThinking, None);
            changed = true;
        }
        if self.kept.is_empty() {
            return checked.into_unusable(FaultKind::EmptyMessage);
        }
        if changed {
            object.set(field(form), written_list(&self.kept));
            checked.text = Cow::Owned(object.write());
        }
        checked
    }
}

/// Removes thinking at the end of an answer. Returns whether there was any.
fn trim_thinking(blocks: &mut Vec<String>, form: MessageForm) -> bool {
    let is_thinking = |json: &String| {
        RawObject::parse(json).is_some_and(|block| match form {
            MessageForm::Anthropic => block
                .text("type")
                .is_some_and(|kind| matches!(&*kind, "thinking" | "redacted_thinking")),
            MessageForm::Bedrock => block.has("reasoningContent"),
            _ => false,
        })
    };
    let before = blocks.len();
    while blocks.last().is_some_and(is_thinking) {
        blocks.pop();
    }
    blocks.len() < before
}

/// Returns a JSON text without trailing white space; `None` if it is not a text, or has none.
pub(super) fn trimmed_text(json: &str) -> Option<String> {
    let whole = text(json)?;
    let trimmed = whole.trim_end();
    (trimmed.len() < whole.len()).then(|| quoted(trimmed))
}

/// Returns a message without the trailing white space of its content, which is a text, or of its
/// last block. `None` if nothing changes.
pub(super) fn trimmed_end(
    mut object: RawObject<'_>,
    is_text: fn(&RawObject<'_>) -> bool,
) -> Option<String> {
    let json = object.get("content")?;
    let content = match trimmed_text(json) {
        Some(trimmed) => trimmed,
        None => {
            let mut blocks: Vec<Cow<'_, str>> =
                super::super::raw_json::list(json)?.into_iter().map(Cow::Borrowed).collect();
            let mut block = RawObject::parse(blocks.last()?)?;
            if !is_text(&block) {
                return None;
            }
            let trimmed = trimmed_text(block.get("text")?)?;
            block.set("text", trimmed);
            let written = block.write();
            *blocks.last_mut()? = Cow::Owned(written);
            written_list(&blocks)
        }
    };
    object.set("content", content);
    Some(object.write())
}
