//! The input for a new checkpoint.

use crate::model::{CheckpointTrigger, Timestamp, Value};

/// A checkpoint to make or to complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// The message of the checkpoint.
    pub message: String,
    /// The tags by which it is found.
    pub tags: Vec<String>,
    /// Why it is made.
    pub trigger: CheckpointTrigger,
    /// Its time, if it is about the past; `None` for the time of the write.
    pub at: Option<Timestamp>,
    /// Further data, by field.
    pub body: Value,
    /// The key of the event that the checkpoint is for. If the event already has a checkpoint, a
    /// new one with a past time (`at`) completes it: everything is replaced except for the id, the
    /// number, and fields of the body that only the known checkpoint has. A new one without `at`
    /// changes nothing. With [`super::SessionWrite::replacing_checkpoint`], a new one replaces all
    /// but the id and the number.
    pub key: Option<String>,
}

impl NewCheckpoint {
    /// Makes a manual checkpoint.
    pub fn manual(message: impl Into<String>) -> Self {
        Self::new(message, CheckpointTrigger::Manual)
    }

    /// Makes a checkpoint with this trigger.
    pub fn new(message: impl Into<String>, trigger: CheckpointTrigger) -> Self {
        Self {
            message: message.into(),
            tags: Vec::new(),
            trigger,
            at: None,
            body: Value::Null,
            key: None,
        }
    }

    /// Sets the tags.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a time in the past.
    #[must_use]
    pub const fn at(mut self, time: Timestamp) -> Self {
        self.at = Some(time);
        self
    }
}
