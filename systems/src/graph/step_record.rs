//! What is stored of a checkpoint besides the values of its channels.

use super::damaged;
use super::delta_history::{ChannelHistories, ChannelHistory, HistoryWrite};
use super::label::{label, namespace_label};
use super::pending_write::PendingWrite;
use super::typed_bytes::TypedBytes;
use forge_store::error::Result;
use forge_store::model::{Checkpoint, Key, Kind, Value};
use std::collections::BTreeSet;

/// The body of the checkpoint of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StepRecord {
    /// The id of the thread, if it is not the name of the session.
    pub(super) thread: Option<String>,
    pub(super) namespace: String,
    /// The framework's id of the checkpoint.
    pub(super) id: String,
    pub(super) parent: Option<String>,
    /// The checkpoint of the root graph that this checkpoint belongs to.
    pub(super) root: Option<String>,
    /// The operation that wrote this checkpoint. It distinguishes the checkpoint from another one
    /// that it replaced. The field is not called "token", because such a field would be redacted.
    pub(super) operation: String,
    pub(super) metadata: TypedBytes,
    pub(super) source: Option<String>,
    pub(super) step: Option<i64>,
    pub(super) run_id: Option<String>,
    /// The channels whose values are computed from what the tasks of earlier steps wrote.
    pub(super) delta: Vec<String>,
    /// The histories of such channels, taken over from checkpoints that were dropped.
    pub(super) carried: ChannelHistories,
}

/// Begins the tags by which checkpoints of a namespace are found.
const NAMESPACE_TAG: &str = "ns:";

/// Begins the tags by which checkpoints of a run are found.
const RUN_TAG: &str = "run:";

/// Returns the key of the event by which the checkpoint of a step is found; also the id of the fact
/// with its pending writes.
pub(super) fn step_event(namespace: &str, id: &str) -> String {
    format!("{}/{}", namespace_label(namespace), label(id))
}

/// Returns the key of the claim with the latest step of a namespace.
pub(super) fn step_key(namespace: &str) -> Key {
    Key::new(Kind::GraphStep, namespace_label(namespace))
}

pub(super) fn namespace_tag(namespace: &str) -> String {
    format!("{NAMESPACE_TAG}{}", namespace_label(namespace))
}

pub(super) fn run_tag(run_id: &str) -> String {
    format!("{RUN_TAG}{}", label(run_id))
}

impl StepRecord {
    pub(super) fn tags(&self) -> Vec<String> {
        let source = self.source.as_deref().filter(|source| !source.is_empty()).map(label);
        let run = self.run_id.as_deref().map(run_tag);
        [Some(namespace_tag(&self.namespace)), source, run].into_iter().flatten().collect()
    }

    pub(super) fn to_value(&self) -> Value {
        let delta = (!self.delta.is_empty()).then(|| self.delta.clone());
        let carried = (!self.carried.is_empty()).then(|| carried_value(&self.carried));
        Value::from([
            ("thread", self.thread.clone().into()),
            ("namespace", self.namespace.as_str().into()),
            ("checkpoint", self.id.as_str().into()),
            ("parent", self.parent.clone().into()),
            ("root", self.root.clone().into()),
            ("operation", self.operation.as_str().into()),
            ("metadata", self.metadata.to_value()),
            ("source", self.source.clone().into()),
            ("step", self.step.into()),
            ("run_id", self.run_id.clone().into()),
            ("delta", delta.into()),
            ("carried", carried.unwrap_or_default()),
        ])
    }

    /// Reads the body of a checkpoint; `None` if the checkpoint does not belong to a step, for
    /// example because a person made it.
    pub(super) fn of_checkpoint(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        let body = &checkpoint.body;
        let text = |name: &str| body.field(name).and_then(Value::as_text).map(str::to_owned);
        let (Some(namespace), Some(id), Some(operation)) =
            (text("namespace"), text("checkpoint"), text("operation"))
        else {
            return Ok(None);
        };
        if checkpoint.key.as_deref() != Some(step_event(&namespace, &id).as_str()) {
            return Ok(None);
        }
        let metadata = body.field("metadata").map(TypedBytes::of_value).transpose()?;
        let delta = body.field("delta").and_then(Value::as_list).unwrap_or_default();
        Ok(Some(Self {
            thread: text("thread"),
            namespace,
            id,
            parent: text("parent"),
            root: text("root"),
            operation,
            metadata: metadata.unwrap_or_default(),
            source: text("source"),
            step: body.field("step").and_then(Value::as_i64),
            run_id: text("run_id"),
            delta: delta.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
            carried: body.field("carried").map(carried_of).transpose()?.unwrap_or_default(),
        }))
    }
}

fn carried_value(histories: &ChannelHistories) -> Value {
    let histories = histories.iter().map(|(name, history)| {
        let writes = history.writes.iter().map(|write| {
            Value::from([("task", write.task.as_str().into()), ("value", write.value.to_value())])
        });
        let seed = history.seed.as_ref().map(TypedBytes::to_value);
        Value::from([
            ("channel", name.as_str().into()),
            ("writes", Value::List(writes.collect())),
            ("seed", seed.unwrap_or_default()),
        ])
    });
    Value::List(histories.collect())
}

fn carried_of(value: &Value) -> Result<ChannelHistories> {
    let broken = || damaged("a checkpoint of a graph", "the history it carries is incomplete");
    let histories = value.as_list().unwrap_or_default().iter().map(|history| {
        let name = history.field("channel").and_then(Value::as_text).ok_or_else(broken)?;
        let writes = history.field("writes").and_then(Value::as_list).unwrap_or_default();
        let writes = writes.iter().map(|write| {
            let task = write.field("task").and_then(Value::as_text).ok_or_else(broken)?;
            let value = TypedBytes::of_value(write.field("value").ok_or_else(broken)?)?;
            Ok(HistoryWrite { task: task.to_owned(), value })
        });
        let seed = history.field("seed").map(TypedBytes::of_value).transpose()?;
        let history = ChannelHistory { writes: writes.collect::<Result<_>>()?, seed };
        Ok((name.to_owned(), history))
    });
    histories.collect()
}

/// The claim with the latest step of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepClaim {
    pub(super) namespace: String,
    pub(super) id: String,
    pub(super) operation: String,
    /// The checkpoint without the values of its channels.
    pub(super) head: TypedBytes,
}

impl StepClaim {
    pub(super) fn to_value(&self) -> Value {
        Value::from([
            ("namespace", self.namespace.as_str().into()),
            ("checkpoint", self.id.as_str().into()),
            ("operation", self.operation.as_str().into()),
            ("head", self.head.to_value()),
        ])
    }

    pub(super) fn of_value(value: &Value) -> Result<Self> {
        let text = |name: &str| value.field(name).and_then(Value::as_text).map(str::to_owned);
        match (text("namespace"), text("checkpoint"), text("operation"), value.field("head")) {
            (Some(namespace), Some(id), Some(operation), Some(head)) => {
                Ok(Self { namespace, id, operation, head: TypedBytes::of_value(head)? })
            }
            _ => Err(damaged("a step of a graph", "a field is missing")),
        }
    }
}

/// Returns the key of the claim that lists the calls of subgraphs that have claims. No namespace
/// has this label.
pub(super) fn calls_key() -> Key {
    Key::new(Kind::GraphStep, "calls/")
}

/// Returns the labels of the namespaces of calls as a value.
pub(super) fn calls_value(calls: &BTreeSet<String>) -> Value {
    Value::from([("calls", calls.iter().cloned().collect::<Vec<_>>().into())])
}

/// Reads the labels of the namespaces of calls.
pub(super) fn calls_of(value: &Value) -> BTreeSet<String> {
    let calls = value.field("calls").and_then(Value::as_list).unwrap_or_default();
    calls.iter().filter_map(Value::as_text).map(str::to_owned).collect()
}

/// Returns the value of a fact with what one task wrote.
pub(super) fn writes_value(task: &str, path: &str, writes: &[PendingWrite]) -> Value {
    let writes = writes.iter().map(|write| {
        Value::from([
            ("slot", write.slot.into()),
            ("channel", write.channel.as_str().into()),
            ("value", write.value.to_value()),
        ])
    });
    Value::from([
        ("task", task.into()),
        ("path", path.into()),
        ("writes", Value::List(writes.collect())),
    ])
}

/// Returns the value of a version of this fact that marks all earlier versions as dropped with
/// their checkpoint.
pub(super) fn dropped_value() -> Value {
    Value::from([("dropped", true.into())])
}

/// Returns whether the versions before this version of the fact were dropped.
pub(super) fn is_dropped(value: &Value) -> bool {
    value.field("dropped").and_then(Value::as_bool).unwrap_or(false)
}

/// Reads what one task wrote.
pub(super) fn writes_of(value: &Value) -> Result<Vec<PendingWrite>> {
    let broken = || damaged("the writes of a task of a graph", "a field is missing");
    let text = |value: &Value, name: &str| {
        value.field(name).and_then(Value::as_text).map(str::to_owned).ok_or_else(broken)
    };
    let (task, path) = (text(value, "task")?, text(value, "path")?);
    let writes = value.field("writes").and_then(Value::as_list).unwrap_or_default();
    let writes = writes.iter().map(|write| {
        Ok(PendingWrite {
            task: task.clone(),
            path: path.clone(),
            slot: write.field("slot").and_then(Value::as_i64).ok_or_else(broken)?,
            channel: text(write, "channel")?,
            value: TypedBytes::of_value(write.field("value").ok_or_else(broken)?)?,
        })
    });
    writes.collect()
}

pub(super) fn steps_of(checkpoints: Vec<Checkpoint>) -> Result<Vec<(Checkpoint, StepRecord)>> {
    let mut found = Vec::new();
    for checkpoint in checkpoints {
        if let Some(record) = StepRecord::of_checkpoint(&checkpoint)? {
            found.push((checkpoint, record));
        }
    }
    Ok(found)
}
