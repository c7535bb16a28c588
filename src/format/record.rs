//! Records: what one append to the journal says.

use super::codec::{DecodeError, pack, pack_into, unpack};
use super::refs::{BranchChange, BranchHead, StoreRefs};
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
    /// An object in a record before this one.
    Named(ObjectId),
}

impl DeltaPart {
    fn inline_bytes(&self) -> usize {
        if let Self::Inline(bytes) = self { bytes.0.len() } else { 0 }
    }
}

/// One thing a record says. Names and fields are durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum RecordChange {
    /// All refs as they are before this record: the first thing in every segment.
    Refs(Box<StoreRefs>),
    /// A session begins; its number is the count of sessions before it. It has the branch `main`.
    Session {
        /// What it is.
        info: SessionMetadata,
    },
    /// Which session is current for commands that name none; `None` lets the last one used be it.
    Pinned {
        /// The session.
        session: Option<SessionNumber>,
    },
    /// A person or a hook worked in this session: it is current unless another one is pinned.
    Used {
        /// The session.
        session: SessionNumber,
    },
    /// A branch begins; its number is the count of the session's branches before it.
    Branch {
        /// The session.
        session: SessionNumber,
        /// Its name.
        name: String,
        /// The branch it begins on.
        base: BranchNumber,
        /// The revision it begins with, if that branch had one.
        head: Option<BranchHead>,
        /// When, and as what.
        change: BranchChange,
    },
    /// A branch's status or metadata changes.
    BranchChanged {
        /// The session.
        session: SessionNumber,
        /// The branch.
        branch: BranchNumber,
        /// To what, when.
        change: BranchChange,
    },
    /// A branch was made by mistake and is taken back, or that is taken back.
    BranchHidden {
        /// The session.
        session: SessionNumber,
        /// The branch.
        branch: BranchNumber,
        /// Whether it is hidden from now on.
        hidden: bool,
    },
    /// Another branch is checked out.
    Switched {
        /// The session.
        session: SessionNumber,
        /// The branch.
        branch: BranchNumber,
        /// When.
        time: Timestamp,
    },
    /// An object that a later record names, or that is named by its content.
    Object {
        /// The stored object.
        object: RecordBytes,
    },
    /// A segment of a growing blob.
    Segment {
        /// The session.
        session: SessionNumber,
        /// The blob.
        blob: String,
        /// Where in the blob it begins, in bytes.
        offset: u64,
        /// How many bytes before it were its prefix when it was compressed.
        prefix: u64,
        /// The stored object.
        object: RecordBytes,
    },
    /// A revision.
    Revision {
        /// The session.
        session: SessionNumber,
        /// The encoded header.
        header: RecordBytes,
        /// The encoded body.
        body: RecordBytes,
        /// The delta.
        delta: Vec<DeltaPart>,
    },
    /// A checkpoint, new or with the id of one that it replaces.
    Checkpoint {
        /// The session.
        session: SessionNumber,
        /// The checkpoint.
        checkpoint: Box<Checkpoint>,
    },
    /// A checkpoint was made by mistake and is taken back.
    CheckpointHidden {
        /// The session.
        session: SessionNumber,
        /// The checkpoint.
        id: CheckpointId,
        /// The time of the latest one that is left.
        last: Option<Timestamp>,
    },
    /// A checkpoint that was taken back is there again, under its id and number.
    CheckpointShown {
        /// The session.
        session: SessionNumber,
        /// The checkpoint.
        checkpoint: Box<Checkpoint>,
    },
    /// Facts.
    Facts {
        /// The session.
        session: SessionNumber,
        /// How many.
        count: u64,
        /// The earliest.
        first: Timestamp,
        /// The latest.
        last: Timestamp,
        /// The stored page.
        page: DeltaPart,
    },
    /// How far a source has been imported; `None` is forgotten.
    Bookmark {
        /// The session.
        session: SessionNumber,
        /// The source.
        source: String,
        /// How far.
        bookmark: Option<Box<BookmarkRow>>,
    },
    /// This operation takes another one back (an undo), which may itself have been an undo (then this is a redo).
    TakesBack {
        /// The session.
        session: SessionNumber,
        /// The operation taken back.
        operation: OperationId,
        /// Whether facts of that operation are hidden from now on, or seen again.
        facts_hidden: bool,
    },
    /// This operation prunes: what it takes out of sight can be brought back until it is swept.
    Pruned {
        /// The session.
        session: SessionNumber,
    },
    /// The revisions of a branch from `first` up to `last`, not included, are folded into `last`.
    Folded {
        /// The session.
        session: SessionNumber,
        /// The branch.
        branch: BranchNumber,
        /// The first of them.
        first: u64,
        /// The revision they are folded into.
        last: u64,
        /// The pruning that this is part of: by a redo, the one that is done again.
        pruning: OperationId,
        /// What they and `last` changed together.
        delta: Vec<DeltaPart>,
    },
    /// What was folded into a revision is there again.
    Unfolded {
        /// The session.
        session: SessionNumber,
        /// The branch.
        branch: BranchNumber,
        /// The revision it was folded into.
        last: u64,
    },
    /// A session is out of sight.
    SessionDropped {
        /// The session that prunes.
        session: SessionNumber,
        /// The session that goes.
        of: SessionNumber,
        /// The pruning that this is part of: by a redo, the one that is done again.
        pruning: OperationId,
    },
    /// A session that was dropped is there again.
    SessionShown {
        /// The session that had pruned.
        session: SessionNumber,
        /// The session that comes back.
        of: SessionNumber,
    },
    /// The beginning of a growing blob is out of sight: what points into it keeps its preview.
    TextDropped {
        /// The session that prunes.
        session: SessionNumber,
        /// The session that has the blob.
        of: SessionNumber,
        /// The blob.
        blob: String,
        /// How many bytes of it.
        bytes: u64,
        /// The pruning that this is part of: by a redo, the one that is done again.
        pruning: OperationId,
    },
    /// What was dropped of a growing blob last is there again.
    TextShown {
        /// The session that had pruned.
        session: SessionNumber,
        /// The session that has the blob.
        of: SessionNumber,
        /// The blob.
        blob: String,
        /// How many bytes of it are gone for good.
        bytes: u64,
    },
    /// The beginning of a growing blob was gone for good where it comes from.
    TextMissing {
        /// The session.
        session: SessionNumber,
        /// The blob.
        blob: String,
        /// How many bytes of it.
        bytes: u64,
    },
    /// What a pruning took out of sight is gone for good.
    Swept {
        /// The session.
        session: SessionNumber,
        /// The operation that pruned.
        operation: OperationId,
        /// The large values that nothing else names.
        blobs: Vec<ObjectId>,
    },
    /// What was written ahead and nothing came to name is gone for good.
    SweptAhead {
        /// The names of objects.
        objects: Vec<ObjectId>,
        /// The keys of parts of growing blobs, in the table of segments.
        parts: Vec<RecordBytes>,
        /// The names of objects that turned out to be named: they stay, and need not be looked for again.
        named: Vec<ObjectId>,
    },
    /// The session's schedule of checkpoints: one is due at the next write this long after the last.
    Schedule {
        /// The session.
        session: SessionNumber,
        /// Microseconds between two; `None` for no schedule.
        every_micros: Option<i64>,
    },
}

/// The session of a change, by reference or by mutable reference as the change is given.
macro_rules! session_in {
    ($change:expr) => {
        match $change {
            RecordChange::Refs(_)
            | RecordChange::Session { .. }
            | RecordChange::Pinned { .. }
            | RecordChange::Used { .. }
            | RecordChange::Object { .. }
            | RecordChange::SweptAhead { .. } => None,
            RecordChange::Branch { session, .. }
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
    /// The session that this changes; `None` if it is about sessions themselves, or an object.
    #[must_use]
    pub fn session(&self) -> Option<SessionNumber> {
        session_in!(self).copied()
    }

    /// The same, to be given another number.
    pub fn session_mut(&mut self) -> Option<&mut SessionNumber> {
        session_in!(self)
    }

    fn inline_bytes(&self) -> usize {
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

/// One atomic append: all of it counts, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What it is part of.
    pub operation: Operation,
    /// What it says, in order.
    pub changes: Vec<RecordChange>,
}

const RAW: u8 = 1;
const COMPRESSED: u8 = 2;
/// Below this compressing a record is not worth its time.
const MIN_COMPRESSED_BYTES: usize = 4096;
/// Nor is it if less is gained: refs that say nothing of branches are mostly ids and hashes, and each process reads them.
const MIN_GAIN: usize = 2;

impl Record {
    /// The bytes of this record: the payload of a frame.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.inline_bytes() + 512);
        out.push(RAW);
        pack_into(&mut out, self);
        let compressible =
            self.changes.iter().any(|change| matches!(change, RecordChange::Refs(_)));
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

    /// How many bytes of objects the record itself holds.
    #[must_use]
    pub fn inline_bytes(&self) -> usize {
        self.changes.iter().map(RecordChange::inline_bytes).sum()
    }

    /// The record these bytes stand for.
    ///
    /// # Errors
    /// If they are not a record.
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

    /// Refuses what nobody could count on from.
    fn checked(self) -> Result<Self, DecodeError> {
        for change in &self.changes {
            let right = match change {
                RecordChange::Refs(refs) => refs.check(),
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

/// What is known of a revision besides its header, and may be dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisionBody {
    /// Random bytes, so that a kept hash of a dropped body cannot be used to guess it.
    pub salt: [u8; 16],
    /// What it is part of.
    pub operation: Operation,
    /// The hash of the body it stands for, from which a secret was purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<ObjectId>,
}

impl RevisionBody {
    /// The bytes of this body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        pack(self)
    }

    /// The body these bytes stand for.
    ///
    /// # Errors
    /// If they are not a body.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        unpack("revision body", bytes)
    }

    /// The hash by which a revision knows a body of these bytes: that of the one it stands for, if it stands for one.
    #[must_use]
    pub fn name(bytes: &[u8]) -> ObjectId {
        let stands_for = Self::decode(bytes).ok().and_then(|body| body.stands_for);
        stands_for.unwrap_or_else(|| ObjectId::from_bytes(*blake3::hash(bytes).as_bytes()))
    }
}
