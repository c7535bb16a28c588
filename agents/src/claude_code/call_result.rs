//! Results of tool calls: commands, edits and checks that happened.

use super::call_failure::{self, CallFailure};
use super::command::{self, CommandRun, REFUSED};
use super::line::parsed;
use super::line_context::{LineContext, PieceBuilder, fields, flag};
use super::open_call::{CallRequest, OpenCall};
use super::tool_result::{ClaudeCallResult, ToolUseResult};
use super::transcript_state::BackgroundCommand;
use crate::lenient::{LenientFlag, LenientId, LenientInteger, LenientText, object};
use crate::patch::EditDescription;
use forge_store::model::{FieldMap, Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CommandOutput<'a> {
    stdout: LenientText<'a>,
    stderr: LenientText<'a>,
    interrupted: LenientFlag,
    background_task_id: LenientId,
    duration_ms: LenientInteger,
    return_code_interpretation: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct EditResult<'a> {
    user_modified: LenientFlag,
    original_file: LenientText<'a>,
    original_file_contents: LenientText<'a>,
    #[serde(borrow, rename = "original_file")]
    original_notebook: LenientText<'a>,
    error: LenientText<'a>,
}

impl PieceBuilder<'_> {
    /// Closes the call that a result belongs to. Returns whether the message of the result can omit
    /// its text, because a fact of another kind has it.
    pub(crate) fn result(&mut self, id: &str, answer: &ClaudeCallResult<'_>) -> bool {
        let Some(call) = self.carry.calls.remove(id) else { return false };
        match &call.request {
            CallRequest::Command { .. } => self.command(id, &call, answer),
            CallRequest::Edit { .. } => self.edit(id, &call, answer),
            CallRequest::Agent { .. } => {
                let began = self.agent_done(id, &call, answer);
                if !began || answer.failure(false) == Some(CallFailure::Refused) {
                    self.tool(id, &call, answer);
                }
            }
            CallRequest::NewTask { .. }
            | CallRequest::TaskChange { .. }
            | CallRequest::Todos { .. } => {
                self.change_tasks(id, &call, answer);
            }
            CallRequest::Tool { .. } => {
                self.tool(id, &call, answer);
                self.background_task_result(&call, answer);
                return false;
            }
            // Claude Code has no such call.
            CallRequest::Patch { .. } => {}
        }
        true
    }

    fn command(&mut self, id: &str, call: &OpenCall, answer: &ClaudeCallResult<'_>) {
        let CallRequest::Command { command, description, background, commit, verification } =
            &call.request
        else {
            return;
        };
        let printed: CommandOutput<'_> = answer.object();
        let (code, start) =
            answer.text().map_or((None, 0), |(text, _)| exit_code(&text, answer.error));
        let interpreted = printed.return_code_interpretation.text().is_some();
        let recorded = recorded_code(answer).filter(|_| !interpreted);
        let code = code.or(recorded.and_then(|recorded| recorded.0));
        let task =
            printed.background_task_id.0.clone().or_else(|| background_task(answer, &printed));
        // The client may not allow commands in the background: then it waits for the command.
        let background = task.is_some() || (*background && printed.stdout.text().is_none());
        let outcome = match outcome(&printed, answer, code, background) {
            // The program that ran the command knows no exit code, so it is not 0.
            "finished" if code.is_none() && recorded.is_some() => "unknown",
            outcome => outcome,
        };
        let exit_code = match outcome {
            // A result without an error has exit code 0, unless the client interprets the code of
            // this program.
            "finished" if !interpreted => code.or(Some(0)),
            "background" | REFUSED => None,
            _ => code,
        };
        let (streams, output) = output_fields(&self.line, answer, &printed, outcome, start);
        let mut more = fields([
            ("working_dir", call.cwd.clone().into()),
            ("called_at", call.called_at.to_string().into()),
            ("duration_ms", printed.duration_ms.0.into()),
            ("interrupted", flag(outcome == "interrupted")),
            ("background_task", task.clone().into()),
        ]);
        more.extend(streams);
        if outcome == "background" {
            let running = BackgroundCommand {
                task,
                command: command.clone(),
                description: description.clone(),
                cwd: call.cwd.clone(),
                called_at: call.called_at,
                agent: self.line.agent.clone(),
                commit: *commit,
                verification: verification.clone(),
                ended: false,
            };
            self.carry.claude.background.insert(id.to_owned(), running);
        }
        let ran = CommandRun {
            command: command.clone(),
            description: description.clone(),
            exit_code,
            outcome,
            more,
            output: &output,
            verification: verification.as_ref(),
            commits: *commit && !answer.error,
        };
        self.push_command_run(id, ran);
    }

    fn edit(&mut self, id: &str, call: &OpenCall, answer: &ClaudeCallResult<'_>) {
        let CallRequest::Edit { path, patch, added, removed } = &call.request else { return };
        if answer.error {
            self.tool(id, call, answer);
            return;
        }
        let mut value = fields([
            ("tool", call.tool.as_str().into()),
            ("path", path.clone().into()),
            ("patch", patch.clone()),
            ("lines_added", (*added).into()),
            ("lines_removed", (*removed).into()),
            ("agent", self.line.agent.clone().into()),
            ("cwd", call.cwd.clone().into()),
            ("git_branch", self.line.git_branch.clone().into()),
            ("user_modified", false.into()),
        ]);
        match answer.tool_use_result {
            // The text says why nothing was changed.
            ToolUseResult::Text(_) => return,
            ToolUseResult::Nothing => {}
            ToolUseResult::Object(raw) => {
                let edited: EditResult<'_> = parsed(Some(raw)).unwrap_or_default();
                if edited.error.text().is_some() {
                    let failed = ClaudeCallResult {
                        error: true,
                        shown_to_agent: answer.shown_to_agent.clone(),
                        tool_use_result: ToolUseResult::Nothing,
                        denial: answer.denial.clone(),
                    };
                    self.tool(id, call, &failed);
                    return;
                }
                value.insert("user_modified".to_owned(), edited.user_modified.0.into());
                for (name, original) in [
                    ("originalFile", &edited.original_file),
                    ("originalFileContents", &edited.original_file_contents),
                    ("original_file", &edited.original_notebook),
                ] {
                    if let Some(text) = original.text() {
                        let original = self.text(text, format!("/toolUseResult/{name}"));
                        value.insert("original_file".to_owned(), original);
                    }
                }
                apply_description(&self.line, raw, &mut value);
            }
        }
        self.fact(Kind::Code, id, value);
    }
}

/// Replaces the call's description of the change by that of the result.
fn apply_description(context: &LineContext, raw: &RawValue, value: &mut FieldMap) {
    let edit: EditDescription<'_> = parsed(Some(raw)).unwrap_or_default();
    if let Some(path) = edit.path() {
        value.insert("path".to_owned(), path.into());
    }
    if let Some(patch) = edit.patch() {
        value.insert("patch".to_owned(), context.text(&patch.text, "/toolUseResult"));
        value.insert("lines_added".to_owned(), patch.added.into());
        value.insert("lines_removed".to_owned(), patch.removed.into());
    }
}

/// Returns the exit code in the object beside a result, or that it has a field without one. Claude
/// Code writes no such field, but other programs that write its format do. If the text of an error
/// says how the call ended, or the code would contradict the error, the field does not count.
fn recorded_code(answer: &ClaudeCallResult<'_>) -> Option<LenientInteger> {
    let fields: BTreeMap<String, &RawValue> = object(answer.recorded());
    let raw = fields.get("exitCode").or_else(|| fields.get("exit_code"))?;
    let code: LenientInteger = serde_json::from_str(raw.get()).ok()?;
    match answer.failure(true) {
        None => Some(code),
        Some(CallFailure::NotRecognised) => Some(code).filter(|code| code.0 != Some(0)),
        Some(_) => None,
    }
}

/// Returns the id of the background task that a command became, from its result. The client writes
/// its note after the output so far. If the result is also recorded as an object, the object has
/// the id, and such a line beside an output is a line of the output.
fn background_task(answer: &ClaudeCallResult<'_>, printed: &CommandOutput<'_>) -> Option<String> {
    let (shown_text, _) = answer.shown_to_agent.as_ref().filter(|_| !answer.error)?;
    let recorded = matches!(answer.tool_use_result, ToolUseResult::Object(_));
    let first = shown_text.lines().next().filter(|_| printed.stdout.text().is_none());
    let last = shown_text.trim_end().lines().next_back().filter(|_| !recorded);
    first.into_iter().chain(last).find_map(task_in_note)
}

/// Returns the id of the task in a note that a command runs in the background.
fn task_in_note(line: &str) -> Option<String> {
    let note = line.strip_prefix("Command ")?;
    let (how, id) = note.split_once(" with ID: ").or_else(|| note.split_once(" (ID: "))?;
    if !how.contains("background") {
        return None;
    }
    let end = id.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(id.len());
    id.get(..end).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// How a command ended.
fn outcome(
    printed: &CommandOutput<'_>,
    answer: &ClaudeCallResult<'_>,
    code: Option<i64>,
    background: bool,
) -> &'static str {
    // A result with an exit code comes from a command that ran, whatever it printed.
    let failure = if code.is_some() { None } else { answer.failure(true) };
    // The client writes this after the output, or between the exit code and the output.
    let interrupted = |text: &str| {
        let (_, start) = exit_code(text, true);
        let first = text.get(start..).and_then(|text| text.lines().next()).unwrap_or_default();
        let marks = [
            "[Request interrupted by user]",
            "[Request interrupted by user for tool use]",
            "<error>Command was aborted before completion</error>",
        ];
        marks.iter().any(|mark| first == *mark || text.trim_end().ends_with(mark))
    };
    let timed_out = |text: &str| {
        let (_, start) = exit_code(text, true);
        text.get(start..).is_some_and(|text| text.starts_with("Command timed out after "))
    };
    match failure {
        Some(CallFailure::Refused) => REFUSED,
        _ if printed.interrupted.0 || (answer.error && answer.says(interrupted)) => "interrupted",
        _ if answer.error && answer.says(timed_out) => "timed_out",
        Some(failure) => failure.outcome(),
        None if answer.error || code.is_some_and(|code| code != 0) => {
            if code == Some(0) {
                "finished"
            } else {
                "failed"
            }
        }
        None if background => "background",
        None => "finished",
    }
}

/// The output of a command as fields, and as the text in which a verdict is searched.
fn output_fields(
    context: &LineContext,
    answer: &ClaudeCallResult<'_>,
    printed: &CommandOutput<'_>,
    outcome: &str,
    start: usize,
) -> (FieldMap, String) {
    if outcome == REFUSED || outcome == "unknown" && answer.error {
        let reason = answer.refused_text().map(|(text, pointer)| {
            let part = call_failure::reason(&text);
            context.part(&text, part, pointer)
        });
        // A text that is not recognised may be an output with the summary of a check.
        let output = match answer.failure(true) {
            Some(CallFailure::NotRecognised) => answer.text(),
            _ => None,
        };
        let output = output.and_then(|(text, _)| text.get(start..).map(str::to_owned));
        return (fields([("reason", reason.into())]), output.unwrap_or_default());
    }
    let merged = if matches!(answer.tool_use_result, ToolUseResult::Object(_)) {
        None
    } else {
        answer.text()
    };
    if let Some((text, pointer)) = merged.filter(|(text, _)| text.len() > start) {
        let output = text.get(start..).unwrap_or_default().to_owned();
        return (command::merged(context, outcome, &text, start..text.len(), pointer), output);
    }
    let (stdout, stderr) = (printed.stdout.text(), printed.stderr.text());
    let mut output = stdout.unwrap_or_default().to_owned();
    if let Some(text) = stderr {
        output.push('\n');
        output.push_str(text);
    }
    let shown = |text: Option<&str>, pointer: &str| {
        Value::from(text.map(|text| context.text(text, pointer)))
    };
    let streams = fields([
        ("stdout_preview", shown(stdout, "/toolUseResult/stdout")),
        ("stderr_preview", shown(stderr, "/toolUseResult/stderr")),
    ]);
    (streams, output)
}

/// The exit code that an error begins with, and where the output after it starts.
fn exit_code(text: &str, error: bool) -> (Option<i64>, usize) {
    if !error {
        return (None, 0);
    }
    let body = text.strip_prefix("Error: ").unwrap_or(text);
    let start = text.len() - body.len();
    let code = body.strip_prefix("Exit code ").and_then(|rest| {
        let end = rest.find('\n').unwrap_or(rest.len());
        let code = rest.get(..end)?.trim().parse().ok()?;
        Some((code, text.len() - rest.len() + end))
    });
    let Some((code, end)) = code else { return (None, start) };
    // The output starts after the line break.
    (Some(code), (end + 1).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::exit_code;

    #[test]
    fn an_exit_code_is_read_from_the_beginning_of_an_error() {
        for (text, expected) in [
            ("Exit code 1\nout", (Some(1), 12)),
            ("Error: Exit code 127\nout", (Some(127), 21)),
            ("Exit code 2", (Some(2), 11)),
            ("Error: Sibling tool call errored", (None, 7)),
            ("Exit code none", (None, 0)),
        ] {
            assert_eq!(exit_code(text, true), expected, "{text}");
        }
        assert_eq!(exit_code("Exit code 1\nprinted", false), (None, 0));
    }
}
