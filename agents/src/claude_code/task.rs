//! The agent's own task list: a version of a task for each change.

use super::call::hash;
use super::carry::{Asked, OpenCall};
use super::message::parsed;
use super::outcome::{Answer, Noted};
use super::scene::{Scene, Work, fields};
use crate::lenient::{List, Name, Word};
use forge_store::model::{Kind, Map, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskInput<'a> {
    task_id: Name,
    #[serde(borrow)]
    subject: Word<'a>,
    #[serde(borrow)]
    description: Word<'a>,
    #[serde(borrow)]
    active_form: Word<'a>,
    #[serde(borrow)]
    status: Word<'a>,
    #[serde(borrow)]
    owner: Word<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TodoInput<'a> {
    #[serde(borrow)]
    todos: List<Todo<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Todo<'a> {
    #[serde(borrow)]
    content: Word<'a>,
    #[serde(borrow)]
    status: Word<'a>,
    #[serde(borrow)]
    active_form: Word<'a>,
    #[serde(borrow)]
    priority: Word<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Created {
    task: CreatedTask,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CreatedTask {
    id: Name,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Updated {
    success: Option<bool>,
}

/// What a call asks of the task list. `at` leads to its block.
pub(crate) fn asked(
    scene: &Scene<'_>,
    tool: &str,
    input: Option<&RawValue>,
    at: &str,
) -> Option<Asked> {
    if tool == "TodoWrite" {
        let input: TodoInput<'_> = parsed(input).ok()?;
        let todos = input.todos.0.iter().enumerate();
        let items = todos.filter_map(|(index, todo)| {
            let text = todo.content.text()?;
            let pointer = format!("{at}/input/todos/{index}/content");
            let item = fields([
                ("subject", scene.text(text, pointer)),
                ("status", todo.status.text().unwrap_or("pending").into()),
                ("active_form", todo.active_form.text().into()),
                ("priority", todo.priority.text().into()),
            ]);
            Some((hash(text), item))
        });
        return Some(Asked::Todos { items: items.collect() });
    }
    let input: TaskInput<'_> = parsed(input).ok()?;
    let text = |word: &Word<'_>, name: &str| {
        Value::from(word.text().map(|text| scene.text(text, format!("{at}/input/{name}"))))
    };
    let fields = fields([
        ("subject", text(&input.subject, "subject")),
        ("description", text(&input.description, "description")),
        ("active_form", text(&input.active_form, "activeForm")),
        ("status", input.status.text().into()),
        ("owner", input.owner.text().into()),
    ]);
    match (tool, input.task_id.0) {
        ("TaskUpdate", Some(id)) => Some(Asked::TaskChange { id, fields }),
        ("TaskCreate", _) => Some(Asked::NewTask { fields }),
        _ => None,
    }
}

impl Work<'_> {
    /// Carries out what a call asked of the task list.
    pub(crate) fn tasks(&mut self, scene: &Scene<'_>, call: &OpenCall, answer: &Answer<'_>) {
        if answer.error {
            return;
        }
        match &call.asked {
            Asked::NewTask { fields } => {
                let created: Created = answer.object();
                let told = answer.told.as_ref().and_then(|(text, _)| number(text));
                let Some(id) = created.task.id.0.or(told) else { return };
                let mut task = fields.clone();
                task.insert("status".to_owned(), "pending".into());
                self.task(scene, &id, task);
            }
            Asked::TaskChange { id, fields } => {
                if answer.object::<Updated>().success == Some(false) {
                    return;
                }
                let mut task = self.carry.tasks.get(id).cloned().unwrap_or_default();
                task.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
                self.task(scene, id, task);
            }
            Asked::Todos { items } if !matches!(answer.noted, Noted::Text(_)) => {
                self.todos(scene, items);
            }
            _ => {}
        }
    }

    fn task(&mut self, scene: &Scene<'_>, id: &str, task: Map) {
        if self.carry.tasks.get(id) == Some(&task) {
            return;
        }
        self.facts.push(scene.fact(Kind::Task, id, task.clone()));
        self.carry.tasks.insert(id.to_owned(), task);
    }

    /// The list as written now: what is new or changed becomes a version, what was left out unfinished is dropped.
    pub(crate) fn todos(&mut self, scene: &Scene<'_>, items: &BTreeMap<String, Map>) {
        let agent = scene.agent.clone().unwrap_or_default();
        let before = self.carry.todos.insert(agent, items.clone()).unwrap_or_default();
        let status = |task: &Map| task.get("status").cloned();
        let gone = before.iter().filter(|(id, task)| {
            !items.contains_key(*id) && status(task) != Some("completed".into())
        });
        let gone = gone.map(|(id, task)| {
            let mut task = task.clone();
            task.insert("status".to_owned(), "dropped".into());
            (id, task)
        });
        let changed = items
            .iter()
            .filter(|(id, task)| {
                // The same to-do may stand at another place of the list.
                before.get(*id).map(status) != Some(status(task))
            })
            .map(|(id, task)| (id, task.clone()));
        for (id, mut task) in gone.chain(changed) {
            if let Some(agent) = &scene.agent {
                task.insert("agent".to_owned(), agent.as_str().into());
            }
            self.facts.push(scene.fact(Kind::Task, id, task));
        }
    }
}

/// The number in "Task #3 created".
fn number(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('#')?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}
