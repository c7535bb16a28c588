//! Checkpoints and their triggers.

use super::{BranchNumber, CheckpointId, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// An event for which forge makes a checkpoint automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoTrigger {
    /// The status of a hypothesis changed.
    HypothesisStatusChange,
    /// Two beliefs contradict each other, or evidence contradicts a decided hypothesis.
    NewContradictionDetected,
    /// A test, build or check has finished.
    VerificationComplete,
    /// Another branch was checked out.
    BranchSwitch,
    /// A gap was filled.
    GapFilled,
    /// Source code changed.
    CodeModified,
    /// More than five minutes have passed since the last checkpoint.
    SignificantTimePassed,
    /// An agent is about to lose its context.
    ContextCompactionWarning,
}

/// Why a checkpoint was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointTrigger {
    /// A person or agent asked for it.
    Manual,
    /// An event triggered it.
    Automatic(AutoTrigger),
    /// A schedule triggered it.
    Scheduled,
}

/// A named moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The permanent id.
    pub id: CheckpointId,
    /// The sequence number, shared with the revisions of the session.
    pub sequence: u64,
    /// The time of the named moment.
    pub time: Timestamp,
    /// The branch that was current at that time.
    pub branch: BranchNumber,
    /// The sequence number of the branch's revision at that time; `None` before the first.
    pub revision: Option<u64>,
    /// The message given for it.
    pub message: String,
    /// Words that find it, sorted.
    pub tags: Vec<String>,
    /// Why it was made.
    pub trigger: CheckpointTrigger,
    /// Other data: the summary and token count of a compaction, a commit.
    pub body: Value,
    /// The event key: each event (a compaction, a commit) has at most one checkpoint.
    pub key: Option<String>,
}

impl Checkpoint {
    /// Makes a checkpoint without a message, before the first revision of `main`.
    #[must_use]
    pub const fn new(id: CheckpointId, sequence: u64, time: Timestamp) -> Self {
        Self {
            id,
            sequence,
            time,
            branch: 0,
            revision: None,
            message: String::new(),
            tags: Vec::new(),
            trigger: CheckpointTrigger::Manual,
            body: Value::Null,
            key: None,
        }
    }

    /// Returns whether an agent's context was compacted at this moment, as far as is known. That is
    /// not so if a compaction was announced, and the conversation continued without one.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        let has = |field| self.body.field(field).is_some();
        self.trigger == CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning)
            && (!has("not_followed") || has("done_at") || has("boundary"))
    }

    /// The message of a checkpoint that was made because time had passed, if nothing else is known.
    pub const TIME_PASSED: &'static str = "more than five minutes passed";

    /// Returns whether the message says only that time had passed. Imports by earlier versions of
    /// forge wrote the number of minutes into the message.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.trigger == CheckpointTrigger::Automatic(AutoTrigger::SignificantTimePassed)
            && (self.message == Self::TIME_PASSED
                || self.message.ends_with(" minutes since the last checkpoint"))
    }
}
