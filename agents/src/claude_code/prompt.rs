//! Prompts: what a person asked for, in a separate line or in the client's queue.

use super::line::{ClaudeLine, MessageContent};
use super::line_context::{LineContext, PieceBuilder, SpokenLine, fields};
use super::typed_text::{self, TextAuthor, TypedText, element_length, text_in_tag};
use crate::long_text;
use forge_store::model::{FieldMap, Kind, Value};
use std::borrow::Cow;

impl PieceBuilder<'_> {
    /// Reads everything in a user line except its message: a prompt, the ends of background tasks,
    /// and a change of the permission mode.
    pub(super) fn user(&mut self, line: &ClaudeLine<'_>, spoken: &SpokenLine<'_>) {
        self.mode(line, spoken.uuid);
        let results = spoken.content.blocks().iter().any(|block| block.kind.is("tool_result"));
        if results {
            self.carry.claude.queue.note_tool_result(self.line.at);
        }
        let author = match line.source_tool_use_id.text() {
            // The line is the text of a skill that the agent called.
            Some(_) => TextAuthor::Machine,
            None => {
                let source = line.prompt_source.text().or(line.turn_origin.text());
                typed_text::author_of(line.origin, source)
            }
        };
        if author != TextAuthor::Person
            && let Some((text, pointer)) = spoken.content.full_text()
        {
            self.notices(&text, &format!("/message/content{pointer}"));
        }
        if line.is_meta.0 || line.is_visible_in_transcript_only.0 || self.is_copy(line) {
            return;
        }
        if let Some(words) = typed_text::find_typed_text(&spoken.content, author) {
            self.own_prompt(spoken.uuid, &words, "/message/content");
        }
    }

    /// Reads a system line with a command of the client, which older clients wrote in a user line.
    pub(super) fn local_command(&mut self, line: &ClaudeLine<'_>, id: &str) {
        if line.is_meta.0 || self.is_copy(line) {
            return;
        }
        let Some(text) = line.content.text() else { return };
        let content = MessageContent::Text(Cow::Borrowed(text));
        let words = typed_text::find_typed_text(&content, TextAuthor::Unknown);
        if let Some(words) = words.filter(|words| words.slash) {
            self.own_prompt(id, &words, "/content");
        }
    }

    /// Adds the fact of a prompt with a line of its own, unless the queue has recorded it.
    fn own_prompt(&mut self, id: &str, words: &TypedText<'_>, pointer: &str) {
        let whole = words.slash.then(|| slash_command(words.text()));
        if !self.carry.claude.queue.note_delivery(whole.as_deref().unwrap_or(words.text()), false) {
            self.prompt(id, words, pointer);
        }
    }

    /// Adds the fact of a prompt; `pointer` leads to the content that holds its words.
    pub(super) fn prompt(&mut self, id: &str, words: &TypedText<'_>, pointer: &str) {
        if words.slash {
            self.carry.session.note_command(&slash_command(words.text()));
        } else {
            self.carry.session.note_prompt(words.text());
        }
        let value = prompt_fields(&self.line, words, pointer);
        self.fact(Kind::Prompt, id, value);
    }

    /// Whether a line is a copy of another session's line. Its prompt belongs to the other session.
    pub(super) fn is_copy(&self, line: &ClaudeLine<'_>) -> bool {
        let own = self.carry.claude.own_session.as_deref();
        let other = line.session_id.text().is_some_and(|id| own.is_some_and(|own| own != id));
        other || line.forked_from.is_some_and(|raw| raw.get() != "null")
    }
}

/// Returns the fields of a prompt's fact; `pointer` leads to the content that holds its words.
pub(super) fn prompt_fields(
    context: &LineContext,
    words: &TypedText<'_>,
    pointer: &str,
) -> FieldMap {
    let pointer = format!("{pointer}{}", words.pointer);
    let (text, part) = words.part();
    let whole = words.slash.then(|| slash_command(words.text()));
    let shown = match whole {
        Some(whole) if whole.len() <= long_text::INLINE_BYTES => whole.into(),
        None if words.joined => words.text().into(),
        // The document does not contain a slash command as one text, so a pointer cannot lead to
        // a long slash command: the fact refers to the recorded text.
        _ => context.part(text, part, &pointer),
    };
    fields([
        ("text", shown),
        ("tags", if words.slash { Value::from(vec!["slash"]) } else { Value::Null }),
        ("cwd", context.cwd.clone().into()),
        ("git_branch", context.git_branch.clone().into()),
    ])
}

/// Returns the arguments of a slash command. The arguments may quote their own tag.
fn arguments(text: &str) -> Option<&str> {
    let (opening, closing) = ("<command-args>", "</command-args>");
    let rest = text.get(text.find(opening)?..)?;
    let end = element_length(rest, "command-args")?;
    Some(rest.get(opening.len()..end)?.strip_suffix(closing)?.trim())
}

/// Returns a slash command as the person typed it, from the tags in the recorded text.
fn slash_command(text: &str) -> String {
    let name = text_in_tag(text, "command-name").unwrap_or_default().trim();
    let arguments = arguments(text).unwrap_or_default();
    if arguments.is_empty() { name.to_owned() } else { format!("{name} {arguments}") }
}
