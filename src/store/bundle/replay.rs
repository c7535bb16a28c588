//! The records of a session again: what each operation did is known by what it takes to take it back.

use crate::backend::{Direction, Snapshot};
use crate::engine::lineage::At;
use crate::engine::live::View;
use crate::engine::refs::session as session_refs;
use crate::engine::salvage::LOST_OBJECT;
use crate::engine::{object, timeline};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, Bytes, CheckpointRow, DeltaPart, Effect, ObjectKind, OperationRow, Page,
    RecordChange, RevisionRow, SegmentRow, SequenceRow, SessionRefs,
};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, Operation, OperationId, SessionNumber, Timestamp,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Something an operation did, as it stands in a bundle.
pub(super) struct Step {
    pub(super) operation: Operation,
    pub(super) changes: Vec<RecordChange>,
}

/// What stands behind what an operation did, before it is read.
#[derive(Clone, Debug)]
enum Deed {
    Effect(Effect),
    TakesBack(OperationId),
}

/// Where a deed stands: by the session's one count, what has a number first, then as it was written.
type Place = (u64, u8, u64, usize);

pub(super) struct Replay<'a> {
    view: &'a View,
    number: SessionNumber,
    /// The session's number in the bundle.
    named: SessionNumber,
    refs: &'a SessionRefs,
    operations: Vec<OperationRow>,
    deeds: Vec<(Place, usize, Deed)>,
    /// The versions of each checkpoint that are still to come, the next one last.
    checkpoints: HashMap<CheckpointId, Vec<Checkpoint>>,
    bookmarks: HashMap<String, Vec<Option<BookmarkRow>>>,
    schedules: Vec<Option<i64>>,
    /// How many changes of each branch have been told.
    branches: HashMap<BranchNumber, usize>,
    /// The checkpoints that were there at some time.
    made: HashSet<CheckpointId>,
    /// The time of each checkpoint that is there.
    visible: BTreeMap<CheckpointId, Timestamp>,
    /// How far the bytes of each blob have been told.
    blobs: HashMap<String, u64>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(view: &'a View, number: SessionNumber, named: SessionNumber) -> Result<Self> {
        let refs = session_refs(&view.refs, number)?;
        let (from, to) = (of(number).build(), of(number).end());
        let rows = view.scan(key::OPERATIONS, &from, &to, Direction::Ascending, usize::MAX)?;
        let operations = rows
            .iter()
            .map(|(_, row)| OperationRow::decode(row).map_err(Error::corrupt("an operation")))
            .collect::<Result<Vec<_>>>()?;
        let mut replay = Self {
            view,
            number,
            named,
            refs,
            operations,
            deeds: Vec::new(),
            checkpoints: HashMap::new(),
            bookmarks: HashMap::new(),
            schedules: Vec::new(),
            branches: HashMap::new(),
            made: HashSet::new(),
            visible: BTreeMap::new(),
            blobs: HashMap::new(),
        };
        replay.versions()?;
        replay.order()?;
        Ok(replay)
    }

    /// What a checkpoint, bookmark or schedule became is what the next effect on it calls old, or what it is now.
    fn versions(&mut self) -> Result<()> {
        for row in &self.operations {
            for effect in &row.effects {
                match effect {
                    Effect::CheckpointChanged { old } | Effect::CheckpointHidden { old } => {
                        self.checkpoints.entry(old.id).or_default().push((**old).clone());
                    }
                    Effect::Bookmark { source, old, .. } => {
                        let known = self.bookmarks.entry(source.clone()).or_default();
                        known.push(old.as_deref().cloned());
                    }
                    Effect::Schedule { old } => self.schedules.push(*old),
                    _ => {}
                }
            }
        }
        let (from, to) = (of(self.number).build(), of(self.number).end());
        for (_, row) in
            self.view.scan(key::CHECKPOINTS, &from, &to, Direction::Ascending, usize::MAX)?
        {
            let row = CheckpointRow::decode(&row).map_err(Error::corrupt("a checkpoint"))?;
            self.checkpoints.entry(row.checkpoint.id).or_default().push(row.checkpoint);
        }
        self.checkpoints.values_mut().for_each(|versions| versions.reverse());
        for (source, versions) in &mut self.bookmarks {
            // The first one is what it was before all.
            versions.remove(0);
            let row = self.view.get(key::BOOKMARKS, &of(self.number).text(source).build())?;
            let row = row.map(|row| BookmarkRow::decode(&row)).transpose();
            versions.push(row.map_err(Error::corrupt("a bookmark"))?);
            versions.reverse();
        }
        if !self.schedules.is_empty() {
            self.schedules.remove(0);
            self.schedules.push(self.refs.schedule);
            self.schedules.reverse();
        }
        Ok(())
    }

    /// Puts all deeds in the order in which they can be done again: by number, since operations may have run beside each
    /// other.
    fn order(&mut self) -> Result<()> {
        let mut made: HashMap<CheckpointId, u64> = HashMap::new();
        for (which, row) in self.operations.iter().enumerate() {
            let mut last = row.sequence;
            let taken_back = row.takes_back.map(Deed::TakesBack);
            let deeds = row.effects.iter().cloned().map(Deed::Effect).chain(taken_back);
            for (index, deed) in deeds.enumerate() {
                let own = match &deed {
                    Deed::Effect(Effect::Revision { sequence, .. }) => Some(*sequence),
                    Deed::Effect(Effect::CheckpointMade { id }) if !made.contains_key(id) => {
                        let first = self.checkpoints.get(id).and_then(|versions| versions.last());
                        let sequence = first.map(|checkpoint| checkpoint.sequence);
                        let lost = || Error::missing(format!("the checkpoint {id}"));
                        made.insert(*id, sequence.ok_or_else(lost)?);
                        sequence
                    }
                    _ => None,
                };
                last = own.unwrap_or(last).max(last);
                let place = (own.unwrap_or(last), u8::from(own.is_none()), row.position, index);
                self.deeds.push((place, which, deed));
            }
        }
        self.deeds.sort_by_key(|(place, which, _)| (*place, *which));
        Ok(())
    }

    /// Does again, in order, what was done behind `from` and not behind `to`.
    pub(super) fn each(
        mut self,
        from: u64,
        to: u64,
        step: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<()> {
        for (_, which, deed) in std::mem::take(&mut self.deeds) {
            let row = self
                .operations
                .get(which)
                .ok_or_else(|| Error::Internal("an operation is gone".to_owned()))?;
            let wanted = row.sequence >= from && row.sequence < to;
            let operation = row.operation.clone();
            let changes = match deed {
                Deed::TakesBack(other) => self.takes_back(other),
                Deed::Effect(effect) if wanted => self.effect(effect)?,
                Deed::Effect(effect) => {
                    self.pass(effect)?;
                    continue;
                }
            };
            if wanted {
                step(Step { operation, changes })?;
            }
        }
        Ok(())
    }

    fn takes_back(&self, other: OperationId) -> Vec<RecordChange> {
        let session = self.named;
        let known = self.operations.iter().find(|row| row.operation.id == other);
        let back =
            |operation, facts_hidden| RecordChange::TakesBack { session, operation, facts_hidden };
        // As `undo` and `redo` write it.
        match known.and_then(|row| row.takes_back) {
            None => vec![back(other, true)],
            Some(first) => vec![back(first, false), back(other, false)],
        }
    }

    fn effect(&mut self, effect: Effect) -> Result<Vec<RecordChange>> {
        let session = self.named;
        let one = |change| Ok(vec![change]);
        match effect {
            Effect::Revision { branch, sequence } => one(self.revision(At { branch, sequence })?),
            Effect::CheckpointMade { id } => {
                let checkpoint = self.version(&id)?;
                // Its number was given out before: it had been taken back since.
                let shown = !self.made.insert(id);
                self.visible.insert(id, checkpoint.time);
                let checkpoint = Box::new(checkpoint);
                one(match shown {
                    true => RecordChange::CheckpointShown { session, checkpoint },
                    false => RecordChange::Checkpoint { session, checkpoint },
                })
            }
            Effect::CheckpointChanged { old } => {
                let checkpoint = self.version(&old.id)?;
                self.visible.insert(checkpoint.id, checkpoint.time);
                one(RecordChange::Checkpoint { session, checkpoint: Box::new(checkpoint) })
            }
            Effect::CheckpointHidden { old } => {
                self.visible.remove(&old.id);
                let last = self.visible.values().max().copied();
                one(RecordChange::CheckpointHidden { session, id: old.id, last })
            }
            Effect::BranchMade { branch } => one(self.branch(branch)?),
            Effect::BranchChanged { branch, .. } => {
                let told = self.branches.entry(branch).or_insert(1);
                let change = self.refs.branch(branch)?.changes.get(*told).cloned();
                *told += 1;
                let change = change.ok_or_else(|| Error::missing("what a branch became"))?;
                one(RecordChange::BranchChanged { session, branch, change })
            }
            Effect::BranchHidden { branch, hidden } => {
                one(RecordChange::BranchHidden { session, branch, hidden })
            }
            Effect::Switched { branch, time, .. } => {
                one(RecordChange::Switched { session, branch, time })
            }
            Effect::Facts { page, count, .. } => one(self.facts(page, count)?),
            Effect::Bookmark { source, .. } => self.bookmark(source),
            Effect::Schedule { .. } => {
                let every_micros = self.schedules.pop().flatten();
                one(RecordChange::Schedule { session, every_micros })
            }
        }
    }

    /// Passes over what is not wanted, so that what follows is known for what it is.
    fn pass(&mut self, effect: Effect) -> Result<()> {
        match effect {
            Effect::Revision { .. } | Effect::Facts { .. } => Ok(()),
            Effect::Bookmark { source, .. } => {
                let bookmark = self.bookmarks.get_mut(&source).and_then(Vec::pop).flatten();
                if let Some(row) = bookmark {
                    let to = row.cleaned.map_or(row.bytes, |cleaned| cleaned.bytes);
                    self.blobs.insert(row.blob, to);
                }
                Ok(())
            }
            other => self.effect(other).map(drop),
        }
    }

    fn version(&mut self, id: &CheckpointId) -> Result<Checkpoint> {
        let next = self.checkpoints.get_mut(id).and_then(Vec::pop);
        next.ok_or_else(|| Error::missing(format!("the checkpoint {id}")))
    }

    fn revision(&self, at: At) -> Result<RecordChange> {
        let place = of(self.number).branch(at.branch).number(at.sequence).build();
        let what = || format!("revision #{}", at.sequence);
        let row = self.view.get(key::REVISIONS, &place)?.ok_or_else(|| Error::missing(what()))?;
        let row = RevisionRow::decode(&row).map_err(Error::corrupt(what()))?;
        let parts = row.parts.iter().map(|part| object::sealed(self.view, *part));
        let delta = parts.map(|part| Ok(DeltaPart::Inline(Bytes(part?)))).collect::<Result<_>>()?;
        Ok(RecordChange::Revision {
            session: self.named,
            header: Bytes(row.header),
            body: Bytes(row.body),
            delta,
        })
    }

    fn branch(&mut self, branch: BranchNumber) -> Result<RecordChange> {
        self.branches.insert(branch, 1);
        let refs = self.refs.branch(branch)?;
        let (base, sequence) = refs.base.unwrap_or_default();
        let head = match timeline::sequence(self.view, self.number, sequence)? {
            Some(SequenceRow::Revision(on)) => {
                Some(timeline::head_at(self.view, self.number, At { branch: on, sequence })?.0)
            }
            _ => None,
        };
        let change = refs.changes.first().cloned();
        Ok(RecordChange::Branch {
            session: self.named,
            name: refs.name.clone(),
            base,
            head,
            change: change.ok_or_else(|| Error::missing("the making of a branch"))?,
        })
    }

    fn facts(&self, page: u64, count: u64) -> Result<RecordChange> {
        if page == LOST_OBJECT {
            return Err(Error::missing("a page of facts, which was lost before a repair"));
        }
        let sealed = object::sealed(self.view, page)?;
        let content = object::content(self.view, ObjectKind::Page, page)?;
        let facts = Page::decode(&content).map_err(Error::corrupt("a page of facts"))?.facts;
        let times = || facts.iter().map(|fact| fact.at);
        Ok(RecordChange::Facts {
            session: self.named,
            count,
            first: times().min().unwrap_or_default(),
            last: times().max().unwrap_or_default(),
            page: DeltaPart::Inline(Bytes(sealed)),
        })
    }

    /// A bookmark, behind the bytes up to it if they are kept.
    fn bookmark(&mut self, source: String) -> Result<Vec<RecordChange>> {
        let bookmark = self.bookmarks.get_mut(&source).and_then(Vec::pop).flatten();
        let mut changes = Vec::new();
        if let Some(row) = &bookmark
            && !row.blob.is_empty()
        {
            let to = row.cleaned.map_or(row.bytes, |cleaned| cleaned.bytes);
            let mut from = self.blobs.get(&row.blob).copied().unwrap_or(0);
            while from < to {
                let segment = self.segment(&row.blob, from)?;
                from += segment.1;
                changes.push(segment.0);
            }
            self.blobs.insert(row.blob.clone(), from);
        }
        let bookmark = bookmark.map(Box::new);
        changes.push(RecordChange::Bookmark { session: self.named, source, bookmark });
        Ok(changes)
    }

    fn segment(&self, blob: &str, offset: u64) -> Result<(RecordChange, u64)> {
        let place = of(self.number).text(blob).number(offset).build();
        let what = || format!("the source '{blob}' at byte {offset}");
        let row = self.view.get(key::SEGMENTS, &place)?.ok_or_else(|| Error::missing(what()))?;
        let row = SegmentRow::decode(&row).map_err(Error::corrupt(what()))?;
        if row.length == 0 {
            return Err(Error::missing(what()));
        }
        let object = Bytes(object::sealed(self.view, row.object)?);
        let (session, blob, prefix) = (self.named, blob.to_owned(), row.prefix);
        Ok((RecordChange::Segment { session, blob, offset, prefix, object }, row.length))
    }
}
