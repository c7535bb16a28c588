//! Reconstructs the journal records of a session from the undo information of its operations.

pub(super) mod increment;
mod record_changes;

use self::increment::{erases, first_new_effect, needs_all_before, new_part, operations_since};
use super::folded_revision::FoldedRevisionReader;
use crate::backend::Snapshot;
use crate::engine::checkpoint;
use crate::engine::prune;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{BookmarkRow, OperationEffect, OperationRow, RecordChange, SessionRefs};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, Operation, OperationId, SessionNumber, Timestamp,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The changes of one step of an operation, to be written to a bundle.
pub(super) struct ReplayStep {
    pub(super) operation: Operation,
    pub(super) changes: Vec<RecordChange>,
    /// Whether the changes must be in a record of their own.
    pub(super) has_own_record: bool,
}

/// A step of an operation, before its data is read.
#[derive(Clone, Debug)]
enum ReplayAction {
    Pruned,
    Effect(OperationEffect),
    TakesBack(OperationId),
    Swept,
}

/// The sort key of an action: a sequence number; 0 if the action has this number, 1 if it follows
/// it; the position of its operation in the journal; its index in the operation.
type ReplaySortKey = (u64, u8, u64, usize);

struct PlacedAction {
    key: ReplaySortKey,
    /// The index of its operation.
    which: usize,
    action: ReplayAction,
    /// Whether it was written at the position from which on records are replayed, or later.
    is_new: bool,
}

impl PlacedAction {
    /// Returns whether the action is new, after number `from` and not after number `to`.
    const fn is_wanted(&self, from: u64, to: u64) -> bool {
        let (number, unnumbered, ..) = self.key;
        let is_in = if unnumbered == 0 {
            from < number && number <= to
        } else {
            from <= number && number < to
        };
        self.is_new && is_in
    }
}

/// Returns the fold that an effect undid, if it undid one.
fn unfolded(effect: &OperationEffect) -> Option<OperationEffect> {
    match effect {
        OperationEffect::Unfolded { branch, first, last } => {
            Some(OperationEffect::Folded { branch: *branch, first: *first, last: *last })
        }
        _ => None,
    }
}

/// Returns whether bundles omit an effect: it is about other sessions, or only about the retention
/// of texts.
pub(super) const fn is_omitted(effect: &OperationEffect) -> bool {
    matches!(
        effect,
        OperationEffect::TextDropped { .. }
            | OperationEffect::TextShown { .. }
            | OperationEffect::SessionDropped { .. }
            | OperationEffect::SessionShown { .. }
    )
}

/// A replay of the operations of a session, in order.
pub(super) struct SessionReplay<'a> {
    view: &'a ReadSnapshot,
    number: SessionNumber,
    /// The session's number in the bundle.
    named: SessionNumber,
    refs: &'a SessionRefs,
    pruned: FoldedRevisionReader<'a>,
    operations: Vec<OperationRow>,
    /// How many effects of each operation are left out of `operations`; empty if none are.
    left_out: Vec<u64>,
    /// The position from which on records are replayed.
    since: u64,
    /// Whether `operations` has only the effects that were written since that position.
    is_partial: bool,
    /// Whether data of earlier records was swept or purged since that position.
    pub(super) erases: bool,
    actions: Vec<PlacedAction>,
    /// The versions of each checkpoint that are not replayed yet, the next one last.
    checkpoints: HashMap<CheckpointId, Vec<Checkpoint>>,
    /// The versions of each bookmark in the same order, each with the offset up to which its blob
    /// is replayed with it.
    bookmarks: HashMap<String, Vec<(Option<BookmarkRow>, u64)>>,
    schedules: Vec<Option<i64>>,
    /// How many changes of each branch were replayed.
    branches: HashMap<BranchNumber, usize>,
    /// The checkpoints that were made so far.
    made: HashSet<CheckpointId>,
    /// The time of each checkpoint that is visible so far.
    visible: BTreeMap<CheckpointId, Timestamp>,
    /// The offset up to which each blob was replayed.
    blobs: HashMap<String, u64>,
    /// The first revision of each fold in force, by the revision into which it folds; the latest
    /// fold last.
    folds: HashMap<(BranchNumber, u64), Vec<u64>>,
}

impl<'a> SessionReplay<'a> {
    /// Prepares the replay of the records that were written to a session at the position `since` or
    /// later; 0 for all. The cost depends only on these records, unless they prune or undo a
    /// pruning.
    pub(super) fn new(
        view: &'a ReadSnapshot,
        number: SessionNumber,
        named: SessionNumber,
        since: u64,
    ) -> Result<Self> {
        let refs = session_refs(&view.refs, number)?;
        let new = operations_since(view, number, since)?;
        let erases = new.iter().any(|row| erases(row, since));
        let is_partial = since > 0 && !new.iter().any(|row| needs_all_before(row, since));
        let (operations, left_out) = if is_partial {
            new.into_iter().map(|row| new_part(row, since)).unzip()
        } else if since > 0 {
            (operations_since(view, number, 0)?, Vec::new())
        } else {
            (new, Vec::new())
        };
        let mut replay = Self {
            view,
            number,
            named,
            refs,
            pruned: FoldedRevisionReader { view, number },
            operations,
            left_out,
            since,
            is_partial,
            erases,
            actions: Vec::new(),
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
        replay.go_back()?;
        replay.order()?;
        Ok(replay)
    }

    /// Collects the versions of checkpoints, bookmarks and schedules. The version after an effect
    /// is the `old` value of the next effect; after the last effect, it is the current value.
    fn versions(&mut self) -> Result<()> {
        // Only the number of a swept checkpoint is left.
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
        for checkpoint in self.visible_checkpoints()? {
            let version = (checkpoint.sequence, Some(checkpoint.clone()));
            in_sight.insert(checkpoint.id);
            checkpoints.entry(checkpoint.id).or_default().push(version);
        }
        let gone: HashSet<OperationId> = self
            .operations
            .iter()
            .filter(|row| row.is_swept())
            .map(|row| row.operation.id)
            .collect();
        let hiders = checkpoint::last_hiding_operations(self.operations.iter());
        for (id, mut versions) in checkpoints {
            // The earlier versions were swept too: long texts that they refer to are missing.
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
            let row = self.view.get(key::BOOKMARKS, &of(self.number).text(&source).build())?;
            let row = row.map(|row| BookmarkRow::decode(&row)).transpose();
            versions.push(row.map_err(Error::corrupt("a bookmark"))?);
            versions.reverse();
            let mut versions = with_ends(versions);
            // The earliest version is the value before all operations.
            let before = versions.pop();
            self.bookmarks.insert(source, versions);
            if let Some((Some(row), end)) = before
                && !row.blob.is_empty()
            {
                let passed = self.part_boundary(&row.blob, end.min(row.kept_bytes()))?;
                self.blobs.insert(row.blob, passed);
            }
        }
        if !self.schedules.is_empty() {
            self.schedules.remove(0);
            self.schedules.push(self.refs.schedule);
            self.schedules.reverse();
        }
        Ok(())
    }

    /// Returns a placeholder for a swept checkpoint. It occupies the number, and is hidden again.
    fn placeholder_checkpoint(&self, id: CheckpointId, sequence: u64) -> Checkpoint {
        Checkpoint::new(id, sequence, self.refs.last_time())
    }

    /// Returns whether a bundle contains nothing of an operation. For texts, it says which bytes
    /// are missing, not which operation dropped them.
    fn is_fully_omitted(&self, row: &OperationRow) -> bool {
        // This reads all operations, so it is called only for a sweep.
        let is_unfolded = || {
            self.operations.iter().any(|other| {
                other.takes_back == Some(row.operation.id)
                    && other.effects.iter().any(|effect| unfolded(effect).is_some())
            })
        };
        let nothing = |effect: &OperationEffect| match effect {
            OperationEffect::Swept { checkpoints, revisions } => {
                checkpoints.is_empty() && *revisions == 0 && !is_unfolded()
            }
            other => is_omitted(other),
        };
        !row.effects.is_empty() && row.effects.iter().all(nothing)
    }

    /// Returns the actions of an operation, in order, each with whether it is new (see
    /// [`PlacedAction`]); for a swept pruning, only those that can still be reconstructed.
    fn actions_of(&self, row: &OperationRow) -> Result<Vec<(ReplayAction, bool)>> {
        let mut actions = Vec::new();
        if self.is_fully_omitted(row) {
            return Ok(actions);
        }
        let first_new = if self.is_partial { Some(0) } else { first_new_effect(row, self.since) };
        let goes_on = first_new.is_some();
        if row.is_swept() || prune::is_pending(self.view, &row.operation)? {
            actions.push((ReplayAction::Pruned, goes_on));
        }
        let mut index = 0;
        for effect in &row.effects {
            // An effect of a sweep stands for several effects.
            let mut add = |effect| {
                let is_new = first_new.is_some_and(|first| index >= first);
                actions.push((ReplayAction::Effect(effect), is_new));
                index += 1;
            };
            if is_omitted(effect) {
                index += 1;
                continue;
            }
            let OperationEffect::Swept { checkpoints, .. } = effect else {
                add(effect.clone());
                continue;
            };
            for (sequence, id) in checkpoints {
                let old = Box::new(self.placeholder_checkpoint(*id, *sequence));
                add(OperationEffect::CheckpointHidden { old });
            }
            // If the pruning was undone before, the undo lists its folds.
            let back = self.operations.iter().find(|one| one.takes_back == Some(row.operation.id));
            let folded = match back {
                Some(back) => back.effects.iter().rev().filter_map(unfolded).collect(),
                None => self.pruned.folded_by(&row.operation.id)?,
            };
            folded.into_iter().for_each(add);
        }
        actions.extend(row.takes_back.map(|other| (ReplayAction::TakesBack(other), goes_on)));
        Ok(actions)
    }

    /// Sorts all actions in the order in which they are replayed: by number, because operations may
    /// have been concurrent.
    fn order(&mut self) -> Result<()> {
        let mut made: HashMap<CheckpointId, u64> = HashMap::new();
        let mut ends: HashMap<OperationId, u64> = HashMap::new();
        for (which, row) in self.operations.iter().enumerate() {
            let mut last = row.sequence;
            for (index, (action, is_new)) in self.actions_of(row)?.into_iter().enumerate() {
                // An operation that ran concurrently with others may undo what began after it.
                let known = match &action {
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
                let own = match &action {
                    ReplayAction::Effect(OperationEffect::Revision { sequence, .. }) => {
                        Some(*sequence)
                    }
                    ReplayAction::Effect(OperationEffect::CheckpointMade { id })
                        if !self.made.contains(id) && !made.contains_key(id) =>
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
                let key = (own.unwrap_or(last), u8::from(own.is_none()), row.position, index);
                self.actions.push(PlacedAction { key, which, action, is_new });
            }
            ends.insert(row.operation.id, last);
        }
        for (which, row) in self.operations.iter().enumerate() {
            if row.is_swept() && !self.is_fully_omitted(row) {
                let key = self.sort_key_after_all(row.operation.id, &ends);
                let is_new = first_new_effect(row, self.since).is_some();
                let action = ReplayAction::Swept;
                self.actions.push(PlacedAction { key, which, action, is_new });
            }
        }
        self.actions.sort_by_key(|placed| (placed.key, placed.which));
        Ok(())
    }

    /// Checks that a range does not end between a revision and its sweep, because a swept revision
    /// can only be exported as swept.
    pub(super) fn check_end(&self, to: u64) -> Result<()> {
        for placed in &self.actions {
            let ReplayAction::Effect(OperationEffect::Folded { first, .. }) = &placed.action else {
                continue;
            };
            let mut swept = self.actions.iter().filter(|other| {
                other.which == placed.which && matches!(other.action, ReplayAction::Swept)
            });
            if let Some(PlacedAction { key: (swept, ..), .. }) = swept.next()
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

    /// Returns a sort key after an operation and all its undos and redos.
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

    /// Calls `step`, in order, for the new actions after number `from` and not after number `to`.
    pub(super) fn each(
        mut self,
        from: u64,
        to: u64,
        step: &mut dyn FnMut(ReplayStep) -> Result<()>,
    ) -> Result<()> {
        for placed in std::mem::take(&mut self.actions) {
            let wanted = placed.is_wanted(from, to);
            let PlacedAction { which, action, .. } = placed;
            let row = self
                .operations
                .get(which)
                .ok_or_else(|| Error::Internal("the replay has no such operation".to_owned()))?;
            let operation = row.operation.clone();
            let has_own_record = matches!(action, ReplayAction::Swept);
            let session = self.named;
            let changes = match action {
                ReplayAction::Effect(effect) if !wanted => {
                    self.pass(effect, which)?;
                    continue;
                }
                _ if !wanted => continue,
                ReplayAction::Effect(effect) => self.effect(effect, which)?,
                ReplayAction::TakesBack(other) => self.takes_back(other)?,
                ReplayAction::Pruned => vec![RecordChange::Pruned { session }],
                ReplayAction::Swept => {
                    let (blobs, sessions) = (Vec::new(), Vec::new());
                    vec![RecordChange::Swept { session, operation: operation.id, blobs, sessions }]
                }
            };
            step(ReplayStep { operation, changes, has_own_record })?;
        }
        Ok(())
    }
}

/// Returns the versions of a bookmark, the last one first, each with the offset up to which the
/// blob is replayed with it. This is at most the end of every later version, because bytes that
/// were read again are in other parts, and 0 if the bookmark was removed in between. With the last
/// version, the whole blob is replayed.
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
