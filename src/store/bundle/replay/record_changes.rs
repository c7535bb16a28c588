//! Reconstructs the record changes from which an effect of an operation came.

use super::SessionReplay;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::index::find_operation_of;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::object::{self, LOST_OBJECT};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, DeltaPart, FactPage, ObjectKind, OperationEffect, RecordBytes, RecordChange,
    SegmentRow, SequenceRow,
};
use crate::model::{BranchNumber, Checkpoint, CheckpointId, OperationId};

impl SessionReplay<'_> {
    /// Records a fold. Returns the first of all revisions that it covers, with those that were
    /// folded before.
    fn folded(&mut self, branch: BranchNumber, first: u64, last: u64) -> u64 {
        let mut begin = first;
        while let Some(before) = self.folds.get(&(branch, begin)).and_then(|folds| folds.last())
            && *before < begin
        {
            begin = *before;
        }
        self.folds.entry((branch, last)).or_default().push(first);
        begin
    }

    /// Returns the pruning to which the folds of an operation belong: for a redo, the pruning that
    /// is redone.
    fn pruning(&self, which: usize) -> Result<OperationId> {
        let missing = || Error::Internal("the replay has no such operation".to_owned());
        let row = self.operations.get(which).ok_or_else(missing)?;
        let Some(undo) = row.takes_back else { return Ok(row.operation.id) };
        let known = self.operations.iter().find(|row| row.operation.id == undo);
        Ok(known.and_then(|row| row.takes_back).unwrap_or(undo))
    }

    pub(super) fn takes_back(&self, other: OperationId) -> Result<Vec<RecordChange>> {
        let session = self.named;
        let known = find_operation_of(self.view, self.number, &other)?;
        let back =
            |operation, facts_hidden| RecordChange::TakesBack { session, operation, facts_hidden };
        // These are the changes that `undo` and `redo` write.
        Ok(match known.and_then(|row| row.takes_back) {
            None => vec![back(other, true)],
            Some(first) => vec![back(first, false), back(other, false)],
        })
    }

    pub(super) fn effect(
        &mut self,
        effect: OperationEffect,
        which: usize,
    ) -> Result<Vec<RecordChange>> {
        let session = self.named;
        let one = |change| Ok(vec![change]);
        match effect {
            OperationEffect::Revision { branch, sequence } => {
                one(self.revision(RevisionRef { branch, sequence })?)
            }
            OperationEffect::CheckpointMade { id } => {
                let checkpoint = self.version(&id)?;
                // The checkpoint was made before, and undone since.
                let shown = !self.made.insert(id);
                self.visible.insert(id, checkpoint.time);
                let checkpoint = Box::new(checkpoint);
                one(match shown {
                    true => RecordChange::CheckpointShown { session, checkpoint },
                    false => RecordChange::Checkpoint { session, checkpoint },
                })
            }
            OperationEffect::CheckpointChanged { old } => {
                let checkpoint = self.version(&old.id)?;
                self.visible.insert(checkpoint.id, checkpoint.time);
                one(RecordChange::checkpoint(session, checkpoint))
            }
            OperationEffect::CheckpointHidden { old } => {
                self.visible.remove(&old.id);
                let last = self.visible.values().max().copied();
                one(RecordChange::CheckpointHidden { session, id: old.id, last })
            }
            OperationEffect::BranchMade { branch } => one(self.branch(branch)?),
            OperationEffect::BranchChanged { branch, .. } => {
                let next_change = self.branches.entry(branch).or_insert(1);
                let change = self.refs.branch(branch)?.changes.get(*next_change).cloned();
                *next_change += 1;
                let change = change.ok_or_else(|| Error::missing("a change of a branch"))?;
                one(RecordChange::branch_changed(session, branch, change))
            }
            OperationEffect::BranchHidden { branch, hidden, .. } => {
                one(RecordChange::BranchHidden { session, branch, hidden })
            }
            OperationEffect::Switched { branch, time, .. } => {
                one(RecordChange::switched(session, branch, time))
            }
            OperationEffect::Facts { page, count, .. } => one(self.facts(page, count)?),
            OperationEffect::Bookmark { source, .. } => self.bookmark(source),
            OperationEffect::Folded { branch, first, last } => {
                let at = RevisionRef { branch, sequence: last };
                let begin = self.folded(branch, first, last);
                let delta = self.pruned.fold(at, first, begin)?;
                let pruning = self.pruning(which)?;
                one(RecordChange::Folded { session, branch, first, last, pruning, delta })
            }
            OperationEffect::Unfolded { branch, last, .. } => {
                self.folds.entry((branch, last)).or_default().pop();
                one(RecordChange::Unfolded { session, branch, last })
            }
            // Swept data was replayed as it was before the sweep. For texts, the bundle says which
            // bytes are missing.
            OperationEffect::Swept { .. }
            | OperationEffect::Purged { .. }
            | OperationEffect::TextDropped { .. }
            | OperationEffect::TextShown { .. }
            | OperationEffect::SessionDropped { .. }
            | OperationEffect::SessionShown { .. } => Ok(Vec::new()),
            OperationEffect::Schedule { .. } => {
                let every_micros = self.schedules.pop().flatten();
                one(RecordChange::Schedule { session, every_micros })
            }
        }
    }

    /// Skips an effect outside the range, but updates the state on which later effects depend.
    pub(super) fn pass(&mut self, effect: OperationEffect, which: usize) -> Result<()> {
        match effect {
            // To make their changes, their content would be read; no later effect depends on it.
            OperationEffect::Revision { .. } | OperationEffect::Facts { .. } => {}
            OperationEffect::Folded { branch, first, last } => {
                self.folded(branch, first, last);
            }
            OperationEffect::Bookmark { source, .. } => {
                let (bookmark, end) = self.bookmark_version(&source);
                if let Some(row) = bookmark.filter(|row| !row.blob.is_empty()) {
                    let mut from = self.blobs.get(&row.blob).copied().unwrap_or(0);
                    while from < end
                        && let Some(part) = self.segment_row(&row.blob, from)?
                    {
                        from += part.length;
                    }
                    self.blobs.insert(row.blob, from);
                }
            }
            other => drop(self.effect(other, which)?),
        }
        Ok(())
    }

    /// Returns the last boundary between parts of a blob that is at or before `offset`; 0 if there
    /// is none.
    pub(super) fn part_boundary(&self, blob: &str, offset: u64) -> Result<u64> {
        let of_blob = || of(self.number).text(blob);
        let (from, to) = (of_blob().build(), of_blob().number(offset).build());
        let last = self.view.scan(key::SEGMENTS, &from, &to, ScanDirection::Descending, 1)?;
        let Some((place, row)) = last.first() else { return Ok(0) };
        let row = SegmentRow::decode(row).map_err(Error::corrupt("a part of a source"))?;
        let begin = key::last_number(place).unwrap_or(0);
        let end = begin + row.length;
        Ok(if end <= offset { end } else { begin })
    }

    fn version(&mut self, id: &CheckpointId) -> Result<Checkpoint> {
        let next = self.checkpoints.get_mut(id).and_then(Vec::pop);
        next.ok_or_else(|| Error::missing(format!("the checkpoint {id}")))
    }

    fn revision(&self, at: RevisionRef) -> Result<RecordChange> {
        let (header, body, delta) = self.pruned.revision(at)?;
        let (header, body) = (RecordBytes(header), RecordBytes(body));
        Ok(RecordChange::Revision { session: self.named, header, body, delta })
    }

    fn branch(&mut self, branch: BranchNumber) -> Result<RecordChange> {
        self.branches.insert(branch, 1);
        let refs = self.refs.branch(branch)?;
        let (base, sequence) = refs.base.unwrap_or_default();
        let head = match lineage::sequence_row(self.view, self.number, sequence)? {
            Some(SequenceRow::Revision(on)) => Some(
                timeline::head_at(self.view, self.number, RevisionRef { branch: on, sequence })?.0,
            ),
            _ => None,
        };
        let change = refs.changes.first().cloned();
        Ok(RecordChange::Branch {
            session: self.named,
            name: refs.name.clone(),
            base,
            head,
            change: Box::new(change.ok_or_else(|| Error::missing("the creation of a branch"))?),
        })
    }

    fn facts(&self, page: u64, count: u64) -> Result<RecordChange> {
        if page == LOST_OBJECT {
            return Err(Error::missing("a page of facts, which was lost before a repair"));
        }
        let encoded = object::encoded(self.view, page)?;
        let content = object::content(self.view, ObjectKind::Page, page)?;
        let facts = FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))?.facts;
        let times = || facts.iter().map(|fact| fact.at);
        Ok(RecordChange::Facts {
            session: self.named,
            count,
            first: times().min().unwrap_or_default(),
            last: times().max().unwrap_or_default(),
            page: DeltaPart::Inline(RecordBytes(encoded)),
        })
    }

    /// Returns the next version of a bookmark, and the offset up to which the blob is replayed with
    /// it.
    fn bookmark_version(&mut self, source: &str) -> (Option<BookmarkRow>, u64) {
        self.bookmarks.get_mut(source).and_then(Vec::pop).unwrap_or((None, 0))
    }

    /// Returns the changes for the stored bytes of a source, and then the change for its bookmark.
    fn bookmark(&mut self, source: String) -> Result<Vec<RecordChange>> {
        let (bookmark, end) = self.bookmark_version(&source);
        let mut changes = Vec::new();
        if let Some(row) = bookmark.as_ref().filter(|row| !row.blob.is_empty()) {
            let dropped = self.refs.dropped(&row.blob);
            let mut from = self.blobs.get(&row.blob).copied().unwrap_or(0);
            if from == 0 && dropped > 0 {
                let (session, blob, bytes) = (self.named, row.blob.clone(), dropped);
                changes.push(RecordChange::TextMissing { session, blob, bytes });
                from = dropped;
            }
            while from < end {
                let Some(part) = self.segment_row(&row.blob, from)? else {
                    if from < end.min(row.kept_bytes()) {
                        return Err(Error::missing(format!("'{}' at byte {from}", row.blob)));
                    }
                    break;
                };
                let object = RecordBytes(object::encoded(self.view, part.object)?);
                let (session, blob, prefix) = (self.named, row.blob.clone(), part.prefix);
                changes.push(RecordChange::Segment { session, blob, offset: from, prefix, object });
                from += part.length;
            }
            self.blobs.insert(row.blob.clone(), from);
        }
        let bookmark = bookmark.map(Box::new);
        changes.push(RecordChange::Bookmark { session: self.named, source, bookmark });
        Ok(changes)
    }

    fn segment_row(&self, blob: &str, offset: u64) -> Result<Option<SegmentRow>> {
        let place = of(self.number).text(blob).number(offset).build();
        let row = self.view.get(key::SEGMENTS, &place)?.map(|row| SegmentRow::decode(&row));
        let what = || format!("the source '{blob}' at byte {offset}");
        let row = row.transpose().map_err(Error::corrupt(what()))?;
        match row {
            // A repair could not save the part.
            Some(row) if row.length == 0 => Err(Error::missing(what())),
            row => Ok(row),
        }
    }
}
