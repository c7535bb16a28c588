//! The prompts that wait in the client's queue.

use crate::text_hash::text_hash;
use forge_store::model::{FieldMap, Timestamp};
use serde::{Deserialize, Serialize};

/// The maximum number of remembered texts.
const MAX_QUEUED_TEXTS: usize = 64;

/// The prompts and other texts in the client's queue, as far as the lines that were read show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PromptQueue(pub(super) Vec<QueueEntry>);

/// A text in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QueueEntry {
    /// The hash of the text that was enqueued.
    pub(super) text: String,
    /// The fields of the prompt if a person typed the text; `None` if the client added it.
    pub(super) prompt: Option<FieldMap>,
    /// When the text was enqueued.
    pub(super) at: Timestamp,
    /// The offset in bytes of the line that enqueued it.
    pub(super) place: u64,
    pub(super) state: QueueEntryState,
    /// Whether a tool's result came after the text, so that the next request to the model should
    /// contain the text.
    pub(super) due: bool,
}

/// How far a text of the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueueEntryState {
    /// It is in the queue, and is not yet a fact.
    Waiting,
    /// It is in the queue, and is already a fact.
    Recorded,
    /// It was removed, and is already a fact. Its own line may follow before the agent speaks
    /// again.
    Leaving,
    /// It was passed to the model, and is not yet a fact. Its own line may follow before the agent
    /// speaks again.
    Handed,
    /// Its own line was read, and it is still in the queue.
    Delivered,
}

impl PromptQueue {
    /// Adds a text that was enqueued at this time, by the line at offset `place`. `prompt` has the
    /// fields of the prompt if a person typed the text. If the queue is full, the oldest text is
    /// forgotten.
    pub(super) fn push(
        &mut self,
        (at, place): (Timestamp, u64),
        text: &str,
        prompt: Option<FieldMap>,
    ) {
        if self.0.len() == MAX_QUEUED_TEXTS {
            self.0.remove(0);
        }
        self.0.push(QueueEntry {
            text: text_hash(text),
            prompt,
            at,
            place,
            state: QueueEntryState::Waiting,
            due: false,
        });
    }

    /// Notes that a line with this text as a prompt was read. Returns whether the text is already a
    /// fact. `in_queue` says that a later line may still remove the text from the queue.
    pub(super) fn note_delivery(&mut self, text: &str, in_queue: bool) -> bool {
        let text = text_hash(text);
        let Some(index) = self.0.iter().position(|entry| entry.text == text) else { return false };
        let Some(entry) = self.0.get_mut(index) else { return false };
        let recorded = matches!(entry.state, QueueEntryState::Recorded | QueueEntryState::Leaving);
        if in_queue && entry.state == QueueEntryState::Waiting {
            entry.state = QueueEntryState::Delivered;
        } else {
            self.0.remove(index);
        }
        recorded
    }

    /// Notes that a tool's result was written at this time. The texts that were enqueued until then
    /// are due.
    pub(super) fn note_tool_result(&mut self, at: Timestamp) {
        self.0.iter_mut().filter(|entry| entry.at <= at).for_each(|entry| entry.due = true);
    }

    /// Returns the index of the first entry in the queue that has this text, or else of the first
    /// one that left the queue.
    pub(super) fn index_of(&self, text: Option<&str>) -> Option<usize> {
        let text = text_hash(text?);
        let find = |in_queue: bool| {
            self.0.iter().position(|entry| entry.text == text && entry.is_in_queue() == in_queue)
        };
        find(true).or_else(|| find(false))
    }

    /// Returns the index of the entry that an operation without a text removes: the first delivered
    /// entry, or else the first waiting text that a person typed, or else the first waiting text.
    pub(super) fn next_to_remove(&self) -> Option<usize> {
        let find = |wanted: fn(&QueueEntry) -> bool| self.0.iter().position(wanted);
        find(|entry| entry.state == QueueEntryState::Delivered)
            .or_else(|| find(|entry| entry.prompt.is_some() && entry.waits()))
            .or_else(|| find(QueueEntry::waits))
    }
}

impl QueueEntry {
    /// Returns whether no line has removed the text from the queue yet.
    pub(super) fn is_in_queue(&self) -> bool {
        !matches!(self.state, QueueEntryState::Leaving | QueueEntryState::Handed)
    }

    /// Returns whether the text is in the queue and no line of its own was read yet.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, QueueEntryState::Waiting | QueueEntryState::Recorded)
    }

    /// Returns whether the text is a command of the client, which waits for the end of the turn.
    pub(super) fn is_client_command(&self) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt.contains_key("tags"))
    }
}
