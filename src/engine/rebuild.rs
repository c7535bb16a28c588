//! Rebuilds the derived part of an index from its primary rows: names of objects, counters, all
//! derived tables, and keyframes.
//!
//! During this, all rows are in memory: about as many bytes as the index has on disk.

use super::commit::Engine;
use super::derive;
use super::lineage::RevisionRef;
use super::maintain::{BATCH_ROWS, KeyframeBuilder};
use super::row_overlay::{OverlaySnapshot, RowOverlay};
use super::table_rows::{count_rows, for_each_row};
use super::verify::{chain, keyframe};
use super::{object, row_totals};
use crate::backend::{EmptySnapshot, IndexWriter, LogPosition, RowBatch, Snapshot};
use crate::engine::refs::{StoreRefs, put_all_sessions};
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{
    HeadRow, ObjectKind, Record, RecordChange, RevisionHeader, RevisionRow, is_self_contained,
    object_id, object_kind,
};
use serde::Serialize;
use std::sync::Arc;

/// Counts of what was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RebuildCounts {
    /// Number of revisions in the index.
    pub revisions: u64,
    /// Number of derived rows that were made.
    pub rows: u64,
    /// Number of keyframes in the rebuilt index: intact ones that were kept, and new ones.
    #[serde(rename = "full_states")]
    pub keyframes: u64,
}

impl Engine {
    /// Rebuilds all derived data from primary rows, except intact keyframes, and publishes the
    /// result. If another process writes the index, waits for at most the lock timeout.
    ///
    /// # Errors
    /// [`Busy`](crate::backend::Error::Busy) if the index is locked for longer; [`Error::Corrupt`]
    /// if primary data is damaged. Then nothing has changed, and a repair is needed.
    pub(crate) fn rebuild(&self) -> Result<RebuildCounts> {
        self.check_writable()?;
        self.check_spool()?;
        self.drain()?;
        let mut applier = self.follower.index.empty_writer(self.options.lock_timeout)?;
        let base = self.follower.index.snapshot()?;
        let position = base.position();
        if position == 0 {
            return Ok(RebuildCounts { revisions: 0, rows: 0, keyframes: 0 });
        }
        let refs = self.refs_at(&base)?;
        let mut rows = RowOverlay::default();
        for table in derive::PRIMARY.into_iter().chain([key::RECORDS]) {
            for_each_row(&*base, table, |place, value| {
                let chunk = table == key::OBJECTS
                    && object_kind(value).map_err(Error::corrupt("an object"))?
                        == ObjectKind::Chunk;
                if !chunk {
                    rows.put(table, place.to_vec(), value.to_vec());
                }
                Ok(())
            })?;
        }
        let mut first = None;
        let rebuilt = complete(&mut rows, &refs, position, &mut |place, error| {
            let source = chain(&error).into();
            first.get_or_insert(Error::Corrupt { what: place, source });
        })?;
        if let Some(error) = first {
            return Err(error);
        }
        write(&mut *applier, rows)?;
        drop((base, refs));
        applier.publish(position)?;
        self.follower.forget();
        self.follower.tidy();
        Ok(rebuilt)
    }

    /// Returns the refs at the position of a generation. The sessions are read from the generation.
    /// The head is read from the journal if a segment begins at the position, and else from the
    /// copy in the index.
    fn refs_at(&self, base: &Arc<dyn Snapshot>) -> Result<StoreRefs> {
        let tail = self.follower.log.read(base.position(), 1)?;
        let first = tail.frames.first().and_then(|frame| Record::decode(&frame.payload).ok());
        if let Some(RecordChange::Head(head)) = first.and_then(|one| one.changes.into_iter().next())
        {
            return Ok(StoreRefs::of_generation(&head, Arc::clone(base)));
        }
        let what = "the head of the store";
        let row = base.get(key::COUNTERS, key::HEAD)?.ok_or_else(|| Error::missing(what))?;
        let head = HeadRow::decode(&row).map_err(Error::corrupt(what))?.head;
        Ok(StoreRefs::of_generation(&head, Arc::clone(base)))
    }
}

/// Writes all rows to the index, in batches.
pub(crate) fn write(applier: &mut dyn IndexWriter, rows: RowOverlay) -> Result<()> {
    let mut rows = rows.into_batch().rows.into_iter().peekable();
    while rows.peek().is_some() {
        applier.write(RowBatch { rows: rows.by_ref().take(BATCH_ROWS).collect() })?;
    }
    Ok(())
}

/// Adds all derived rows to the primary rows. Intact keyframes among the rows are kept. Calls
/// `trouble` for each part of the primary data that is damaged.
pub(crate) fn complete(
    rows: &mut RowOverlay,
    refs: &StoreRefs,
    position: LogPosition,
    trouble: derive::FailureSink<'_>,
) -> Result<RebuildCounts> {
    let mut made = RowOverlay::default();
    let view = OverlaySnapshot::new(&EmptySnapshot, rows, position);
    let mut last = 0;
    for_each_row(&view, key::OBJECTS, |place, encoded| {
        let number = key::last_number(place).unwrap_or(0);
        last = last.max(number);
        let wrong = || Error::corrupt(format!("the object number {number}"));
        // An object that needs a prefix to be opened is never looked up by its id.
        if is_self_contained(encoded).map_err(wrong())? {
            let id = object_id(encoded).map_err(wrong())?;
            made.put(key::OBJECT_NAMES, key::object_name(&id), number.to_be_bytes().to_vec());
        }
        Ok(())
    })?;
    object::put_next_number(&mut made, last + 1);
    made.put(key::COUNTERS, key::TOTALS.to_vec(), row_totals::count_totals(&view)?.encode());
    put_all_sessions(&mut made, refs)?;
    let mut count = 0;
    derive::derive_all(
        &view,
        refs,
        &mut |table, key, value| {
            count += 1;
            made.put(table, key, value);
            Ok(())
        },
        trouble,
    )?;
    rows.extend(made);
    let keyframes = keyframes(rows, refs, position)?;
    let view = OverlaySnapshot::new(&EmptySnapshot, rows, position);
    let revisions = count_rows(&view, key::REVISIONS)?;
    Ok(RebuildCounts { revisions, rows: count, keyframes })
}

/// Removes damaged keyframes and makes the missing ones. Returns how many keyframes there are.
fn keyframes(rows: &mut RowOverlay, refs: &StoreRefs, position: LogPosition) -> Result<u64> {
    let mut kept = 0;
    let mut damaged = Vec::new();
    let view = OverlaySnapshot::new(&EmptySnapshot, rows, position);
    for_each_row(&view, key::KEYFRAMES, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let branch = key::short_at(place, 4).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        match keyframe(&view, number, branch, sequence, row) {
            Ok(()) => kept += 1,
            Err(_) => damaged.push(place.to_vec()),
        }
        Ok(())
    })?;
    let mut todo = Vec::new();
    for_each_row(&view, key::REVISIONS, |place, row| {
        let header = RevisionRow::decode(row).and_then(|row| RevisionHeader::decode(&row.header));
        if let Ok(header) = header {
            let session = key::short_at(place, 0).unwrap_or(0);
            let at = RevisionRef { branch: header.branch, sequence: header.sequence };
            todo.push((session, at, header.reset.is_some(), rows.contains(key::KEYFRAMES, place)));
        }
        Ok(())
    })?;
    for place in damaged {
        rows.delete(key::KEYFRAMES, place);
    }
    let mut work = KeyframeBuilder::new(refs.clone(), super::keyframe::MAX_KEYFRAME_BYTES);
    let before = count_keyframes(rows, position)?;
    for (session, at, reset, keyframed) in todo {
        // No state of such a session can be computed, and each attempt reads all revisions.
        if !keyframed && work.unfolded.contains(&session) {
            continue;
        }
        // If data that the keyframe needs is lost, no keyframe is made.
        if keyframed || work.keyframe(&EmptySnapshot, rows, position, session, at, reset).is_err() {
            work.distances.remove(&(session, at.branch));
        }
    }
    remove_unused_chunks(rows, position)?;
    Ok(kept + count_keyframes(rows, position)? - before)
}

/// Counts the keyframes.
fn count_keyframes(rows: &RowOverlay, position: LogPosition) -> Result<u64> {
    count_rows(&OverlaySnapshot::new(&EmptySnapshot, rows, position), key::KEYFRAMES)
}

/// Removes the chunks that no keyframe uses.
fn remove_unused_chunks(rows: &mut RowOverlay, position: LogPosition) -> Result<()> {
    let view = OverlaySnapshot::new(&EmptySnapshot, rows, position);
    let named = super::keyframe::all_chunks(&view)?;
    let mut unreferenced = Vec::new();
    for_each_row(&view, key::OBJECTS, |place, encoded| {
        let number = key::last_number(place).unwrap_or(0);
        if object_kind(encoded).is_ok_and(|kind| kind == ObjectKind::Chunk)
            && !named.contains(&number)
        {
            unreferenced.push((place.to_vec(), object_id(encoded).ok()));
        }
        Ok(())
    })?;
    let unreferenced: Vec<_> = unreferenced
        .into_iter()
        .map(|(place, id)| {
            let number = key::last_number(&place);
            let name = id.map(|id| key::object_name(&id));
            // The id may lead to another object with the same content.
            let own = name.filter(|_| {
                id.and_then(|id| object::find_number(&view, &id).ok().flatten()) == number
            });
            (place, own)
        })
        .collect();
    for (place, name) in unreferenced {
        rows.delete(key::OBJECTS, place);
        if let Some(name) = name {
            rows.delete(key::OBJECT_NAMES, name);
        }
    }
    Ok(())
}
