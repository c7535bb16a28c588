//! Growing blobs (transcripts), stored as segments. Each segment is compressed with some of the
//! bytes before it as prefix.

use super::object::{self, DROPPED_OBJECT};
use super::read_snapshot::ReadSnapshot;
use super::refs::session as session_refs;
use super::{parallel, table_rows};
use crate::backend::{LogPosition, ScanDirection, Snapshot, locked};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    CompressionEffort, ObjectKind, RecordBytes, RecordChange, SegmentRow,
    decode_object_with_prefix, encode_object_with_prefix,
};
use crate::model::SessionNumber;
use std::sync::{Arc, Mutex};

/// Largest number of bytes in a segment.
const SEGMENT_BYTES: usize = 2 << 20;
/// Content of at least this size is compressed quickly and with a prefix of at most `NEAR_BYTES`,
/// because repetitions in large content are near each other.
pub(crate) const MUCH_BYTES: usize = 1 << 20;
const NEAR_BYTES: usize = 512 << 10;
/// Largest prefix of other content. zstd indexes the whole prefix for each segment.
const PREFIX_BYTES: usize = 2 << 20;
/// Distance in bytes between restarts. A segment at a restart has no prefix, so a read in the
/// middle need not start at the beginning of the blob.
pub(crate) const RESTART_BYTES: u64 = 8 << 20;

/// An encoded segment that is not assigned to a blob yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobSegment {
    offset: u64,
    prefix: u64,
    encoded: Vec<u8>,
}

impl BlobSegment {
    /// Turns the segment into the change that adds it to a blob.
    fn into_change(self, session: SessionNumber, blob: &str) -> RecordChange {
        let (blob, object) = (blob.to_owned(), RecordBytes(self.encoded));
        RecordChange::Segment { session, blob, offset: self.offset, prefix: self.prefix, object }
    }
}

/// Turns segments into the changes that add them to a blob.
pub(crate) fn changes(
    session: SessionNumber,
    blob: &str,
    segments: Vec<BlobSegment>,
) -> Vec<RecordChange> {
    segments.into_iter().map(|segment| segment.into_change(session, blob)).collect()
}

/// Compresses `content` as segments to be appended at `offset`. `before` holds the last bytes of
/// the blob: at least those since the last restart, or all of them.
pub(crate) fn segments(
    session: SessionNumber,
    blob: &str,
    offset: u64,
    before: &[u8],
    content: &[u8],
) -> Vec<RecordChange> {
    let before = before.get(before.len().saturating_sub(PREFIX_BYTES)..).unwrap_or_default();
    let window = [before, content].concat();
    let parts = parts(offset, before.len(), &window);
    // On all cores: the prefix of each segment is known before any of them is compressed.
    changes(session, blob, parallel::map(&parts, 2, BlobSegmentDraft::encode))
}

/// Compresses `content`, the beginning of a blob, as segments while `work` runs. Returns the
/// segments and the result of `work`.
pub(crate) fn segments_while<T>(content: &[u8], work: impl FnOnce() -> T) -> (Vec<BlobSegment>, T) {
    let parts = parts(0, 0, content);
    parallel::map_while(&parts, usize::MAX, BlobSegmentDraft::encode, work)
}

/// Cuts the bytes of `window` after its first `before` bytes into segments. The blob has `offset`
/// bytes at that point.
fn parts(offset: u64, before: usize, window: &[u8]) -> Vec<BlobSegmentDraft<'_>> {
    let mut parts = Vec::new();
    let mut begin = before;
    // Decided by the whole content: the last segment may be short, and indexing a long prefix for
    // it would take longer than all the rest.
    let is_much = window.len() - before >= MUCH_BYTES;
    while begin < window.len() {
        // Up to the next restart, and at most one segment.
        let blob_offset = offset + (begin - before) as u64;
        let room = RESTART_BYTES - blob_offset % RESTART_BYTES;
        let length = (window.len() - begin)
            .min(SEGMENT_BYTES)
            .min(usize::try_from(room).unwrap_or(SEGMENT_BYTES));
        let since = usize::try_from(blob_offset % RESTART_BYTES).unwrap_or(0).min(begin);
        let (effort, most) = if is_much {
            (CompressionEffort::Quick, NEAR_BYTES)
        } else {
            (CompressionEffort::Thorough, PREFIX_BYTES)
        };
        let since = since.min(most);
        let prefix = window.get(begin - since..begin).unwrap_or_default();
        let part = window.get(begin..begin + length).unwrap_or_default();
        parts.push(BlobSegmentDraft { offset: blob_offset, prefix, part, effort });
        begin += length;
    }
    parts
}

/// A segment before compression.
struct BlobSegmentDraft<'a> {
    offset: u64,
    prefix: &'a [u8],
    part: &'a [u8],
    effort: CompressionEffort,
}

impl BlobSegmentDraft<'_> {
    fn encode(&self) -> BlobSegment {
        let (_, encoded) =
            encode_object_with_prefix(ObjectKind::Blob, self.prefix, self.part, self.effort);
        BlobSegment { offset: self.offset, prefix: self.prefix.len() as u64, encoded }
    }
}

/// The part of a blob that was read last. A state often contains many texts of one blob.
#[derive(Default)]
pub(crate) struct BlobCache(Mutex<Option<CachedBlob>>);

struct CachedBlob {
    /// The journal position of the read. After an undo, an import can write other bytes at the same
    /// offset.
    position: LogPosition,
    session: SessionNumber,
    blob: String,
    start: u64,
    content: Arc<Vec<u8>>,
}

impl CachedBlob {
    /// Returns where the bytes end.
    fn end(&self) -> u64 {
        self.start + self.content.len() as u64
    }

    /// Reads segments until the bytes reach `end` or the blob ends.
    fn read_to(&mut self, view: &ReadSnapshot, end: u64) -> Result<()> {
        let Self { session, blob, start, .. } = &*self;
        let (session, blob, start) = (*session, blob.clone(), *start);
        let missing = end.min(start + RESTART_BYTES).saturating_sub(self.end());
        // If nothing is missing, the content may be shared, and would be copied.
        if missing > 0 {
            let content = Arc::make_mut(&mut self.content);
            content.reserve(usize::try_from(missing).unwrap_or_default());
        }
        while self.end() < end {
            let at = self.end();
            let place = of(session).text(&blob).number(at).build();
            let Some(row) = view.get(key::SEGMENTS, &place)? else { break };
            let row = SegmentRow::decode(&row)
                .map_err(Error::corrupt(format_args!("the blob '{blob}'")))?;
            if row.object == DROPPED_OBJECT {
                return Err(Error::TextRemoved { blob });
            }
            // A segment never crosses a restart, so the bytes before a restart are no prefix.
            let since_restart = at - restart_before(at).max(start);
            let prefix = Some(row.prefix)
                .filter(|length| *length <= since_restart)
                .and_then(|length| usize::try_from(length).ok())
                .and_then(|length| self.content.get(self.content.len().checked_sub(length)?..))
                .ok_or_else(|| Error::missing(format!("the beginning of the blob '{blob}'")))?;
            let encoded = object::encoded(view, row.object)?;
            let part = decode_object_with_prefix(ObjectKind::Blob, prefix, &encoded)
                .map_err(Error::corrupt(format_args!("the blob '{blob}' at {at}")))?;
            if part.is_empty() {
                break;
            }
            Arc::make_mut(&mut self.content).extend_from_slice(&part);
        }
        Ok(())
    }
}

impl BlobCache {
    /// Reads a blob from the last restart before `offset`, or from the end of its dropped
    /// beginning. Returns where the bytes begin and the bytes, at least up to `offset + length` if
    /// the blob is that long. A later read near these bytes continues where this one ended.
    ///
    /// # Errors
    /// [`Error::TextRemoved`] if the bytes at `offset` were dropped.
    pub(crate) fn read(
        &self,
        view: &ReadSnapshot,
        session: SessionNumber,
        blob: &str,
        offset: u64,
        length: u64,
    ) -> Result<(u64, Arc<Vec<u8>>)> {
        let dropped = session_refs(&view.refs, session)?.dropped(blob);
        if offset < dropped {
            return Err(Error::TextRemoved { blob: blob.to_owned() });
        }
        let end = offset.saturating_add(length);
        let mut cached = locked(&self.0);
        let known = cached.take().filter(|known| {
            (known.session, known.position) == (session, view.position())
                && known.blob == blob
                && known.start <= offset
                // Reading further would keep the bytes before the last restart in memory, too.
                && (end <= known.end() || restart_before(offset) <= known.start)
        });
        let mut known = known.unwrap_or_else(|| CachedBlob {
            position: view.position(),
            session,
            blob: blob.to_owned(),
            start: restart_before(offset).max(dropped),
            content: Arc::default(),
        });
        known.read_to(view, end)?;
        let found = (known.start, Arc::clone(&known.content));
        *cached = Some(known);
        Ok(found)
    }
}

/// Reads a segment, and returns its content. `before` ends with the bytes before the segment.
pub(crate) fn segment_content(
    view: &dyn Snapshot,
    row: &SegmentRow,
    before: &[u8],
) -> Result<Vec<u8>> {
    let encoded = object::encoded(view, row.object)?;
    let from = usize::try_from(row.prefix).ok();
    let from = from.and_then(|prefix| before.len().checked_sub(prefix));
    let prefix = from.and_then(|from| before.get(from..));
    let prefix = prefix.ok_or_else(|| Error::missing("what precedes a part of a blob"))?;
    decode_object_with_prefix(ObjectKind::Blob, prefix, &encoded)
        .map_err(Error::corrupt(format_args!("the object number {}", row.object)))
}

/// Returns how many bytes the segments of a blob take, compressed.
pub(crate) fn stored_bytes(view: &dyn Snapshot, session: SessionNumber, blob: &str) -> Result<u64> {
    let mut bytes = 0;
    for (_, row) in table_rows::rows(view, key::SEGMENTS, of(session).text(blob))? {
        let row =
            SegmentRow::decode(&row).map_err(Error::corrupt(format_args!("the blob '{blob}'")))?;
        if object::is_object_number(row.object) {
            bytes += object::encoded(view, row.object)?.len() as u64;
        }
    }
    Ok(bytes)
}

/// Returns the offset at which a blob ends; 0 if it does not exist.
pub(crate) fn end(view: &dyn Snapshot, session: SessionNumber, blob: &str) -> Result<u64> {
    let (from, to) = (of(session).text(blob).build(), of(session).text(blob).end());
    let last = view.scan(key::SEGMENTS, &from, &to, ScanDirection::Descending, 1)?;
    let Some((place, row)) = last.first() else { return Ok(0) };
    let row = SegmentRow::decode(row).map_err(Error::corrupt(format_args!("the blob '{blob}'")))?;
    Ok(key::last_number(place).unwrap_or(0) + row.length)
}

/// Returns the offset of the last restart at or before an offset.
pub(crate) const fn restart_before(offset: u64) -> u64 {
    offset - offset % RESTART_BYTES
}
