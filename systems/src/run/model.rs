//! The stored state of a run: the run, its items and their outputs, read from values in which any
//! field may be absent.

use crate::join;
use forge_store::error::Result;
use forge_store::model::{Timestamp, Value};
use serde::Serialize;

words! {
    /// The status of a run.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RunStatus {
        /// The run is in progress.
        #[default]
        Running = "running",
        /// All items are done.
        Finished = "finished",
        /// The run was given up.
        Failed = "failed",
    }
}

words! {
    /// The status of an item.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ItemStatus {
        /// The item has steps left.
        #[default]
        Active = "active",
        /// The item is done.
        Terminal = "terminal",
    }
}

/// The stored state of a run as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// The status.
    pub status: RunStatus,
    /// The input. Stored as a claim of its own, because it may be large and the counts change
    /// often.
    pub input: Option<Value>,
    /// When the run began.
    pub started_at: Option<Timestamp>,
    /// When the run ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// Why the run failed.
    pub error: Option<String>,
    /// Number of items.
    pub items: i64,
    /// Number of items that are done.
    pub terminal: i64,
}

/// The position of an item, and the steps it has finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunItem {
    /// The name of the item.
    pub item: String,
    /// The status.
    pub status: ItemStatus,
    /// The step recorded last.
    pub step: Option<String>,
    /// The display name of that step.
    pub name: Option<String>,
    /// The next step, if known.
    pub next: Option<String>,
    /// The position of the last step in the workflow.
    pub order: Option<i64>,
    /// The finished steps in order of completion. A step that was done twice is listed twice.
    pub path: Vec<String>,
    /// Caller-defined data that stays with the item.
    pub data: Option<Value>,
    /// When something about the item was last recorded.
    pub recorded_at: Option<Timestamp>,
    /// The numbers of the rows that were imported, in this order.
    pub rows: Vec<i64>,
}

/// The output of a step for an item. It is serialised without the item, which lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepOutput {
    /// The name of the item.
    #[serde(skip)]
    pub item: String,
    /// The name of the step.
    pub step: String,
    /// The display name of the step.
    pub name: Option<String>,
    /// The position of the step in the workflow.
    pub order: Option<i64>,
    /// The output itself.
    pub content: String,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// Returns the id of the output of a step of an item.
///
/// # Errors
/// [`forge_store::error::Error::Invalid`] for names that are not valid, or too long together.
pub fn output_id(item: &str, step: &str) -> Result<String> {
    join(&[item, step])
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.field(field).and_then(Value::as_text).map(str::to_owned)
}

pub(super) fn time(value: &Value, field: &str) -> Option<Timestamp> {
    value.field(field).and_then(Value::as_text).and_then(Timestamp::parse_rfc3339)
}

fn time_value(time: Option<Timestamp>) -> Value {
    time.map(|time| time.to_string()).into()
}

impl RunState {
    pub(super) fn read(value: &Value) -> Self {
        let count = |field| value.field(field).and_then(Value::as_i64).unwrap_or(0);
        let status = value.field("status").and_then(Value::as_text).and_then(RunStatus::from_word);
        Self {
            status: status.unwrap_or_default(),
            input: None,
            started_at: time(value, "started_at"),
            ended_at: time(value, "ended_at"),
            error: text(value, "error"),
            items: count("items"),
            terminal: count("terminal"),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        Value::from([
            ("status", self.status.word().into()),
            ("started_at", time_value(self.started_at)),
            ("ended_at", time_value(self.ended_at)),
            ("error", self.error.clone().into()),
            ("items", self.items.into()),
            ("terminal", self.terminal.into()),
        ])
    }
}

impl RunItem {
    pub(super) fn read(item: &str, value: &Value) -> Self {
        let terminal = value.field("status").and_then(Value::as_text) == Some("terminal");
        let list = |name| value.field(name).and_then(Value::as_list).unwrap_or_default();
        let (path, rows) = (list("path"), list("rows"));
        Self {
            item: item.to_owned(),
            status: if terminal { ItemStatus::Terminal } else { ItemStatus::Active },
            step: text(value, "step"),
            name: text(value, "name"),
            next: text(value, "next"),
            order: value.field("order").and_then(Value::as_i64),
            path: path.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
            data: value.field("data").cloned(),
            recorded_at: time(value, "recorded_at"),
            rows: rows.iter().filter_map(Value::as_i64).collect(),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        let rows = (!self.rows.is_empty()).then(|| Value::from(self.rows.clone()));
        Value::from([
            ("status", self.status.word().into()),
            ("step", self.step.clone().into()),
            ("name", self.name.clone().into()),
            ("next", self.next.clone().into()),
            ("order", self.order.into()),
            ("path", self.path.clone().into()),
            ("data", self.data.clone().unwrap_or_default()),
            ("recorded_at", time_value(self.recorded_at)),
            ("rows", rows.unwrap_or_default()),
        ])
    }

    /// Returns the current step: the next one if known, else the one recorded last.
    #[must_use]
    pub fn current_step(&self) -> Option<&str> {
        self.next.as_deref().or(self.step.as_deref())
    }

    /// Returns whether it has steps left.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == ItemStatus::Active
    }

    /// Returns the finished steps, each once, in the order in which they were first done.
    #[must_use]
    pub fn steps(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        self.path.iter().map(String::as_str).filter(|step| seen.insert(*step)).collect()
    }
}

impl StepOutput {
    pub(super) fn read(item: &str, step: &str, value: &Value, recorded_at: Timestamp) -> Self {
        Self {
            item: item.to_owned(),
            step: step.to_owned(),
            name: text(value, "name"),
            order: value.field("order").and_then(Value::as_i64),
            content: text(value, "content").unwrap_or_default(),
            recorded_at,
        }
    }
}
