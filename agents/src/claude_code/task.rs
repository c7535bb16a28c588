//! The agent's own task list: a version of a task for each change.

use super::line::parsed;
use super::line_context::{LineContext, PieceBuilder, fields};
use super::open_call::{CallRequest, OpenCall};
use super::tool_result::{ClaudeCallResult, ToolUseResult};
use crate::lenient::{LenientBool, LenientId, LenientList, LenientText, field};
use crate::text_hash::text_hash;
use forge_store::model::{FieldMap, Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct TaskInput<'a> {
    task_id: LenientId,
    subject: LenientText<'a>,
    description: LenientText<'a>,
    active_form: LenientText<'a>,
    status: LenientText<'a>,
    owner: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TodoInput<'a> {
    #[serde(borrow)]
    todos: LenientList<ClaudeTodo<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ClaudeTodo<'a> {
    content: LenientText<'a>,
    status: LenientText<'a>,
    active_form: LenientText<'a>,
    priority: LenientText<'a>,
}

/// Returns the change of the task list that a call requests, if it requests one. `at` is the JSON
/// pointer to the block of the call.
pub(crate) fn task_request(
    context: &LineContext,
    tool: &str,
    input: Option<&RawValue>,
    at: &str,
) -> Option<CallRequest> {
    if tool == "TodoWrite" {
        let input: TodoInput<'_> = parsed(input).ok()?;
        let todos = input.todos.0.iter().enumerate();
        let items = todos.filter_map(|(index, todo)| {
            let text = todo.content.text()?;
            let pointer = format!("{at}/input/todos/{index}/content");
            let item = fields([
                ("subject", context.text(text, pointer)),
                ("status", todo.status.text().unwrap_or("pending").into()),
                ("active_form", todo.active_form.text().into()),
                ("priority", todo.priority.text().into()),
            ]);
            Some((text_hash(text), item))
        });
        return Some(CallRequest::Todos { items: items.collect() });
    }
    let input: TaskInput<'_> = parsed(input).ok()?;
    let text = |word: &LenientText<'_>, name: &str| {
        Value::from(word.text().map(|text| context.text(text, format!("{at}/input/{name}"))))
    };
    let fields = fields([
        ("subject", text(&input.subject, "subject")),
        ("description", text(&input.description, "description")),
        ("active_form", text(&input.active_form, "activeForm")),
        ("status", input.status.text().into()),
        ("owner", input.owner.text().into()),
    ]);
    match (tool, input.task_id.0) {
        ("TaskUpdate", Some(id)) => Some(CallRequest::TaskChange { id, fields }),
        ("TaskCreate", _) => Some(CallRequest::NewTask { fields }),
        _ => None,
    }
}

impl PieceBuilder<'_> {
    /// Applies the change that a call requested to the task list. A call whose result is an error
    /// is recorded as the use of a tool.
    pub(crate) fn change_tasks(
        &mut self,
        id: &str,
        call: &OpenCall,
        answer: &ClaudeCallResult<'_>,
    ) {
        if answer.error {
            self.tool(id, call, answer);
            return;
        }
        match &call.request {
            CallRequest::NewTask { fields } => {
                let LenientId(created) = field(field(answer.recorded(), "task"), "id");
                let shown_id =
                    answer.shown_to_agent.as_ref().and_then(|(text, _)| task_number(text));
                let Some(id) = created.or(shown_id) else { return };
                let mut task = fields.clone();
                task.insert("status".to_owned(), "pending".into());
                self.push_task(&id, task);
            }
            CallRequest::TaskChange { id, fields } => {
                let LenientBool(success) = field(answer.recorded(), "success");
                let unchanged = |text: &str| {
                    let first = text.lines().next().unwrap_or_default();
                    text.starts_with("Task ") && text.trim_end().ends_with(" not found")
                        || first.ends_with(" hook feedback:")
                };
                if success == Some(false) || (success.is_none() && answer.says(unchanged)) {
                    return;
                }
                let mut task = self.carry.tasks.get(id).cloned().unwrap_or_default();
                task.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
                self.push_task(id, task);
            }
            CallRequest::Todos { items }
                if !matches!(answer.tool_use_result, ToolUseResult::Text(_)) =>
            {
                self.push_todos(items);
            }
            _ => {}
        }
    }

    /// Adds a version of a task, unless it is the same as the last one.
    fn push_task(&mut self, id: &str, task: FieldMap) {
        if self.carry.tasks.get(id) == Some(&task) {
            return;
        }
        self.fact(Kind::Task, id, task.clone());
        self.carry.tasks.insert(id.to_owned(), task);
    }

    /// Adds a version of each to-do that is new or has another status than in the last list. An
    /// unfinished to-do that is missing gets the status `dropped`.
    pub(crate) fn push_todos(&mut self, items: &BTreeMap<String, FieldMap>) {
        let agent = self.line.agent.clone().unwrap_or_default();
        let before = self.carry.todos.insert(agent, items.clone()).unwrap_or_default();
        let status = |task: &FieldMap| task.get("status").cloned();
        let dropped = before.iter().filter(|(id, task)| {
            !items.contains_key(*id) && status(task) != Some("completed".into())
        });
        let dropped = dropped.map(|(id, task)| {
            let mut task = task.clone();
            task.insert("status".to_owned(), "dropped".into());
            (id, task)
        });
        let changed = items
            .iter()
            .filter(|(id, task)| {
                // Only the status is compared: a long text differs by its place in the list.
                before.get(*id).map(status) != Some(status(task))
            })
            .map(|(id, task)| (id, task.clone()));
        for (id, mut task) in dropped.chain(changed) {
            if let Some(agent) = &self.line.agent {
                task.insert("agent".to_owned(), agent.as_str().into());
            }
            self.fact(Kind::Task, id, task);
        }
    }
}

/// Returns the number in a text such as "Task #3 created".
fn task_number(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('#')?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}
