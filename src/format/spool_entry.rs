//! What waits in the spool for its place in the journal: a write that says nothing of numbers, parents or digests,
//! since those are given when it is appended.

use super::codec::{DecodeError, pack, unpack};
use super::record::RecordBytes;
use super::row::{unwrap_as, wrap_as};
use crate::model::{Checkpoint, Operation, SessionMetadata, Timestamp};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"fSp1";
const WHAT: &str = "spooled write";

/// A write that waits. Its operation's id is the name of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpoolEntry {
    /// What it is.
    pub operation: Operation,
    /// Its session: the one of this id, else the one of this agent's own id, else it begins.
    pub session: SessionMetadata,
    /// Whether the session becomes the one last used.
    pub used: bool,
    /// The branch it goes to; `None` for the one checked out.
    pub branch: Option<String>,
    /// The time of the revision that notes make.
    pub time: Timestamp,
    /// Random bytes that everything random in its record is made from.
    pub salt: [u8; 16],
    /// Objects that its facts name.
    pub objects: Vec<RecordBytes>,
    /// Its facts.
    pub pages: Vec<SpooledPage>,
    /// Its notes.
    pub notes: Vec<SpooledNote>,
    /// Its checkpoints.
    pub checkpoints: Vec<SpooledCheckpoint>,
}

/// A page of facts that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledPage {
    /// How many facts.
    pub count: u64,
    /// The earliest.
    pub first: Timestamp,
    /// The latest.
    pub last: Timestamp,
    /// The stored page.
    pub page: RecordBytes,
}

/// A new note that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledNote {
    /// Its id, unless another note has it by then.
    pub id: String,
    /// Its encoded entry.
    pub entry: RecordBytes,
}

/// A checkpoint that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledCheckpoint {
    /// The checkpoint; number and branch are given later, the revision is the last one that was seen.
    pub checkpoint: Checkpoint,
    /// Whether it names a past moment: then its time alone says which revision.
    pub past: bool,
}

impl SpoolEntry {
    /// The bytes of its file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wrap_as(MAGIC, &pack(self))
    }

    /// The write these bytes stand for.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        unpack(WHAT, unwrap_as(MAGIC, WHAT, bytes)?)
    }

    /// Whether there is nothing in it but its session.
    #[must_use]
    pub const fn is_session_only(&self) -> bool {
        self.pages.is_empty() && self.notes.is_empty() && self.checkpoints.is_empty()
    }
}
