//! Events and completed items: what Codex reports in addition to the model's calls and results.

use super::call::{command_line, command_request, command_words};
use super::command_end::{self, CodexCommandEnd, ReportedCommand};
use super::{call_result, prompt, tool, user_shell};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{PieceBuilder, fields};
use crate::claude_code::open_call::OpenCall;
use crate::file_url::path_from_url;
use crate::lenient::{
    LenientBool, LenientId, LenientInteger, LenientList, LenientText, object, parse_object,
};
use crate::patch::EditDescription;
use crate::tool_use::escaped;
use forge_store::model::{Timestamp, Value};
use forge_store::shell::line_of_shell;
use forge_store::story::changed_line_counts;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The end of a command: the payload of `exec_command_end`, or an item `CommandExecution`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CommandExecution<'a> {
    #[serde(borrow, alias = "call_id")]
    id: LenientText<'a>,
    #[serde(alias = "processId")]
    process_id: LenientId,
    command: Option<&'a RawValue>,
    cwd: LenientText<'a>,
    source: LenientText<'a>,
    status: LenientText<'a>,
    stdout: LenientText<'a>,
    stderr: LenientText<'a>,
    aggregated_output: LenientText<'a>,
    formatted_output: LenientText<'a>,
    /// The names of these outputs in some versions.
    #[serde(rename = "aggregatedOutput")]
    aggregated: LenientText<'a>,
    #[serde(rename = "formattedOutput")]
    formatted: LenientText<'a>,
    #[serde(alias = "exitCode")]
    exit_code: LenientInteger,
    duration: Option<&'a RawValue>,
}

/// A change of files: the payload of `patch_apply_end`, or an item `FileChange`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FileChangeEvent<'a> {
    #[serde(borrow, alias = "call_id")]
    id: LenientText<'a>,
    status: LenientText<'a>,
    success: LenientBool,
    stderr: LenientText<'a>,
    changes: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FileChange<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    unified_diff: LenientText<'a>,
    content: LenientText<'a>,
    move_path: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UserMessageItem<'a> {
    id: LenientText<'a>,
    content: LenientList<ItemTextPart<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ItemTextPart<'a> {
    #[serde(borrow)]
    text: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletedItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
}

/// Reads a completed item. `own_id` is the id of a prompt if the item has none. `started_at` is
/// when the item began. If the line was copied from another session (`copied`), a prompt is
/// skipped.
pub(super) fn item(
    work: &mut PieceBuilder<'_>,
    raw: &RawValue,
    own_id: &str,
    started_at: Option<Timestamp>,
    copied: bool,
) {
    let Some(CompletedItem { kind }) = parse_object(raw.get()) else { return };
    // The parts of the client write one type as `FileChange`, `fileChange` or `file_change`.
    let kind = kind.text().unwrap_or_default().replace('_', "").to_ascii_lowercase();
    match kind.as_str() {
        "commandexecution" => execution(work, raw, "/item", started_at),
        "filechange" => changed(work, raw, "/item"),
        "usermessage" if copied => {}
        "usermessage" => user_message_item(work, raw, own_id),
        kind => tool::item(work, kind, raw, started_at),
    }
}

/// Reads a prompt in a completed item.
fn user_message_item(work: &mut PieceBuilder<'_>, raw: &RawValue, own_id: &str) {
    let Ok(spoken) = serde_json::from_str::<UserMessageItem<'_>>(raw.get()) else { return };
    let id = spoken.id.text().unwrap_or(own_id);
    let texts = spoken.content.0.iter().enumerate();
    let mut texts = texts.filter_map(|(index, part)| Some((index, part.text.text()?)));
    let Some((index, text)) = texts.next() else { return };
    if texts.next().is_none() {
        let pointer = format!("/item/content/{index}/text");
        return prompt::push_event_prompt(work, id, text, &pointer, prompt::source::ITEM);
    }
    // Joined in the same way as when the pointer to all parts is resolved.
    let all: Vec<&str> =
        spoken.content.0.iter().filter_map(|part| part.text.0.as_deref()).collect();
    prompt::push_event_prompt(work, id, &all.join("\n"), "/item/content", prompt::source::ITEM);
}

/// Records the end of a command.
pub(super) fn execution(
    work: &mut PieceBuilder<'_>,
    raw: &RawValue,
    base: &str,
    started_at: Option<Timestamp>,
) {
    let Ok(one) = serde_json::from_str::<CommandExecution<'_>>(raw.get()) else { return };
    // Input that was typed into a running command is not a command.
    let typed =
        matches!(one.source.text(), Some("unified_exec_interaction" | "unifiedExecInteraction"));
    let status = one.status.text().unwrap_or_default();
    let goes_on = matches!(status, "in_progress" | "inProgress");
    let (Some(id), false, false) = (one.id.text(), typed, goes_on) else { return };
    let json = one.command.map_or("null", RawValue::get);
    let at = format!("{base}/command");
    let found = command_line(json, &command_words(json), &at).unwrap_or_default();
    let inner = json.starts_with('"').then(|| line_of_shell(&found.0)).flatten();
    let (line, pointer) = inner.map_or(found, |inner| (inner, String::new()));
    let texts = [
        (&one.aggregated_output, "aggregated_output"),
        (&one.aggregated, "aggregatedOutput"),
        (&one.stdout, "stdout"),
        (&one.stderr, "stderr"),
        (&one.formatted_output, "formatted_output"),
        (&one.formatted, "formattedOutput"),
    ];
    let timed_out =
        texts.iter().any(|(word, _)| word.text().is_some_and(call_result::says_timed_out));
    let text = texts.into_iter().find_map(|(word, name)| Some((word.text()?, name)));
    let (text, name) = text.unwrap_or_default();
    let reported = CodexCommandEnd {
        exit_code: one.exit_code.0,
        outcome: match (status, one.exit_code.0) {
            ("declined", _) => REFUSED,
            (_, Some(_)) if timed_out => "timed_out",
            (_, Some(code)) => call_result::outcome(Some(code)),
            ("completed", None) => "finished",
            ("failed", None) => "failed",
            _ => "unknown",
        },
        duration_ms: call_result::duration_ms(one.duration),
        not_started: status == "declined",
        output: text,
        shown: match text {
            "" => Value::Null,
            text => work.text(text, format!("{base}/{name}")),
        },
    };
    let end = clear_code_if_not_started(reported);
    let cwd = one.cwd.text().map(path_from_url).or_else(|| work.line.cwd.clone());
    let by_person = matches!(one.source.text(), Some("user_shell" | "userShell"));
    let source = if base.is_empty() { prompt::source::EVENT } else { prompt::source::ITEM };
    if by_person && !user_shell::is_news(work, &line, source) {
        return;
    }
    let description = if by_person { user_shell::DESCRIPTION.into() } else { Value::Null };
    let request = command_request(&work.line, &line, &pointer, description);
    let event = ReportedCommand {
        id,
        process: one.process_id.0.as_deref(),
        command_line: &line,
        call: OpenCall {
            called_at: started_at.unwrap_or(work.line.at),
            cwd,
            tool: "exec_command".to_owned(),
            request,
        },
    };
    command_end::command_reported(work, &event, end);
}

/// Removes the exit code and the duration if the command was refused or its process could not be
/// started.
fn clear_code_if_not_started(end: CodexCommandEnd<'_>) -> CodexCommandEnd<'_> {
    let begins =
        ["execution error", "Failed to create unified exec process", "exec_command failed"];
    let failed = begins.iter().any(|begin| end.output.starts_with(begin));
    if end.outcome == REFUSED || (end.exit_code == Some(-1) && failed) {
        return CodexCommandEnd { exit_code: None, duration_ms: None, not_started: true, ..end };
    }
    end
}

/// Records the edits of a change of files, or the use of the tool if the change was declined or
/// failed.
pub(super) fn changed(work: &mut PieceBuilder<'_>, raw: &RawValue, base: &str) {
    let Ok(one) = serde_json::from_str::<FileChangeEvent<'_>>(raw.get()) else { return };
    let Some(id) = one.id.text() else { return };
    let applied = match (one.status.text(), one.success.0) {
        (Some("completed"), _) | (None, Some(true)) => true,
        (Some("in_progress" | "inProgress"), _) => return,
        _ => false,
    };
    if !command_end::patch_reported(work, id, applied) {
        return;
    }
    let changes: BTreeMap<String, &RawValue> = object(one.changes);
    if !applied {
        let first = changes.keys().next().map(|path| path_from_url(path));
        let outcome = match (one.status.text(), one.success.0) {
            (Some("declined"), _) => Some(REFUSED),
            (Some("failed"), _) | (None, Some(false)) => Some("failed"),
            _ => None,
        };
        if let (Some(path), Some(outcome)) = (first, outcome) {
            let reason = one.stderr.text().map(|text| work.text(text, format!("{base}/stderr")));
            tool::edit_not_made(work, id, &path, outcome, reason.into());
        }
        return;
    }
    let changes = changes.iter().filter(|(_, raw)| raw.get().starts_with('{'));
    for (number, (path, raw)) in changes.enumerate() {
        let Ok(change) = serde_json::from_str::<FileChange<'_>>(raw.get()) else { continue };
        let pointer = format!("{base}/changes/{}", escaped(path));
        let (patch, added, removed) = match change.unified_diff.text() {
            Some(diff) => {
                let (added, removed) = changed_line_counts(diff);
                (work.text(diff, format!("{pointer}/unified_diff")), added, removed)
            }
            None => match object::<EditDescription<'_>>(Some(*raw)).patch() {
                Some(patch) if !patch.text.is_empty() => {
                    (work.text(&patch.text, &pointer), patch.added, patch.removed)
                }
                _ => (Value::Null, 0, 0),
            },
        };
        let deleted = change.kind.is("delete").then(|| change.content.text()).flatten();
        let value = fields([
            ("tool", "apply_patch".into()),
            ("path", path_from_url(path).into()),
            ("moved_to", change.move_path.text().map(path_from_url).into()),
            ("patch", patch),
            ("lines_added", added.into()),
            ("lines_removed", removed.into()),
            (
                "original_file",
                deleted.map(|text| work.text(text, format!("{pointer}/content"))).into(),
            ),
            ("cwd", work.line.cwd.clone().into()),
            ("git_branch", work.line.git_branch.clone().into()),
        ]);
        command_end::push_edit(work, id, number, value);
    }
}
