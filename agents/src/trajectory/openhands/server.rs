//! Events of OpenHands' server: actions, and the observations that are their results.

use super::{
    EventLocation, OpenHandsCallResult, OpenHandsEvent, OpenHandsReader, OpenHandsRequest,
    ShellMetadata, is_editor_error, stops, without_code,
};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::fields;
use crate::lenient::{LenientId, LenientInteger, LenientText, field, object, objects};
use crate::long_text;
use crate::text_hash::text_hash;
use forge_store::model::{FieldMap, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ServerEvent<'a> {
    id: LenientId,
    cause: LenientId,
    action: LenientText<'a>,
    observation: LenientText<'a>,
    content: LenientText<'a>,
    args: Option<&'a RawValue>,
    extras: Option<&'a RawValue>,
    tool_call_metadata: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ServerActionArgs<'a> {
    content: LenientText<'a>,
    thought: LenientText<'a>,
    final_thought: LenientText<'a>,
    command: LenientText<'a>,
    is_input: Option<&'a RawValue>,
    name: LenientText<'a>,
    arguments: Option<&'a RawValue>,
    agent: LenientText<'a>,
    inputs: Option<&'a RawValue>,
    summary: LenientText<'a>,
    cwd: LenientText<'a>,
    task_list: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ServerObservationExtras<'a> {
    metadata: Option<&'a RawValue>,
    exit_code: LenientInteger,
    path: LenientText<'a>,
    diff: LenientText<'a>,
    impl_source: LenientText<'a>,
    task_list: Option<&'a RawValue>,
}

/// A task of a task list, in events of the server and of the SDK.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OpenHandsTask<'a> {
    title: LenientText<'a>,
    status: LenientText<'a>,
}

/// Reads an event of the server. Returns `false` if it is neither an action nor an observation.
pub(super) fn event(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    event: &OpenHandsEvent<'_>,
    id: &str,
) -> bool {
    let line: ServerEvent<'_> = object(Some(location.json));
    // The id by which an observation names its action, as `cause`.
    let name = line.id.0.clone().unwrap_or_else(|| id.to_owned());
    match (line.action.text(), line.observation.text()) {
        (Some(action), _) => {
            let by_user = event.source.text() == Some("user");
            self::action(reading, location, &line, (action, by_user), (id, &name));
        }
        (None, Some(observation)) => {
            let cause = line.cause.0.clone().unwrap_or_default();
            self::observation(reading, location, &line, observation, &cause);
        }
        (None, None) => return false,
    }
    true
}

fn action(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &ServerEvent<'_>,
    (action, by_user): (&str, bool),
    (id, name): (&str, &str),
) {
    let args: ServerActionArgs<'_> = object(line.args);
    let LenientId(tool) = field(line.tool_call_metadata, "function_name");
    let tool = tool.as_deref().unwrap_or(action);
    let record_message = |reading: &mut OpenHandsReader, text: Value, thinking: Value| {
        let role = if by_user { "user" } else { "assistant" };
        let value = fields([("role", role.into()), ("text", text), ("thinking", thinking)]);
        reading.message(id, value);
    };
    match action {
        "message" | "finish" | "reject" | "think" | "system" => {
            let (text, pointer) = match action {
                "finish" if args.final_thought.text().is_some() => {
                    (args.final_thought.text(), "/args/final_thought")
                }
                "message" | "system" => (args.content.text(), "/args/content"),
                _ => (args.thought.text(), "/args/thought"),
            };
            let words = location.optional_text(text, pointer);
            match action {
                "think" => record_message(reading, Value::Null, words),
                "system" => {
                    let value = fields([("role", "system".into()), ("text", words)]);
                    reading.message(id, value);
                }
                _ => record_message(reading, words, Value::Null),
            }
            if let ("message", true, Some(text)) = (action, by_user, text) {
                let moment = reading.moment.clone();
                reading.run.prompt(&moment, id, text, location.text(text, pointer));
            }
            return;
        }
        "condensation" => {
            let summary = args.summary.text().map(|it| location.text(it, "/args/summary"));
            return reading.condensed(id, summary);
        }
        // Internal events of the server.
        "null"
        | "recall"
        | "change_agent_state"
        | "start"
        | "pause"
        | "resume"
        | "stop"
        | "condensation_request"
        | "loop_recovery" => return,
        _ => {}
    }
    let named = Value::from([("id", name.into()), ("name", tool.into())]);
    let value = fields([
        ("role", if by_user { "user" } else { "assistant" }.into()),
        ("text", location.optional_text(args.thought.text(), "/args/thought")),
        ("tool_calls", Value::List(vec![named])),
    ]);
    reading.message(id, value);
    let request = request_of(reading, location, line, &args, (action, tool));
    reading.call(name.to_owned(), request);
}

fn request_of(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &ServerEvent<'_>,
    args: &ServerActionArgs<'_>,
    (action, tool): (&str, &str),
) -> OpenHandsRequest {
    let pointer = format!("{}/args", location.base);
    match action {
        "run" => {
            let command = args.command.text().unwrap_or_default();
            let input = args.is_input.is_some_and(|raw| matches!(raw.get(), "true" | "\"true\""));
            if input || command.trim().is_empty() || stops(command) {
                return OpenHandsRequest::Poll { stops: stops(command) };
            }
            OpenHandsRequest::Command {
                line: command.to_owned(),
                command: location.text(command, "/args/command"),
                working_dir: args.cwd.text().map(str::to_owned),
            }
        }
        "edit" if args.command.text() == Some("view") => {
            OpenHandsRequest::Tool { fields: reading.input(tool, line.args, &pointer) }
        }
        "edit" | "write" => {
            OpenHandsRequest::Edit { fields: reading.edit(tool, line.args, &pointer) }
        }
        "call_tool_mcp" => {
            let tool = args.name.text().unwrap_or(tool);
            let fields = reading.input(tool, args.arguments, &format!("{pointer}/arguments"));
            OpenHandsRequest::Tool { fields }
        }
        "delegate" => {
            let task: LenientText<'_> = field(args.inputs, "task");
            let prompt = location.optional_text(task.text(), "/args/inputs/task");
            let fields = fields([("type", args.agent.text().into()), ("prompt", prompt)]);
            OpenHandsRequest::Agent { fields }
        }
        "task_tracking" if args.command.text() == Some("plan") || args.task_list.is_some() => {
            OpenHandsRequest::Tasks
        }
        _ => OpenHandsRequest::Tool { fields: reading.input(tool, line.args, &pointer) },
    }
}

fn observation(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &ServerEvent<'_>,
    observation: &str,
    cause: &str,
) {
    let extras: ServerObservationExtras<'_> = object(line.extras);
    let metadata: ShellMetadata = object(extras.metadata);
    let text = line.content.text().unwrap_or_default();
    let code = metadata.exit_code.0.or(extras.exit_code.0).filter(|code| *code != -1);
    let (goes_on, timed_out) = if code.is_none() { without_code(text) } else { (false, false) };
    let edit: FieldMap = fields([
        ("path", extras.path.text().into()),
        ("patch", location.optional_text(extras.diff.text(), "/extras/diff")),
    ]);
    let outcome = match observation {
        "user_rejected" => REFUSED,
        "error" => "failed",
        // If the editor did not read the file, the text is the content of the file, which may begin
        // like an error.
        "read" if extras.impl_source.is("oh_aci") && is_editor_error(text) => "failed",
        _ => "finished",
    };
    let base = format!("{}/extras/task_list", location.base);
    let tasks =
        (observation == "task_tracking").then(|| tasks(extras.task_list, location.place, &base));
    let answer = OpenHandsCallResult {
        outcome,
        text,
        pointer: format!("{}/content", location.base),
        exit_code: code,
        working_dir: metadata.working_dir.0,
        goes_on,
        timed_out,
        edit,
        tasks,
    };
    reading.answer(cause, answer);
}

/// Returns the tasks of a list, by the hashes of their titles. `base` is the JSON pointer of the
/// list.
pub(super) fn tasks(
    list: Option<&RawValue>,
    place: long_text::SourceSpan,
    base: &str,
) -> BTreeMap<String, FieldMap> {
    let items = objects::<OpenHandsTask<'_>>(list).into_iter().filter_map(|(index, task)| {
        let title = task.title.text()?;
        let status = match task.status.text() {
            Some("done") => "completed",
            Some("todo") | None => "pending",
            Some(status) => status,
        };
        let subject = long_text::value(title, place, || format!("{base}/{index}/title"));
        Some((text_hash(title), fields([("subject", subject), ("status", status.into())])))
    });
    items.collect()
}
