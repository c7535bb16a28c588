//! Tasks: facts.

use super::field::{FactText, record};

record! {
    /// An entry of an agent's own task list.
    Task, Task {
        /// What is to be done, in a line.
        "subject" => subject: FactText,
        /// What is to be done, at length.
        "description" => description: FactText,
        /// How far it is, in the agent's own word: pending, in_progress, completed, dropped and
        /// others.
        "status" => status: FactText,
        /// Who works on it.
        "owner" => owner: FactText,
        /// The sub-agent whose list it is on.
        "agent" => agent: String,
    }
}

impl Task {
    /// Returns whether the task is open. A task without a status, or with an unknown one, counts as
    /// open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let status = self.status.as_ref().map_or("pending", FactText::preview);
        !matches!(status, "completed" | "done" | "cancelled" | "canceled" | "deleted" | "dropped")
    }
}
