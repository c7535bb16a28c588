//! Values of the index's tables.

use super::codec::{
    ByteReader, DecodeError, is_false, is_zero, packed, put_bytes, put_signed, put_varint,
    unwrap_as, wrap_as,
};
use super::record::RecordBytes;
use super::refs::{BranchChange, StoreHead};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, FactOrigin, ObjectId, Operation, OperationId,
    SessionNumber, Timestamp,
};
use serde::{Deserialize, Serialize};

/// The first bytes of most rows. The length and a hash of the content follow, so that a row can be
/// found in the raw bytes of a damaged file.
const MAGIC: &[u8; 4] = b"fRw1";

fn wrap(content: &[u8]) -> Vec<u8> {
    wrap_as(MAGIC, content)
}

fn unwrap<'a>(what: &'static str, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    unwrap_as(MAGIC, what, bytes)
}

/// Returns a row with its content changed by `rewrite`; `None` if `rewrite` returns `None`.
pub fn rewrite_row(
    bytes: &[u8],
    rewrite: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, DecodeError> {
    Ok(rewrite(unwrap("row", bytes)?).map(|content| wrap(&content)))
}

/// A revision in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRow {
    /// The encoded header.
    pub header: Vec<u8>,
    /// The encoded body.
    pub body: Vec<u8>,
    /// The effective time.
    pub effective: Timestamp,
    /// The numbers of the objects that hold its delta, in key order.
    pub parts: Vec<u64>,
    /// The uncompressed size of these objects in bytes.
    pub bytes: u64,
    /// The size of the keys and entries of its state in bytes.
    pub state_bytes: u64,
}

impl RevisionRow {
    /// Encodes this row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header.len() + self.body.len() + 32);
        put_bytes(&mut out, &self.header);
        put_bytes(&mut out, &self.body);
        put_signed(&mut out, self.effective.as_micros());
        put_varint(&mut out, self.bytes);
        put_varint(&mut out, self.state_bytes);
        put_varint(&mut out, self.parts.len() as u64);
        self.parts.iter().for_each(|number| put_varint(&mut out, *number));
        wrap(&out)
    }

    /// Decodes a row's value.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes == Self::LOST {
            return Err(DecodeError::lost("revision"));
        }
        let mut reader = ByteReader::new("revision", unwrap("revision", bytes)?);
        let header = reader.bytes()?.to_vec();
        let body = reader.bytes()?.to_vec();
        let effective = Timestamp::from_micros(reader.signed()?);
        let delta_bytes = reader.varint()?;
        let state_bytes = reader.varint()?;
        let count = reader.length()?;
        let parts = (0..count).map(|_| reader.varint()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { header, body, effective, parts, bytes: delta_bytes, state_bytes })
    }
}

/// The meaning of a sequence number in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceRow {
    Revision(BranchNumber),
    Checkpoint(CheckpointId),
    /// A revision on this branch that was folded into the revision with this number.
    Folded(BranchNumber, u64),
}

impl SequenceRow {
    /// Encodes this row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Revision(branch) => [&[0], branch.to_le_bytes().as_slice()].concat(),
            Self::Checkpoint(id) => [&[1], id.as_bytes().as_slice()].concat(),
            Self::Folded(branch, into) => {
                [&[2], branch.to_le_bytes().as_slice(), &into.to_le_bytes()].concat()
            }
        }
    }

    /// Decodes a row's value.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new("sequence number", bytes);
        let row = match reader.byte()? {
            0 => Self::Revision(u32::from_le_bytes(reader.array()?)),
            1 => Self::Checkpoint(CheckpointId::from_bytes(reader.array()?)),
            2 => Self::Folded(
                u32::from_le_bytes(reader.array()?),
                u64::from_le_bytes(reader.array()?),
            ),
            _ => return Err(reader.error("unknown mark")),
        };
        reader.end()?;
        Ok(row)
    }
}

/// The location of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// The number of the object that holds its page.
    pub page: u64,
    /// The index of the fact in its page.
    pub ordinal: u32,
    /// The origin of the fact.
    pub origin: FactOrigin,
    /// The operation that recorded it.
    pub operation: OperationId,
}

impl FactRow {
    /// Encodes this row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.push(self.origin as u8);
        out.extend_from_slice(self.operation.as_bytes());
        put_varint(&mut out, self.page);
        put_varint(&mut out, u64::from(self.ordinal));
        out
    }

    /// Decodes a row's value.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new("fact", bytes);
        let origin = reader.one_of(&FactOrigin::ALL, "unknown origin")?;
        let operation = OperationId::from_bytes(reader.array()?);
        let page = reader.varint()?;
        let ordinal = u32::try_from(reader.varint()?).map_err(|_| reader.error("ordinal"))?;
        reader.end()?;
        Ok(Self { page, ordinal, origin, operation })
    }
}

/// A chunk of a keyframe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyframeChunk {
    /// The number of the object.
    pub object: u64,
    /// The number of its entries.
    pub count: u64,
    /// Its first key.
    pub first: RecordBytes,
}

/// A keyframe: the full state of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyframeRow {
    /// The digest of the state.
    pub digest: RecordBytes,
    /// The number of its entries.
    pub count: u64,
    /// The uncompressed size of its chunks in bytes.
    pub bytes: u64,
    /// The chunks in key order.
    pub chunks: Vec<KeyframeChunk>,
}
packed!(KeyframeRow, "keyframe", magic = MAGIC);

/// A checkpoint in its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRow {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The operation that made it.
    pub operation: OperationId,
}
packed!(CheckpointRow, "checkpoint", magic = MAGIC);

/// The bookmark of a source: how far it was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookmarkRow {
    /// The blob that keeps the source's bytes; empty if there is none.
    pub blob: String,
    /// The number of bytes of the source that were imported.
    pub bytes: u64,
    /// The number of lines of the source that were imported.
    pub lines: u64,
    /// Keyed hashes of the imported bytes, one per 64 KiB; the last one may cover less.
    pub blocks: RecordBytes,
    /// State that the importer of the source needs to continue.
    pub carry: RecordBytes,
    /// What was kept, if secrets were removed from the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaned: Option<RedactionSummary>,
}
packed!(BookmarkRow, "bookmark", magic = MAGIC);

impl BookmarkRow {
    /// Returns the number of bytes kept: the imported ones without secrets.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.cleaned.map_or(self.bytes, |cleaned| cleaned.bytes)
    }
}

/// A pre-written object, which no record names yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrewrittenRow {
    /// The time of the last operation that wrote the object.
    pub time: Timestamp,
    /// The key in the table of segments, if the object is a part of a growing blob.
    pub part: Option<RecordBytes>,
}
packed!(PrewrittenRow, "pre-written object", magic = MAGIC);

/// What was kept of a source that contained secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionSummary {
    /// The number of bytes kept.
    pub bytes: u64,
    /// The number of secrets removed.
    pub removed: u64,
}

/// A segment of a growing blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRow {
    /// The number of the object.
    pub object: u64,
    /// The length of the segment in bytes.
    pub length: u64,
    /// The number of bytes before the segment that were the prefix for its compression.
    pub prefix: u64,
}
packed!(SegmentRow, "blob segment", magic = MAGIC);

/// Revisions that were folded into a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldRow {
    /// The first folded revision.
    pub first: u64,
    /// The number of folded revisions.
    pub count: u64,
    /// The operation that folded them.
    pub operation: OperationId,
    /// Whether their bodies and deltas are permanently deleted; their headers stay.
    pub swept: bool,
}
packed!(FoldRow, "fold", magic = MAGIC);

/// A checkout: a branch that is current from a time on. A row of the table of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkout {
    /// The branch.
    pub branch: BranchNumber,
    /// The effective time: the time of the clock or of the previous checkout, whichever is later.
    pub time: Timestamp,
    /// The position of the record that checked the branch out.
    pub position: u64,
}

/// An effect of an operation, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum OperationEffect {
    /// Made a revision.
    Revision {
        /// The branch of the revision.
        branch: BranchNumber,
        /// The sequence number of the revision.
        sequence: u64,
    },
    CheckpointMade {
        id: CheckpointId,
    },
    /// Replaced a checkpoint.
    CheckpointChanged {
        /// The checkpoint before.
        old: Box<Checkpoint>,
    },
    /// Undid the creation of a checkpoint.
    CheckpointHidden {
        /// The checkpoint before.
        old: Box<Checkpoint>,
    },
    BranchMade {
        branch: BranchNumber,
    },
    BranchChanged {
        branch: BranchNumber,
        /// Its status and metadata before.
        old: BranchChange,
    },
    /// Undid or redid the creation of a branch.
    BranchHidden {
        branch: BranchNumber,
        /// Whether the branch is hidden now.
        hidden: bool,
        /// The checkout from then on, if the branch was checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkout: Option<Checkout>,
    },
    /// Checked out another branch.
    Switched {
        /// The branch checked out before.
        old: BranchNumber,
        /// The branch checked out now.
        branch: BranchNumber,
        /// The time of the checkout.
        time: Timestamp,
        /// The position of the record with this change.
        position: u64,
        /// Whether the branch was checked out only in another store.
        #[serde(default, skip_serializing_if = "is_false")]
        elsewhere: bool,
        /// The checkout from then on, if it has another branch or time: the creation of `branch`
        /// was undone, or the clock went back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkout: Option<Checkout>,
    },
    /// Recorded facts.
    Facts {
        /// The number of facts.
        count: u64,
        /// The number of the object with the page of the facts.
        page: u64,
        /// The id of this object, by which the object is found if its number is lost.
        name: ObjectId,
    },
    /// Moved a bookmark.
    Bookmark {
        source: String,
        /// The bookmark before.
        old: Option<Box<BookmarkRow>>,
        /// The number of bytes imported now.
        bytes: u64,
    },
    /// Changed the schedule.
    Schedule {
        /// The schedule before.
        old: Option<i64>,
    },
    /// Folded revisions into a later one.
    Folded {
        /// The branch of the revisions.
        branch: BranchNumber,
        /// The first folded revision.
        first: u64,
        /// The revision that they were folded into.
        last: u64,
    },
    /// Undid a fold.
    Unfolded {
        /// The branch of the revisions.
        branch: BranchNumber,
        /// The first folded revision.
        first: u64,
        /// The revision that they had been folded into.
        last: u64,
    },
    SessionDropped {
        /// The dropped session.
        of: SessionNumber,
    },
    /// Undid the drop of a session.
    SessionShown {
        /// The restored session.
        of: SessionNumber,
    },
    /// Dropped the beginning of a growing blob.
    TextDropped {
        /// The session of the blob.
        of: SessionNumber,
        blob: String,
        /// The number of bytes that are dropped now.
        bytes: u64,
        /// The number of bytes dropped before. An undo does not bring these back.
        old: u64,
    },
    /// Undid the drop of the beginning of a growing blob.
    TextShown {
        /// The session of the blob.
        of: SessionNumber,
        blob: String,
        /// The number of bytes that had been dropped.
        bytes: u64,
    },
    /// Pruned data that is permanently deleted now. This replaces all other effects.
    Swept {
        /// The numbers and ids of deleted checkpoints, which are not reused.
        checkpoints: Vec<(u64, CheckpointId)>,
        /// The number of deleted revisions.
        revisions: u64,
    },
    /// Purged a secret from the session; this cannot be undone.
    Purged {
        /// The reason, if one was given.
        reason: Option<String>,
        /// How often secrets were found in the session.
        places: u64,
        /// The first sequence number whose data was replaced; 0 if any data may have been.
        #[serde(default, skip_serializing_if = "is_zero")]
        first: u64,
    },
}

impl OperationEffect {
    /// Returns whether this effect is a checkout in this store.
    #[must_use]
    pub const fn is_own_switch(&self) -> bool {
        matches!(self, Self::Switched { elsewhere: false, .. })
    }

    /// Returns the checkout in this store from then on, if this effect changed it.
    #[must_use]
    pub const fn checkout(&self) -> Option<Checkout> {
        match self {
            Self::BranchHidden { checkout, .. } => *checkout,
            Self::Switched { elsewhere: true, .. } => None,
            Self::Switched { checkout: Some(checkout), .. } => Some(*checkout),
            Self::Switched { branch, time, position, .. } => {
                Some(Checkout { branch: *branch, time: *time, position: *position })
            }
            _ => None,
        }
    }
}

/// An operation in its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRow {
    /// The operation.
    pub operation: Operation,
    /// Its effects, in order.
    pub effects: Vec<OperationEffect>,
    /// The operation that this one undid.
    pub takes_back: Option<OperationId>,
    /// The operation that undid this one.
    pub taken_back_by: Option<OperationId>,
    /// The last sequence number of the session when the operation began.
    pub sequence: u64,
    /// The session.
    pub session: SessionNumber,
    /// The position of its first record. Operations are ordered by this position, not by time.
    pub position: u64,
    /// The later records of the operation: the position of each, and the number of effects before
    /// that record, or [`OperationRow::ALL_EFFECTS`] for the record that swept the operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<(u64, u64)>,
}
packed!(OperationRow, "operation", magic = MAGIC);

impl OperationRow {
    /// In `continued`: the record swept the operation, and one effect replaced all others.
    pub const ALL_EFFECTS: u64 = u64::MAX;

    /// Returns whether what the operation pruned was permanently deleted.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, OperationEffect::Swept { .. }))
    }
}

/// A second copy of the head of the store with which the segment after a generation begins, without
/// sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadRow {
    /// The head.
    pub head: StoreHead,
}
packed!(HeadRow, "head of the store", magic = MAGIC, check = |row| row.head.check());

/// The row counts of tables in which a missing row would not be noticed otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalsRow {
    /// The number of operations.
    pub operations: u64,
    /// The number of segments of growing blobs.
    pub segments: u64,
}
packed!(TotalsRow, "totals", magic = MAGIC);

impl RevisionRow {
    /// The value of the row of a revision that a repair could not save: decoding it is an error.
    pub const LOST: &'static [u8] = b"fLo1";
}

/// Returns the key of an object in the table of names: the first half of its hash.
#[must_use]
pub(crate) fn object_key(id: &ObjectId) -> [u8; 16] {
    *id.as_bytes().first_chunk().expect("16 of 32 bytes")
}
