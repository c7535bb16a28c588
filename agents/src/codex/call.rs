//! Reads calls of Codex's tools: commands in a shell, patches, the plan.

use super::patch::{self, PatchDirectory};
use super::state::{PollTarget, ScriptCommand, push};
use super::{script, tool};
use crate::claude_code::call::runs_git_commit;
use crate::claude_code::line_context::{LineContext, PieceBuilder, fields};
use crate::claude_code::open_call::{CallRequest, OpenCall};
use crate::command_words::{command_line_of, is_patch_program};
use crate::lenient::{LenientId, LenientList, LenientText, elements, parse_object};
use crate::long_text;
use crate::text_hash::text_hash;
use crate::verification::CheckCommandLine;
use forge_store::model::Value;
use forge_store::shell::{line_of_shell, shell_line};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CodexCallArguments<'a> {
    command: Option<&'a RawValue>,
    cmd: Option<&'a RawValue>,
    input: LenientText<'a>,
    patch: LenientText<'a>,
    workdir: LenientText<'a>,
    working_directory: LenientText<'a>,
    justification: LenientText<'a>,
    session_id: LenientId,
    cell_id: LenientId,
    plan: LenientList<PlanStep<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PlanStep<'a> {
    step: LenientText<'a>,
    status: LenientText<'a>,
}

/// A call, with the fields of its line in the transcript.
#[derive(Debug)]
pub(super) struct CodexCall<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    /// JSON in a string.
    pub(super) arguments: Option<&'a str>,
    /// The text that a custom tool gets.
    pub(super) input: Option<&'a str>,
    pub(super) action: Option<&'a RawValue>,
}

/// Remembers a call until its result comes. A call whose arguments do not fit its tool is
/// remembered as the use of any tool.
pub(super) fn keep_call(work: &mut PieceBuilder<'_>, call: &CodexCall<'_>) {
    if let (Some(input), None) = (call.input, call.namespace) {
        match call.name {
            "apply_patch" => {
                let files = patch::files(&work.line, input, "/input", &PatchDirectory::Session);
                keep_open_call(work, call, None, CallRequest::Patch { files });
            }
            "exec" => keep_script_commands(work, call.id, input),
            _ => tool::keep_call(work, call),
        }
        return;
    }
    let (json, at) = match (call.arguments, call.action) {
        (Some(arguments), _) => (arguments, "/arguments#json"),
        (None, Some(action)) => (action.get(), "/action"),
        (None, None) => return tool::keep_call(work, call),
    };
    let arguments: Option<CodexCallArguments<'_>> = parse_object(json.trim_start());
    let Some(arguments) = arguments else { return tool::keep_call(work, call) };
    let directory = arguments.workdir.text().or(arguments.working_directory.text());
    match call.name {
        _ if call.namespace.is_some() => tool::keep_call(work, call),
        "apply_patch" => {
            let given = [(&arguments.input, "input"), (&arguments.patch, "patch")];
            let given = given.into_iter().find_map(|(text, name)| Some((text.text()?, name)));
            let Some((text, name)) = given else { return tool::keep_call(work, call) };
            let files = patch::files(
                &work.line,
                text,
                &format!("{at}/{name}"),
                &PatchDirectory::from_call(directory),
            );
            keep_open_call(work, call, None, CallRequest::Patch { files });
        }
        "update_plan" => {
            let request = plan_request(&work.line, &arguments, at);
            keep_open_call(work, call, None, request);
        }
        "shell" | "shell_command" | "exec_command" | "local_shell" | "container.exec" => {
            keep_command(work, call, &arguments, at);
        }
        "write_stdin" => {
            if let Some(process) = arguments.session_id.0 {
                let poll = PollTarget::Process(process);
                work.carry.other.codex.polls.insert(call.id.to_owned(), poll);
            }
        }
        "wait" if arguments.cell_id.0.is_some() => {
            if let Some(cell) = arguments.cell_id.0 {
                work.carry.other.codex.polls.insert(call.id.to_owned(), PollTarget::Cell(cell));
            }
        }
        _ => tool::keep_call(work, call),
    }
}

fn keep_open_call(
    work: &mut PieceBuilder<'_>,
    call: &CodexCall<'_>,
    directory: Option<&str>,
    request: CallRequest,
) {
    if matches!(&request, CallRequest::Patch { files } if files.is_empty()) {
        return tool::keep_call(work, call);
    }
    let cwd = working_directory(&work.line, directory);
    let one = OpenCall { called_at: work.line.at, cwd, tool: call.name.to_owned(), request };
    work.carry.calls.insert(call.id.to_owned(), one);
}

/// Returns the directory of a call. If the call names one, it may be relative to the directory of
/// the session.
fn working_directory(context: &LineContext, named: Option<&str>) -> Option<String> {
    match (context.cwd.as_deref(), named) {
        (Some(cwd), Some(below)) if patch::is_relative(below) => {
            Some(format!("{}/{below}", cwd.trim_end_matches('/')))
        }
        (cwd, named) => named.or(cwd).map(str::to_owned),
    }
}

/// Remembers the call of a command, or of the patch that the command applies.
fn keep_command(
    work: &mut PieceBuilder<'_>,
    call: &CodexCall<'_>,
    arguments: &CodexCallArguments<'_>,
    at: &str,
) {
    let directory = arguments.workdir.text().or(arguments.working_directory.text());
    let given = [(arguments.cmd, "cmd"), (arguments.command, "command")];
    let given = given.into_iter().find_map(|(raw, name)| Some((raw?.get(), name)));
    let Some((json, name)) = given.filter(|(json, _)| *json != "\"\"") else {
        return tool::keep_call(work, call);
    };
    let (words, own) = (command_words(json), format!("{at}/{name}"));
    if let [(_, name), (index, text)] = words.as_slice()
        && is_patch_program(name)
    {
        let pointer = format!("{own}/{index}");
        let files = patch::files(&work.line, text, &pointer, &PatchDirectory::from_call(directory));
        return keep_open_call(work, call, None, CallRequest::Patch { files });
    }
    let Some((line, pointer)) = command_line(json, &words, &own) else {
        return tool::keep_call(work, call);
    };
    // No pointer can refer to the line inside a line.
    let inner = line.contains(patch::BEGIN).then(|| line_of_shell(&line)).flatten();
    let (text, text_pointer) = inner.as_deref().map_or((&*line, &*pointer), |inner| (inner, ""));
    if let Some(applied) = patch::applied(text, directory) {
        let files = patch::files_of_command(&work.line, text, text_pointer, &applied.directories);
        if applied.alone {
            return keep_open_call(work, call, None, CallRequest::Patch { files });
        }
        work.carry.other.codex.patches.insert(call.id.to_owned(), files);
    }
    let why = arguments.justification.text();
    let why = why.map_or(Value::Null, |why| work.text(why, format!("{at}/justification")));
    let request = command_request(&work.line, &line, &pointer, why);
    keep_open_call(work, call, directory, request);
}

/// Returns the words of a command, each with its index in the list. Elements that are not texts
/// are skipped.
pub(super) fn command_words(json: &str) -> Vec<(usize, String)> {
    let words: Vec<LenientText<'_>> = elements(json, |_| None);
    let words = words.into_iter().enumerate();
    words.filter_map(|(index, word)| Some((index, word.0?.into_owned()))).collect()
}

/// Returns the command line in a text or in the words of a list, and the pointer to it. `at` leads
/// to the text or list. `None` if it is neither.
pub(super) fn command_line(
    json: &str,
    words: &[(usize, String)],
    at: &str,
) -> Option<(String, String)> {
    if json.starts_with('"') {
        return Some((serde_json::from_str(json).ok()?, at.to_owned()));
    }
    let (index, _) = words.last()?;
    let words: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
    // One pointer cannot express the joined words of a long line.
    let pointer = match shell_line(&words) {
        Some(_) => format!("{at}/{index}"),
        None => String::new(),
    };
    Some((command_line_of(&words), pointer))
}

/// Returns the request of a command line. `pointer` leads to it; without a pointer a long line is
/// cut.
pub(super) fn command_request(
    context: &LineContext,
    line: &str,
    pointer: &str,
    description: Value,
) -> CallRequest {
    let command = if pointer.is_empty() {
        long_text::beginning(line, long_text::INLINE_BYTES).into()
    } else {
        context.text(line, pointer)
    };
    CallRequest::Command {
        command,
        description,
        background: false,
        commit: runs_git_commit(line),
        verification: CheckCommandLine::from_line(line),
    }
}

/// Remembers the commands of a script until other lines report how they ended.
fn keep_script_commands(work: &mut PieceBuilder<'_>, id: &str, input: &str) {
    let commands = script::commands(input).into_iter();
    // A patch is reported as a patch, not as a command.
    let commands =
        commands.filter(|named| !patch::applied(&named.command, None).is_some_and(|it| it.alone));
    let commands = commands.enumerate().map(|(index, named)| {
        let cwd = working_directory(&work.line, named.directory.as_deref());
        let request = command_request(&work.line, &named.command, "", Value::Null);
        let call = OpenCall { called_at: work.line.at, cwd, tool: "exec".to_owned(), request };
        ScriptCommand {
            id: format!("{id}/{}", index + 1),
            hash: text_hash(named.command.trim()),
            call,
        }
    });
    let commands: Vec<ScriptCommand> = commands.collect();
    work.carry.other.codex.scripts.insert(id.to_owned(), commands);
}

/// Removes a script command with this line, because an event reports how it ended. Returns it only
/// if its script has ended: while the script is open, the event has an id of its own.
pub(super) fn take_script_command(
    work: &mut PieceBuilder<'_>,
    line: &str,
) -> Option<ScriptCommand> {
    let own = text_hash(line.trim());
    let state = &mut work.carry.other.codex;
    if let Some(place) = state.unended.iter().position(|one| one.hash == own) {
        return Some(state.unended.remove(place));
    }
    for open in state.scripts.values_mut() {
        if let Some(place) = open.iter().position(|one| one.hash == own) {
            // Its end is reported with the id of the event, so the script must not report it.
            open.remove(place);
            return None;
        }
    }
    None
}

/// Remembers the commands of a script whose end may still be reported.
pub(super) fn await_end(work: &mut PieceBuilder<'_>, commands: Vec<ScriptCommand>) {
    for command in commands {
        push(&mut work.carry.other.codex.unended, command);
    }
}

/// Returns the change of the task list that a new plan requests.
fn plan_request(
    context: &LineContext,
    arguments: &CodexCallArguments<'_>,
    at: &str,
) -> CallRequest {
    let items = arguments.plan.0.iter().enumerate().filter_map(|(index, step)| {
        let text = step.step.text()?;
        let subject = context.text(text, format!("{at}/plan/{index}/step"));
        let status = step.status.text().unwrap_or("pending");
        Some((text_hash(text), fields([("subject", subject), ("status", status.into())])))
    });
    CallRequest::Todos { items: items.collect() }
}
