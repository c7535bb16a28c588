//! Refs: the current state of all sessions and branches, small enough to be read as a whole.

use crate::model::{
    BranchMetadata, BranchName, BranchNumber, BranchStatus, OperationId, RevisionId,
    SessionMetadata, SessionNumber, StateDigest, Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod session_codec;
mod session_table;

pub use session_table::SessionTable;

/// The head of a branch: its newest revision, or that of its base before it has one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchHead {
    /// The sequence number of the revision.
    pub sequence: u64,
    /// The id of the revision.
    pub id: RevisionId,
    /// Its effective time: its raw time or its parent's effective time, whichever is later.
    pub effective: Timestamp,
    /// The digest of its state.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub digest: StateDigest,
    /// The number of claims in its state.
    pub count: u64,
}

fn write_digest<S: Serializer>(digest: &StateDigest, serializer: S) -> Result<S::Ok, S::Error> {
    RevisionId::from_bytes(digest.to_bytes()).serialize(serializer)
}

fn read_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateDigest, D::Error> {
    Ok(StateDigest::from_bytes(RevisionId::deserialize(deserializer)?.as_bytes()))
}

/// The status and metadata of a branch from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchChange {
    /// The time of the change.
    pub time: Timestamp,
    /// The status from then on.
    pub status: BranchStatus,
    /// The metadata from then on.
    pub metadata: BranchMetadata,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchRefs {
    /// The name of the branch.
    pub name: BranchName,
    /// The branch and sequence number it was forked from (0: before the first revision); `None` for
    /// `main`.
    pub base: Option<(BranchNumber, u64)>,
    /// The newest revision.
    pub head: Option<BranchHead>,
    /// The changes of status and metadata, earliest first; the first is the creation.
    pub changes: Vec<BranchChange>,
    /// Whether its creation was undone.
    pub hidden: bool,
}

/// How far a source has been imported, without the details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookmarkRef {
    /// The source.
    pub source: String,
    /// The number of its bytes that were imported.
    pub bytes: u64,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRefs {
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// The next sequence number of a revision or checkpoint.
    pub next_sequence: u64,
    /// The branches by number.
    pub branches: Vec<BranchRefs>,
    /// The branch checked out.
    pub current_branch: BranchNumber,
    /// The time of its earliest revision, checkpoint or fact.
    pub first_event: Option<Timestamp>,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
    /// The number of its checkpoints.
    pub checkpoints: u64,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// The number of its pages of facts.
    pub pages: u64,
    /// The number of facts recorded in it.
    pub facts: u64,
    /// Operations whose facts are hidden.
    pub hidden: Vec<OperationId>,
    /// The progress of imports from its sources.
    pub bookmarks: Vec<BookmarkRef>,
    /// Microseconds between scheduled checkpoints.
    pub schedule: Option<i64>,
    /// The growing blobs whose beginning was dropped.
    pub dropped: Vec<DroppedText>,
    /// How it was removed, if it was.
    pub gone: Option<SessionRemoval>,
}

/// How a session was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRemoval {
    /// By this pruning operation, which can be undone.
    Pruned(OperationId),
    /// Permanently: only its number and its id are left.
    Swept,
}

/// The dropped beginning of a growing blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedText {
    /// The blob.
    pub blob: String,
    /// The number of dropped bytes.
    pub bytes: u64,
    /// The pruning operation, while it can be undone.
    pub pruning: Option<OperationId>,
}

/// The current state of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreRefs {
    /// The sessions by number.
    pub sessions: SessionTable,
    /// The session that was chosen to be current.
    pub pinned: Option<SessionNumber>,
    /// The session in which a person or a hook last worked.
    pub last_used: Option<SessionNumber>,
    /// The number of purges of secrets: when it changes, caches of older content must be discarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub purges: u64,
}

impl StoreRefs {
    /// Checks that the pinned and the last used session exist.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let known = |session: Option<SessionNumber>| {
            session.is_none_or(|number| (number as usize) < self.sessions.len())
        };
        if !known(self.pinned) || !known(self.last_used) {
            return Err("it names a session that does not exist");
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
