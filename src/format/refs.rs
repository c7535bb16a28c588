//! Refs: where everything stands now, small enough to be read whole.

use crate::model::{
    BranchMetadata, BranchName, BranchNumber, BranchStatus, OperationId, RevisionId,
    SessionMetadata, SessionNumber, StateDigest, Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod session_codec;
mod session_table;

pub use session_table::SessionTable;

/// A branch's newest revision (its base's, before it has one of its own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchHead {
    /// Its sequence number.
    pub sequence: u64,
    /// Its id.
    pub id: RevisionId,
    /// Its effective time: its own clock, but never before its parent's.
    pub effective: Timestamp,
    /// The digest of its state.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub digest: StateDigest,
    /// How many claims its state has.
    pub count: u64,
}

fn write_digest<S: Serializer>(digest: &StateDigest, serializer: S) -> Result<S::Ok, S::Error> {
    RevisionId::from_bytes(digest.to_bytes()).serialize(serializer)
}

fn read_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateDigest, D::Error> {
    Ok(StateDigest::from_bytes(RevisionId::deserialize(deserializer)?.as_bytes()))
}

/// What a branch became at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchChange {
    /// When.
    pub time: Timestamp,
    /// Its status from then on.
    pub status: BranchStatus,
    /// Its metadata from then on.
    pub metadata: BranchMetadata,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchRefs {
    /// Its name.
    pub name: BranchName,
    /// The branch and the revision it began with (0: before the first one); `None` for `main`.
    pub base: Option<(BranchNumber, u64)>,
    /// Its newest revision.
    pub head: Option<BranchHead>,
    /// What it became when, earliest first; the first is its making.
    pub changes: Vec<BranchChange>,
    /// Taken back by an undo.
    pub hidden: bool,
}

/// How far a source has been imported, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookmarkRef {
    /// The source.
    pub source: String,
    /// Bytes of it that have been taken.
    pub bytes: u64,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRefs {
    /// What it is.
    pub info: SessionMetadata,
    /// The next number in its count of revisions and checkpoints.
    pub next_sequence: u64,
    /// Its branches by number.
    pub branches: Vec<BranchRefs>,
    /// The branch checked out.
    pub current_branch: BranchNumber,
    /// The time of its earliest revision, checkpoint or fact.
    pub first_event: Option<Timestamp>,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// How many pages of facts it has.
    pub pages: u64,
    /// How many facts were recorded in it.
    pub facts: u64,
    /// Operations whose facts are hidden.
    pub hidden: Vec<OperationId>,
    /// How far its sources have been imported.
    pub bookmarks: Vec<BookmarkRef>,
    /// Microseconds between scheduled checkpoints.
    pub schedule: Option<i64>,
    /// The growing blobs whose beginning was dropped.
    pub dropped: Vec<DroppedText>,
    /// Whether it is out of sight.
    pub gone: Option<SessionRemoval>,
}

/// How a session went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRemoval {
    /// By this pruning, which can be taken back.
    Pruned(OperationId),
    /// For good: only its number and its id are left.
    Swept,
}

/// The beginning of a growing blob, which was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedText {
    /// The blob.
    pub blob: String,
    /// How many bytes of it.
    pub bytes: u64,
    /// The pruning that did it, while that can be taken back.
    pub pruning: Option<OperationId>,
}

/// Where everything stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreRefs {
    /// The sessions by number.
    pub sessions: SessionTable,
    /// The session chosen to be current.
    pub pinned: Option<SessionNumber>,
    /// The session last worked in by a person or a hook.
    pub last_used: Option<SessionNumber>,
    /// How often a secret was purged: whoever remembers content from before forgets it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub purges: u64,
}

impl StoreRefs {
    /// Whether they can be those of a store: whoever follows them comes to an end, and whoever counts on overflows nothing.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let known = |session: Option<SessionNumber>| {
            session.is_none_or(|number| (number as usize) < self.sessions.len())
        };
        if !known(self.pinned) || !known(self.last_used) {
            return Err("it names a session that there is not");
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
