//! Tasks: facts.

use super::field::{Text, record};
use super::word::words;

words! {
    /// How far a task is.
    TaskStatus, "task status" {
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Waiting for something.
        Blocked = "blocked",
        /// Given up.
        Cancelled = "cancelled",
        /// Tried without success.
        Failed = "failed",
        /// Taken off the list.
        Deleted = "deleted",
    }
}

record! {
    /// An entry of an agent's own task list.
    Task, Task {
        /// What is to be done, in a line.
        "subject" => subject: Text,
        /// What is to be done, at length.
        "description" => description: Text,
        /// How far it is.
        "status" => status: TaskStatus,
        /// Who does it.
        "owner" => owner: Text,
        /// The sub-agent whose list it stands on.
        "agent" => agent: String,
    }
}
