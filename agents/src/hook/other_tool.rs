//! The fact of a use of a tool that is no command, edit, task list or sub-agent, such as a read, a
//! search, a fetch or a question.

use super::command_end::model_text;
use super::event::ToolUse;
use super::tool::{MAX_DURATION_MS, without_middle};
use crate::claude_code::line_context::fields;
use crate::claude_code::tool::{LAUNCHED, goes_on};
use crate::long_text::{INLINE_BYTES, beginning};
use crate::tool_use::{MAX_ENTRIES, MAX_LEVELS};
use forge_store::model::{FieldMap, Timestamp, Value};
use serde_json::Value as Json;

/// Tools for the agent's own task list, and tools that start a sub-agent: their results are facts
/// of other kinds.
const TASK_AND_AGENT_TOOLS: [&str; 12] = [
    "Agent", "Task", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TodoWrite", "task",
    "todoread", "todowrite", "update_plan", "write_todos",
];

/// Returns the fields of the fact. `None` without the name of the tool, and for a use of a tool in
/// [`TASK_AND_AGENT_TOOLS`] that was not refused.
pub(super) fn fields_of(used: &ToolUse, now: Timestamp) -> Option<FieldMap> {
    if used.tool.is_empty()
        || (used.refused.is_none() && TASK_AND_AGENT_TOOLS.contains(&used.tool.as_str()))
    {
        return None;
    }
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| used.input.get(*name)?.as_str());
        found.map(|text| beginning(text, INLINE_BYTES).to_owned())
    };
    let (outcome, reason) = match (&used.refused, &used.error) {
        (Some(reason), _) => ("refused", Some(reason.as_str())),
        (None, Some(_)) if used.interrupted => ("interrupted", None),
        (None, Some(error)) => ("failed", Some(error.as_str())),
        (None, None) if is_in_background(&used.response) => ("unknown", None),
        (None, None) => ("finished", None),
    };
    let reason = reason.filter(|reason| !reason.is_empty());
    let took = used.duration_ms.filter(|took| (0..=MAX_DURATION_MS).contains(took));
    Some(fields([
        ("tool", used.tool.as_str().into()),
        (
            "path",
            text(&["file_path", "filePath", "notebook_path", "absolute_path", "path", "dir_path"])
                .into(),
        ),
        ("pattern", text(&["pattern"]).into()),
        ("address", text(&["url"]).into()),
        ("query", text(&["query"]).into()),
        ("input", stored_input(&used.input, 0)),
        ("outcome", outcome.into()),
        ("reason", reason.map(without_middle).into()),
        ("called_at", took.map(|took| now.plus_micros(-took * 1000).to_string()).into()),
        ("duration_ms", took.into()),
    ]))
}

/// Whether a response only says that the call goes on in the background.
fn is_in_background(response: &Json) -> bool {
    let status = response.get("status").and_then(Json::as_str);
    status == Some(LAUNCHED) || model_text(response).is_some_and(|text| goes_on(&text))
}

/// Returns what the fact stores of the input of a tool. Long texts and lists are shortened; a list
/// or object below [`MAX_LEVELS`] is stored as JSON text, unless that is too long. `level` is the
/// number of lists and objects around the value.
fn stored_input(value: &Json, level: usize) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(real)) => real.into(),
            (None, None) => Value::Null,
        },
        Json::String(text) => without_middle(text).into(),
        Json::Array(_) | Json::Object(_) if level >= MAX_LEVELS => {
            let json = value.to_string();
            if json.len() <= INLINE_BYTES { json.into() } else { Value::Null }
        }
        Json::Array(list) => Value::List(
            list.iter().take(MAX_ENTRIES).map(|value| stored_input(value, level + 1)).collect(),
        ),
        Json::Object(map) => {
            let members = map.iter().take(MAX_ENTRIES);
            let members =
                members.map(|(name, value)| (name.clone(), stored_input(value, level + 1)));
            Value::Map(members.filter(|(_, value)| *value != Value::Null).collect())
        }
    }
}
