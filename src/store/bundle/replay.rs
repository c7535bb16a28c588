//! Reconstructs a session's journal records from the undo information of its operations.

use super::folded_revision::FoldedRevisionReader;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::object::{self, LOST_OBJECT};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::{checkpoint, prune, timeline};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BegunOperation, BookmarkRow, CheckpointRow, DeltaPart, FactPage, ObjectKind, OperationEffect,
    OperationRow, RecordBytes, RecordChange, SegmentRow, SequenceRow, SessionRefs,
};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, CheckpointTrigger, Operation, OperationId,
    SessionNumber, Timestamp, Value,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A step of an operation, as written to a bundle.
pub(super) struct ReplayStep {
    pub(super) operation: Operation,
    pub(super) changes: Vec<RecordChange>,
    /// Whether it needs a separate record.
    pub(super) alone: bool,
}

/// An action of an operation, before its data is read.
#[derive(Clone, Debug)]
enum ReplayAction {
    Pruned,
    Effect(OperationEffect),
    TakesBack(OperationId),
    Swept,
}

/// The sort key of an action: its sequence number; numbered before unnumbered; journal position;
/// index.
type ReplaySortKey = (u64, u8, u64, usize);

/// Returns whether an action is after `from` and not after `to`.
const fn is_in((number, unnumbered, ..): ReplaySortKey, (from, to): (u64, u64)) -> bool {
    if unnumbered == 0 { from < number && number <= to } else { from <= number && number < to }
}

fn unfolded(effect: &OperationEffect) -> Option<OperationEffect> {
    match effect {
        OperationEffect::Unfolded { branch, first, last } => {
            Some(OperationEffect::Folded { branch: *branch, first: *first, last: *last })
        }
        _ => None,
    }
}

/// Returns whether an effect is about other sessions, or only about the retention of texts.
const fn is_omitted(effect: &OperationEffect) -> bool {
    matches!(
        effect,
        OperationEffect::TextDropped { .. }
            | OperationEffect::TextShown { .. }
            | OperationEffect::SessionDropped { .. }
            | OperationEffect::SessionShown { .. }
    )
}

pub(super) struct SessionReplay<'a> {
    view: &'a ReadSnapshot,
    number: SessionNumber,
    /// The session's number in the bundle.
    named: SessionNumber,
    refs: &'a SessionRefs,
    pruned: FoldedRevisionReader<'a>,
    operations: Vec<OperationRow>,
    deeds: Vec<(ReplaySortKey, usize, ReplayAction)>,
    /// The versions of each checkpoint that are not replayed yet, the next one last.
    checkpoints: HashMap<CheckpointId, Vec<Checkpoint>>,
    /// The versions of each bookmark in the same order, each with the offset up to which the blob
    /// is replayed with it.
    bookmarks: HashMap<String, Vec<(Option<BookmarkRow>, u64)>>,
    schedules: Vec<Option<i64>>,
    /// How many changes of each branch were replayed.
    branches: HashMap<BranchNumber, usize>,
    /// The checkpoints that existed at some time.
    made: HashSet<CheckpointId>,
    /// The time of each visible checkpoint.
    visible: BTreeMap<CheckpointId, Timestamp>,
    /// Up to which offset each blob was replayed.
    blobs: HashMap<String, u64>,
    /// The first revision of each fold in force, by the revision folded into, the latest last.
    folds: HashMap<(BranchNumber, u64), Vec<u64>>,
}

impl<'a> SessionReplay<'a> {
    pub(super) fn new(
        view: &'a ReadSnapshot,
        number: SessionNumber,
        named: SessionNumber,
    ) -> Result<Self> {
        let refs = session_refs(&view.refs, number)?;
        let (from, to) = (of(number).build(), of(number).end());
        let rows = view.scan(key::OPERATIONS, &from, &to, ScanDirection::Ascending, usize::MAX)?;
        let operations = rows
            .iter()
            .map(|(_, row)| OperationRow::decode(row).map_err(Error::corrupt("an operation")))
            .collect::<Result<Vec<_>>>()?;
        let mut replay = Self {
            view,
            number,
            named,
            refs,
            pruned: FoldedRevisionReader { view, number },
            operations,
            deeds: Vec::new(),
            checkpoints: HashMap::new(),
            bookmarks: HashMap::new(),
            schedules: Vec::new(),
            branches: HashMap::new(),
            made: HashSet::new(),
            visible: BTreeMap::new(),
            blobs: HashMap::new(),
            folds: HashMap::new(),
        };
        replay.versions()?;
        replay.order()?;
        Ok(replay)
    }

    /// Collects the versions of checkpoints, bookmarks and schedules. The version after an effect
    /// is the `old` value of the next effect, or the current value.
    fn versions(&mut self) -> Result<()> {
        // Of a swept checkpoint only its number is left.
        let mut checkpoints: HashMap<CheckpointId, Vec<(u64, Option<Checkpoint>)>> = HashMap::new();
        let mut bookmarks: HashMap<String, Vec<Option<BookmarkRow>>> = HashMap::new();
        for row in &self.operations {
            for effect in &row.effects {
                match effect {
                    OperationEffect::CheckpointChanged { old }
                    | OperationEffect::CheckpointHidden { old } => {
                        let version = (old.sequence, Some((**old).clone()));
                        checkpoints.entry(old.id).or_default().push(version);
                    }
                    OperationEffect::Swept { checkpoints: gone, .. } => {
                        for (sequence, id) in gone {
                            checkpoints.entry(*id).or_default().push((*sequence, None));
                        }
                    }
                    OperationEffect::Bookmark { source, old, .. } => {
                        let known = bookmarks.entry(source.clone()).or_default();
                        known.push(old.as_deref().cloned());
                    }
                    OperationEffect::Schedule { old } => self.schedules.push(*old),
                    _ => {}
                }
            }
        }
        let mut in_sight = HashSet::new();
        let (from, to) = (of(self.number).build(), of(self.number).end());
        for (_, row) in
            self.view.scan(key::CHECKPOINTS, &from, &to, ScanDirection::Ascending, usize::MAX)?
        {
            let row = CheckpointRow::decode(&row).map_err(Error::corrupt("a checkpoint"))?;
            let version = (row.checkpoint.sequence, Some(row.checkpoint.clone()));
            in_sight.insert(row.checkpoint.id);
            checkpoints.entry(row.checkpoint.id).or_default().push(version);
        }
        let gone: HashSet<OperationId> = self
            .operations
            .iter()
            .filter(|row| {
                row.effects.iter().any(|effect| matches!(effect, OperationEffect::Swept { .. }))
            })
            .map(|row| row.operation.id)
            .collect();
        let hiders = checkpoint::last_hiding_operations(self.operations.iter());
        for (id, mut versions) in checkpoints {
            // The sweep also removed its earlier versions: long texts that they refer to are
            // missing.
            if !in_sight.contains(&id) && hiders.get(&id).is_some_and(|one| gone.contains(one)) {
                versions.iter_mut().for_each(|(_, version)| *version = None);
            }
            let mut next = None;
            let mut known = Vec::with_capacity(versions.len());
            for (sequence, version) in versions.into_iter().rev() {
                let version =
                    version.or(next).unwrap_or_else(|| self.placeholder_checkpoint(id, sequence));
                next = Some(version.clone());
                known.push(version);
            }
            self.checkpoints.insert(id, known);
        }
        for (source, mut versions) in bookmarks {
            // The first one is the value before all operations.
            versions.remove(0);
            let row = self.view.get(key::BOOKMARKS, &of(self.number).text(&source).build())?;
            let row = row.map(|row| BookmarkRow::decode(&row)).transpose();
            versions.push(row.map_err(Error::corrupt("a bookmark"))?);
            versions.reverse();
            self.bookmarks.insert(source, with_ends(versions));
        }
        if !self.schedules.is_empty() {
            self.schedules.remove(0);
            self.schedules.push(self.refs.schedule);
            self.schedules.reverse();
        }
        Ok(())
    }

    /// Makes a placeholder for a swept checkpoint: it occupies the number, and is hidden again.
    fn placeholder_checkpoint(&self, id: CheckpointId, sequence: u64) -> Checkpoint {
        Checkpoint {
            id,
            sequence,
            time: self.refs.last_time(),
            branch: 0,
            revision: None,
            message: String::new(),
            tags: Vec::new(),
            trigger: CheckpointTrigger::Manual,
            body: Value::Null,
            key: None,
        }
    }

    /// Returns whether a bundle contains nothing of an operation: for texts it says what is
    /// missing, not why.
    fn is_fully_omitted(&self, row: &OperationRow) -> bool {
        let folded = self.operations.iter().any(|other| {
            other.takes_back == Some(row.operation.id)
                && other.effects.iter().any(|effect| unfolded(effect).is_some())
        });
        let nothing = |effect: &OperationEffect| match effect {
            OperationEffect::Swept { checkpoints, revisions } => {
                checkpoints.is_empty() && *revisions == 0 && !folded
            }
            other => is_omitted(other),
        };
        !row.effects.is_empty() && row.effects.iter().all(nothing)
    }

    /// Returns the actions of an operation, in order; for a swept pruning those that can still be
    /// reconstructed.
    fn actions_of(&self, row: &OperationRow) -> Result<Vec<ReplayAction>> {
        let mut deeds = Vec::new();
        if self.is_fully_omitted(row) {
            return Ok(deeds);
        }
        let swept =
            row.effects.iter().any(|effect| matches!(effect, OperationEffect::Swept { .. }));
        if swept || prune::is_pending(self.view, &row.operation)? {
            deeds.push(ReplayAction::Pruned);
        }
        for effect in &row.effects {
            if is_omitted(effect) {
                continue;
            }
            let OperationEffect::Swept { checkpoints, .. } = effect else {
                deeds.push(ReplayAction::Effect(effect.clone()));
                continue;
            };
            deeds.extend(checkpoints.iter().map(|(sequence, id)| {
                let old = Box::new(self.placeholder_checkpoint(*id, *sequence));
                ReplayAction::Effect(OperationEffect::CheckpointHidden { old })
            }));
            // If it was undone before, the undo lists its folds.
            let back = self.operations.iter().find(|one| one.takes_back == Some(row.operation.id));
            let folded = match back {
                Some(back) => back.effects.iter().rev().filter_map(unfolded).collect(),
                None => self.pruned.folded_by(&row.operation.id)?,
            };
            deeds.extend(folded.into_iter().map(ReplayAction::Effect));
        }
        deeds.extend(row.takes_back.map(ReplayAction::TakesBack));
        Ok(deeds)
    }

    /// Sorts all actions so that they can be replayed: by number, since operations may have been
    /// concurrent.
    fn order(&mut self) -> Result<()> {
        let mut made: HashMap<CheckpointId, u64> = HashMap::new();
        let mut ends: HashMap<OperationId, u64> = HashMap::new();
        for (which, row) in self.operations.iter().enumerate() {
            let mut last = row.sequence;
            for (index, deed) in self.actions_of(row)?.into_iter().enumerate() {
                // An operation that runs concurrently with others may undo what began after it.
                let known = match &deed {
                    ReplayAction::Effect(
                        OperationEffect::Folded { last, .. }
                        | OperationEffect::Unfolded { last, .. },
                    ) => *last,
                    ReplayAction::Effect(
                        OperationEffect::CheckpointHidden { old }
                        | OperationEffect::CheckpointChanged { old },
                    ) => old.sequence,
                    _ => 0,
                };
                last = last.max(known);
                let own = match &deed {
                    ReplayAction::Effect(OperationEffect::Revision { sequence, .. }) => {
                        Some(*sequence)
                    }
                    ReplayAction::Effect(OperationEffect::CheckpointMade { id })
                        if !made.contains_key(id) =>
                    {
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
            ends.insert(row.operation.id, last);
        }
        for (which, row) in self.operations.iter().enumerate() {
            let swept =
                row.effects.iter().any(|effect| matches!(effect, OperationEffect::Swept { .. }));
            if swept && !self.is_fully_omitted(row) {
                let place = self.sort_key_after_all(row.operation.id, &ends);
                self.deeds.push((place, which, ReplayAction::Swept));
            }
        }
        self.deeds.sort_by_key(|(place, which, _)| (*place, *which));
        Ok(())
    }

    /// Checks that removed revisions are exported as removed: a range cannot end between a revision
    /// and its sweep.
    pub(super) fn check_end(&self, to: u64) -> Result<()> {
        for (_, which, deed) in &self.deeds {
            let ReplayAction::Effect(OperationEffect::Folded { first, .. }) = deed else {
                continue;
            };
            let mut swept = self
                .deeds
                .iter()
                .filter(|(_, other, deed)| other == which && matches!(deed, ReplayAction::Swept));
            if let Some(((swept, ..), ..)) = swept.next()
                && *first <= to
                && *swept >= to
            {
                return Err(Error::invalid(format!(
                    "#{first} and others were permanently pruned after #{to}: end the range after \
                    #{swept}"
                )));
            }
        }
        Ok(())
    }

    /// Returns how many effects come before the range, for each operation that continues in the
    /// range.
    pub(super) fn begun(&self, from: u64, to: u64) -> Vec<BegunOperation> {
        let mut passed: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
        for (place, which, deed) in &self.deeds {
            let (effects, goes_on) = passed.entry(*which).or_default();
            if is_in(*place, (from, to)) {
                *goes_on = true;
            } else if place.0 <= from && matches!(deed, ReplayAction::Effect(_)) {
                *effects += 1;
            }
        }
        let begun = passed.into_iter().filter(|(_, (effects, goes_on))| *effects > 0 && *goes_on);
        begun
            .filter_map(|(which, (effects, _))| {
                let operation = self.operations.get(which)?.operation.id;
                Some(BegunOperation { operation, effects })
            })
            .collect()
    }

    /// Returns a sort key after an operation and all undos and redos of it.
    fn sort_key_after_all(
        &self,
        operation: OperationId,
        ends: &HashMap<OperationId, u64>,
    ) -> ReplaySortKey {
        let mut chain = HashSet::from([operation]);
        let mut place = (0, 1, 0, usize::MAX);
        for row in &self.operations {
            let of_it = row.takes_back.is_some_and(|other| chain.contains(&other));
            if of_it || row.operation.id == operation {
                chain.insert(row.operation.id);
                let end = ends.get(&row.operation.id).copied().unwrap_or(0);
                place = (end.max(place.0), 1, row.position.max(place.2), usize::MAX);
            }
        }
        place
    }

    /// Replays, in order, the actions after `from` and not after `to`.
    pub(super) fn each(
        mut self,
        from: u64,
        to: u64,
        step: &mut dyn FnMut(ReplayStep) -> Result<()>,
    ) -> Result<()> {
        for (place, which, deed) in std::mem::take(&mut self.deeds) {
            let row = self
                .operations
                .get(which)
                .ok_or_else(|| Error::Internal("an operation is gone".to_owned()))?;
            let wanted = is_in(place, (from, to));
            let operation = row.operation.clone();
            let alone = matches!(deed, ReplayAction::Swept);
            let session = self.named;
            let changes = match deed {
                ReplayAction::Effect(effect) if !wanted => {
                    self.pass(effect, which)?;
                    continue;
                }
                _ if !wanted => continue,
                ReplayAction::Effect(effect) => self.effect(effect, which)?,
                ReplayAction::TakesBack(other) => self.takes_back(other),
                ReplayAction::Pruned => vec![RecordChange::Pruned { session }],
                ReplayAction::Swept => {
                    let (blobs, sessions) = (Vec::new(), Vec::new());
                    vec![RecordChange::Swept { session, operation: operation.id, blobs, sessions }]
                }
            };
            step(ReplayStep { operation, changes, alone })?;
        }
        Ok(())
    }

    /// Records a fold, and returns the first of all revisions that it covers.
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

    /// Returns the pruning that an operation's folds belong to: for a redo, the pruning that is
    /// redone.
    fn pruning(&self, which: usize) -> Result<OperationId> {
        let gone = || Error::Internal("an operation is gone".to_owned());
        let row = self.operations.get(which).ok_or_else(gone)?;
        let Some(undo) = row.takes_back else { return Ok(row.operation.id) };
        let known = self.operations.iter().find(|row| row.operation.id == undo);
        Ok(known.and_then(|row| row.takes_back).unwrap_or(undo))
    }

    fn takes_back(&self, other: OperationId) -> Vec<RecordChange> {
        let session = self.named;
        let known = self.operations.iter().find(|row| row.operation.id == other);
        let back =
            |operation, facts_hidden| RecordChange::TakesBack { session, operation, facts_hidden };
        // The same changes as `undo` and `redo` write.
        match known.and_then(|row| row.takes_back) {
            None => vec![back(other, true)],
            Some(first) => vec![back(first, false), back(other, false)],
        }
    }

    fn effect(&mut self, effect: OperationEffect, which: usize) -> Result<Vec<RecordChange>> {
        let session = self.named;
        let one = |change| Ok(vec![change]);
        match effect {
            OperationEffect::Revision { branch, sequence } => {
                one(self.revision(RevisionRef { branch, sequence })?)
            }
            OperationEffect::CheckpointMade { id } => {
                let checkpoint = self.version(&id)?;
                // The checkpoint existed before and was undone since.
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
                one(RecordChange::Checkpoint { session, checkpoint: Box::new(checkpoint) })
            }
            OperationEffect::CheckpointHidden { old } => {
                self.visible.remove(&old.id);
                let last = self.visible.values().max().copied();
                one(RecordChange::CheckpointHidden { session, id: old.id, last })
            }
            OperationEffect::BranchMade { branch } => one(self.branch(branch)?),
            OperationEffect::BranchChanged { branch, .. } => {
                let told = self.branches.entry(branch).or_insert(1);
                let change = self.refs.branch(branch)?.changes.get(*told).cloned();
                *told += 1;
                let change = change.ok_or_else(|| Error::missing("what a branch became"))?;
                one(RecordChange::BranchChanged { session, branch, change })
            }
            OperationEffect::BranchHidden { branch, hidden } => {
                one(RecordChange::BranchHidden { session, branch, hidden })
            }
            OperationEffect::Switched { branch, time, .. } => {
                one(RecordChange::Switched { session, branch, time })
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
            // Swept data was replayed as it was before; for texts the bundle says what is missing.
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

    /// Skips an effect outside the range, but updates the state that later effects depend on.
    fn pass(&mut self, effect: OperationEffect, which: usize) -> Result<()> {
        match effect {
            OperationEffect::Revision { .. }
            | OperationEffect::Facts { .. }
            | OperationEffect::Swept { .. }
            | OperationEffect::Purged { .. }
            | OperationEffect::TextDropped { .. }
            | OperationEffect::TextShown { .. }
            | OperationEffect::SessionDropped { .. }
            | OperationEffect::SessionShown { .. } => Ok(()),
            OperationEffect::Folded { branch, first, last } => {
                self.folded(branch, first, last);
                Ok(())
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
                Ok(())
            }
            other => self.effect(other, which).map(drop),
        }
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
            change: change.ok_or_else(|| Error::missing("the making of a branch"))?,
        })
    }

    fn facts(&self, page: u64, count: u64) -> Result<RecordChange> {
        if page == LOST_OBJECT {
            return Err(Error::missing("a page of facts, which was lost before a repair"));
        }
        let sealed = object::sealed(self.view, page)?;
        let content = object::content(self.view, ObjectKind::Page, page)?;
        let facts = FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))?.facts;
        let times = || facts.iter().map(|fact| fact.at);
        Ok(RecordChange::Facts {
            session: self.named,
            count,
            first: times().min().unwrap_or_default(),
            last: times().max().unwrap_or_default(),
            page: DeltaPart::Inline(RecordBytes(sealed)),
        })
    }

    /// Returns the next version of a bookmark, and up to where the blob is replayed with it.
    fn bookmark_version(&mut self, source: &str) -> (Option<BookmarkRow>, u64) {
        self.bookmarks.get_mut(source).and_then(Vec::pop).unwrap_or((None, 0))
    }

    /// Returns the changes for a bookmark, after those for its stored bytes.
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
                let object = RecordBytes(object::sealed(self.view, part.object)?);
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

/// Returns the versions of a bookmark, the last one first, each with the offset up to which the
/// blob is replayed with it: no further than any later version moves back, since what is read again
/// is in other parts. For the last version of a blob, the whole blob.
fn with_ends(versions: Vec<Option<BookmarkRow>>) -> Vec<(Option<BookmarkRow>, u64)> {
    let mut least: HashMap<String, u64> = HashMap::new();
    let mut removed_later = false;
    let ends = versions.into_iter().map(|version| {
        let Some(row) = &version else {
            removed_later = true;
            return (None, 0);
        };
        let own = row.kept_bytes();
        let end = match least.get_mut(&row.blob) {
            Some(later) => {
                let end = if removed_later { 0 } else { own.min(*later) };
                *later = own.min(*later);
                end
            }
            None => {
                least.insert(row.blob.clone(), own);
                u64::MAX
            }
        };
        (version, end)
    });
    ends.collect()
}
