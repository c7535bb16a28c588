//! Calls of Gemini CLI's tools, with their results.

use super::{shell, tool};
use crate::claude_code::call::runs_git_commit;
use crate::claude_code::command::{CommandRun, REFUSED, merged};
use crate::claude_code::line_context::{PieceBuilder, fields, flag};
use crate::claude_code::transcript_state::BackgroundProcess;
use crate::lenient::{LenientFlag, LenientId, LenientText, field, object, objects};
use crate::long_text;
use crate::text_hash::text_hash;
use crate::verification::CheckCommandLine;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use forge_store::story::changed_line_counts;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The maximum number of background commands that are remembered until the recording says how they
/// ended.
const MAX_RUNNING: usize = 256;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct GeminiCall<'a> {
    id: LenientId,
    name: LenientText<'a>,
    status: LenientText<'a>,
    timestamp: LenientText<'a>,
    args: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    result_display: Option<&'a RawValue>,
    agent_id: LenientId,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiCallArguments<'a> {
    command: LenientText<'a>,
    description: LenientText<'a>,
    dir_path: LenientText<'a>,
    directory: LenientText<'a>,
    file_path: LenientText<'a>,
    absolute_path: LenientText<'a>,
    agent_name: LenientText<'a>,
    prompt: LenientText<'a>,
    objective: LenientText<'a>,
    todos: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiTodo<'a> {
    description: LenientText<'a>,
    status: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ResultDisplay<'a> {
    file_diff: LenientText<'a>,
    original_content: LenientText<'a>,
    file_path: LenientText<'a>,
    is_subagent_progress: LenientFlag,
    agent_name: LenientText<'a>,
    state: LenientText<'a>,
    result: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FunctionResponsePart<'a> {
    #[serde(borrow)]
    function_response: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ToolResponse<'a> {
    output: LenientText<'a>,
    error: LenientText<'a>,
}

/// The result of a call, as the model received it.
#[derive(Debug, Default)]
pub(super) struct GeminiCallResult<'a> {
    pub(super) text: Cow<'a, str>,
    /// The error, if the result has one besides an output.
    pub(super) error: Option<Cow<'a, str>>,
    /// Whether the result is an error without an output.
    is_error: bool,
    /// The pointer from the message to the text.
    pub(super) pointer: String,
}

impl<'a> GeminiCall<'a> {
    /// Returns the id and name of the call, as the fact of a message lists them.
    pub(super) fn named(&self) -> Value {
        Value::from([("id", self.id.0.clone().into()), ("name", self.name.text().into())])
    }

    /// Returns the status of the call. With a result that is only an error, it did not succeed.
    fn end_status(&self, call_result: &GeminiCallResult<'_>) -> &str {
        match self.status.text() {
            Some("success") if call_result.is_error => "error",
            status => status.unwrap_or_default(),
        }
    }

    /// Returns the result with its pointer. `base` leads to the call.
    fn result_text(&self, base: &str) -> GeminiCallResult<'a> {
        let at = format!("{base}/result");
        let raw = self.result;
        if let Some(raw) = raw.filter(|raw| raw.get().starts_with('"')) {
            let text: LenientText<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
            let text = text.0.unwrap_or_default();
            return GeminiCallResult { text, pointer: at, ..GeminiCallResult::default() };
        }
        // A list of parts, or a single part.
        let parts = objects::<FunctionResponsePart<'_>>(raw).into_iter();
        let mut parts: Vec<(String, FunctionResponsePart<'_>)> =
            parts.map(|(index, part)| (format!("{at}/{index}"), part)).collect();
        if parts.is_empty() {
            parts.push((at, object(raw)));
        }
        for (at, part) in parts {
            let Some(response) = part.function_response else { continue };
            let ToolResponse { output, error } = object(field(Some(response), "response"));
            let at = format!("{at}/functionResponse/response");
            return match (output.0, error.0) {
                (Some(text), error) => {
                    let pointer = format!("{at}/output");
                    GeminiCallResult { text, error, is_error: false, pointer }
                }
                (None, Some(text)) => {
                    let pointer = format!("{at}/error");
                    let is_error = !text.is_empty();
                    GeminiCallResult { text, error: None, is_error, pointer }
                }
                (None, None) => GeminiCallResult::default(),
            };
        }
        GeminiCallResult::default()
    }
}

/// Adds the fact of a call that has ended, once. `at` is the time of its message; `base` leads to
/// the call.
pub(super) fn done(work: &mut PieceBuilder<'_>, call: &GeminiCall<'_>, at: Timestamp, base: &str) {
    let status = call.status.text().unwrap_or_default();
    let (Some(id), "success" | "error" | "cancelled") = (call.id.0.as_deref(), status) else {
        return;
    };
    if work.carry.other.mark_reported(id) {
        return;
    }
    let arguments: GeminiCallArguments<'_> = object(call.args);
    work.line.at = call.timestamp.text().and_then(Timestamp::parse_rfc3339).unwrap_or(at);
    let name = call.name.text().unwrap_or_default();
    let call_result = call.result_text(base);
    let status = call.end_status(&call_result);
    let display: ResultDisplay<'_> = object(call.result_display);
    // In some versions each sub-agent is a tool with its own name.
    let is_agent = matches!(name, "invoke_agent" | "delegate_to_agent")
        || display.is_subagent_progress.0
        || agent_result(&call_result.text).is_some_and(|(agent, _)| agent == name);
    let todos = arguments.todos.filter(|todos| todos.get().starts_with('['));
    match (name, todos) {
        ("run_shell_command", _) => command(work, (id, call), &arguments, &call_result, base),
        _ if tool::is_edit(name) && is_edit_made(status, &call_result.text) => {
            edit(work, (id, call), &arguments, &display, base);
        }
        ("write_todos", Some(list)) if status == "success" => write_todos(work, list, base),
        _ if is_agent && !shell::not_started(&call_result.text) => {
            agent(work, (id, call), (&arguments, &display), &call_result, base);
        }
        _ => {
            let used = tool::GeminiToolUse {
                id,
                name,
                status,
                input: call.args,
                result: &call_result,
                base,
            };
            tool::used(work, &used);
            if name == "list_background_processes" {
                processes(work, &call_result.text);
            }
        }
    }
}

/// Whether the text that the model receives as the result of an edit says that nothing was changed.
pub(crate) fn is_failed_edit(answer: &str) -> bool {
    const BEGINS: &[&str] = &[
        "Failed to ",
        "Error",
        "No changes to apply",
        "File not found: ",
        "File already exists, cannot create",
        "A secondary check by an LLM determined",
    ];
    BEGINS.iter().any(|begin| answer.starts_with(begin))
}

/// Whether a call with this status and result changed its file. A call can be cancelled after it
/// did so.
fn is_edit_made(status: &str, answer: &str) -> bool {
    const MADE: &[&str] = &[
        "Successfully overwrote ", "Successfully created ", "Successfully modified ",
        "Created new file: ",
    ];
    match status {
        "success" => !is_failed_edit(answer),
        "cancelled" => MADE.iter().any(|begin| answer.starts_with(begin)),
        _ => false,
    }
}

fn write_todos(work: &mut PieceBuilder<'_>, list: &RawValue, base: &str) {
    let items = objects::<GeminiTodo<'_>>(Some(list)).into_iter().filter_map(|(index, todo)| {
        let text = todo.description.text()?;
        let subject = work.text(text, format!("{base}/args/todos/{index}/description"));
        let status = todo.status.text().unwrap_or("pending");
        Some((text_hash(text), fields([("subject", subject), ("status", status.into())])))
    });
    let items = items.collect();
    work.push_todos(&items);
}

fn command(
    work: &mut PieceBuilder<'_>,
    (id, call): (&str, &GeminiCall<'_>),
    arguments: &GeminiCallArguments<'_>,
    call_result: &GeminiCallResult<'_>,
    base: &str,
) {
    let line = arguments.command.text().unwrap_or_default();
    let status = call.end_status(call_result);
    let end = shell::ended(status, &call_result.text, call_result.error.as_deref());
    let refused = end.outcome == REFUSED;
    let directory =
        arguments.dir_path.text().or(arguments.directory.text()).or(work.line.cwd.as_deref());
    let reason = end.signal.map(|signal| format!("signal {signal}"));
    let mut more = fields([
        ("working_dir", directory.into()),
        ("interrupted", flag(end.outcome == "interrupted")),
        ("background_task", end.pid.into()),
        ("reason", reason.into()),
    ]);
    let output =
        if refused && end.output.is_empty() { 0..call_result.text.len() } else { end.output };
    more.extend(merged(
        &work.line,
        end.outcome,
        &call_result.text,
        output.clone(),
        &call_result.pointer,
    ));
    let description = arguments.description.text();
    let verification = CheckCommandLine::from_line(line).filter(|_| !refused);
    let command = work.text(line, format!("{base}/args/command"));
    let description =
        description.map_or(Value::Null, |it| work.text(it, format!("{base}/args/description")));
    let commits = runs_git_commit(line);
    if let Some(pid) = end.pid {
        let running = &mut work.carry.other.running;
        if running.len() >= MAX_RUNNING {
            running.pop_first();
        }
        let kept = BackgroundProcess {
            id: id.to_owned(),
            command: command.clone(),
            description: description.clone(),
            more: more.clone(),
            verification: verification.clone(),
        };
        running.insert(pid.to_owned(), kept);
    }
    let ran = CommandRun {
        command,
        description,
        exit_code: end.exit_code,
        outcome: end.outcome,
        more,
        output: call_result.text.get(output).unwrap_or_default(),
        verification: verification.as_ref(),
        commits: commits && end.outcome == "finished",
    };
    work.push_command_run(id, ran);
}

/// Adds a version of a background command with its end, if the command is known.
pub(super) fn ended_later(
    work: &mut PieceBuilder<'_>,
    pid: &str,
    (outcome, exit_code): (&'static str, Option<i64>),
) {
    let Some(ran) = work.carry.other.running.remove(pid) else { return };
    let later = CommandRun {
        command: ran.command,
        description: ran.description,
        exit_code,
        outcome,
        more: ran.more,
        output: "",
        verification: ran.verification.as_ref(),
        commits: false,
    };
    work.push_command_run(&ran.id, later);
}

/// Reads a list of background processes. Its lines have the form
/// ``- [PID 7] EXITED: `cargo build` (Exit Code: 1)``.
fn processes(work: &mut PieceBuilder<'_>, list: &str) {
    for line in list.lines() {
        let Some((pid, rest)) = line.strip_prefix("- [PID ").and_then(|it| it.split_once("] "))
        else {
            continue;
        };
        if !rest.starts_with("EXITED: ") {
            continue;
        }
        let last = |label: &str| {
            let (_, value) = rest.rsplit_once(label)?;
            value.split(')').next()
        };
        let code = last("` (Exit Code: ").and_then(|code| code.parse::<i64>().ok());
        let signal = last("(Signal: ").is_some_and(|signal| signal != "0");
        let end = match code {
            _ if signal => ("failed", code.filter(|code| *code != 0)),
            Some(0) => ("finished", code),
            Some(_) => ("failed", code),
            None => ("unknown", None),
        };
        ended_later(work, pid, end);
    }
}

fn edit(
    work: &mut PieceBuilder<'_>,
    (id, call): (&str, &GeminiCall<'_>),
    arguments: &GeminiCallArguments<'_>,
    display: &ResultDisplay<'_>,
    base: &str,
) {
    let patch = display.file_diff.text();
    let (added, removed) = patch.map(changed_line_counts).unzip();
    let shown = |name: &str, text: Option<&str>| {
        Value::from(text.map(|text| work.text(text, format!("{base}/resultDisplay/{name}"))))
    };
    let named = arguments.file_path.text().or(arguments.absolute_path.text());
    let value = fields([
        ("tool", call.name.text().into()),
        ("path", named.or(display.file_path.text()).into()),
        ("patch", shown("fileDiff", patch)),
        ("lines_added", added.into()),
        ("lines_removed", removed.into()),
        ("original_file", shown("originalContent", display.original_content.text())),
        ("cwd", work.line.cwd.clone().into()),
    ]);
    work.fact(Kind::Code, id, value);
}

/// Adds the fact of a sub-agent with its result. Its messages are in another recording.
fn agent(
    work: &mut PieceBuilder<'_>,
    (id, call): (&str, &GeminiCall<'_>),
    (arguments, display): (&GeminiCallArguments<'_>, &ResultDisplay<'_>),
    call_result: &GeminiCallResult<'_>,
    base: &str,
) {
    let prompt = [("prompt", &arguments.prompt), ("objective", &arguments.objective)];
    let prompt = prompt.into_iter().find_map(|(name, text)| Some((name, text.text()?)));
    let ended = match display.state.text() {
        Some("error") => Some("failed"),
        Some("cancelled") => Some("interrupted"),
        _ => agent_result(&call_result.text).map(|(_, status)| status),
    };
    let status = match call.end_status(call_result) {
        // A call succeeds also if its agent failed.
        "success" => ended.unwrap_or("completed"),
        "cancelled" => "interrupted",
        _ => "failed",
    };
    let result = match display.result.text() {
        Some(result) => work.text(result, format!("{base}/resultDisplay/result")),
        None if call_result.text.is_empty() => Value::Null,
        None => work.text(&call_result.text, &call_result.pointer),
    };
    let short = |text: &str| long_text::beginning(text, long_text::INLINE_BYTES).to_owned();
    let value: FieldMap = fields([
        ("type", arguments.agent_name.text().or(display.agent_name.text()).map(short).into()),
        (
            "prompt",
            prompt.map(|(name, text)| work.text(text, format!("{base}/args/{name}"))).into(),
        ),
        ("call", id.into()),
        ("status", status.into()),
        ("result", result),
    ]);
    let agent = call.agent_id.0.as_deref().unwrap_or(id);
    work.fact(Kind::Agent, agent, value);
}

/// Returns the name of the sub-agent in the result of its call, and the status with which it ended.
fn agent_result(answer: &str) -> Option<(&str, &'static str)> {
    let mut lines = answer.lines();
    let (name, end) = lines.next()?.strip_prefix("Subagent '")?.split_once("' ")?;
    let reason = lines.next().and_then(|line| line.strip_prefix("Termination Reason: "));
    let status = match (end, reason) {
        _ if end.starts_with("failed.") => "failed",
        ("finished.", None | Some("GOAL")) => "completed",
        ("finished.", Some("ABORTED")) => "interrupted",
        ("finished.", Some(_)) => "failed",
        _ => return None,
    };
    Some((name, status))
}
