//! Prompts that a person typed while the agent worked. They wait in the client's queue.
//!
//! `queue-operation` lines say what happens to the queue. `enqueue` adds a text. `remove` removes a
//! text that goes to the model in the middle of a turn, or that was discarded. `dequeue` removes a
//! text that begins a turn of its own: the `user` line of the text follows. `popAll` and `popOne`
//! move texts back to the person's input. When a client passes a text to the model, a newer client
//! writes an attachment with the text, and an older client writes nothing.
//!
//! A prompt becomes a fact only once: when its own line is read, when it is removed and has no
//! line, or when the model answers a request that should have contained the waiting prompt.

use super::line_context::PieceBuilder;
use super::prompt_queue::{PromptQueue, QueueEntry, QueueEntryState};
use super::transcript_state::TranscriptState;
use crate::text_hash::text_hash;
use forge_store::model::Kind;

/// Reasons for which the client removes a text that it passes to the model or to an agent.
const DELIVERED: [&str; 3] =
    ["absorbed_mid_turn", "delivered_to_agent", "delivered_as_tool_result"];

impl PieceBuilder<'_> {
    /// Applies an operation other than `enqueue` to the queue.
    pub(super) fn queue_operation(
        &mut self,
        operation: &str,
        text: Option<&str>,
        reason: Option<&str>,
    ) {
        let queue = queue(self.carry);
        match operation {
            "remove" => {
                let index =
                    if text.is_some() { queue.index_of(text) } else { queue.next_to_remove() };
                let Some(entry) = index.and_then(|index| queue.0.get_mut(index)) else { return };
                let (before, is_typed) = (entry.state, entry.prompt.is_some());
                let delivered = reason.is_none_or(|reason| DELIVERED.contains(&reason));
                entry.state = match before {
                    // A client that gives a reason for a removal writes a line for the text.
                    QueueEntryState::Waiting if reason.is_some() => QueueEntryState::Handed,
                    _ => QueueEntryState::Leaving,
                };
                let entry = entry.clone();
                if !delivered || before == QueueEntryState::Delivered || !is_typed {
                    queue.0.retain(|other| *other != entry);
                } else if entry.state == QueueEntryState::Leaving
                    && before == QueueEntryState::Waiting
                {
                    self.record(&entry);
                }
            }
            "dequeue" => {
                let index =
                    if text.is_some() { queue.index_of(text) } else { queue.next_to_remove() };
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

    /// Records the prompts that the model has received, when a message of the model is read: those
    /// that were passed to it, and those that were due at its last request. Entries that left the
    /// queue are removed.
    pub(super) fn queue_passed(&mut self) {
        let queue = queue(self.carry);
        if queue.0.is_empty() {
            return;
        }
        let handed = queue.0.iter().filter(|entry| entry.state == QueueEntryState::Handed);
        let mut new: Vec<QueueEntry> = handed.cloned().collect();
        queue.0.retain(QueueEntry::is_in_queue);
        let due = |entry: &&mut QueueEntry| entry.due && entry.state == QueueEntryState::Waiting;
        for entry in queue.0.iter_mut().filter(due).filter(|entry| !entry.is_client_command()) {
            entry.state = QueueEntryState::Recorded;
            new.push(entry.clone());
        }
        new.iter().for_each(|entry| self.record(entry));
    }

    fn record(&mut self, entry: &QueueEntry) {
        let Some(prompt) = &entry.prompt else { return };
        let name = text_hash(&format!("{} {}", entry.at, entry.text));
        let id = format!("queue:{}", name.get(..16).unwrap_or(&name));
        let mut fact = self.line.fact(Kind::Prompt, &id, prompt.clone());
        (fact.at, fact.place) = (entry.at, entry.place);
        self.facts.push(fact);
    }
}

fn queue(carry: &mut TranscriptState) -> &mut PromptQueue {
    &mut carry.claude.queue
}
