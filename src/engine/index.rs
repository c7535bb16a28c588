//! Translates journal records into index rows: the only place that defines what each record means
//! for the index. Readers apply it to the journal's tail in memory, the applier uses it to write
//! the next generation.

pub(crate) mod fold;
pub(crate) mod incomplete;
mod operation;
mod prewritten;
pub(crate) mod session_deletion;

use super::derive::{self, history_place};
use super::lineage::{self, RevisionRef};
use super::object::{self, DROPPED_OBJECT};
use super::refs::{StoreRefs, WRITTEN, advance_by, effective, present_session, session};
use super::row_overlay::{LatestRevision, OverlaySnapshot, RowOverlay};
use super::{row_totals, table_rows};
use crate::backend::{LogPosition, RecordHash, ScanDirection, Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, Checkout, CheckpointRow, Delta, DeltaPart, DeltaSideRange, FactPageOutline,
    ObjectKind, OperationEffect, OperationRow, Record, RecordChange, RecordRow, ResetSource,
    RevisionHeader, RevisionRow, SegmentRow, SequenceRow, SessionRemoval, TotalsRow, decode_object,
    object_id,
};
use crate::model::{
    BranchNumber, Checkpoint, ObjectId, OperationId, SessionId, SessionNumber, TextRef, Timestamp,
};
use incomplete::value_in;
use operation::OperationPart;
use session_deletion::PageOwners;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct PositionedRecord {
    pub(crate) position: LogPosition,
    pub(crate) hash: RecordHash,
    pub(crate) record: Record,
}

/// Writes the rows of a record into `rows` and advances `refs` by it.
pub(crate) fn apply(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &mut StoreRefs,
    placed: &PositionedRecord,
) -> Result<()> {
    apply_with(base, rows, refs, placed, true).map(drop)
}

/// Applies a record like [`apply`], to check it. Returns the ids of large values and long texts
/// that the record refers to and that are missing.
pub(crate) fn try_apply(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &mut StoreRefs,
    placed: &PositionedRecord,
) -> Result<BTreeSet<ObjectId>> {
    // The row of the operation is left out: a bundle may have many records of one operation.
    apply_with(base, rows, refs, placed, false)
}

/// Applies consecutive records like [`apply`].
pub(crate) fn apply_all(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &mut StoreRefs,
    records: &[Arc<PositionedRecord>],
) -> Result<()> {
    look_up_operations(base, rows, records)?;
    records.iter().try_for_each(|placed| apply(base, rows, refs, placed))
}

/// Applies records like [`apply_all`], without the rows of [`is_operation_row`]. All records must
/// satisfy [`needs_no_operations`].
pub(crate) fn apply_all_but_operations(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &mut StoreRefs,
    records: &[Arc<PositionedRecord>],
) -> Result<()> {
    records.iter().try_for_each(|placed| apply_with(base, rows, refs, placed, false).map(drop))
}

/// Returns whether a row lists or counts operations. Only undo and the log read these rows.
pub(crate) fn is_operation_row(table: TableId, key: &[u8]) -> bool {
    is_operation_table(table) || (table == key::COUNTERS && key == key::TOTALS)
}

/// Returns whether all rows of a table are operation rows.
pub(crate) fn is_operation_table(table: TableId) -> bool {
    matches!(table, key::OPERATIONS | key::OPERATION_IDS | key::CONTINUATIONS)
}

/// Returns whether a record can be applied without reading rows of earlier operations. The row of
/// its own operation does not count.
pub(crate) fn needs_no_operations(record: &Record) -> bool {
    record.changes.iter().all(|change| {
        matches!(
            change,
            RecordChange::Head(_)
                | RecordChange::Session { .. }
                | RecordChange::SessionBegun { .. }
                | RecordChange::Pinned { .. }
                | RecordChange::Used { .. }
                | RecordChange::Branch { .. }
                | RecordChange::BranchChanged { .. }
                | RecordChange::Switched { .. }
                | RecordChange::Object { .. }
                | RecordChange::Segment { .. }
                | RecordChange::Revision { .. }
                | RecordChange::Checkpoint { .. }
                | RecordChange::Facts { .. }
                | RecordChange::Bookmark { .. }
                | RecordChange::Schedule { .. }
        )
    })
}

fn apply_with(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &mut StoreRefs,
    placed: &PositionedRecord,
    with_operations: bool,
) -> Result<BTreeSet<ObjectId>> {
    let added = TotalsRow::default();
    let mut indexer = RecordIndexer {
        base,
        rows,
        placed,
        counter: None,
        added,
        cut: added,
        unnamed: BTreeMap::new(),
        names: BTreeSet::new(),
        incomplete: None,
    };
    let mut part = None;
    for change in &placed.record.changes {
        refs.sessions.load(base, change.sessions())?;
        if let Some(number) = change.session() {
            indexer.note_incomplete(refs, number)?;
        }
        let effect = indexer.change(refs, change)?.filter(|_| with_operations);
        if let (Some(number), Some(effect)) = (change.session(), effect) {
            OperationPart::of(&mut part, refs, number)?.effects.push(effect);
        }
        if let RecordChange::TakesBack { session, operation: other, .. } = change {
            OperationPart::of(&mut part, refs, *session)?.takes_back = Some(*other);
            indexer.take_back((*session, *other), placed.record.operation.id)?;
        }
        advance_by(refs, change)?;
    }
    if let Some(part) = part {
        indexer.add_to_operation(part)?;
    }
    let missing = indexer.note_prewritten()?;
    if with_operations {
        indexer.put_totals()?;
    }
    if let Some(counter) = indexer.counter {
        object::put_next_number(rows, counter);
    }
    let position = key::KeyBuilder::new().number(placed.position).build();
    let sessions: BTreeSet<_> =
        placed.record.changes.iter().flat_map(RecordChange::sessions).collect();
    let row = RecordRow { hash: placed.hash, sessions: sessions.into_iter().collect() };
    rows.put(key::RECORDS, position, row.encode());
    Ok(missing)
}

/// Minimum number of records whose operations are looked up together.
const MANY_OPERATIONS: usize = 8;

/// Looks up the operations of records that are applied together. Most of them are new, and looking
/// for each one separately in the index would take a quarter of the time of a record.
fn look_up_operations(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    records: &[Arc<PositionedRecord>],
) -> Result<()> {
    if records.len() < MANY_OPERATIONS {
        return Ok(());
    }
    let ids = records.iter().map(|placed| key::operation_id(&placed.record.operation.id));
    let mut ids: Vec<Vec<u8>> = ids.filter(|id| !rows.has_change(key::OPERATION_IDS, id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = base.get_many(key::OPERATION_IDS, &ids)?;
    for (id, place) in ids.into_iter().zip(found) {
        match place {
            Some(place) => rows.put(key::OPERATION_IDS, id, place),
            // A deletion marks the row as absent, so that later reads do not look in the index.
            None => rows.delete(key::OPERATION_IDS, id),
        }
    }
    Ok(())
}

struct RecordIndexer<'a> {
    base: &'a dyn Snapshot,
    rows: &'a mut RowOverlay,
    placed: &'a PositionedRecord,
    /// The next object number, once one was assigned.
    counter: Option<u64>,
    added: TotalsRow,
    /// Rows that this record removes from the totals.
    cut: TotalsRow,
    /// The numbers of this record's objects to which nothing in it refers so far. A segment of a
    /// growing blob has its key as value.
    unnamed: BTreeMap<u64, Option<Vec<u8>>>,
    /// The objects that this record refers to.
    names: BTreeSet<ObjectId>,
    /// The session of the record, if it is incomplete.
    incomplete: Option<SessionNumber>,
}

impl RecordIndexer<'_> {
    fn view(&self) -> OverlaySnapshot<'_> {
        OverlaySnapshot::new(self.base, self.rows, self.placed.position)
    }

    /// Puts the row of a checkout. Its effective time is never before that of the previous
    /// checkout, whatever the clock says: otherwise the previous branch would stay checked out.
    fn check_out(
        &mut self,
        number: SessionNumber,
        branch: BranchNumber,
        time: Timestamp,
    ) -> Result<Checkout> {
        let (from, to) = (of(number).build(), of(number).end());
        let rows = self.view().scan(key::SWITCHES, &from, &to, ScanDirection::Descending, 1)?;
        let last = rows.first().and_then(|(place, _)| key::time_at(place, 4));
        let time = last.map_or(time, |last| last.max(time));
        let checkout = Checkout { branch, time, position: self.placed.position };
        derive::derive_checkout(number, checkout, &mut |table, place, row| {
            self.rows.put(table, place, row);
            Ok(())
        })?;
        Ok(checkout)
    }

    /// Stores an object unless one with the same id exists. Returns its number.
    fn object(&mut self, encoded: &[u8]) -> Result<u64> {
        if let Some(number) = object::number_of(&self.view(), encoded)? {
            // Its writer may be about to refer to it.
            if object::prewritten_row(&self.view(), number)?.is_some() {
                self.unnamed.insert(number, None);
            }
            return Ok(number);
        }
        let next = self.next_number()?;
        object::put(self.rows, next, encoded)?;
        self.unnamed.insert(next, None);
        Ok(next)
    }

    fn next_number(&mut self) -> Result<u64> {
        let next = match self.counter {
            Some(next) => next,
            None => object::next_number(&self.view())?,
        };
        self.counter = Some(next + 1);
        Ok(next)
    }

    fn part(&mut self, part: &DeltaPart) -> Result<u64> {
        match part {
            // The part is only found by its number: nothing refers to it by its hash.
            DeltaPart::Inline(encoded) => {
                let next = self.next_number()?;
                object::put_unnamed(self.rows, next, &encoded.0);
                Ok(next)
            }
            DeltaPart::Named(id) => {
                let number = object::find_number(&self.view(), id)?
                    .ok_or_else(|| Error::missing(format!("the object {id}")))?;
                self.named_number(number)?;
                Ok(number)
            }
        }
    }

    fn change(
        &mut self,
        refs: &StoreRefs,
        change: &RecordChange,
    ) -> Result<Option<OperationEffect>> {
        match change {
            RecordChange::Head(_)
            | RecordChange::Session { .. }
            | RecordChange::SessionBegun { .. }
            | RecordChange::Pinned { .. }
            | RecordChange::Used { .. }
            | RecordChange::TakesBack { .. } => Ok(None),
            RecordChange::SessionReplaced { session, of } => {
                self.replace_session(*session, *of)?;
                Ok(None)
            }
            RecordChange::SessionAbandoned { session: number } => {
                match present_session(refs, session(refs, *number)?.info.id)? {
                    Some(twin) => self.delete_twin(*number, twin)?,
                    None => self.delete_session(*number, &mut PageOwners::default())?,
                }
                Ok(None)
            }
            RecordChange::Branch { session: number, .. } => {
                let branch = session(refs, *number)?.branches.len() as u32;
                Ok(Some(OperationEffect::BranchMade { branch }))
            }
            RecordChange::BranchChanged { session: number, branch, .. } => {
                let old = session(refs, *number)?.branch(*branch)?.latest_change().clone();
                Ok(Some(OperationEffect::BranchChanged { branch: *branch, old }))
            }
            RecordChange::BranchHidden { session: number, branch, hidden } => {
                let (branch, hidden) = (*branch, *hidden);
                let left_for = session(refs, *number)?.left_for(branch)?.filter(|_| hidden);
                let time = self.placed.record.operation.time;
                let checkout = left_for.map(|base| self.check_out(*number, base, time));
                let checkout = checkout.transpose()?;
                Ok(Some(OperationEffect::BranchHidden { branch, hidden, checkout }))
            }
            RecordChange::Switched { session: number, branch, time, elsewhere } => {
                let (branch, time, elsewhere) = (*branch, *time, *elsewhere);
                let position = self.placed.position;
                let known = session(refs, *number)?;
                let old = known.current_branch;
                let mut checkout = None;
                if !elsewhere {
                    let made = self.check_out(*number, known.visible_branch(branch)?, time)?;
                    checkout = Some(made).filter(|made| (made.branch, made.time) != (branch, time));
                }
                let effect =
                    OperationEffect::Switched { old, branch, time, position, elsewhere, checkout };
                Ok(Some(effect))
            }
            RecordChange::Object { object } => {
                self.object(&object.0)?;
                Ok(None)
            }
            RecordChange::Segment { session, blob, offset, prefix, object } => {
                self.cut_blob(*session, blob, *offset)?;
                let length = object::length(&object.0)?;
                // A segment can only be opened with the bytes before it, so it must not be shared
                // with objects of equal content.
                let number = self.next_number()?;
                object::put_unnamed(self.rows, number, &object.0);
                let row = SegmentRow { object: number, length, prefix: *prefix };
                let place = of(*session).text(blob).number(*offset).build();
                self.rows.put(key::SEGMENTS, place.clone(), row.encode());
                self.unnamed.insert(number, Some(place));
                self.added.segments += 1;
                Ok(None)
            }
            RecordChange::Revision { session, header, body, delta } => {
                self.revision(refs, *session, &header.0, &body.0, delta).map(Some)
            }
            RecordChange::Checkpoint { session, checkpoint }
            | RecordChange::CheckpointShown { session, checkpoint } => {
                self.checkpoint(refs, *session, checkpoint).map(Some)
            }
            RecordChange::CheckpointHidden { session, id, .. } => {
                let old = super::checkpoint::by_id(&self.view(), *session, id)?
                    .ok_or_else(|| Error::missing(format!("the checkpoint {id}")))?;
                self.forget_checkpoint(*session, &old);
                Ok(Some(OperationEffect::CheckpointHidden { old: Box::new(old) }))
            }
            RecordChange::Facts { session, page, count, .. } => {
                let (page, name) = self.facts(*session, page)?;
                Ok(Some(OperationEffect::Facts { count: *count, page, name }))
            }
            RecordChange::Bookmark { session, source, bookmark } => {
                let place = of(*session).text(source).build();
                let old = self.view().get(key::BOOKMARKS, &place)?;
                let old = old.map(|bytes| BookmarkRow::decode(&bytes)).transpose();
                let old = old.map_err(Error::corrupt("a bookmark"))?.map(Box::new);
                match bookmark {
                    Some(row) => {
                        self.rows.put(key::BOOKMARKS, place, row.encode());
                        self.named_parts(*session, row)?;
                    }
                    None => self.rows.delete(key::BOOKMARKS, place),
                }
                if source.starts_with(WRITTEN) {
                    return Ok(None);
                }
                let bytes = bookmark.as_ref().map_or(0, |row| row.bytes);
                Ok(Some(OperationEffect::Bookmark { source: source.clone(), old, bytes }))
            }
            RecordChange::Schedule { session: number, .. } => {
                Ok(Some(OperationEffect::Schedule { old: session(refs, *number)?.schedule }))
            }
            RecordChange::Pruned { session } => {
                self.pruned(*session)?;
                Ok(None)
            }
            RecordChange::Folded { session, branch, first, last, pruning, delta } => {
                let place = (*session, RevisionRef { branch: *branch, sequence: *last });
                self.fold(refs, place, *first, (*pruning, delta)).map(Some)
            }
            RecordChange::Unfolded { session, branch, last } => self
                .unfold(refs, *session, RevisionRef { branch: *branch, sequence: *last })
                .map(Some),
            RecordChange::SessionDropped { of, .. } => {
                Ok(Some(OperationEffect::SessionDropped { of: *of }))
            }
            RecordChange::SessionShown { of, .. } => {
                Ok(Some(OperationEffect::SessionShown { of: *of }))
            }
            RecordChange::TextDropped { of, blob, bytes, .. } => {
                let old = session(refs, *of)?.dropped(blob);
                let (of, blob, bytes) = (*of, blob.clone(), *bytes);
                Ok(Some(OperationEffect::TextDropped { of, blob, bytes, old }))
            }
            RecordChange::TextShown { of, blob, .. } => {
                let bytes = session(refs, *of)?.dropped(blob);
                Ok(Some(OperationEffect::TextShown { of: *of, blob: blob.clone(), bytes }))
            }
            RecordChange::TextMissing { session, blob, bytes } => {
                self.delete_text(*session, blob, *bytes)?;
                Ok(None)
            }
            RecordChange::Swept { session: number, operation, blobs, sessions } => {
                let mut is_own_session_gone = false;
                let mut owners = PageOwners::default();
                for place in sessions {
                    let swept = session(refs, *place)?;
                    if swept.removal == Some(SessionRemoval::Pruned(*operation)) {
                        self.delete_session(*place, &mut owners)?;
                        is_own_session_gone |= place == number;
                        continue;
                    }
                    for text in &swept.dropped {
                        if text.pruning == Some(*operation) {
                            self.delete_text(*place, &text.blob, text.bytes)?;
                        }
                    }
                }
                // If the operation dropped its own session, its row was deleted with the session.
                if !is_own_session_gone {
                    self.sweep(*number, operation)?;
                }
                self.forget_named(blobs)?;
                Ok(None)
            }
            RecordChange::SweptAhead { objects, parts, named } => {
                self.sweep_ahead(objects, parts, named)?;
                Ok(None)
            }
        }
    }

    fn revision(
        &mut self,
        refs: &StoreRefs,
        number: SessionNumber,
        encoded: &[u8],
        body: &[u8],
        delta: &[DeltaPart],
    ) -> Result<OperationEffect> {
        let header = lineage::header(encoded)?;
        let session = session(refs, number)?;
        let branch = session.branch(header.branch)?;
        let (on, sequence) = (header.branch, header.sequence);
        let time = effective(branch.head.as_ref(), header.time);
        let mut row = RevisionRow {
            header: encoded.to_vec(),
            body: body.to_vec(),
            effective: time,
            parts: Vec::with_capacity(delta.len()),
            bytes: 0,
            state_bytes: self.inherited_bytes(number, &header)?,
        };
        let at = RevisionRef { branch: on, sequence };
        self.delta(&session.info.id, number, at, delta, &mut row)?;
        let id = RevisionHeader::id_of(encoded);
        let place = of(number).branch(on).number(sequence).build();
        let reset = match &header.reset {
            Some(ResetSource::To(parent)) => self.branch_of(number, parent.sequence)?,
            _ => 0,
        };
        self.rows.put(key::REVISIONS, place, row.encode());
        let state_bytes = row.state_bytes;
        self.rows.put_latest(LatestRevision { session: number, sequence, state_bytes });
        derive::derive_revision(number, &header, &id, time, reset, &mut |table, key, value| {
            self.put_derived(number, table, key, value);
            Ok(())
        })?;
        Ok(OperationEffect::Revision { branch: on, sequence })
    }

    /// Stores the parts of a revision's delta, and updates the revision's row and the histories of
    /// the claims.
    fn delta(
        &mut self,
        session: &SessionId,
        number: SessionNumber,
        at: RevisionRef,
        delta: &[DeltaPart],
        row: &mut RevisionRow,
    ) -> Result<()> {
        for (ordinal, part) in delta.iter().enumerate() {
            let object = self.part(part)?;
            let content = match part {
                DeltaPart::Inline(encoded) => decode_object(ObjectKind::Delta, &encoded.0)
                    .map_err(Error::corrupt("a delta"))?,
                DeltaPart::Named(_) => object::content(&self.view(), ObjectKind::Delta, object)?,
            };
            row.bytes += content.len() as u64;
            for change in Delta::scan(&content).map_err(Error::corrupt("a delta"))? {
                let key = change.key_in(&content);
                let place = history_place(session, number, at, key);
                self.rows.put(key::HISTORY, place, (ordinal as u32).to_be_bytes().to_vec());
                let size = |side| side_bytes(key.len(), side);
                row.state_bytes =
                    (row.state_bytes + size(&change.new)).saturating_sub(size(&change.old));
                for side in [&change.old, &change.new] {
                    if let DeltaSideRange::Blob(id) = side {
                        self.names.insert(*id);
                    }
                }
            }
            row.parts.push(object);
        }
        Ok(())
    }

    /// Returns the size in bytes of the state that a revision starts from.
    fn inherited_bytes(&self, number: SessionNumber, header: &RevisionHeader) -> Result<u64> {
        let Some(from) = header.start().map(|parent| parent.sequence) else { return Ok(0) };
        let latest = self.rows.latest();
        if let Some(latest) = latest.filter(|one| (one.session, one.sequence) == (number, from)) {
            return Ok(latest.state_bytes);
        }
        let at = RevisionRef { branch: self.branch_of(number, from)?, sequence: from };
        let place = of(number).branch(at.branch).number(from).build();
        if self.view().get(key::REVISIONS, &place)?.is_some_and(|row| row == RevisionRow::LOST) {
            // Unknown. The size is only used to decide when a keyframe is due.
            return Ok(0);
        }
        Ok(lineage::revision(&self.view(), number, at)?.state_bytes)
    }

    fn branch_of(&self, session: SessionNumber, sequence: u64) -> Result<u32> {
        let row = self.view().get(key::SEQUENCES, &of(session).number(sequence).build())?;
        let row = row.ok_or_else(|| Error::missing(format!("revision #{sequence}")))?;
        match SequenceRow::decode(&row).map_err(Error::corrupt("a sequence number"))? {
            SequenceRow::Revision(branch) | SequenceRow::Folded(branch, _) => Ok(branch),
            SequenceRow::Checkpoint(_) => {
                Err(Error::Internal(format!("#{sequence} is not a revision")))
            }
        }
    }

    fn checkpoint(
        &mut self,
        refs: &StoreRefs,
        number: SessionNumber,
        checkpoint: &Checkpoint,
    ) -> Result<OperationEffect> {
        // Looking up a new id in every index file would take longer than all the other work.
        let old = match session(refs, number)?.is_new(checkpoint) {
            true => None,
            false => super::checkpoint::by_id(&self.view(), number, &checkpoint.id)?,
        };
        if let Some(old) = &old {
            self.forget_checkpoint(number, old);
        }
        self.names.extend(TextRef::objects_in(&checkpoint.body));
        let (time, sequence) = (checkpoint.time, checkpoint.sequence);
        let row = CheckpointRow {
            checkpoint: checkpoint.clone(),
            operation: self.placed.record.operation.id,
        };
        let place = of(number).time(time).number(sequence).build();
        self.rows.put(key::CHECKPOINTS, place, row.encode());
        derive::derive_checkpoint(number, checkpoint, &mut |table, key, value| {
            self.put_derived(number, table, key, value);
            Ok(())
        })?;
        Ok(match old {
            Some(old) => OperationEffect::CheckpointChanged { old: Box::new(old) },
            None => OperationEffect::CheckpointMade { id: checkpoint.id },
        })
    }

    /// Deletes all rows of a checkpoint, except the row of its sequence number, which stays taken.
    fn forget_checkpoint(&mut self, session: SessionNumber, old: &Checkpoint) {
        let (time, sequence) = (old.time, old.sequence);
        self.rows.delete(key::CHECKPOINTS, of(session).time(time).number(sequence).build());
        self.rows.delete(key::CHECKPOINT_TIMES, of(session).number(sequence).build());
        let all = key::KeyBuilder::new().time(time).session(session).number(sequence).build();
        self.rows.delete(key::ALL_CHECKPOINTS, all);
        for tag in &old.tags {
            let place = of(session).text(tag).time(time).number(sequence).build();
            self.rows.delete(key::TAGS, place);
        }
        if let Some(event) = &old.key {
            self.rows.delete(key::CHECKPOINT_KEYS, of(session).text(event).build());
        }
        self.rows.delete(key::IDS, self.id_key(key::checkpoint_id(&old.id), session));
    }

    /// Stores a page of facts. Returns its number and id.
    fn facts(&mut self, session: SessionNumber, page: &DeltaPart) -> Result<(u64, ObjectId)> {
        let name = match page {
            DeltaPart::Inline(encoded) => {
                object_id(&encoded.0).map_err(Error::corrupt("a page of facts"))?
            }
            DeltaPart::Named(name) => *name,
        };
        let number = self.part(page)?;
        let content = match page {
            DeltaPart::Inline(encoded) => decode_object(ObjectKind::Page, &encoded.0)
                .map_err(Error::corrupt("a page of facts"))?,
            DeltaPart::Named(_) => object::content(&self.view(), ObjectKind::Page, number)?,
        };
        let page = FactPageOutline::decode(&content).map_err(Error::corrupt("a page of facts"))?;
        self.names.extend(page.facts.iter().flat_map(|fact| &fact.texts.0));
        let operation = self.placed.record.operation.id;
        let rows = &mut *self.rows;
        derive::derive_fact_page(session, number, operation, &page, &mut |table, key, value| {
            rows.put(table, key, value);
            Ok(())
        })?;
        Ok((number, name))
    }

    /// Deletes the segments of a growing blob from an offset on: an import that was interrupted or
    /// undone left them.
    fn cut_blob(&mut self, session: SessionNumber, blob: &str, offset: u64) -> Result<()> {
        let from = of(session).text(blob).number(offset).build();
        let to = of(session).text(blob).end();
        self.cut_segments(&from, &to)
    }

    /// Deletes the beginning of a growing blob permanently, and records its length.
    fn delete_text(&mut self, session: SessionNumber, blob: &str, bytes: u64) -> Result<()> {
        let from = of(session).text(blob).build();
        let to = of(session).text(blob).number(bytes).build();
        self.cut_segments(&from, &to)?;
        let row = SegmentRow { object: DROPPED_OBJECT, length: bytes, prefix: 0 };
        self.rows.put(key::SEGMENTS, of(session).text(blob).number(0).build(), row.encode());
        self.added.segments += 1;
        Ok(())
    }

    fn cut_segments(&mut self, from: &[u8], to: &[u8]) -> Result<()> {
        for (place, row) in table_rows::rows_between(&self.view(), key::SEGMENTS, from, to)? {
            let row = SegmentRow::decode(&row).map_err(Error::corrupt("a part of a blob"))?;
            // An object with an id may be shared with equal content elsewhere.
            if object::is_object_number(row.object)
                && let [(table, key)] =
                    object::object_row_keys(&self.view(), row.object)?.as_slice()
            {
                self.rows.delete(*table, key.clone());
                self.named_number(row.object)?;
            }
            self.rows.delete(key::SEGMENTS, place);
            self.cut.segments += 1;
        }
        Ok(())
    }

    fn put_totals(&mut self) -> Result<()> {
        if (self.added, self.cut) == Default::default() {
            return Ok(());
        }
        let before = row_totals::stored_totals(&self.view())?.unwrap_or_default();
        let (added, cut) = (self.added, self.cut);
        let row = TotalsRow {
            operations: (before.operations + added.operations).saturating_sub(cut.operations),
            segments: (before.segments + added.segments).saturating_sub(cut.segments),
        };
        self.rows.put(key::COUNTERS, key::TOTALS.to_vec(), row.encode());
        Ok(())
    }

    fn put_operation(&mut self, row: OperationRow) {
        let id = row.operation.id;
        let place = key::operation_place(row.session, row.position, &id);
        self.put_derived(row.session, key::OPERATION_IDS, key::operation_id(&id), place.clone());
        self.rows.put_operation(place, row);
    }

    /// Records in the row of an operation that the operation `by` undid it.
    fn take_back(
        &mut self,
        (number, other): (SessionNumber, OperationId),
        by: OperationId,
    ) -> Result<()> {
        let Some(mut row) = find_operation_of(&self.view(), number, &other)? else {
            return Err(Error::missing(format!("the operation {other}")));
        };
        row.taken_back_by = Some(by);
        // Undoing an undo makes the first operation effective again.
        if let Some(first) = row.takes_back
            && let Some(mut first) = find_operation_of(&self.view(), number, &first)?
        {
            first.taken_back_by = None;
            self.put_operation(first);
        }
        self.put_operation(row);
        Ok(())
    }
}

pub(crate) fn find_operation(
    view: &dyn Snapshot,
    id: &OperationId,
) -> Result<Option<OperationRow>> {
    let place = view.get(key::OPERATION_IDS, &key::operation_id(id))?;
    place.map(|place| operation_at(view, &place, id)).transpose()
}

/// Returns the operation with this id in a session. The session may be incomplete.
pub(crate) fn find_operation_of(
    view: &dyn Snapshot,
    session: SessionNumber,
    id: &OperationId,
) -> Result<Option<OperationRow>> {
    let place = value_in(view, key::OPERATION_IDS, key::operation_id(id), session)?;
    place.map(|place| operation_at(view, &place, id)).transpose()
}

/// Returns the operations of a session, in the order of their first records.
pub(crate) fn operations_of(
    view: &dyn Snapshot,
    session: SessionNumber,
) -> Result<Vec<OperationRow>> {
    let rows = table_rows::rows(view, key::OPERATIONS, of(session))?;
    let decoded = rows.iter().map(|(_, row)| OperationRow::decode(row));
    decoded.map(|row| row.map_err(Error::corrupt("an operation"))).collect()
}

/// Returns whether a session is being built and will replace another one.
pub(crate) fn is_incomplete(refs: &StoreRefs, number: SessionNumber) -> Result<bool> {
    let session = refs.sessions.get(number)?;
    Ok(session.is_some_and(|session| session.removal == Some(SessionRemoval::Incomplete)))
}

fn operation_at(view: &dyn Snapshot, place: &[u8], id: &OperationId) -> Result<OperationRow> {
    let row = view
        .get(key::OPERATIONS, place)?
        .ok_or_else(|| Error::missing(format!("the operation {id}")))?;
    OperationRow::decode(&row).map_err(Error::corrupt("an operation"))
}

fn side_bytes(key: usize, side: &DeltaSideRange) -> u64 {
    match side {
        DeltaSideRange::Absent => 0,
        DeltaSideRange::Inline(entry) => key as u64 + u64::from(entry.end - entry.start),
        // The size of a blob is not known here, so a large one is assumed.
        DeltaSideRange::Blob(_) => 16 << 10,
    }
}
