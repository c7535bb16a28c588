//! Lines that are not part of the conversation: attachments, the queue, links. Also changes of the
//! model and of the permission mode, which have no lines of their own.

use super::line::parsed;
use super::line::{ClaudeAttachment, ClaudeLine, MessageContent, content};
use super::line_context::{PieceBuilder, SpokenLine, fields};
use super::prompt::prompt_fields;
use super::typed_text::{self, TextAuthor, TypedText};
use crate::file_url::path_from_url;
use crate::lenient::{LenientInteger, LenientList, LenientText, field};
use crate::long_text;
use forge_store::model::{Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The diagnostics of the client for one file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FileDiagnostics<'a> {
    uri: LenientText<'a>,
    diagnostics: LenientList<EditorDiagnostic<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct EditorDiagnostic<'a> {
    message: LenientText<'a>,
    severity: LenientText<'a>,
    range: Option<&'a RawValue>,
}

impl PieceBuilder<'_> {
    /// Reads a line that is not a message.
    pub(super) fn read_other_line(&mut self, kind: &str, line: &ClaudeLine<'_>) {
        match kind {
            "queue-operation" => self.queue_line(line),
            "pr-link" => {
                if let Some(address) = line.pr_url.text() {
                    let link = fields([("type", "link".into()), ("address", address.into())]);
                    self.fact(Kind::Notice, &format!("link:{address}"), link);
                }
            }
            _ => {
                let attachment: ClaudeAttachment<'_> = parsed(line.attachment).unwrap_or_default();
                let agent = line.agent_id.text().filter(|_| line.is_sidechain.0);
                self.line.agent = agent.map(str::to_owned);
                self.attachment(line, &attachment);
            }
        }
    }

    /// Reads a line about the queue of typed texts: a text was added to the queue or left it.
    fn queue_line(&mut self, line: &ClaudeLine<'_>) {
        let (operation, text) = (line.operation.text().unwrap_or_default(), line.content.text());
        let content =
            text.map_or(MessageContent::Nothing, |text| MessageContent::Text(Cow::Borrowed(text)));
        let words = typed_text::find_typed_text(&content, TextAuthor::Unknown);
        let own = words.as_ref().map(TypedText::text).or(text);
        if operation != "enqueue" {
            self.queue_operation(operation, own, line.reason.text());
            return;
        }
        let (Some(text), Some(own)) = (text, own) else { return };
        // These lines do not name a directory or branch: the session's are used.
        self.line.cwd.clone_from(&self.carry.session.cwd);
        self.line.git_branch.clone_from(&self.carry.session.git_branch);
        self.notices(text, "/content");
        let prompt = words.as_ref().map(|words| {
            let mut prompt = prompt_fields(&self.line, words, "/content");
            if is_slash(words.text()) {
                prompt.insert("tags".to_owned(), Value::from(vec!["slash"]));
            }
            prompt
        });
        self.carry.claude.queue.push((self.line.at, self.line.place.0), own, prompt);
    }

    /// Records what an attachment reports.
    fn attachment(&mut self, line: &ClaudeLine<'_>, attachment: &ClaudeAttachment<'_>) {
        let Some(id) = line.uuid.text() else { return };
        match attachment.kind.text().unwrap_or_default() {
            "queued_command" => self.queued(line, attachment, id),
            "task_status" => {
                self.task_state(attachment.task_id.0.as_deref(), attachment.status.text());
            }
            "edited_text_file" | "edited_image_file" => {
                let snippet = attachment.snippet.text();
                let snippet = snippet.map(|text| self.text(text, "/attachment/snippet"));
                let value = fields([
                    ("tool", "outside".into()),
                    ("path", attachment.filename.text().into()),
                    ("snippet", snippet.into()),
                    ("agent", self.line.agent.clone().into()),
                    ("cwd", self.line.cwd.clone().into()),
                    ("git_branch", self.line.git_branch.clone().into()),
                ]);
                self.fact(Kind::Code, id, value);
            }
            "diagnostics" | "lsp_diagnostics" => self.diagnostics(attachment, id),
            "goal_status" => {
                let status = match (attachment.met.0, attachment.failed.0) {
                    (true, _) => "met",
                    (_, true) => "failed",
                    _ => "open",
                };
                let shown = |text: &LenientText<'_>, name: &str| {
                    let pointer = format!("/attachment/{name}");
                    Value::from(text.text().map(|text| self.text(text, pointer)))
                };
                let value = fields([
                    ("type", "goal".into()),
                    ("text", shown(&attachment.condition, "condition")),
                    ("status", status.into()),
                    ("reason", shown(&attachment.reason, "reason")),
                ]);
                self.fact(Kind::Notice, id, value);
            }
            _ => {}
        }
    }

    /// Records a text that left the queue during a turn: as a prompt, if a person typed it.
    fn queued(&mut self, line: &ClaudeLine<'_>, attachment: &ClaudeAttachment<'_>, id: &str) {
        let Ok(content) = content(attachment.prompt) else { return };
        let Some((text, pointer)) = content.full_text() else { return };
        let typed = attachment.command_mode.text().is_none_or(|mode| mode == "prompt");
        let author = if typed && !attachment.is_meta.0 && !line.is_sidechain.0 {
            typed_text::author_of(attachment.origin, None)
        } else {
            TextAuthor::Machine
        };
        if author != TextAuthor::Person {
            self.notices(&text, &format!("/attachment/prompt{pointer}"));
        }
        let words = typed_text::find_typed_text(&content, author);
        let recorded = self
            .carry
            .claude
            .queue
            .note_delivery(words.as_ref().map_or(&text, TypedText::text), true);
        if let Some(words) = words.filter(|_| !recorded && !self.is_copy(line)) {
            self.prompt(id, &words, "/attachment/prompt");
        }
    }

    /// Records diagnostics: a notice for each file that has any.
    fn diagnostics(&mut self, attachment: &ClaudeAttachment<'_>, id: &str) {
        let files: LenientList<FileDiagnostics<'_>> = parsed(attachment.files).unwrap_or_default();
        for (index, file) in files.0.iter().enumerate() {
            let lines = file.diagnostics.0.iter().filter_map(|found| {
                let LenientInteger(line) = field(field(found.range, "start"), "line");
                let severity = found.severity.text().unwrap_or("Problem");
                let message = found.message.text()?;
                Some(match line {
                    // The client counts lines from 0.
                    Some(line) => format!("line {}: {severity}: {message}", line.saturating_add(1)),
                    None => format!("{severity}: {message}"),
                })
            });
            let lines: Vec<String> = lines.collect();
            if lines.is_empty() {
                continue;
            }
            let path = file.uri.text().map(path_from_url);
            let value = fields([
                ("type", "diagnostics".into()),
                ("path", path.into()),
                ("text", long_text::beginning(&lines.join("\n"), long_text::INLINE_BYTES).into()),
                ("agent", self.line.agent.clone().into()),
            ]);
            let id = if index == 0 { id.to_owned() } else { format!("{id}/{}", index + 1) };
            self.fact(Kind::Notice, &id, value);
        }
    }

    /// Adds a notice if the model is not that of the previous answer.
    pub(super) fn model(&mut self, spoken: &SpokenLine<'_>) {
        // The client's own answers have a model name in angle brackets.
        let named = spoken.message.model.text().filter(|model| !model.starts_with('<'));
        let Some(model) = named else { return };
        let before = self.carry.claude.model.replace(model.to_owned());
        if let Some(before) = before.filter(|before| before != model) {
            self.changed("model", spoken.uuid, &before, model);
        }
    }

    /// Adds a notice if the permission mode changed.
    pub(super) fn mode(&mut self, line: &ClaudeLine<'_>, id: &str) {
        let Some(mode) = line.permission_mode.text() else { return };
        let before = self.carry.claude.mode.replace(mode.to_owned());
        if let Some(before) = before.filter(|before| before != mode) {
            self.changed("mode", id, &before, mode);
        }
    }

    /// Adds a notice about a change from one name to another.
    fn changed(&mut self, what: &str, id: &str, before: &str, now: &str) {
        let value =
            fields([("type", what.into()), ("text", format!("{now} (before: {before})").into())]);
        self.fact(Kind::Notice, &format!("{what}:{id}"), value);
    }
}

/// Returns whether a text in the queue begins with a command of the client, such as `/name`. A path
/// is not a command.
fn is_slash(text: &str) -> bool {
    let name = text.split_whitespace().next().and_then(|word| word.strip_prefix('/'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(['/', '.']))
}
