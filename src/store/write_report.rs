//! The report of a write.

use crate::model::{Checkpoint, Key, Operation, OperationId, RevisionId, SessionMetadata, Value};

/// What a write did.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteReport {
    /// The operation, for `undo`.
    pub operation: OperationId,
    /// The name of the session it was written to.
    pub session: String,
    /// The name of the branch it was written to.
    pub branch: String,
    /// Whether the write began this branch ([`super::SessionWrite::after_or_fork`]).
    pub new_branch: bool,
    /// The number and id of the new revision, if claims changed.
    pub revision: Option<(u64, RevisionId)>,
    /// The checkpoint that was made, completed or replaced; the last one if there are several.
    pub checkpoint: Option<Checkpoint>,
    /// How many checkpoints were made, completed or replaced.
    pub checkpoints: u64,
    /// The id that the write chose for its new claim ([`super::SessionWrite::add_next`]).
    pub new_id: Option<String>,
    /// The claims that changed, with their new values; `None` for a claim that was removed.
    pub changed: Vec<(Key, Option<Value>)>,
    /// How many facts were recorded.
    pub facts: u64,
    /// Warnings, such as contradictions.
    pub warnings: Vec<String>,
    /// Whether the write is in the spool, because another process holds the append lock or the
    /// store is damaged. It is durable and visible at once. Its numbers and its revision id may
    /// change when it is appended.
    pub spooled: bool,
}

impl WriteReport {
    /// Makes the report of a write that has done nothing yet.
    pub(super) fn begun(operation: &Operation, session: &SessionMetadata, branch: &str) -> Self {
        Self {
            operation: operation.id,
            session: session.name.clone(),
            branch: branch.to_owned(),
            new_branch: false,
            revision: None,
            checkpoint: None,
            checkpoints: 0,
            new_id: None,
            changed: Vec::new(),
            facts: 0,
            warnings: Vec::new(),
            spooled: false,
        }
    }

    /// Returns whether the write recorded no claim, no checkpoint and no fact.
    #[must_use]
    pub const fn is_unchanged(&self) -> bool {
        self.revision.is_none() && self.checkpoint.is_none() && self.facts == 0
    }
}
