//! Messages whose calls and results are blocks of a list: taken apart and put together.

use super::rescue::kept_text;
use super::{Answer, Form, Problem};
use crate::systems::thread::fault::{FaultKind, Remedy};
use crate::systems::thread::json::{Object, quoted, text, written_list};
use std::borrow::Cow;

/// The field of the list of blocks.
pub(super) const fn field(form: Form) -> &'static str {
    match form {
        Form::Gemini => "parts",
        _ => "content",
    }
}

/// A message taken apart.
pub(in crate::systems::thread) struct Split {
    /// The results, in the order of the message's answers.
    pub(in crate::systems::thread) results: Vec<String>,
    /// The other blocks.
    pub(in crate::systems::thread) others: Vec<String>,
    /// Whether no other block stands before a result.
    pub(in crate::systems::thread) results_first: bool,
}

/// Takes the results out of a message.
pub(in crate::systems::thread) fn split(text: &str, form: Form, answers: &[Answer]) -> Split {
    let mut split = Split { results: Vec::new(), others: Vec::new(), results_first: true };
    let object = Object::parse(text);
    let blocks = object.as_ref().and_then(|object| object.list(field(form))).unwrap_or_default();
    let mut answers = answers.iter().peekable();
    for (at, block) in blocks.into_iter().enumerate() {
        if answers.next_if(|answer| answer.at == at).is_some() {
            split.results_first &= split.others.is_empty();
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
    form: Form,
    blocks: &[String],
) -> Option<String> {
    let mut object = Object::parse(text).filter(|_| !blocks.is_empty())?;
    object.set(field(form), written_list(blocks));
    Some(object.write())
}

/// A message of results, or of whatever else the user says.
pub(in crate::systems::thread) fn results_message(form: Form, blocks: &[String]) -> String {
    let role = if form == Form::AiSdk { "tool" } else { "user" };
    format!(r#"{{"role":"{role}","{}":{}}}"#, field(form), written_list(blocks))
}

/// The blocks of a list that is being tidied, and whether anything was changed.
pub(super) struct Tidied {
    pub(super) kept: Vec<String>,
    pub(super) changed: bool,
    pub(super) problems: Vec<Problem>,
}

impl Tidied {
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
        self.problems.push(Problem::new(fault, call, Remedy::Changed));
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
        self.problems.push(Problem::new(fault, call, Remedy::Removed));
    }
}

/// The list with the blocks at the end cut off that `is_thinking`. Returns whether there were any.
pub(super) fn trim_thinking(
    blocks: &mut Vec<String>,
    is_thinking: fn(&Object<'_>) -> bool,
) -> bool {
    let before = blocks.len();
    while blocks
        .last()
        .and_then(|json| Object::parse(json))
        .is_some_and(|block| is_thinking(&block))
    {
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
    mut object: Object<'_>,
    is_text: fn(&Object<'_>) -> bool,
) -> Option<String> {
    let json = object.get("content")?;
    let content = match trimmed_text(json) {
        Some(trimmed) => trimmed,
        None => {
            let mut blocks: Vec<Cow<'_, str>> =
                super::super::json::list(json)?.into_iter().map(Cow::Borrowed).collect();
            let mut block = Object::parse(blocks.last()?)?;
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
