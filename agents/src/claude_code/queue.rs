//! Prompts that a person typed while the agent worked. They wait in the client's queue.
//!
//! `queue-operation` lines say what happens to the queue. `enqueue` adds a text. `remove` removes
//! one, because it goes to the model in the middle of a turn or because it was discarded. `dequeue`
//! removes one for a turn of its own: its `user` line follows. `popAll` and `popOne` move texts to
//! the person's input again. Newer clients write an attachment for a text that they pass to the
//! model; older ones write nothing.
//!
//! A prompt becomes a fact once: when its own line comes, when it is removed and has no line, or
//! when the model was called again while the prompt still waited.

use super::call::hash;
use super::line_context::{LineContext, PieceBuilder};
use super::transcript_state::TranscriptState;
use forge_store::model::{FieldMap, Kind, Timestamp};
use serde::{Deserialize, Serialize};

/// How many texts are remembered.
const MAX_QUEUED_TEXTS: usize = 64;
/// Reasons for which the client removes a text that it passes to the model or to an agent.
const DELIVERED: [&str; 3] =
    ["absorbed_mid_turn", "delivered_to_agent", "delivered_as_tool_result"];

/// The client's queue, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PromptQueue(Vec<QueueEntry>);

/// A text in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct QueueEntry {
    /// The hash of the text that was enqueued.
    text: String,
    /// The fields of the prompt if a person typed the text; `None` if the client added it.
    prompt: Option<FieldMap>,
    at: Timestamp,
    place: u64,
    state: QueueEntryState,
    /// Whether a tool's result came after it: the next request to the model should contain it.
    due: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QueueEntryState {
    /// It waits.
    Waiting,
    /// It waits, and is already a fact.
    Recorded,
    /// It was removed, and is already a fact; its own line may follow before the agent speaks
    /// again.
    Leaving,
    /// It was passed to the model, and is not yet a fact; its own line may follow before the agent
    /// speaks again.
    Handed,
    /// Its own line was read; it is still in the queue.
    Delivered,
}

impl PromptQueue {
    /// Adds a text. `prompt` has the fields of the prompt if a person typed it.
    pub(super) fn push(&mut self, scene: &LineContext<'_>, text: &str, prompt: Option<FieldMap>) {
        if self.0.len() == MAX_QUEUED_TEXTS {
            self.0.remove(0);
        }
        self.0.push(QueueEntry {
            text: hash(text),
            prompt,
            at: scene.at,
            place: scene.place.0,
            state: QueueEntryState::Waiting,
            due: false,
        });
    }

    /// Notes that a line has this text as a prompt. Returns whether the text is already a fact.
    /// `in_queue` says that the text may still be removed later.
    pub(super) fn delivers(&mut self, text: &str, in_queue: bool) -> bool {
        let text = hash(text);
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

    /// Notes that a tool's result was written at this time.
    pub(super) fn result(&mut self, at: Timestamp) {
        self.0.iter_mut().filter(|entry| entry.at <= at).for_each(|entry| entry.due = true);
    }

    fn index_of(&self, text: Option<&str>) -> Option<usize> {
        let text = hash(text?);
        self.0.iter().position(|entry| entry.text == text)
    }

    /// The entry that is removed first if the operation does not name a text: typed texts come
    /// before texts of the client.
    fn first(&self) -> Option<usize> {
        let find = |wanted: fn(&QueueEntry) -> bool| self.0.iter().position(wanted);
        find(|entry| entry.state == QueueEntryState::Delivered)
            .or_else(|| find(|entry| entry.prompt.is_some() && entry.waits()))
            .or_else(|| find(QueueEntry::waits))
    }
}

impl PieceBuilder<'_> {
    /// Carries out an operation on the queue other than `enqueue`.
    pub(super) fn queue_operation(
        &mut self,
        scene: &LineContext<'_>,
        operation: &str,
        text: Option<&str>,
        reason: Option<&str>,
    ) {
        let queue = queue(self.carry);
        match operation {
            "remove" => {
                let index = if text.is_some() { queue.index_of(text) } else { queue.first() };
                let Some(entry) = index.and_then(|index| queue.0.get_mut(index)) else { return };
                let (before, mine) = (entry.state, entry.prompt.is_some());
                let delivered = reason.is_none_or(|reason| DELIVERED.contains(&reason));
                entry.state = match before {
                    // A client that gives a reason for a removal writes a line for the text.
                    QueueEntryState::Waiting if reason.is_some() => QueueEntryState::Handed,
                    _ => QueueEntryState::Leaving,
                };
                let entry = entry.clone();
                if !delivered || before == QueueEntryState::Delivered || !mine {
                    queue.0.retain(|other| *other != entry);
                } else if entry.state == QueueEntryState::Leaving
                    && before == QueueEntryState::Waiting
                {
                    self.record(scene, &entry);
                }
            }
            "dequeue" => {
                let index = if text.is_some() { queue.index_of(text) } else { queue.first() };
                let Some(index) = index else { return };
                match queue.0.get_mut(index) {
                    Some(entry) if entry.state == QueueEntryState::Recorded => {
                        entry.state = QueueEntryState::Leaving;
                    }
                    _ => {
                        queue.0.remove(index);
                    }
                }
            }
            "popAll" | "popOne" => match (queue.index_of(text), operation) {
                (Some(index), _) => {
                    queue.0.remove(index);
                }
                (None, "popOne") => {
                    queue.0.pop();
                }
                (None, _) => queue.0.retain(|entry| entry.prompt.is_none()),
            },
            _ => {}
        }
    }

    /// Called when the agent speaks: makes facts of the prompts that were due at its last request.
    pub(super) fn queue_passed(&mut self, scene: &LineContext<'_>) {
        let queue = queue(self.carry);
        if queue.0.is_empty() {
            return;
        }
        let handed = queue.0.iter().filter(|entry| entry.state == QueueEntryState::Handed);
        let mut new: Vec<QueueEntry> = handed.cloned().collect();
        queue.0.retain(|entry| {
            !matches!(entry.state, QueueEntryState::Leaving | QueueEntryState::Handed)
        });
        let due = |entry: &&mut QueueEntry| entry.due && entry.state == QueueEntryState::Waiting;
        for entry in queue.0.iter_mut().filter(due).filter(|entry| !entry.is_slash()) {
            entry.state = QueueEntryState::Recorded;
            new.push(entry.clone());
        }
        new.iter().for_each(|entry| self.record(scene, entry));
    }

    fn record(&mut self, scene: &LineContext<'_>, entry: &QueueEntry) {
        let Some(prompt) = &entry.prompt else { return };
        let name = hash(&format!("{} {}", entry.at, entry.text));
        let id = format!("queue:{}", name.get(..16).unwrap_or(&name));
        let mut fact = scene.fact(Kind::Prompt, &id, prompt.clone());
        (fact.at, fact.place) = (entry.at, entry.place);
        self.facts.push(fact);
    }
}

impl QueueEntry {
    fn waits(&self) -> bool {
        matches!(self.state, QueueEntryState::Waiting | QueueEntryState::Recorded)
    }

    /// Whether it is a command of the client, which waits for the end of the turn.
    fn is_slash(&self) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt.contains_key("tags"))
    }
}

fn queue(carry: &mut TranscriptState) -> &mut PromptQueue {
    &mut carry.claude.queue
}
