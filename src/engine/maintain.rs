//! Applies the journal's tail to the index and publishes the next generation. A process does this
//! after it has answered, or in a maintenance thread, so no answer waits for it.

use super::commit::Engine;
use super::delta_parts::{compressed, is_delta_lost};
use super::index::{self, PositionedRecord};
use super::journal_follower::APPLY_BYTES;
use super::keyframe::{self, KeyframeDistance, MAX_FOREGROUND_KEYFRAME_BYTES, MAX_KEYFRAME_BYTES};
use super::lineage::{self, RevisionRange, RevisionRef};
use super::object;
use super::object_cache::ObjectCache;
use super::parallel;
use super::row_overlay::{OverlaySnapshot, RowOverlay};
use crate::backend::{self, IndexWriter, LogPosition, Snapshot};
use crate::engine::refs::{StoreRefs, put_changed_sessions, session};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, SessionRemoval, StoreHead};
use crate::model::{
    BranchNumber, Operation, OperationAuthor, OperationId, SessionNumber, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Preallocated room of a new segment in bytes, if a maintenance thread makes it: enough for a tail
/// of [`APPLY_BYTES`], and for most of what is written during the apply. When the room is used up,
/// the appending writer makes more.
const ROOM_BYTES: u64 = 3_000_000;
/// Preallocated room in the current segment in bytes, until the next segment begins. It is smaller,
/// because making it delays writers.
const FIRST_ROOM_BYTES: u64 = APPLY_BYTES;
/// Number of rows that are collected before they are written.
pub(super) const BATCH_ROWS: usize = 20_000;
/// Number of journal bytes per read.
const READ_BYTES: u64 = 4 << 20;

impl Engine {
    /// Applies the tail if its cost for readers is at least `bytes` and no other process is
    /// applying it. Returns whether it was applied.
    pub(crate) fn apply_if_long(&self, bytes: u64) -> Result<bool> {
        self.begin_apply_if_long(bytes)?.map_or(Ok(false), StartedApply::finish)
    }

    /// Begins the apply of [`Engine::apply_if_long`]. Records that are written later are not part
    /// of it.
    pub(crate) fn begin_apply_if_long(&self, bytes: u64) -> Result<Option<StartedApply<'_>>> {
        // After a timeout on the append lock, do not wait for it again for maintenance.
        let kept_out = self.lock_timed_out.load(Ordering::Relaxed);
        if kept_out || self.check_writable().is_err() || self.follower.tail_cost() < bytes {
            return Ok(None);
        }
        // A maintenance thread, or a command that only applies, has time for large keyframes.
        let patient = bytes == 0 || self.has_maintainer();
        let max_state_bytes =
            if patient { MAX_KEYFRAME_BYTES } else { MAX_FOREGROUND_KEYFRAME_BYTES };
        match self.begin_apply(max_state_bytes) {
            Err(error) => self.applied_by_another(error).map(|()| None),
            begun => begun,
        }
    }

    /// Returns the error, except [`backend::Error::Gone`]: then the lease of this process has
    /// ended, and another process has applied the tail.
    fn applied_by_another(&self, error: Error) -> Result<()> {
        match error {
            Error::Backend(backend::Error::Gone { .. }) => {
                self.follower.forget();
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Begins a new segment after the tail. Returns `None` if there is nothing to apply, or another
    /// process is applying the tail. `max_state_bytes` is for [`KeyframeBuilder`].
    fn begin_apply(&self, max_state_bytes: u64) -> Result<Option<StartedApply<'_>>> {
        self.check_writable()?;
        self.drain()?;
        let Some(applier) = self.follower.index.try_writer()? else { return Ok(None) };
        let from = applier.view().position();
        let (_, end) = self.follower.written_refs()?;
        // A segment begins with a record that contains only the head of the store.
        let only_head = self.follower.records_since(from).is_some_and(|records| {
            records
                .iter()
                .flat_map(|one| &one.record.changes)
                .all(|change| matches!(change, RecordChange::Head(_)))
        });
        if end <= from || only_head {
            return Ok(None);
        }
        object::check_counter(applier.view())?;
        if self.has_maintainer()
            && self.writes_much()
            && let Err(error) = self.follower.log.make_room_in_next(ROOM_BYTES)
        {
            tracing::debug!(%error, "no room was made in the next segment");
        }
        // The rotation syncs everything before the new segment, so only durable records are
        // applied.
        let rotated = self.rotate()?;
        // Writers that waited for the rotation go first.
        parallel::yield_to_foreground();
        Ok(rotated.map(|position| StartedApply {
            engine: self,
            applier,
            from,
            position,
            max_state_bytes,
        }))
    }

    /// Reads the records between two positions and calls `each` with them.
    fn read_between(
        &self,
        from: LogPosition,
        to: LogPosition,
        each: &mut dyn FnMut(&PositionedRecord) -> Result<()>,
    ) -> Result<()> {
        let mut at = from;
        while at < to {
            let tail = self.follower.log.read(at, READ_BYTES)?;
            if tail.frames.is_empty() {
                return Err(Error::Internal(format!(
                    "the journal ends at {at}, before the segment at {to}"
                )));
            }
            for frame in tail.frames {
                if frame.position >= to {
                    at = to;
                    break;
                }
                at = frame.end;
                let record = Record::decode(&frame.payload)
                    .map_err(Error::corrupt(format_args!("the record at {}", frame.position)))?;
                each(&PositionedRecord { position: frame.position, hash: frame.hash, record })?;
            }
        }
        Ok(())
    }

    /// Preallocates room in the journal until the next segment begins, if this process writes much.
    /// Without room, writing is slower.
    pub(crate) fn make_room(&self) {
        if self.writes_much()
            && let Err(error) = self.follower.log.make_room(self.follower.end(), FIRST_ROOM_BYTES)
        {
            tracing::debug!(%error, "no room was made in the journal");
        }
    }

    /// Removes the preallocated room that was not used.
    pub(crate) fn give_back_room(&self) {
        if self.writes_much()
            && let Err(error) = self.follower.log.give_back_room(self.follower.end())
        {
            tracing::debug!(%error, "the preallocated room of the journal was not removed");
        }
    }

    /// Begins a new segment with the present head of the store. Returns the position of the
    /// segment.
    fn rotate(&self) -> Result<Option<LogPosition>> {
        let from = self.follower.end();
        let mut taken = Ok(());
        let rotated = self.follower.log.rotate(from, self.options.lock_timeout, &mut |tail| {
            let refs = self.follower.take_in(tail);
            let record = refs.as_ref().ok().map(|refs| head_record(refs.head()).encode());
            taken = refs.map(drop);
            record
        })?;
        taken?;
        Ok(rotated.map(|appended| appended.position))
    }
}

/// An apply of the records between two positions. A new segment begins at the second position.
#[must_use = "nothing is applied before it is finished"]
pub(crate) struct StartedApply<'a> {
    engine: &'a Engine,
    applier: Box<dyn IndexWriter>,
    from: LogPosition,
    position: LogPosition,
    max_state_bytes: u64,
}

impl StartedApply<'_> {
    /// Applies the tail and publishes the next generation. Returns `false` if another process has
    /// done this.
    pub(crate) fn finish(self) -> Result<bool> {
        let engine = self.engine;
        match self.publish() {
            Err(error) => engine.applied_by_another(error).map(|()| false),
            Ok(()) => Ok(true),
        }
    }

    fn publish(self) -> Result<()> {
        let Self { engine, mut applier, from, position, max_state_bytes } = self;
        let mut work = KeyframeBuilder::new(StoreRefs::default(), max_state_bytes);
        let mut rows = RowOverlay::default();
        let mut apply = |placed: &PositionedRecord| -> Result<()> {
            let PositionedRecord { position, hash, ref record } = *placed;
            let smaller = compressed(record)?;
            let smaller = smaller.map(|record| PositionedRecord { position, hash, record });
            work.record(applier.view(), &mut rows, smaller.as_ref().unwrap_or(placed))?;
            parallel::yield_to_foreground();
            if rows.len() >= BATCH_ROWS {
                applier.write(std::mem::take(&mut rows).into_batch())?;
            }
            Ok(())
        };
        if let Some(records) = engine.follower.records_between(from, position) {
            for placed in records {
                apply(&placed)?;
            }
        } else {
            engine.read_between(from, position, &mut apply)?;
        }
        work.drop_chunks(applier.view(), &mut rows, position)?;
        put_changed_sessions(applier.view(), &mut rows, &work.refs)?;
        applier.write(rows.into_batch())?;
        applier.publish(position)?;
        // This comes first: a writer that notices the new generation itself has to rebase, which
        // takes time.
        engine.follower.note_published(position);
        engine.follower.log.remove_before(position)?;
        // Until now this process held the previous generation.
        engine.follower.tidy();
        Ok(())
    }
}

/// Returns the first record of a segment.
pub(crate) fn head_record(head: StoreHead) -> Record {
    let operation = Operation {
        id: OperationId::from_bytes([0; 16]),
        verb: "rotate".to_owned(),
        author: OperationAuthor::Hook,
        time: Timestamp::default(),
    };
    Record { operation, changes: vec![RecordChange::Head(Box::new(head))] }
}

/// Makes the keyframes that are due during one pass over revisions.
pub(super) struct KeyframeBuilder {
    refs: StoreRefs,
    pub(super) distances: BTreeMap<(SessionNumber, BranchNumber), KeyframeDistance>,
    /// Size in bytes of the largest state for which a keyframe is made.
    max_state_bytes: u64,
    /// Chunks of removed keyframes. [`KeyframeBuilder::drop_chunks`] deletes them, unless another
    /// keyframe shares them.
    chunks: BTreeSet<u64>,
    /// Sessions with revisions whose changes were removed permanently before they were imported. No
    /// keyframe is made of their later revisions before the end of the pruning that folded them.
    pub(super) unfolded: BTreeSet<SessionNumber>,
    /// Objects from which keyframes were made. A keyframe shares most chunks with the one before
    /// it.
    object_cache: ObjectCache,
}

impl KeyframeBuilder {
    pub(super) fn new(refs: StoreRefs, max_state_bytes: u64) -> Self {
        let (distances, chunks, unfolded) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let object_cache = ObjectCache::default();
        Self { refs, distances, max_state_bytes, chunks, unfolded, object_cache }
    }

    fn record(
        &mut self,
        base: &dyn Snapshot,
        rows: &mut RowOverlay,
        placed: &PositionedRecord,
    ) -> Result<()> {
        for change in &placed.record.changes {
            if let RecordChange::Folded { session, branch, first, last, .. } = change {
                let view = OverlaySnapshot::new(base, rows, placed.position);
                let folded = RevisionRange { branch: *branch, after: first - 1, to: last - 1 };
                self.chunks.extend(keyframe::chunks(&view, *session, folded)?);
            }
            if let RecordChange::SessionReplaced { of: replaced, .. }
            | RecordChange::SessionAbandoned { session: replaced } = change
            {
                let view = OverlaySnapshot::new(base, rows, placed.position);
                self.chunks.extend(keyframe::chunks_of(&view, *replaced)?);
            }
            if let RecordChange::Swept { operation, sessions, .. } = change {
                self.refs.sessions.load(base, sessions.iter().copied())?;
                let view = OverlaySnapshot::new(base, rows, placed.position);
                for number in sessions {
                    let removal = session(&self.refs, *number)?.removal;
                    if removal == Some(SessionRemoval::Pruned(*operation)) {
                        self.chunks.extend(keyframe::chunks_of(&view, *number)?);
                    }
                }
            }
        }
        index::apply(base, rows, &mut self.refs, placed)?;
        for change in &placed.record.changes {
            match change {
                RecordChange::Revision { session, header, delta, .. } => {
                    let header = lineage::header(&header.0)?;
                    if is_delta_lost(&header, delta) {
                        self.unfolded.insert(*session);
                    }
                    if self.unfolded.contains(session) {
                        self.distances.remove(&(*session, header.branch));
                        continue;
                    }
                    let at = RevisionRef { branch: header.branch, sequence: header.sequence };
                    let reset = header.reset.is_some();
                    if header.parents.is_empty() {
                        let first = KeyframeDistance::default();
                        self.distances.insert((*session, header.branch), first);
                    }
                    self.keyframe(base, rows, placed.position, *session, at, reset)?;
                }
                // Keyframes before this revision may have been removed, or be due again.
                RecordChange::Folded { session, branch, last, .. }
                | RecordChange::Unfolded { session, branch, last } => {
                    let at = RevisionRef { branch: *branch, sequence: *last };
                    self.keyframe(base, rows, placed.position, *session, at, true)?;
                    self.distances.remove(&(*session, *branch));
                }
                RecordChange::Swept { session, .. } => {
                    self.unfolded.remove(session);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes the chunks of removed keyframes that no other keyframe uses.
    fn drop_chunks(
        &mut self,
        base: &dyn Snapshot,
        rows: &mut RowOverlay,
        position: LogPosition,
    ) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let view = OverlaySnapshot::new(base, rows, position);
        for used in keyframe::all_chunks(&view)? {
            self.chunks.remove(&used);
        }
        let mut row_keys = Vec::new();
        for number in std::mem::take(&mut self.chunks) {
            row_keys.extend(object::object_row_keys(&view, number)?);
        }
        row_keys.into_iter().for_each(|(table, key)| rows.delete(table, key));
        Ok(())
    }

    pub(super) fn keyframe(
        &mut self,
        base: &dyn Snapshot,
        rows: &mut RowOverlay,
        position: LogPosition,
        session: SessionNumber,
        at: RevisionRef,
        reset: bool,
    ) -> Result<()> {
        let view = OverlaySnapshot::new(base, rows, position);
        let row = match lineage::revision(&view, session, at) {
            // The same record folds this revision into a later one, so it needs no keyframe.
            Err(Error::Folded { .. }) => return Ok(()),
            row => row?,
        };
        let place = (session, at.branch);
        if row.state_bytes > self.max_state_bytes {
            // The distance is not needed. To compute it, all rows since the last keyframe would be
            // read.
            self.distances.remove(&place);
            return Ok(());
        }
        let mut distance = match self.distances.get(&place) {
            Some(known) if !reset => {
                let mut distance = *known;
                distance.step(&row);
                distance
            }
            _ => KeyframeDistance::of(&view, &self.refs, session, at)?,
        };
        if distance.is_due(&row) {
            if keyframe::lacks_changes(&view, &self.refs, session, at)? {
                // An earlier pass met the revisions without changes.
                self.unfolded.insert(session);
                self.distances.remove(&place);
                return Ok(());
            }
            let at = (session, at);
            distance = keyframe::make(base, rows, &self.refs, &self.object_cache, position, at)?;
        }
        self.distances.insert(place, distance);
        Ok(())
    }
}
