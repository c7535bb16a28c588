//! Encodes the changes of a revision as the parts of its delta, and large values as objects.

use super::encoded_change::EncodedChange;
use crate::error::{Error, Result};
use crate::format::{
    Delta, DeltaChange, DeltaPart, DeltaSide, EntryBytes, MAX_OBJECT_BYTES, ObjectKind, Record,
    RecordBytes, RecordChange, RevisionHeader, compress_object, encode_object, encode_object_raw,
};
use crate::model::ObjectId;
use std::sync::Arc;

/// Size limit in bytes for inline entries. Larger ones are stored as blobs.
const MAX_INLINE_ENTRY_BYTES: usize = 4096;
/// Approximate size in bytes of the parts of a delta: a lookup of one claim opens one part.
const PIECE_BYTES: usize = 32 << 10;

/// Deltas of one part, up to this size in bytes, are stored uncompressed in the journal.
const MAX_RAW_BYTES: usize = 32 << 10;

/// Returns whether the changes of a revision, which its header names, were permanently deleted and
/// are not in its delta.
pub(crate) fn is_delta_lost(header: &RevisionHeader, delta: &[DeltaPart]) -> bool {
    delta.is_empty() && header.delta != list_id(&[])
}

/// The large values of a delta, its parts, and the id that the header names.
pub(super) type EncodedDelta = (Vec<RecordChange>, Vec<DeltaPart>, ObjectId);

pub(super) fn encode_delta(
    delta: &[EncodedChange],
    salt: &mut dyn FnMut() -> Result<[u8; 16]>,
) -> Result<EncodedDelta> {
    let entries = delta.iter().filter_map(|(_, _, new)| new.as_ref());
    entries.map(|new| new.entry.len()).try_for_each(check_size)?;
    let mut blobs = Vec::new();
    let mut side = |entry: Option<&EntryBytes>| match entry {
        None => DeltaSide::Absent,
        Some(entry) if entry.len() <= MAX_INLINE_ENTRY_BYTES => {
            DeltaSide::Inline(Arc::clone(entry))
        }
        Some(entry) => {
            let (id, object) = blob(entry);
            blobs.push(object);
            DeltaSide::Blob(id)
        }
    };
    let changes = delta.iter().map(|(key, old, new)| DeltaChange {
        key: key.as_slice(),
        old: side(old.as_ref()),
        new: side(new.as_ref().map(|new| &new.entry)),
    });
    let (ids, parts) = encode_pieces(changes, salt)?;
    Ok((blobs, parts, list_id(&ids)))
}

/// Encodes changes in key order as delta parts of limited size. Returns their ids and the parts.
pub(crate) fn encode_pieces<K: AsRef<[u8]>>(
    changes: impl Iterator<Item = DeltaChange<K>>,
    salt: &mut dyn FnMut() -> Result<[u8; 16]>,
) -> Result<(Vec<ObjectId>, Vec<DeltaPart>)> {
    let mut pieces = vec![(Delta { changes: Vec::new() }, 0)];
    for change in changes {
        let bytes = change.bytes();
        let (piece, size) = pieces.last_mut().expect("never empty");
        if *size > 0 && *size + bytes > PIECE_BYTES {
            pieces.push((Delta { changes: vec![change] }, bytes));
        } else {
            piece.changes.push(change);
            *size += bytes;
        }
    }
    let mut ids = Vec::with_capacity(pieces.len());
    let mut parts = Vec::with_capacity(pieces.len());
    let alone = pieces.len() == 1;
    for (piece, _) in pieces {
        let content = piece.encode(salt()?);
        // Compressing a small delta takes longer than the rest of a commit to a disk, so the
        // applier does that.
        let (id, encoded) = if alone && content.len() <= MAX_RAW_BYTES {
            encode_object_raw(ObjectKind::Delta, &content)
        } else {
            encode_object(ObjectKind::Delta, &content)
        };
        ids.push(id);
        parts.push(DeltaPart::Inline(RecordBytes(encoded)));
    }
    Ok((ids, parts))
}

/// Returns a record with its uncompressed deltas compressed; `None` if none gets smaller.
pub(super) fn compressed(record: &Record) -> Result<Option<Record>> {
    let mut smaller: Option<Record> = None;
    for (place, change) in record.changes.iter().enumerate() {
        for (part, encoded) in inline_parts(change) {
            let Some(bytes) = compress_object(encoded).map_err(Error::corrupt("a delta"))? else {
                continue;
            };
            let record = smaller.get_or_insert_with(|| record.clone());
            if let Some(RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. }) =
                record.changes.get_mut(place)
                && let Some(DeltaPart::Inline(encoded)) = delta.get_mut(part)
            {
                encoded.0 = bytes;
            }
        }
    }
    Ok(smaller)
}

/// Returns the parts of a change's delta that are in its record, with their places.
fn inline_parts(change: &RecordChange) -> impl Iterator<Item = (usize, &[u8])> {
    let delta = match change {
        RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. } => {
            delta.as_slice()
        }
        _ => &[],
    };
    delta.iter().enumerate().filter_map(|(place, part)| match part {
        DeltaPart::Inline(encoded) => Some((place, encoded.0.as_slice())),
        DeltaPart::Named(_) => None,
    })
}

/// Returns the id of a delta, as a header names it: the id of its only part, or the hash of the ids
/// of its parts.
pub(crate) fn list_id(parts: &[ObjectId]) -> ObjectId {
    if let [only] = parts {
        return *only;
    }
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|id| {
        hasher.update(id.as_bytes());
    });
    ObjectId::from_bytes(*hasher.finalize().as_bytes())
}

/// Refuses a value that is too large for an object or a record.
///
/// # Errors
/// [`Error::Invalid`].
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MAX_OBJECT_BYTES {
        return Ok(());
    }
    let most = MAX_OBJECT_BYTES >> 20;
    Err(Error::invalid(format!(
        "a value of {bytes} bytes is too large: divide it into values of less than {most} MiB, or \
        keep it in a file and record its path"
    )))
}

/// Encodes a large value, which [`check_size`] permits, as an object. Returns its id and the change
/// that stores it.
pub(crate) fn blob(content: &[u8]) -> (ObjectId, RecordChange) {
    let (id, encoded) = encode_object(ObjectKind::Blob, content);
    (id, RecordChange::Object { object: RecordBytes(encoded) })
}
