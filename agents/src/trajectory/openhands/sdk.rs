//! Events of OpenHands' agent SDK, which have a `kind`.

use super::{
    EventLocation, OpenHandsCallResult, OpenHandsEvent, OpenHandsReader, OpenHandsRequest,
    ShellMetadata, server, stops, without_code,
};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{fields, flag};
use crate::lenient::{LenientFlag, LenientId, LenientInteger, LenientText, object};
use crate::long_text;
use forge_store::model::Value;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkEvent<'a> {
    llm_message: Option<&'a RawValue>,
    thought: Option<&'a RawValue>,
    reasoning_content: LenientText<'a>,
    tool_name: LenientText<'a>,
    tool_call_id: LenientId,
    tool_call: Option<&'a RawValue>,
    action_id: LenientId,
    rejection_reason: LenientText<'a>,
    error: LenientText<'a>,
    summary: LenientText<'a>,
    sender: LenientId,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkMessage<'a> {
    role: LenientText<'a>,
    content: Option<&'a RawValue>,
    reasoning_content: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkAction<'a> {
    kind: LenientText<'a>,
    command: LenientText<'a>,
    is_input: LenientFlag,
    message: LenientText<'a>,
    thought: LenientText<'a>,
    data: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkObservation<'a> {
    content: Option<&'a RawValue>,
    /// The text in earlier versions.
    output: Option<&'a RawValue>,
    exit_code: LenientInteger,
    timeout: LenientFlag,
    is_error: LenientFlag,
    error: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    path: LenientText<'a>,
    task_list: Option<&'a RawValue>,
}

/// Reads an event of the SDK. Returns whether its kind is one of the SDK.
pub(super) fn event(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    event: &OpenHandsEvent<'_>,
    id: &str,
) -> bool {
    let line: SdkEvent<'_> = object(Some(location.json));
    let answers =
        line.action_id.0.clone().or_else(|| line.tool_call_id.0.clone()).unwrap_or_default();
    match event.kind.text().unwrap_or_default() {
        "MessageEvent" => message(reading, location, &line, event, id),
        "ActionEvent" => action(reading, location, &line, event, id),
        "ObservationEvent" => observation(reading, location, event, &answers),
        "UserRejectObservation" => {
            let answer = OpenHandsCallResult {
                outcome: REFUSED,
                text: line.rejection_reason.text().unwrap_or_default(),
                pointer: format!("{}/rejection_reason", location.base),
                ..OpenHandsCallResult::default()
            };
            reading.answer(&answers, answer);
        }
        "AgentErrorEvent" => {
            let answer = OpenHandsCallResult {
                outcome: "failed",
                text: line.error.text().unwrap_or_default(),
                pointer: format!("{}/error", location.base),
                ..OpenHandsCallResult::default()
            };
            // The event may name only the call, not the event that made it.
            let name = reading.called(&answers).unwrap_or(answers);
            reading.answer(&name, answer);
        }
        "Condensation" => {
            let summary = line.summary.text().map(|it| location.text(it, "/summary"));
            reading.condensed(id, summary);
        }
        kind => return kind.ends_with("Event") || kind.ends_with("Request"),
    }
    true
}

fn message(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &SdkEvent<'_>,
    event: &OpenHandsEvent<'_>,
    id: &str,
) {
    let message: SdkMessage<'_> = object(line.llm_message);
    let content = long_text::content_text(message.content, "/llm_message/content");
    let by_user = event.source.text() == Some("user");
    let value = location.found_text(content.as_ref());
    let role = message.role.text().unwrap_or(if by_user { "user" } else { "assistant" });
    let thinking = message.reasoning_content.text();
    let fact = fields([
        ("role", role.into()),
        ("text", value.clone()),
        ("thinking", location.optional_text(thinking, "/llm_message/reasoning_content")),
        ("meta", flag(role == "user" && !by_user)),
    ]);
    reading.message(id, fact);
    // Another agent may speak in the user's name.
    if let (true, None, Some((text, _))) = (by_user, &line.sender.0, content) {
        let moment = reading.moment.clone();
        reading.run.prompt(&moment, id, &text, value);
    }
}

fn action(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &SdkEvent<'_>,
    event: &OpenHandsEvent<'_>,
    id: &str,
) {
    let action: SdkAction<'_> = object(event.action);
    let thought = long_text::content_text(line.thought, "/thought");
    let kind = action.kind.text().unwrap_or_default();
    let tool = line.tool_name.text().unwrap_or(kind);
    let name = event.id.0.clone().unwrap_or_else(|| id.to_owned());
    let mut value = fields([
        ("role", "assistant".into()),
        ("text", location.found_text(thought.as_ref())),
        ("thinking", location.optional_text(line.reasoning_content.text(), "/reasoning_content")),
    ]);
    match kind {
        "FinishAction" => {
            let message = location.optional_text(action.message.text(), "/action/message");
            value.extend(fields([("text", message)]));
        }
        "ThinkAction" => {
            let thought = location.optional_text(action.thought.text(), "/action/thought");
            value.extend(fields([("thinking", thought)]));
        }
        _ => {
            let named = Value::from([("id", name.as_str().into()), ("name", tool.into())]);
            value.insert("tool_calls".to_owned(), Value::List(vec![named]));
        }
    }
    reading.message(id, value);
    if matches!(kind, "FinishAction" | "ThinkAction") {
        return;
    }
    let request = request_of(reading, location, line, event, &action, (kind, tool));
    reading.call(name, request);
    if let Some(open) = event.id.0.as_ref().and_then(|id| reading.open.get_mut(id)) {
        open.call = line.tool_call_id.0.clone();
    }
}

fn request_of(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    line: &SdkEvent<'_>,
    event: &OpenHandsEvent<'_>,
    action: &SdkAction<'_>,
    (kind, tool): (&str, &str),
) -> OpenHandsRequest {
    let pointer = format!("{}/action", location.base);
    match kind {
        "TerminalAction" | "ExecuteBashAction" | "BashAction" => {
            let command = action.command.text().unwrap_or_default();
            if action.is_input.0 || command.trim().is_empty() || stops(command) {
                return OpenHandsRequest::Poll { stops: stops(command) };
            }
            OpenHandsRequest::Command {
                line: command.to_owned(),
                command: location.text(command, "/action/command"),
                working_dir: None,
            }
        }
        "FileEditorAction" | "StrReplaceEditorAction" if action.command.text() != Some("view") => {
            OpenHandsRequest::Edit { fields: reading.edit(tool, event.action, &pointer) }
        }
        "TaskTrackerAction" if action.command.text() == Some("plan") => OpenHandsRequest::Tasks,
        "MCPToolAction" => OpenHandsRequest::Tool {
            fields: reading.input(tool, action.data, &format!("{pointer}/data")),
        },
        // An invalid call has no action.
        _ if event.action.is_none_or(|raw| raw.get() == "null") => OpenHandsRequest::Tool {
            fields: reading.input(tool, line.tool_call, &format!("{}/tool_call", location.base)),
        },
        _ => OpenHandsRequest::Tool { fields: reading.input(tool, event.action, &pointer) },
    }
}

fn observation(
    reading: &mut OpenHandsReader,
    location: &EventLocation<'_>,
    event: &OpenHandsEvent<'_>,
    answers: &str,
) {
    let seen: SdkObservation<'_> = object(event.observation);
    let metadata: ShellMetadata = object(seen.metadata);
    let base = format!("{}/observation", location.base);
    let error = long_text::content_text(seen.error, "/error");
    let failed = seen.is_error.0 || error.is_some();
    let text = long_text::content_text(seen.content, "/content")
        .or_else(|| long_text::content_text(seen.output, "/output"))
        .or(error);
    let (text, pointer) = text.unwrap_or_default();
    let code = seen.exit_code.0.or(metadata.exit_code.0).filter(|code| *code != -1);
    let (mut goes_on, timed_out) =
        if code.is_none() { without_code(&text) } else { (false, false) };
    // The command still runs after a time-out.
    goes_on |= code.is_none() && seen.timeout.0;
    let tasks = seen
        .task_list
        .map(|list| server::tasks(Some(list), location.place, &format!("{base}/task_list")));
    let answer = OpenHandsCallResult {
        outcome: if failed && code.is_none() { "failed" } else { "finished" },
        text: &text,
        pointer: format!("{base}{pointer}"),
        exit_code: code,
        working_dir: metadata.working_dir.0,
        goes_on,
        timed_out,
        edit: fields([("path", seen.path.text().into())]),
        tasks,
    };
    reading.answer(answers, answer);
}
