//! Spooled writes, which wait to be appended to the journal. They contain no sequence numbers,
//! parents or digests: these are assigned when a write is appended.

use super::codec::packed;
use super::record::RecordBytes;
use crate::model::{Checkpoint, Operation, SessionMetadata, Timestamp};
use serde::{Deserialize, Serialize};

/// A spooled write. The id of its operation is the name of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpoolEntry {
    /// The operation of the write.
    pub operation: Operation,
    /// Its session: the one with this id, otherwise the one with this agent session id, otherwise a
    /// new one.
    pub session: SessionMetadata,
    /// Whether the session becomes the one last used.
    pub used: bool,
    /// The branch it is written to; `None` for the one checked out.
    pub branch: Option<String>,
    /// The time of the revision that the notes make.
    pub time: Timestamp,
    /// Random bytes from which all randomness in its record is derived.
    pub salt: [u8; 16],
    /// Objects that its facts reference.
    pub objects: Vec<RecordBytes>,
    /// The pages of facts.
    pub pages: Vec<SpooledPage>,
    /// The notes.
    pub notes: Vec<SpooledNote>,
    /// The checkpoints.
    pub checkpoints: Vec<SpooledCheckpoint>,
}

/// A spooled page of facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledPage {
    /// The number of facts.
    pub count: u64,
    /// The time of the earliest fact.
    pub first: Timestamp,
    /// The time of the latest fact.
    pub last: Timestamp,
    /// The stored page.
    pub page: RecordBytes,
}

/// A new spooled note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledNote {
    /// Its id, unless another note has that id when it is appended.
    pub id: String,
    /// Its encoded entry.
    pub entry: RecordBytes,
}

/// A spooled checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledCheckpoint {
    /// The checkpoint. Its number and branch are assigned later; its revision is the last one that
    /// was seen.
    pub checkpoint: Checkpoint,
    /// Whether it is about a past moment: then its time alone determines the revision.
    pub past: bool,
}

packed!(SpoolEntry, "spooled write", magic = b"fSp1");

impl SpoolEntry {
    /// Returns whether it contains nothing but its session.
    #[must_use]
    pub const fn is_session_only(&self) -> bool {
        self.pages.is_empty() && self.notes.is_empty() && self.checkpoints.is_empty()
    }
}
