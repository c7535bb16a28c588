//! Values of the index's tables.

use super::codec::{ByteReader, DecodeError, pack, put_bytes, put_signed, put_varint, unpack};
use super::record::RecordBytes;
use super::refs::{BranchChange, StoreRefs};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, FactOrigin, ObjectId, Operation, OperationId,
    SessionNumber, Timestamp,
};
use serde::{Deserialize, Serialize};

/// Primary values begin with this mark, their length and a hash, so that they are found in raw bytes.
const MAGIC: &[u8; 4] = b"fRw1";

fn wrap(content: &[u8]) -> Vec<u8> {
    wrap_as(MAGIC, content)
}

/// Content behind a mark, its length and the beginning of its hash.
pub(super) fn wrap_as(magic: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(24 + content.len());
    out.extend_from_slice(magic);
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(blake3::hash(content).as_bytes().first_chunk::<16>().expect("16 of 32"));
    out.extend_from_slice(content);
    out
}

fn unwrap<'a>(what: &'static str, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    unwrap_as(MAGIC, what, bytes)
}

/// What [`wrap_as`] wrapped, checked.
pub(super) fn unwrap_as<'a>(
    magic: &[u8; 4],
    what: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8], DecodeError> {
    let mut reader = ByteReader::new(what, bytes);
    if &reader.array::<4>()? != magic {
        return Err(reader.error("it does not begin with its mark"));
    }
    let length = u32::from_le_bytes(reader.array()?) as usize;
    let hash = reader.array::<16>()?;
    let content = reader.take(length)?;
    reader.end()?;
    if blake3::hash(content).as_bytes().first_chunk() != Some(&hash) {
        return Err(reader.error("its content does not match its hash"));
    }
    Ok(content)
}

/// The bytes of a row whose content `rewrite` has changed; `None` if it changes nothing.
///
/// # Errors
/// If the row is damaged.
pub fn rewrite_row(
    bytes: &[u8],
    rewrite: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, DecodeError> {
    Ok(rewrite(unwrap("row", bytes)?).map(|content| wrap(&content)))
}

macro_rules! packed_row {
    ($name:ident, $what:literal) => {
        packed_row!($name, $what, |_| Ok(()));
    };
    ($name:ident, $what:literal, $check:expr) => {
        impl $name {
            /// The bytes of this row's value.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                wrap(&pack(self))
            }

            /// The value these bytes stand for.
            ///
            /// # Errors
            /// If they are damaged, or say what cannot be.
            pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                let check: fn(&Self) -> Result<(), &'static str> = $check;
                let row = unpack($what, unwrap($what, bytes)?)?;
                check(&row).map_err(|reason| DecodeError::new($what, reason))?;
                Ok(row)
            }
        }
    };
}

/// A revision in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRow {
    /// The encoded header.
    pub header: Vec<u8>,
    /// The encoded body.
    pub body: Vec<u8>,
    /// Its effective time.
    pub effective: Timestamp,
    /// The numbers of the objects that hold its delta, in key order.
    pub parts: Vec<u64>,
    /// How many bytes those hold, uncompressed.
    pub bytes: u64,
    /// How many bytes the keys and entries of its state have.
    pub state_bytes: u64,
}

impl RevisionRow {
    /// The bytes of this row's value.
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

    /// The value these bytes stand for.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes == Self::LOST {
            return Err(DecodeError::new("revision", "it was lost before a repair"));
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

/// What a number of a session's one count is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceRow {
    /// A revision on this branch.
    Revision(BranchNumber),
    /// A checkpoint.
    Checkpoint(CheckpointId),
    /// A revision on this branch that was folded into the one of this number.
    Folded(BranchNumber, u64),
}

impl SequenceRow {
    /// The bytes of this row's value.
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

    /// The value these bytes stand for.
    ///
    /// # Errors
    /// If they are damaged.
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

/// Where a fact lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// The number of the object that holds its page.
    pub page: u64,
    /// Its place on the page.
    pub ordinal: u32,
    /// How forge knows of it.
    pub origin: FactOrigin,
    /// The operation that recorded it.
    pub operation: OperationId,
}

impl FactRow {
    /// The bytes of this row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.push(match self.origin {
            FactOrigin::Hook => 0,
            FactOrigin::Recorded => 1,
            FactOrigin::Imported => 2,
        });
        out.extend_from_slice(self.operation.as_bytes());
        put_varint(&mut out, self.page);
        put_varint(&mut out, u64::from(self.ordinal));
        out
    }

    /// The value these bytes stand for.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new("fact", bytes);
        let origin = match reader.byte()? {
            0 => FactOrigin::Hook,
            1 => FactOrigin::Recorded,
            2 => FactOrigin::Imported,
            _ => return Err(reader.error("unknown origin")),
        };
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
    /// How many entries it holds.
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
    /// How many entries it has.
    pub count: u64,
    /// How many bytes its chunks hold, uncompressed.
    pub bytes: u64,
    /// The chunks in key order.
    pub chunks: Vec<KeyframeChunk>,
}
packed_row!(KeyframeRow, "keyframe");

/// A checkpoint in its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRow {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The operation that made it.
    pub operation: OperationId,
}
packed_row!(CheckpointRow, "checkpoint");

/// How far a source has been imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookmarkRow {
    /// The blob that keeps the source's bytes; empty if none does.
    pub blob: String,
    /// Bytes of the source that have been taken.
    pub bytes: u64,
    /// Lines of the source that have been taken.
    pub lines: u64,
    /// Keyed hashes of the taken bytes, one for every 64 KiB; the last one may be of less.
    pub blocks: RecordBytes,
    /// What whoever reads the source needs to go on.
    pub carry: RecordBytes,
    /// What was kept, if secrets were taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaned: Option<RedactionSummary>,
}
packed_row!(BookmarkRow, "bookmark");

impl BookmarkRow {
    /// Bytes kept: those taken, without secrets.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.cleaned.map_or(self.bytes, |cleaned| cleaned.bytes)
    }
}

/// An object that was written ahead of what is to name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrewrittenRow {
    /// When: by the clock of the operation that did it last.
    pub time: Timestamp,
    /// Of a part of a growing blob, its key in the table of segments.
    pub part: Option<RecordBytes>,
}
packed_row!(PrewrittenRow, "object written ahead");

/// What was kept of a source that held secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionSummary {
    /// Bytes kept.
    pub bytes: u64,
    /// Secrets taken out.
    pub removed: u64,
}

/// A segment of a growing blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRow {
    /// The number of the object.
    pub object: u64,
    /// How many bytes it holds.
    pub length: u64,
    /// How many bytes before it were its prefix when it was compressed.
    pub prefix: u64,
}
packed_row!(SegmentRow, "blob segment");

/// Revisions that were folded into a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldRow {
    /// The first of them.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// The operation that folded them.
    pub operation: OperationId,
    /// Whether their bodies and deltas are gone for good; their headers stay.
    pub swept: bool,
}
packed_row!(FoldRow, "fold");

/// Something an operation did, with what it takes to take it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum OperationEffect {
    /// Made a revision.
    Revision {
        /// On this branch.
        branch: BranchNumber,
        /// This one.
        sequence: u64,
    },
    /// Made a checkpoint.
    CheckpointMade {
        /// This one.
        id: CheckpointId,
    },
    /// Replaced a checkpoint.
    CheckpointChanged {
        /// As it was.
        old: Box<Checkpoint>,
    },
    /// Took a checkpoint back.
    CheckpointHidden {
        /// As it was.
        old: Box<Checkpoint>,
    },
    /// Made a branch.
    BranchMade {
        /// This one.
        branch: BranchNumber,
    },
    /// Changed a branch.
    BranchChanged {
        /// This one.
        branch: BranchNumber,
        /// As it was.
        old: BranchChange,
    },
    /// Hid a branch, or brought it back.
    BranchHidden {
        /// This one.
        branch: BranchNumber,
        /// Whether it is hidden now.
        hidden: bool,
    },
    /// Checked out another branch.
    Switched {
        /// The branch checked out before.
        old: BranchNumber,
        /// The one checked out then.
        branch: BranchNumber,
        /// When.
        time: Timestamp,
        /// Where the record begins that says so.
        position: u64,
    },
    /// Recorded facts.
    Facts {
        /// How many.
        count: u64,
        /// The number of the object that is their page.
        page: u64,
        /// The name of that object, by which it is found where its number is lost.
        name: ObjectId,
    },
    /// Moved a bookmark.
    Bookmark {
        /// The source.
        source: String,
        /// As it was.
        old: Option<Box<BookmarkRow>>,
        /// Bytes taken now.
        bytes: u64,
    },
    /// Changed the schedule.
    Schedule {
        /// As it was.
        old: Option<i64>,
    },
    /// Folded revisions into a later one.
    Folded {
        /// On this branch.
        branch: BranchNumber,
        /// The first of them.
        first: u64,
        /// The one they were folded into.
        last: u64,
    },
    /// Brought back what was folded.
    Unfolded {
        /// On this branch.
        branch: BranchNumber,
        /// The first of them.
        first: u64,
        /// The one they had been folded into.
        last: u64,
    },
    /// Dropped a session.
    SessionDropped {
        /// This one.
        of: SessionNumber,
    },
    /// Brought a session back.
    SessionShown {
        /// This one.
        of: SessionNumber,
    },
    /// Dropped the beginning of a growing blob.
    TextDropped {
        /// The session that has the blob.
        of: SessionNumber,
        /// The blob.
        blob: String,
        /// How many bytes of it are out of sight now.
        bytes: u64,
        /// How many were before: they are gone for good.
        old: u64,
    },
    /// Brought the beginning of a growing blob back.
    TextShown {
        /// The session that has the blob.
        of: SessionNumber,
        /// The blob.
        blob: String,
        /// How many bytes of it had been out of sight.
        bytes: u64,
    },
    /// Pruned what is gone for good: stands in place of all other effects.
    Swept {
        /// The numbers and ids of checkpoints: they are not given out again.
        checkpoints: Vec<(u64, CheckpointId)>,
        /// How many revisions.
        revisions: u64,
    },
    /// Purged a secret from what the session holds: nothing takes that back.
    Purged {
        /// Why, as far as it was said.
        reason: Option<String>,
        /// How often it stood there.
        places: u64,
    },
}

/// An operation in its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRow {
    /// The operation.
    pub operation: Operation,
    /// What it did, in order.
    pub effects: Vec<OperationEffect>,
    /// The operation it took back.
    pub takes_back: Option<OperationId>,
    /// The operation that took it back.
    pub taken_back_by: Option<OperationId>,
    /// The number of revisions and checkpoints in the session when it began.
    pub sequence: u64,
    /// The session.
    pub session: SessionNumber,
    /// Where its first record begins: operations are ordered by when they were recorded, whatever the clock said.
    pub position: u64,
}
packed_row!(OperationRow, "operation");

/// The refs at the position of a generation: a second copy of what the journal's first segment begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefsRow {
    /// The refs.
    pub refs: StoreRefs,
}
packed_row!(RefsRow, "refs", |row| row.refs.check());

/// How many rows there are that nothing else would miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalsRow {
    /// Operations.
    pub operations: u64,
    /// Segments of growing blobs.
    pub segments: u64,
}
packed_row!(TotalsRow, "totals");

impl RevisionRow {
    /// What stands in place of the row of a revision that a repair could not save: reading it is an error.
    pub const LOST: &'static [u8] = b"fLo1";
}

/// The name of an object in the table of names: enough of its hash.
#[must_use]
pub(crate) fn object_key(id: &ObjectId) -> [u8; 16] {
    *id.as_bytes().first_chunk().expect("16 of 32 bytes")
}
