//! Ends of commands and patches. Several lines may report the same end; it is recorded once, unless
//! a later line can say more.

use super::call_result::{self, CodexCallResult};
use super::state::{CodexRunningCommand, PollTarget, ScriptCommand};
use super::{call, tool};
use crate::claude_code::command::{CommandRun, REFUSED};
use crate::claude_code::line_context::{PieceBuilder, fields, flag};
use crate::claude_code::open_call::{CallRequest, OpenCall, PatchedFile};
use forge_store::model::{FieldMap, Kind, Value};
use serde_json::value::RawValue;

/// How a command ended.
#[derive(Debug)]
pub(super) struct CodexCommandEnd<'a> {
    pub(super) exit_code: Option<i64>,
    pub(super) outcome: &'static str,
    pub(super) duration_ms: Option<i64>,
    /// Whether nothing ran.
    pub(super) not_started: bool,
    /// The output, as far as the line has it; for a refusal, the reason.
    pub(super) output: &'a str,
    /// The same text as a value of the fact.
    pub(super) shown: Value,
}

/// Codex's own code for a process that was stopped and has no exit code.
const NO_CODE: i64 = -1;
/// Codex's code for a command that it stopped after its time, and the code of `timeout`.
const TIMEOUT_CODE: i64 = 124;
/// How many bytes at the end of a background command's output are kept. The verdict of a check is
/// searched for in them.
const TAIL_BYTES: usize = 4096;

/// Handles the result of a call of any tool, and closes the call.
pub(super) fn call_returned(work: &mut PieceBuilder<'_>, id: &str, raw: Option<&RawValue>) {
    let poll = work.carry.other.codex.polls.remove(id);
    match poll {
        Some(PollTarget::Process(process)) => return polled(work, &process, raw),
        Some(PollTarget::Cell(cell)) => return cell_returned(work, &cell, raw),
        None => {}
    }
    if let Some(commands) = work.carry.other.codex.scripts.remove(id) {
        return script_ended(work, commands, raw);
    }
    let Some(opened) = work.carry.calls.remove(id) else {
        return tool::result(work, id, raw);
    };
    let Some(answer) = call_result::read(raw) else { return };
    match &opened.request {
        CallRequest::Command { .. } => command_returned(work, id, &opened, &answer),
        CallRequest::Patch { files } => {
            work.carry.other.codex.end(id);
            let outcome = outcome_of_patch(&answer);
            if outcome == "finished" {
                push_edits(work, id, &opened, files);
            } else if let [first, ..] = files.as_slice() {
                let reason = (!answer.status.part.is_empty()).then(|| answer.shown(&work.line));
                tool::edit_not_made(work, id, &first.path, outcome, reason.into());
            }
        }
        CallRequest::Todos { items } if is_accepted(&answer) => work.push_todos(items),
        _ => {}
    }
}

/// Whether a call succeeded, as far as its result says.
fn is_accepted(answer: &CodexCallResult) -> bool {
    matches!(answer.status.outcome, "unknown" | "finished")
}

/// Returns the outcome of a patch's call: `finished` if the result says that the patch was applied.
fn outcome_of_patch(answer: &CodexCallResult) -> &'static str {
    let output = answer.output();
    let code = answer.status.exit_code.or_else(|| call_result::inner_exit_code(output));
    match (code, answer.status.outcome) {
        (Some(0), _) => "finished",
        (Some(_), _) | (None, "timed_out") => "failed",
        (None, "unknown") if says_applied(output) => "finished",
        (None, "background") => "unknown",
        (None, outcome) => outcome,
    }
}

fn says_applied(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("Success. Updated the following files"))
}

/// Handles the result of a command's call: the command ended, was refused, or still runs.
fn command_returned(
    work: &mut PieceBuilder<'_>,
    id: &str,
    opened: &OpenCall,
    answer: &CodexCallResult,
) {
    let status = &answer.status;
    let output = answer.output();
    let shown = (!status.part.is_empty()).then(|| answer.shown(&work.line));
    let end = CodexCommandEnd {
        exit_code: status.exit_code,
        outcome: status.outcome,
        duration_ms: status.duration_ms,
        not_started: status.not_started,
        output,
        shown: shown.into(),
    };
    if status.outcome == "background" {
        let running = CodexRunningCommand {
            id: id.to_owned(),
            process: status.process.clone(),
            call: opened.clone(),
            tail: joined_tail("", output),
            shown: end.shown.clone(),
        };
        work.carry.other.codex.start(running);
    } else {
        work.carry.other.codex.end(id);
    }
    push_command(work, id, opened, end);
}

/// Handles the result of a poll: the command of this process still runs, or ended.
fn polled(work: &mut PieceBuilder<'_>, process: &str, raw: Option<&RawValue>) {
    let Some(answer) = call_result::read(raw) else { return };
    let status = &answer.status;
    let output = answer.output();
    let state = &mut work.carry.other.codex;
    let is_process = |one: &CodexRunningCommand| one.process.as_deref() == Some(process);
    if status.exit_code.is_none() {
        // The command still runs, or the poll failed, which says nothing about the command.
        let running = state.running.iter_mut().rfind(|one| is_process(one));
        if let (Some(running), "background", false) = (running, status.outcome, output.is_empty()) {
            running.tail = joined_tail(&running.tail, output);
            running.shown = answer.shown(&work.line);
        }
        return;
    }
    let Some(running) = state.stop(is_process) else { return };
    state.end(&running.id);
    let all = joined_tail(&running.tail, output);
    // The command ended while the poll waited, unless the poll returned at once.
    let waited = status.duration_ms.is_some_and(|waited| waited >= 1000);
    let took = work.line.at.micros_since(running.call.called_at) / 1000;
    let end = CodexCommandEnd {
        exit_code: status.exit_code,
        outcome: status.outcome,
        duration_ms: waited.then_some(took),
        not_started: false,
        output: &all,
        shown: if output.is_empty() { running.shown.clone() } else { answer.shown(&work.line) },
    };
    push_command(work, &running.id, &running.call, end);
}

/// Joins two parts of an output, and returns the last bytes of it.
fn joined_tail(before: &str, after: &str) -> String {
    let all = format!("{before}{after}");
    let start = all.ceil_char_boundary(all.len().saturating_sub(TAIL_BYTES));
    all.get(start..).unwrap_or_default().to_owned()
}

/// Handles the result of a script of code mode. The script's own output does not say how its
/// commands ended.
fn script_ended(work: &mut PieceBuilder<'_>, commands: Vec<ScriptCommand>, raw: Option<&RawValue>) {
    if work.carry.other.codex.reports_commands {
        return;
    }
    let Some(answer) = call_result::read(raw) else { return };
    let refused = answer.status.outcome == REFUSED;
    let text = answer.text.trim_start();
    if !refused && text.starts_with("Script failed") && text.contains("SyntaxError") {
        return;
    }
    push_script_commands(work, &commands, &answer);
    if !refused {
        let names = commands.iter().map(|command| command.id.clone()).collect();
        call::await_end(work, commands);
        if let Some(cell) = cell_id(text) {
            work.carry.other.codex.keep_cell(cell.to_owned(), names);
        }
    }
}

/// Handles the result of waiting for a script: it still runs, or ended.
fn cell_returned(work: &mut PieceBuilder<'_>, name: &str, raw: Option<&RawValue>) {
    let Some(answer) = call_result::read(raw) else { return };
    let text = answer.text.trim_start();
    if cell_id(text).is_some() || !text.starts_with("Script ") {
        return;
    }
    let state = &mut work.carry.other.codex;
    let Some(names) = state.cells.remove(name) else { return };
    let open = state.unended.iter().filter(|command| names.contains(&command.id));
    let open: Vec<ScriptCommand> = open.cloned().collect();
    push_script_commands(work, &open, &answer);
}

/// Returns the id of the cell of a script that still runs.
fn cell_id(text: &str) -> Option<&str> {
    text.strip_prefix("Script running with cell ID ")?.lines().next().map(str::trim)
}

/// Adds the commands of a script, as far as the script alone reports them. If there is exactly one
/// check, the summary in the script's output decides its verdict.
fn push_script_commands(
    work: &mut PieceBuilder<'_>,
    commands: &[ScriptCommand],
    answer: &CodexCallResult,
) {
    let is_check = |command: &&ScriptCommand| {
        matches!(&command.call.request, CallRequest::Command { verification: Some(_), .. })
    };
    let one_check = commands.iter().filter(is_check).count() == 1;
    let refused = answer.status.outcome == REFUSED;
    let printed = call_result::printed(&answer.text);
    for command in commands {
        let judged = commands.len() == 1 || (one_check && is_check(&command));
        let end = CodexCommandEnd {
            exit_code: None,
            outcome: if refused { REFUSED } else { "unknown" },
            duration_ms: None,
            not_started: refused,
            output: if judged { &printed } else { "" },
            shown: Value::Null,
        };
        push_command(work, &command.id, &command.call, end);
    }
}

/// A command that an event reports, with its id.
#[derive(Debug)]
pub(super) struct ReportedCommand<'a> {
    pub(super) id: &'a str,
    pub(super) process: Option<&'a str>,
    pub(super) command_line: &'a str,
    /// The data of the call, in case no other line has it.
    pub(super) call: OpenCall,
}

/// Handles an event that reports the end of a command.
pub(super) fn command_reported(
    work: &mut PieceBuilder<'_>,
    event: &ReportedCommand<'_>,
    end: CodexCommandEnd<'_>,
) {
    // A new command may have the number of an earlier process.
    let is_new = work.carry.calls.contains_key(event.id);
    let state = &mut work.carry.other.codex;
    state.reports_commands = true;
    if state.has_ended(event.id) {
        return;
    }
    let stopped = state.stop(|one| {
        let same = one.process.is_some() && one.process.as_deref() == event.process;
        one.id == event.id || (same && !is_new)
    });
    if let Some(running) = stopped {
        state.end(&running.id);
        state.end(event.id);
        let end = CodexCommandEnd {
            shown: if end.output.is_empty() { running.shown.clone() } else { end.shown },
            output: if end.output.is_empty() { &running.tail } else { end.output },
            ..end
        };
        return push_command(work, &running.id, &running.call, end);
    }
    if let Some(opened) = work.carry.calls.get(event.id) {
        if matches!(opened.request, CallRequest::Patch { .. }) {
            return;
        }
        let opened = opened.clone();
        // A stopped process has no code of its own: the result of the call may say more.
        let own = end.exit_code.is_some_and(|code| ![NO_CODE, TIMEOUT_CODE].contains(&code));
        if own || matches!(end.outcome, REFUSED | "timed_out") {
            work.carry.calls.remove(event.id);
            work.carry.other.codex.end(event.id);
        } else {
            note_recorded_open(work, event.id.to_owned());
        }
        return push_command(work, event.id, &opened, end);
    }
    work.carry.other.codex.end(event.id);
    match call::take_script_command(work, event.command_line) {
        Some(command) => push_command(work, &command.id, &command.call, end),
        None => push_command(work, event.id, &event.call, end),
    }
}

/// Notes an open call that already has a fact. If there are too many, the oldest one is closed.
pub(super) fn note_recorded_open(work: &mut PieceBuilder<'_>, id: String) {
    /// A turn has few open calls, and their results come soon after its end if they come at all.
    const KEPT: usize = 32;
    let codex = &mut work.carry.other.codex;
    if codex.recorded_open.contains(&id) {
        return;
    }
    if codex.recorded_open.len() == KEPT {
        let oldest = codex.recorded_open.remove(0);
        codex.tools.remove(&oldest);
        codex.patches.remove(&oldest);
        work.carry.calls.remove(&oldest);
    }
    codex.recorded_open.push(id);
}

/// Adds the facts of a command that ended or went to the background: the command, its checks, its
/// commit, and the patch in its command line.
pub(super) fn push_command(
    work: &mut PieceBuilder<'_>,
    id: &str,
    opened: &OpenCall,
    end: CodexCommandEnd<'_>,
) {
    let CallRequest::Command { command, description, commit, verification, .. } = &opened.request
    else {
        return;
    };
    let stopped = end.exit_code == Some(NO_CODE) || end.outcome == "timed_out";
    let shown = match end.outcome {
        REFUSED => fields([("reason", end.shown)]),
        _ => fields([("stdout_preview", end.shown), ("streams", "merged".into())]),
    };
    let mut more = fields([
        ("working_dir", opened.cwd.clone().into()),
        ("called_at", opened.called_at.to_string().into()),
        ("duration_ms", end.duration_ms.into()),
        ("interrupted", flag(end.outcome == "interrupted")),
        // The code of a stopped process is Codex's own, and not a verdict of the check.
        ("exit_code", end.exit_code.filter(|_| stopped).into()),
    ]);
    more.extend(shown);
    let ran = CommandRun {
        command: command.clone(),
        description: description.clone(),
        exit_code: end.exit_code.filter(|_| !stopped),
        outcome: end.outcome,
        more,
        output: end.output,
        verification: verification.as_ref().filter(|_| !end.not_started),
        commits: *commit && !end.not_started,
    };
    work.push_command_run(id, ran);
    let open = end.outcome == "background";
    if !open
        && let Some(mut files) = work.carry.other.codex.patches.remove(id)
        && says_applied(end.output)
    {
        // Of several patches, some may have failed.
        if files.iter().any(|file| is_listed(file, end.output)) {
            files.retain(|file| is_listed(file, end.output));
        }
        push_edits(work, id, opened, &files);
    }
}

/// Whether the output of patches lists this file as added, modified or deleted.
fn is_listed(file: &PatchedFile, output: &str) -> bool {
    let is_file = |listed: &str| {
        let listed = listed.strip_prefix("./").unwrap_or(listed);
        let paths = [Some(file.path.as_str()), file.moved_to.as_deref()];
        let before = paths.iter().flatten().find_map(|path| path.strip_suffix(listed));
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    output.lines().any(|line| {
        let listed = ["A ", "M ", "D "].iter().find_map(|mark| line.strip_prefix(mark));
        listed.is_some_and(|listed| is_file(listed.trim_end()))
    })
}

/// Adds the code fact of each file of a patch that was applied.
fn push_edits(work: &mut PieceBuilder<'_>, id: &str, opened: &OpenCall, files: &[PatchedFile]) {
    for (number, file) in files.iter().enumerate() {
        let value = fields([
            ("tool", opened.tool.as_str().into()),
            ("path", file.path.as_str().into()),
            ("moved_to", file.moved_to.clone().into()),
            ("patch", file.patch.clone()),
            ("lines_added", file.added.into()),
            ("lines_removed", file.removed.into()),
            ("cwd", opened.cwd.clone().into()),
            ("git_branch", work.line.git_branch.clone().into()),
        ]);
        push_edit(work, id, number, value);
    }
}

/// Adds the fact of the edit of one file. The first file of a patch gets the id of the patch; the
/// others get that id with their number after it.
pub(super) fn push_edit(work: &mut PieceBuilder<'_>, id: &str, number: usize, value: FieldMap) {
    let id = if number == 0 { id.to_owned() } else { format!("{id}/{}", number + 1) };
    work.fact(Kind::Code, &id, value);
}

/// Handles an event that reports whether a patch was applied. Returns whether the caller must
/// record the changes that the event lists. It must not if the end of the call is known, if the
/// call itself has the patch, or if the patch was not applied and the call's result will say why.
pub(super) fn patch_reported(work: &mut PieceBuilder<'_>, id: &str, applied: bool) -> bool {
    if work.carry.other.codex.has_ended(id) || (!applied && work.carry.calls.contains_key(id)) {
        return false;
    }
    work.carry.other.codex.end(id);
    let Some(opened) = work.carry.calls.remove(id) else { return true };
    match &opened.request {
        CallRequest::Patch { files } => {
            push_edits(work, id, &opened, files);
            false
        }
        // A command line whose patch was not recognised.
        _ => true,
    }
}
