//! Keyframes: full states in the index, from which nearby states are computed. They are derived
//! data; the applier creates them.

use super::delta_parts::is_delta_lost;
use super::index::fold;
use super::lineage::{self, RevisionRange, RevisionRef};
use super::materialize::{self, MIN_REPLAY_COST, cost};
use super::object_cache::ObjectCache;
use super::parallel;
use super::refs::{StoreRefs, session};
use super::row_overlay::{OverlaySnapshot, RowOverlay};
use super::state::RevisionState;
use super::{object, table_rows};
use crate::backend::{LogPosition, ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, KeyframeChunk, KeyframeRow, ObjectKind, RecordBytes,
    RevisionRow, StateChunk, content_id, encode_object, entity_hash, entry_hash, is_boundary,
};
use crate::model::{SessionId, SessionNumber, StateDigest};
use std::collections::HashSet;

/// Size limit in bytes for keyframes made by a process that a user waits for: larger ones take too
/// long to write.
pub(crate) const MAX_FOREGROUND_KEYFRAME_BYTES: u64 = 96 << 20;
/// Size limit in bytes for all keyframes: larger states take too much memory to write.
pub(crate) const MAX_KEYFRAME_BYTES: u64 = 1 << 30;

/// Whether a keyframe is due: replaying from the last one costs more than reading a new one.
///
/// Reading a full state costs its size. So reading any state costs at most about twice its size,
/// and the keyframes of a history take no more space than its deltas.
#[must_use]
pub(crate) const fn is_due(replay_cost: u64, state_bytes: u64) -> bool {
    let bound = if state_bytes > MIN_REPLAY_COST { state_bytes } else { MIN_REPLAY_COST };
    replay_cost > bound
}

/// The distance of a branch's newest revision from a keyframe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyframeDistance {
    /// Cost of the replay.
    replay: u64,
    /// Whether there is a keyframe; otherwise deltas are replayed from the beginning.
    keyframed: bool,
}

impl KeyframeDistance {
    /// Computes the distance of a revision.
    pub(crate) fn of(
        view: &dyn Snapshot,
        refs: &StoreRefs,
        number: SessionNumber,
        at: RevisionRef,
    ) -> Result<Self> {
        let (rows, keyframed) = since_keyframe(view, refs, number, at)?;
        let replay = rows.iter().map(|(_, row)| cost(row)).sum();
        Ok(Self { replay, keyframed })
    }

    /// Advances to the next revision.
    pub(crate) fn step(&mut self, row: &RevisionRow) {
        self.replay += cost(row);
    }

    /// Returns whether a keyframe is due at this revision.
    pub(crate) const fn is_due(&self, row: &RevisionRow) -> bool {
        // Without a keyframe the deltas contain the state itself, so its size is not extra cost.
        let read = if self.keyframed { 0 } else { row.state_bytes };
        is_due(self.replay.saturating_sub(read), row.state_bytes)
    }
}

/// Returns the revisions from which a state is computed, from the last keyframe or from the
/// beginning, and whether there is a keyframe.
fn since_keyframe(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<(Vec<(RevisionRef, RevisionRow)>, bool)> {
    let mut replayed = Vec::new();
    for range in lineage::state_ranges(view, refs, number, at)? {
        let (from, to) = lineage::row_bounds(number, range);
        let found = view.scan(key::KEYFRAMES, &from, &to, ScanDirection::Descending, 1)?;
        let keyframe = found.first().map(|(place, _)| key::last_number(place).unwrap_or(0));
        let rest = RevisionRange { after: keyframe.unwrap_or(range.after), ..range };
        let rows = lineage::revisions(view, number, rest, ScanDirection::Descending, usize::MAX)?;
        let at = |sequence| RevisionRef { branch: range.branch, sequence };
        replayed.extend(rows.into_iter().map(|(sequence, row)| (at(sequence), row)));
        if keyframe.is_some() {
            return Ok((replayed, true));
        }
    }
    Ok((replayed, false))
}

/// Returns whether the state of a revision cannot be computed yet: changes before it were removed
/// permanently before they were imported, and the fold that has them is imported later.
pub(crate) fn lacks_changes(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<bool> {
    for (at, row) in since_keyframe(view, refs, number, at)?.0 {
        // A fold can have no changes either, and its revision names those from before the fold.
        if row.parts.is_empty()
            && is_delta_lost(&lineage::header(&row.header)?, &[])
            && fold::row(view, number, at)?.is_none()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes a keyframe of a revision.
///
/// `object_cache` has the objects from which earlier keyframes of the same pass were computed.
pub(crate) fn make(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &StoreRefs,
    object_cache: &ObjectCache,
    position: LogPosition,
    (number, at): (SessionNumber, RevisionRef),
) -> Result<KeyframeDistance> {
    let view = OverlaySnapshot::new(base, rows, position);
    let caching = OverlaySnapshot { object_cache: Some(object_cache), ..view };
    let state = materialize::materialize(&caching, refs, number, at)?;
    let row = lineage::revision(&view, number, at)?;
    let header = lineage::header(&row.header)?;
    let digest = digest(&state);
    if digest != header.digest {
        return Err(Error::Corrupt {
            what: format!("the state of #{}", at.sequence),
            source: "its digest is not the revision's".into(),
        });
    }
    let session_id = session(refs, number)?.info.id;
    let place = of(number).branch(at.branch).number(at.sequence).build();
    write(base, rows, position, &session_id, &state, digest, place)?;
    Ok(KeyframeDistance { replay: 0, keyframed: true })
}

/// Returns the chunk numbers of the keyframes in a revision range.
pub(crate) fn chunks(
    view: &dyn Snapshot,
    number: SessionNumber,
    range: RevisionRange,
) -> Result<Vec<u64>> {
    let (from, to) = lineage::row_bounds(number, range);
    chunks_between(view, &from, &to)
}

pub(crate) fn chunks_of(view: &dyn Snapshot, number: SessionNumber) -> Result<Vec<u64>> {
    chunks_between(view, &of(number).build(), &of(number).end())
}

/// Returns the chunk numbers of all keyframes. Reads these page by page.
pub(crate) fn all_chunks(view: &dyn Snapshot) -> Result<HashSet<u64>> {
    let mut found = HashSet::new();
    table_rows::for_each_row(view, key::KEYFRAMES, |_, row| {
        found.extend(chunks_in(row)?);
        Ok(())
    })?;
    Ok(found)
}

fn chunks_between(view: &dyn Snapshot, from: &[u8], to: &[u8]) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for (_, row) in table_rows::rows_between(view, key::KEYFRAMES, from, to)? {
        found.extend(chunks_in(&row)?);
    }
    Ok(found)
}

/// Returns the chunk numbers of a keyframe.
fn chunks_in(row: &[u8]) -> Result<Vec<u64>> {
    let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
    Ok(row.chunks.iter().map(|chunk| chunk.object).collect())
}

/// Returns the sequence numbers of a session's keyframes, ascending.
pub(crate) fn sequences(view: &dyn Snapshot, number: SessionNumber) -> Result<Vec<u64>> {
    let rows = table_rows::rows(view, key::KEYFRAMES, of(number))?;
    let mut found: Vec<_> = rows.iter().filter_map(|(place, _)| key::last_number(place)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Computes the digest of a state from all its entries.
pub(crate) fn digest(state: &RevisionState) -> StateDigest {
    const AT_ONCE: usize = 256;
    state.encoded().enumerate().fold(StateDigest::EMPTY, |sum, (place, (key, entry))| {
        if place.is_multiple_of(AT_ONCE) {
            parallel::yield_to_foreground();
        }
        sum.plus(&entry_hash(key, entry))
    })
}

fn write(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    position: LogPosition,
    session: &SessionId,
    state: &RevisionState,
    digest: StateDigest,
    place: Vec<u8>,
) -> Result<()> {
    let mut chunks = Vec::new();
    let mut bytes = 0;
    let mut chunk = StateChunk::default();
    let mut first = Vec::new();
    let mut next = object::next_number(&OverlaySnapshot::new(base, rows, position))?;
    let mut entries = state.encoded().peekable();
    while let Some((key, entry)) = entries.next() {
        if chunk.count() == 0 {
            first = key.to_vec();
        }
        chunk.push(key, entry);
        let full = chunk.bytes() >= CHUNK_MAX_BYTES
            || (chunk.bytes() >= CHUNK_MIN_BYTES && is_boundary(entity_hash(session, key)));
        if full || entries.peek().is_none() {
            parallel::yield_to_foreground();
            let content = chunk.encode();
            bytes += content.len() as u64;
            // The previous keyframe already has most chunks. They are not compressed again.
            let view = OverlaySnapshot::new(base, rows, position);
            let object = match object::find_number(&view, &content_id(&content))? {
                Some(number) => number,
                None => {
                    object::put(rows, next, &encode_object(ObjectKind::Chunk, &content).1)?;
                    next += 1;
                    next - 1
                }
            };
            let first = RecordBytes(std::mem::take(&mut first));
            chunks.push(KeyframeChunk { object, count: chunk.count(), first });
            chunk = StateChunk::default();
        }
    }
    object::put_next_number(rows, next);
    let digest = RecordBytes(digest.to_bytes().to_vec());
    let row = KeyframeRow { digest, count: state.len() as u64, bytes, chunks };
    rows.put(key::KEYFRAMES, place, row.encode());
    Ok(())
}
