//! Records: the content of one append to the journal.

use super::codec::{DecodeError, is_false, pack_into, packed, unpack};
use super::refs::{BranchChange, BranchHead, StoreHead};
use super::row::BookmarkRow;
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, ObjectId, Operation, OperationId, SessionMetadata,
    SessionNumber, Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Bytes inside a record.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RecordBytes(pub Vec<u8>);

impl fmt::Debug for RecordBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

impl Serialize for RecordBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for RecordBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RecordBytesVisitor;
        impl de::Visitor<'_> for RecordBytesVisitor {
            type Value = RecordBytes;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<RecordBytes, E> {
                Ok(RecordBytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<RecordBytes, E> {
                Ok(RecordBytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(RecordBytesVisitor)
    }
}

/// A part of a revision's delta.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeltaPart {
    /// The stored object itself.
    Inline(RecordBytes),
    /// The name of an object in an earlier record.
    Named(ObjectId),
}

impl DeltaPart {
    fn inline_bytes(&self) -> usize {
        if let Self::Inline(bytes) = self { bytes.0.len() } else { 0 }
    }
}

/// One change in a record. Names and fields are part of the format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum RecordChange {
    /// The state of the store before this record: the first change in every segment.
    Head(Box<StoreHead>),
    /// A session is created; its number is the count of sessions before it. It has the branch
    /// `main`.
    Session { info: Box<SessionMetadata> },
    /// A session is begun that will replace another one with the same id. Until then the new
    /// session is hidden. Its number is the count of sessions before it.
    SessionBegun { info: Box<SessionMetadata> },
    /// A session that was begun to replace another one replaces it now: everything of the other one
    /// is permanently deleted.
    SessionReplaced {
        /// The new session.
        session: SessionNumber,
        /// The session that it replaces.
        of: SessionNumber,
    },
    /// A session that was begun to replace another one is given up: everything of the begun session
    /// is permanently deleted.
    SessionAbandoned { session: SessionNumber },
    /// The session that is current for commands that name none; `None` makes it the one last used.
    Pinned {
        /// The session, if one is pinned.
        session: Option<SessionNumber>,
    },
    /// A person or a hook worked in this session. It is the current session unless another one is
    /// pinned.
    Used { session: SessionNumber },
    /// A branch is created; its number is the count of the session's branches before it.
    Branch {
        session: SessionNumber,
        /// The name of the branch.
        name: String,
        /// The branch it was forked from.
        base: BranchNumber,
        /// The revision it was forked from, if that branch had one.
        head: Option<BranchHead>,
        /// The time of its creation, its status and its metadata.
        change: Box<BranchChange>,
    },
    /// The status or the metadata of a branch change.
    BranchChanged {
        session: SessionNumber,
        branch: BranchNumber,
        /// The time of the change, the new status and metadata.
        change: Box<BranchChange>,
    },
    /// The creation of a branch is undone or redone.
    BranchHidden {
        session: SessionNumber,
        branch: BranchNumber,
        /// Whether the branch is hidden from now on.
        hidden: bool,
    },
    /// Another branch is checked out.
    Switched {
        session: SessionNumber,
        branch: BranchNumber,
        /// The time of the checkout.
        time: Timestamp,
        /// Whether the branch was checked out in another store only. The checkout in this store
        /// stays.
        #[serde(default, skip_serializing_if = "is_false")]
        elsewhere: bool,
    },
    /// An object that a later change or record names by its id.
    Object {
        /// The stored object.
        object: RecordBytes,
    },
    /// A segment of a growing blob.
    Segment {
        session: SessionNumber,
        blob: String,
        /// The offset of the segment in the blob, in bytes.
        offset: u64,
        /// The number of bytes before the segment that were the prefix for its compression.
        prefix: u64,
        /// The stored object.
        object: RecordBytes,
    },
    /// A revision.
    Revision {
        session: SessionNumber,
        /// The encoded header.
        header: RecordBytes,
        /// The encoded body.
        body: RecordBytes,
        delta: Vec<DeltaPart>,
    },
    /// A checkpoint: a new one, or a replacement for the one with the same id.
    Checkpoint { session: SessionNumber, checkpoint: Box<Checkpoint> },
    /// The creation of a checkpoint is undone.
    CheckpointHidden {
        session: SessionNumber,
        id: CheckpointId,
        /// The time of the latest remaining checkpoint.
        last: Option<Timestamp>,
    },
    /// The undo of a checkpoint is undone: the checkpoint exists again, with its id and number.
    CheckpointShown { session: SessionNumber, checkpoint: Box<Checkpoint> },
    /// A page of facts.
    Facts {
        session: SessionNumber,
        /// The number of facts.
        count: u64,
        /// The time of the earliest fact.
        first: Timestamp,
        /// The time of the latest fact.
        last: Timestamp,
        /// The stored page.
        page: DeltaPart,
    },
    /// The progress of an import from a source; `None` removes the bookmark.
    Bookmark {
        session: SessionNumber,
        source: String,
        /// The new bookmark.
        bookmark: Option<Box<BookmarkRow>>,
    },
    /// This operation undoes another one. If that one was an undo itself, this is a redo.
    TakesBack {
        session: SessionNumber,
        /// The operation that is undone.
        operation: OperationId,
        /// Whether the facts of that operation are hidden from now on; otherwise they are visible.
        facts_hidden: bool,
    },
    /// This operation prunes. What it hides can be restored until it is swept.
    Pruned { session: SessionNumber },
    /// The revisions of a branch from `first` to `last` (exclusive) are folded into `last`.
    Folded {
        session: SessionNumber,
        branch: BranchNumber,
        /// The first folded revision.
        first: u64,
        /// The revision that they are folded into.
        last: u64,
        /// The pruning operation that this belongs to; in a redo, the one that is redone.
        pruning: OperationId,
        /// The combined changes of the folded revisions and `last`.
        delta: Vec<DeltaPart>,
    },
    /// A fold is undone: the folded revisions are visible again.
    Unfolded {
        session: SessionNumber,
        branch: BranchNumber,
        /// The revision that they were folded into.
        last: u64,
    },
    /// A session is dropped: pruning hides it.
    SessionDropped {
        /// The session of the pruning operation.
        session: SessionNumber,
        /// The session that is dropped.
        of: SessionNumber,
        /// The pruning operation that this belongs to; in a redo, the one that is redone.
        pruning: OperationId,
    },
    /// The drop of a session is undone.
    SessionShown {
        /// The session of the pruning operation.
        session: SessionNumber,
        /// The session that is restored.
        of: SessionNumber,
    },
    /// The beginning of a growing blob is dropped: references into it keep only their preview.
    TextDropped {
        /// The session of the pruning operation.
        session: SessionNumber,
        /// The session of the blob.
        of: SessionNumber,
        blob: String,
        /// The number of bytes that are dropped, from the start of the blob.
        bytes: u64,
        /// The pruning operation that this belongs to; in a redo, the one that is redone.
        pruning: OperationId,
    },
    /// The last drop from a growing blob is undone.
    TextShown {
        /// The session of the pruning operation.
        session: SessionNumber,
        /// The session of the blob.
        of: SessionNumber,
        blob: String,
        /// The number of bytes that stay permanently deleted, from the start of the blob.
        bytes: u64,
    },
    /// The beginning of a growing blob was already permanently deleted in the store that the blob
    /// was imported from.
    TextMissing {
        session: SessionNumber,
        blob: String,
        /// The number of missing bytes, from the start of the blob.
        bytes: u64,
    },
    /// What a pruning operation hid is permanently deleted.
    Swept {
        session: SessionNumber,
        /// The pruning operation.
        operation: OperationId,
        /// The large values that nothing else references.
        blobs: Vec<ObjectId>,
        /// The sessions that the operation hid, and the sessions whose texts it dropped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sessions: Vec<SessionNumber>,
    },
    /// Pre-written objects that nothing refers to are permanently deleted.
    SweptAhead {
        /// The names of the deleted objects.
        objects: Vec<ObjectId>,
        /// The keys of deleted parts of growing blobs, in the table of segments.
        parts: Vec<RecordBytes>,
        /// The names of objects that are referenced after all: they stay, and are no longer listed
        /// as pre-written.
        named: Vec<ObjectId>,
    },
    /// The session's schedule of checkpoints: a write makes a checkpoint if `every_micros` have
    /// passed since the last one.
    Schedule {
        session: SessionNumber,
        /// Microseconds between two checkpoints; `None` for no schedule.
        every_micros: Option<i64>,
    },
}

/// Returns the session of a change: a shared or a mutable reference, like that to the change.
macro_rules! session_in {
    ($change:expr) => {
        match $change {
            RecordChange::Head(_)
            | RecordChange::Session { .. }
            | RecordChange::SessionBegun { .. }
            | RecordChange::Pinned { .. }
            | RecordChange::Used { .. }
            | RecordChange::Object { .. }
            | RecordChange::SweptAhead { .. } => None,
            RecordChange::SessionReplaced { session, .. }
            | RecordChange::SessionAbandoned { session }
            | RecordChange::Branch { session, .. }
            | RecordChange::BranchChanged { session, .. }
            | RecordChange::BranchHidden { session, .. }
            | RecordChange::Switched { session, .. }
            | RecordChange::Segment { session, .. }
            | RecordChange::Revision { session, .. }
            | RecordChange::Checkpoint { session, .. }
            | RecordChange::CheckpointHidden { session, .. }
            | RecordChange::CheckpointShown { session, .. }
            | RecordChange::Facts { session, .. }
            | RecordChange::Bookmark { session, .. }
            | RecordChange::TakesBack { session, .. }
            | RecordChange::Pruned { session }
            | RecordChange::Folded { session, .. }
            | RecordChange::Unfolded { session, .. }
            | RecordChange::SessionDropped { session, .. }
            | RecordChange::SessionShown { session, .. }
            | RecordChange::TextDropped { session, .. }
            | RecordChange::TextShown { session, .. }
            | RecordChange::TextMissing { session, .. }
            | RecordChange::Swept { session, .. }
            | RecordChange::Schedule { session, .. } => Some(session),
        }
    };
}

impl RecordChange {
    /// Makes the change that checks out a branch in this store.
    #[must_use]
    pub const fn switched(session: SessionNumber, branch: BranchNumber, time: Timestamp) -> Self {
        Self::Switched { session, branch, time, elsewhere: false }
    }

    /// Makes the change of the status and metadata of a branch.
    #[must_use]
    pub fn branch_changed(
        session: SessionNumber,
        branch: BranchNumber,
        change: BranchChange,
    ) -> Self {
        Self::BranchChanged { session, branch, change: Box::new(change) }
    }

    /// Makes the change that saves a checkpoint.
    #[must_use]
    pub fn checkpoint(session: SessionNumber, checkpoint: Checkpoint) -> Self {
        Self::Checkpoint { session, checkpoint: Box::new(checkpoint) }
    }

    /// Returns the session that this changes; `None` for a change of the store itself: its head, a
    /// new session, the current session, or objects.
    #[must_use]
    pub fn session(&self) -> Option<SessionNumber> {
        session_in!(self).copied()
    }

    /// Returns all sessions whose refs this changes or needs.
    pub fn sessions(&self) -> impl Iterator<Item = SessionNumber> {
        let (other, swept) = match self {
            Self::SessionReplaced { of, .. }
            | Self::SessionDropped { of, .. }
            | Self::SessionShown { of, .. }
            | Self::TextDropped { of, .. }
            | Self::TextShown { of, .. } => (Some(*of), &[][..]),
            Self::Swept { sessions, .. } => (None, sessions.as_slice()),
            _ => (None, &[][..]),
        };
        self.session().into_iter().chain(other).chain(swept.iter().copied())
    }

    /// Returns a mutable reference to the session number, to renumber it.
    pub fn session_mut(&mut self) -> Option<&mut SessionNumber> {
        session_in!(self)
    }

    /// Returns the number of bytes of objects inside the change.
    pub(crate) fn inline_bytes(&self) -> usize {
        match self {
            Self::Revision { delta, .. } | Self::Folded { delta, .. } => {
                delta.iter().map(DeltaPart::inline_bytes).sum()
            }
            Self::Facts { page, .. } => page.inline_bytes(),
            Self::Object { object } | Self::Segment { object, .. } => object.0.len(),
            _ => 0,
        }
    }
}

/// One atomic append: all of it is applied, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The operation that the record is a part of.
    pub operation: Operation,
    /// The changes, in order.
    pub changes: Vec<RecordChange>,
}

const RAW: u8 = 1;
const COMPRESSED: u8 = 2;
/// A record of at most this many bytes is not compressed: that is not worth the time.
const MIN_COMPRESSED_BYTES: usize = 4096;
/// Minimum compression factor. Sessions without branch metadata are mostly ids and hashes, and
/// every process reads them, so a smaller gain is not worth the decompression.
const MIN_GAIN: usize = 2;

impl Record {
    /// Encodes this record as the payload of a frame. Compresses a large record that has the head
    /// of the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.inline_bytes() + 512);
        out.push(RAW);
        pack_into(&mut out, self);
        let compressible =
            self.changes.iter().any(|change| matches!(change, RecordChange::Head(_)));
        if let Some(packed) = out.get(1..).filter(|packed| packed.len() > MIN_COMPRESSED_BYTES)
            && compressible
            && let Ok(smaller) = zstd::bulk::compress(packed, 3)
            && smaller.len() * MIN_GAIN <= packed.len()
        {
            let mut compressed = vec![COMPRESSED];
            compressed.extend_from_slice(&(packed.len() as u64).to_le_bytes());
            compressed.extend_from_slice(&smaller);
            return compressed;
        }
        out
    }

    /// Returns the number of bytes of objects inside the record.
    #[must_use]
    pub fn inline_bytes(&self) -> usize {
        self.changes.iter().map(RecordChange::inline_bytes).sum()
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |reason: String| DecodeError::new("record", reason);
        match bytes.split_first() {
            Some((&RAW, packed)) => Self::checked(unpack("record", packed)?),
            Some((&COMPRESSED, rest)) => {
                let (length, compressed) =
                    rest.split_first_chunk().ok_or_else(|| wrong("it ends too early".into()))?;
                let length = usize::try_from(u64::from_le_bytes(*length))
                    .ok()
                    .filter(|length| *length <= super::MAX_OBJECT_BYTES)
                    .ok_or_else(|| wrong("it says it is larger than any record".into()))?;
                let packed = zstd::bulk::decompress(compressed, length)
                    .map_err(|error| wrong(format!("it does not decompress: {error}")))?;
                Self::checked(unpack("record", &packed)?)
            }
            _ => Err(wrong("unknown version".into())),
        }
    }

    /// Rejects counts of facts that do not fit into 32 bits, and an inconsistent head of the store.
    fn checked(self) -> Result<Self, DecodeError> {
        for change in &self.changes {
            let right = match change {
                RecordChange::Head(head) => head.check(),
                RecordChange::Facts { count, .. } if u32::try_from(*count).is_err() => {
                    Err("it counts more facts than a page can hold")
                }
                _ => Ok(()),
            };
            right.map_err(|reason| DecodeError::new("record", reason))?;
        }
        Ok(self)
    }
}

/// The data of a revision that is not in its header and may be dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisionBody {
    /// Random bytes, so that the hash of a dropped body cannot be used to guess its content.
    pub salt: [u8; 16],
    /// The operation that made the revision.
    pub operation: Operation,
    /// The hash of the original body, if a secret was purged from the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<ObjectId>,
}

packed!(RevisionBody, "revision body");

impl RevisionBody {
    /// Returns the hash by which a revision refers to this encoded body. For a body from which a
    /// secret was purged, it is the hash of the original body.
    #[must_use]
    pub fn name(bytes: &[u8]) -> ObjectId {
        let stands_for = Self::decode(bytes).ok().and_then(|body| body.stands_for);
        stands_for.unwrap_or_else(|| ObjectId::from_bytes(*blake3::hash(bytes).as_bytes()))
    }
}
