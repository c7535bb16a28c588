//! Messages whose calls and results are blocks of a list: taken apart and put together.

use super::recover_content::kept_text;
use super::{MessageFormat, MessageProblem, ToolResultPart};
use crate::systems::thread::fault::{FaultKind, Remedy};
use crate::systems::thread::raw_json::{RawObject, quoted, text, written_list};
use std::borrow::Cow;

/// The field of the list of blocks.
pub(super) const fn field(form: MessageFormat) -> &'static str {
    match form {
        MessageFormat::Gemini => "parts",
        _ => "content",
    }
}

/// A message taken apart.
pub(in crate::systems::thread) struct SplitMessage {
    /// The results, in the order of the message's answers.
    pub(in crate::systems::thread) results: Vec<String>,
    /// The other blocks.
    pub(in crate::systems::thread) others: Vec<String>,
    /// Whether no other block stands before a result, or the provider does not mind.
    pub(in crate::systems::thread) results_first: bool,
}

/// Takes the results out of a message.
pub(in crate::systems::thread) fn split(
    text: &str,
    form: MessageFormat,
    answers: &[ToolResultPart],
) -> SplitMessage {
    let mut split = SplitMessage { results: Vec::new(), others: Vec::new(), results_first: true };
    let object = RawObject::parse(text);
    let blocks = object.as_ref().and_then(|object| object.list(field(form))).unwrap_or_default();
    let mut answers = answers.iter().peekable();
    for (at, block) in blocks.into_iter().enumerate() {
        if answers.next_if(|answer| answer.at == at).is_some() {
            split.results_first &= split.others.is_empty() || form == MessageFormat::Gemini;
            split.results.push(block.to_owned());
        } else {
            split.others.push(block.to_owned());
        }
    }
    split
}

/// The message with these blocks and no others; `None` without any.
pub(in crate::systems::thread) fn with_blocks(
    text: &str,
    form: MessageFormat,
    blocks: &[String],
) -> Option<String> {
    put_blocks(RawObject::parse(text)?, form, blocks.to_vec())
}

/// The message without the blocks that `is_cut`; `None` if nothing is left.
pub(super) fn without_blocks(
    object: RawObject<'_>,
    form: MessageFormat,
    is_cut: impl Fn(RawObject<'_>) -> bool,
) -> Option<String> {
    let keep = |json: &&str| !RawObject::parse(json).is_some_and(&is_cut);
    let kept = object.list(field(form))?.into_iter().filter(keep).map(str::to_owned).collect();
    put_blocks(object, form, kept)
}

/// The message with these blocks, as its provider takes it: no thinking may be left at its end. `None` without any.
pub(super) fn put_blocks(
    mut object: RawObject<'_>,
    form: MessageFormat,
    mut blocks: Vec<String>,
) -> Option<String> {
    trim_thinking(&mut blocks, form);
    if blocks.is_empty() {
        return None;
    }
    object.set(field(form), written_list(&blocks));
    Some(object.write())
}

/// A message of results, or of whatever else the user says.
pub(in crate::systems::thread) fn results_message(
    form: MessageFormat,
    blocks: &[String],
) -> String {
    let role = if form == MessageFormat::AiSdk { "tool" } else { "user" };
    format!(r#"{{"role":"{role}","{}":{}}}"#, field(form), written_list(blocks))
}

/// The blocks of a list that is being tidied, and whether anything was changed.
pub(super) struct NormalizedBlocks {
    pub(super) kept: Vec<String>,
    pub(super) changed: bool,
    pub(super) problems: Vec<MessageProblem>,
}

impl NormalizedBlocks {
    pub(super) const fn new() -> Self {
        Self { kept: Vec::new(), changed: false, problems: Vec::new() }
    }

    /// Keeps a block as it is.
    pub(super) fn keep(&mut self, json: &str) {
        self.kept.push(json.to_owned());
    }

    /// Keeps a block in another form.
    pub(super) fn put(&mut self, json: String, fault: FaultKind, call: Option<&str>) {
        self.kept.push(json);
        self.changed = true;
        self.problems.push(MessageProblem::new(fault, call, Remedy::Changed));
    }

    /// Keeps what something says that is no block, as a block that `text` makes of it.
    pub(super) fn keep_text(&mut self, json: &str, text: impl FnOnce(&str) -> String) {
        match kept_text(json) {
            Some(said) => self.put(text(&said), FaultKind::MalformedBlock, None),
            None => self.leave_out(FaultKind::MalformedBlock, None),
        }
    }

    /// Leaves a block out.
    pub(super) fn leave_out(&mut self, fault: FaultKind, call: Option<&str>) {
        self.changed = true;
        self.problems.push(MessageProblem::new(fault, call, Remedy::Removed));
    }
}

/// Cuts off the thinking at the end of an answer. Returns whether there was any.
pub(super) fn trim_thinking(blocks: &mut Vec<String>, form: MessageFormat) -> bool {
    let is_thinking = |json: &String| {
        RawObject::parse(json).is_some_and(|block| match form {
            MessageFormat::Anthropic => block
                .text("type")
                .is_some_and(|kind| matches!(&*kind, "thinking" | "redacted_thinking")),
            MessageFormat::Bedrock => block.has("reasoningContent"),
            _ => false,
        })
    };
    let before = blocks.len();
    while blocks.last().is_some_and(is_thinking) {
        blocks.pop();
    }
    blocks.len() < before
}

/// A field of a block without white space at its end; `None` if there is none.
pub(super) fn trimmed_text(json: &str) -> Option<String> {
    let whole = text(json)?;
    let trimmed = whole.trim_end();
    (trimmed.len() < whole.len()).then(|| quoted(trimmed))
}

/// The last answer with the text at its end trimmed: its content itself, or that of its last block.
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
