//! What is kept of a run: its state, its items, their outputs; read from values that may lack anything.

use crate::error::Result;
use crate::model::{Timestamp, Value};
use crate::systems::join;

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunStatus {
    /// Items are on their way.
    #[default]
    Running,
    /// All that was to be done is done.
    Finished,
    /// It was given up.
    Failed,
}

impl RunStatus {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }

    fn read(word: &str) -> Self {
        match word {
            "finished" => Self::Finished,
            "failed" => Self::Failed,
            _ => Self::Running,
        }
    }
}

/// How far an item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemStatus {
    /// It has steps before it.
    #[default]
    Active,
    /// It has come to its end.
    Terminal,
}

impl ItemStatus {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Terminal => "terminal",
        }
    }
}

/// What is kept of a run as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// How far it is.
    pub status: RunStatus,
    /// What it was given. Kept in a claim of its own: it may be large, and counts change often.
    pub input: Option<Value>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// How many items it has.
    pub items: i64,
    /// How many of them have come to their end.
    pub terminal: i64,
}

/// Where an item is, and which way it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunItem {
    /// Its name.
    pub item: String,
    /// How far it is.
    pub status: ItemStatus,
    /// The step recorded last.
    pub step: Option<String>,
    /// What people call that step.
    pub name: Option<String>,
    /// The step to be done next, if that is known.
    pub next: Option<String>,
    /// The place of the last step in the workflow.
    pub order: Option<i64>,
    /// The finished steps in the order in which they were done. One that was done twice stands here twice.
    pub path: Vec<String>,
    /// What it carries along.
    pub data: Option<Value>,
    /// When something of it was recorded last.
    pub recorded_at: Option<Timestamp>,
}

/// What a step made of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutput {
    /// The item.
    pub item: String,
    /// The step.
    pub step: String,
    /// What people call the step.
    pub name: Option<String>,
    /// The place of the step in the workflow.
    pub order: Option<i64>,
    /// What was made.
    pub content: String,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// The id of the output of a step of an item.
///
/// # Errors
/// [`crate::error::Error::Invalid`] for names that cannot be, or are too long together.
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
        Self {
            status: RunStatus::read(&text(value, "status").unwrap_or_default()),
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
        let path = value.field("path").and_then(Value::as_list).unwrap_or_default();
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
        }
    }

    pub(super) fn to_value(&self) -> Value {
        Value::from([
            ("status", self.status.word().into()),
            ("step", self.step.clone().into()),
            ("name", self.name.clone().into()),
            ("next", self.next.clone().into()),
            ("order", self.order.into()),
            ("path", self.path.clone().into()),
            ("data", self.data.clone().unwrap_or_default()),
            ("recorded_at", time_value(self.recorded_at)),
        ])
    }

    /// The step it is at: the next one if that is known, else the one recorded last.
    #[must_use]
    pub fn current_step(&self) -> Option<&str> {
        self.next.as_deref().or(self.step.as_deref())
    }

    /// Whether it has steps before it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == ItemStatus::Active
    }

    /// The finished steps, each once, in the order in which they were first done.
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
