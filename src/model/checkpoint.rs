//! Checkpoints and what triggers them.

use super::{BranchNumber, CheckpointId, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// An event at which forge makes a checkpoint by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoTrigger {
    /// A hypothesis was confirmed or rejected, or otherwise changed its status.
    HypothesisStatusChange,
    /// Two beliefs contradict each other.
    NewContradictionDetected,
    /// A test, build or check has finished.
    VerificationComplete,
    /// Another branch was checked out.
    BranchSwitch,
    /// A gap was filled.
    GapFilled,
    /// Source code changed.
    CodeModified,
    /// More than five minutes since the last checkpoint.
    SignificantTimePassed,
    /// An agent is about to lose its context.
    ContextCompactionWarning,
}

/// Why a checkpoint was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointTrigger {
    /// Somebody asked for it.
    Manual,
    /// An event.
    Automatic(AutoTrigger),
    /// Its time had come.
    Scheduled,
}

/// A named moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Names it for ever.
    pub id: CheckpointId,
    /// Its number in the session's one count of revisions and checkpoints.
    pub sequence: u64,
    /// The moment it names.
    pub time: Timestamp,
    /// The branch checked out then.
    pub branch: BranchNumber,
    /// The sequence number of the branch's revision then; `None` before the first.
    pub revision: Option<u64>,
    /// What somebody said about it.
    pub message: String,
    /// Words it is found by, sorted.
    pub tags: Vec<String>,
    /// Why it was made.
    pub trigger: CheckpointTrigger,
    /// Whatever else is known: a compaction's summary and token count, a commit.
    pub body: Value,
    /// Says which event this is the checkpoint of, so that the event makes only one (a compaction, a commit).
    pub key: Option<String>,
}
