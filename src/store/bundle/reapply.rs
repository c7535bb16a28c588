//! Joins a session: writes again the operations that others do not have, after those that others
//! wrote.
//!
//! Operations, checkpoints and claims keep their ids. Revisions and checkpoints get the next free
//! numbers, so revisions get new ids.

mod changes;
mod conflicts;

use super::import::{has_effect, is_branch};
use super::replay::increment::{new_part, operations_since};
use super::replay::{ReplayStep, SessionReplay};
use crate::engine::commit::CommitDurability;
use crate::engine::index::find_operation_of;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::random::operation_id;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{
    BranchChange, BranchHead, ExportMark, OperationEffect, OperationRow, Record, RecordChange,
    SequenceRow,
};
use crate::model::{
    BranchMetadata, BranchNumber, BranchStatus, CheckpointId, Operation, OperationId,
    SessionNumber, Timestamp,
};
use crate::store::{MergeRequest, Store};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a person can do if both sides of a session cannot be joined.
pub(crate) const KEPT_APART: &str = "'forge export events' here, and 'forge import events' in a new \
    clone, bring what is here as a session of its own";

/// What changed in work that was not pushed when it was joined to what others pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JoinedWork {
    /// The revisions and checkpoints of this store that were not pushed yet and now follow what was
    /// pulled: the number of each before the pull, and now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renumbered: Vec<(u64, u64)>,
    /// The branches made here that were renamed, because others pushed branches with the same
    /// names: the name of each before the pull, and now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renamed_branches: Vec<(String, String)>,
    /// The branches that both sides continued in a way that cannot be joined: what was written here
    /// is on a branch of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split: Vec<SplitBranch>,
    /// The active branch that others checked out since the last pull, if another one is checked out
    /// here. A pull checks out no branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_out_elsewhere: Option<String>,
    /// How many checkpoints that were here others have pruned or undone since the last pull; absent
    /// for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_checkpoints: Option<u64>,
}

impl JoinedWork {
    /// Returns whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what a later exchange of the same session changed.
    pub fn extend(&mut self, later: Self) {
        self.renumbered.extend(later.renumbered);
        self.renamed_branches.extend(later.renamed_branches);
        self.split.extend(later.split);
        let elsewhere = later.checked_out_elsewhere;
        self.checked_out_elsewhere = elsewhere.or(self.checked_out_elsewhere.take());
        let removed = [self.removed_checkpoints, later.removed_checkpoints];
        self.removed_checkpoints = removed.into_iter().flatten().reduce(|one, other| one + other);
    }
}

/// A branch that both sides continued and that could not be joined: the revisions that were made
/// here are on another branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SplitBranch {
    /// The branch as others continued it.
    pub branch: String,
    /// The branch with the revisions that were made here.
    pub own: String,
    /// Why the branch could not be joined.
    #[serde(flatten)]
    pub reason: SplitReason,
    /// The number of the revision that merged `own` into `branch`. `None` if they were not merged:
    /// a conflict needs a decision, or others undid the creation of `branch`.
    pub merged: Option<u64>,
}

/// Why a branch cannot be joined. It is serialized as `claim`, which is the claim or null, and
/// `undone`, which is left out unless it is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitReason {
    /// Both sides changed this claim.
    Changed(String),
    /// A claim of one side refers to a claim that the other side removed.
    Dangling,
    /// Others undid the creation of the branch.
    Undone,
}

impl Serialize for SplitReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let claim = match self {
            Self::Changed(claim) => Some(claim),
            Self::Dangling | Self::Undone => None,
        };
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("claim", &claim)?;
        if *self == Self::Undone {
            fields.serialize_entry("undone", &true)?;
        }
        fields.end()
    }
}

/// A session whose operations are written again to another one.
pub(in crate::store) struct Reapply<'a> {
    store: &'a Store,
    /// The session with the operations that others do not have.
    old: SessionNumber,
    /// The session with the operations of others, to which the operations are written again.
    new: SessionNumber,
    /// The operation that adds branches for revisions that cannot be joined.
    operation: &'a Operation,
    /// The suffix of the names of these branches.
    tag: &'a str,
    /// Branches that are not joined, whatever claims they change.
    kept_apart: &'a BTreeSet<BranchNumber>,
    /// The operations that are not written again: prunings, which were undone before, and their
    /// undos.
    left_out: HashSet<OperationId>,
    /// The checkpoints that others recorded too.
    left_out_checkpoints: HashSet<CheckpointId>,
    /// For each branch that could not be joined, the branch to which its revisions are written.
    moved: BTreeMap<BranchNumber, BranchNumber>,
    /// For each branch that was made here from a revision that is written again, the branch of
    /// others that this revision follows.
    roots: BTreeMap<BranchNumber, BranchNumber>,
    /// For each branch that was made here, its number in the new session.
    made: BTreeMap<BranchNumber, BranchNumber>,
    /// The number of the next branch that is replayed.
    next_branch: BranchNumber,
    /// The new number of each revision and checkpoint, by its old number.
    numbers: BTreeMap<u64, u64>,
    /// The old session.
    ours: &'a ReadSnapshot,
    /// The new session before anything is written again.
    theirs: ReadSnapshot,
    /// How many effects of each operation were passed so far.
    passed: HashMap<OperationId, usize>,
    /// The branch whose revision refers to a claim that others removed, if that was the error.
    dangling: Option<BranchNumber>,
}

/// Why nothing was written again.
pub(in crate::store) enum ReapplyError {
    /// This branch refers to claims that others removed: it must be in `kept_apart`.
    Dangling(BranchNumber),
    Failed(Error),
}

impl From<Error> for ReapplyError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Reapply<'a> {
    pub(in crate::store) fn new(
        store: &'a Store,
        (old, new): (SessionNumber, SessionNumber),
        operation: &'a Operation,
        tag: &'a str,
        kept_apart: &'a BTreeSet<BranchNumber>,
        ours: &'a ReadSnapshot,
    ) -> Result<Self> {
        Ok(Self {
            ours,
            theirs: store.engine.follower.written_view()?,
            store,
            old,
            new,
            operation,
            tag,
            kept_apart,
            left_out: HashSet::new(),
            left_out_checkpoints: HashSet::new(),
            moved: BTreeMap::new(),
            roots: BTreeMap::new(),
            made: BTreeMap::new(),
            next_branch: 0,
            numbers: BTreeMap::new(),
            passed: HashMap::new(),
            dangling: None,
        })
    }

    /// Writes the operations of the old session since a mark to the new one.
    pub(in crate::store) fn all(mut self, since: &ExportMark) -> Result<JoinedWork, ReapplyError> {
        let rows = operations_since(self.ours, self.old, since.position)?;
        self.leave_out(&rows)?;
        let mut split = self.split_branches(&rows, since)?;
        let replay = SessionReplay::new(self.ours, self.old, self.new, since.position)?;
        for begun in replay.begun_operations(0, u64::MAX) {
            self.passed.insert(begun.operation, begun.effects as usize);
        }
        self.next_branch = replay.branches_before() as BranchNumber;
        let written = replay.each(0, u64::MAX, &mut |step| self.step(&step));
        match (written, self.dangling) {
            (Err(_), Some(branch)) => return Err(ReapplyError::Dangling(branch)),
            (written, _) => written?,
        }
        self.hide_undone(&mut split)?;
        for (branch, one) in &mut split {
            one.merged = self.merge(*branch, one)?;
        }
        self.check_out(&split)?;
        let split = split.into_iter().map(|(_, one)| one).collect();
        let renamed_branches = self.renamed()?;
        let renumbered = self.numbers.into_iter().filter(|(before, now)| before != now).collect();
        Ok(JoinedWork { renumbered, renamed_branches, split, ..JoinedWork::default() })
    }

    /// Returns the old and new names of the branches made here that were renamed because others
    /// made branches with the same names.
    fn renamed(&self) -> Result<Vec<(String, String)>> {
        let now = self.store.engine.follower.written_view()?;
        let old = session_refs(&self.ours.refs, self.old)?;
        let new = session_refs(&now.refs, self.new)?;
        let mut renamed = Vec::new();
        for (before, now) in &self.made {
            let (before, now) = (old.branch(*before)?, new.branch(*now)?);
            if before.name != now.name && !now.hidden {
                renamed.push((before.name.clone(), now.name.clone()));
            }
        }
        Ok(renamed)
    }

    /// Finds the operations that are not written again. Prunings that others have too are in the
    /// new session already.
    fn leave_out(&mut self, rows: &[OperationRow]) -> Result<()> {
        for row in rows {
            if find_operation_of(&self.theirs, self.new, &row.operation.id)?.is_some() {
                continue;
            }
            let folds = |effect: &OperationEffect| matches!(effect, OperationEffect::Folded { .. });
            let is_of_left_out = row.takes_back.is_some_and(|other| self.left_out.contains(&other));
            if is_of_left_out || row.is_swept() || row.effects.iter().any(folds) {
                self.left_out.insert(row.operation.id);
            }
        }
        Ok(())
    }

    /// Returns how many effects of an operation the new session had before, and whether the
    /// operation was an undo there.
    fn shared(&self, operation: &OperationId) -> Result<(usize, bool)> {
        let row = find_operation_of(&self.theirs, self.new, operation)?;
        Ok(row.map_or((0, false), |row| (row.effects.len(), row.takes_back.is_some())))
    }

    /// Returns the branch to which the revisions of a branch are written again.
    fn written_branch(&self, branch: BranchNumber) -> BranchNumber {
        let other = self.moved.get(&branch).or_else(|| self.made.get(&branch));
        other.copied().unwrap_or(branch)
    }

    fn step(&mut self, step: &ReplayStep) -> Result<()> {
        let done = self.write_step(step);
        let branches = step.changes.iter().filter(|change| is_branch(change)).count();
        self.next_branch += branches as BranchNumber;
        done
    }

    fn write_step(&mut self, step: &ReplayStep) -> Result<()> {
        let id = step.operation.id;
        let (shared, is_undo) = self.shared(&id)?;
        let passed = self.passed.entry(id).or_default();
        let at = *passed;
        let effects = step.changes.iter().filter(|change| has_effect(change)).count();
        *passed += effects;
        let is_there = if effects > 0 { at < shared } else { is_undo };
        if is_there || self.left_out.contains(&id) {
            return Ok(());
        }
        let planned = self.store.engine.commit(CommitDurability::Later, &mut |context| {
            let planned = self.planned(context, step)?;
            let operation = step.operation.clone();
            let record = Record { operation, changes: planned.changes.clone() };
            Ok(((!record.changes.is_empty()).then_some(record), planned))
        });
        let planned = match planned {
            Err(Error::Dangling { from, to }) => {
                let branch = step.changes.iter().find_map(changes::branch_of_revision);
                let branch = branch.map(|own| self.roots.get(&own).copied().unwrap_or(own));
                self.dangling = branch.filter(|branch| !self.moved.contains_key(branch));
                return Err(Error::Dangling { from, to });
            }
            planned => planned?,
        };
        self.numbers.extend(planned.number);
        self.made.extend(planned.branch);
        self.left_out_checkpoints.extend(planned.left_out);
        Ok(())
    }

    /// Adds a branch for each branch that both sides continued and that cannot be joined.
    fn split_branches(
        &mut self,
        rows: &[OperationRow],
        since: &ExportMark,
    ) -> Result<Vec<(BranchNumber, SplitBranch)>> {
        let mut split = Vec::new();
        let shown: BTreeSet<_> =
            rows.iter().flat_map(|row| &row.effects).filter_map(shown).collect();
        for (branch, revisions) in self.revisions(rows, since)? {
            let conflict = self.conflict(branch, &revisions, shown.contains(&branch))?;
            let Some(conflict) = conflict else { continue };
            let number = self.add_branch(branch, conflict.common, self.operation.time)?;
            self.moved.insert(branch, number);
            let name = |session, branch, refs: &ReadSnapshot| -> Result<String> {
                Ok(session_refs(&refs.refs, session)?.branch(branch)?.name.clone())
            };
            let now = self.store.engine.follower.written_view()?;
            let own = SplitBranch {
                branch: name(self.old, branch, self.ours)?,
                own: name(self.new, number, &now)?,
                reason: conflict.reason,
                merged: None,
            };
            split.push((branch, own));
        }
        Ok(split)
    }

    /// Returns the revisions that are written again, by the branch of others that they follow. The
    /// revisions of a branch that was made here from one of them follow the same branch.
    fn revisions(
        &mut self,
        rows: &[OperationRow],
        since: &ExportMark,
    ) -> Result<BTreeMap<BranchNumber, Vec<RevisionRef>>> {
        let mut revisions: BTreeMap<BranchNumber, Vec<RevisionRef>> = BTreeMap::new();
        let mut made = BTreeSet::new();
        for row in rows {
            if self.left_out.contains(&row.operation.id) {
                continue;
            }
            let (shared, _) = self.shared(&row.operation.id)?;
            let (row, before) = new_part(row.clone(), since.position);
            let new = row.effects.iter().skip(shared.saturating_sub(before as usize));
            for effect in new {
                match effect {
                    OperationEffect::Revision { branch, sequence } => {
                        let at = RevisionRef { branch: *branch, sequence: *sequence };
                        revisions.entry(*branch).or_default().push(at);
                    }
                    OperationEffect::BranchMade { branch } => {
                        made.insert(*branch);
                    }
                    _ => {}
                }
            }
        }
        // A branch has a lower number than the branches that were made from it.
        for branch in made {
            let own = revisions.remove(&branch).unwrap_or_default();
            let base = session_refs(&self.ours.refs, self.old)?.branch(branch)?.base;
            let Some((base, sequence)) = base else { continue };
            let root = self.roots.get(&base).copied().unwrap_or(base);
            let follows = |known: &Vec<RevisionRef>| {
                known.iter().any(|at| (at.branch, at.sequence) == (base, sequence))
            };
            if let Some(known) = revisions.get_mut(&root).filter(|known| follows(known)) {
                known.extend(own);
                self.roots.insert(branch, root);
            }
        }
        Ok(revisions)
    }

    /// Adds a branch that begins at a revision that both sides have. Returns its number.
    fn add_branch(
        &self,
        branch: BranchNumber,
        common: Option<RevisionRef>,
        time: Timestamp,
    ) -> Result<BranchNumber> {
        self.store.engine.commit(CommitDurability::Later, &mut |context| {
            let refs = session_refs(&context.refs, self.new)?;
            let head = common.map(|at| self.common_head(&context.view()?, at)).transpose()?;
            let change = BranchChange {
                time,
                status: BranchStatus::Active,
                metadata: BranchMetadata::default(),
            };
            let number = refs.branches.len() as BranchNumber;
            let name = self.free_branch_name(refs, &refs.branch(branch)?.name);
            let base = common.map_or(branch, |common| common.branch);
            let session = self.new;
            let changes =
                vec![RecordChange::Branch { session, name, base, head, change: Box::new(change) }];
            Ok((Some(Record { operation: self.operation.clone(), changes }), number))
        })
    }

    /// Returns the head of a branch that begins at a revision that both sides have.
    fn common_head(&self, view: &ReadSnapshot, at: RevisionRef) -> Result<BranchHead> {
        self.check_not_pruned(view, at.sequence)?;
        Ok(timeline::head_at(view, self.new, at)?.0)
    }

    /// Checks that others did not prune a revision that is needed here.
    fn check_not_pruned(&self, view: &ReadSnapshot, sequence: u64) -> Result<()> {
        match lineage::sequence_row(view, self.new, sequence)? {
            Some(SequenceRow::Folded(..)) => Err(Error::Conflict(format!(
                "#{sequence}, which is needed here, was pruned on the remote: both cannot be \
                 joined until that pruning is undone where it was made"
            ))),
            _ => Ok(()),
        }
    }

    /// Hides the added branches of branches whose creation was undone here, and removes them from
    /// `split`.
    fn hide_undone(&self, split: &mut Vec<(BranchNumber, SplitBranch)>) -> Result<()> {
        let old = session_refs(&self.ours.refs, self.old)?;
        let mut changes = Vec::new();
        for (branch, own) in &self.moved {
            if old.branch(*branch)?.hidden {
                let (session, own) = (self.new, *own);
                changes.push(RecordChange::BranchHidden { session, branch: own, hidden: true });
                split.retain(|(number, _)| number != branch);
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.store.engine.commit(CommitDurability::Later, &mut |_| {
            let operation = self.operation.clone();
            Ok((Some(Record { operation, changes: changes.clone() }), ()))
        })
    }

    /// Merges the revisions that were made here into the branch that others continued. Returns the
    /// number of the merge; `None` if a conflict needs a decision, or others undid the creation of
    /// the branch.
    fn merge(&self, number: BranchNumber, split: &SplitBranch) -> Result<Option<u64>> {
        let SplitBranch { branch, own, .. } = split;
        let now = self.store.engine.follower.written_view()?;
        if session_refs(&now.refs, self.new)?.branch(number)?.hidden {
            return Ok(None);
        }
        let verb = format!("branch merge {own}");
        let operation = Operation { id: operation_id()?, verb, ..self.operation.clone() };
        let request = MergeRequest {
            source: own.clone(),
            target: Some(branch.clone()),
            without_checkpoint: true,
            ..MergeRequest::default()
        };
        let session = self.store.session_at(self.new);
        match session.merge_as(&operation, CommitDurability::Later, &request) {
            Ok(merge) => Ok(merge.revision.map(|(number, _)| number)),
            Err(Error::Dangling { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks out the branch that was checked out here, or the one into which it was merged.
    fn check_out(&self, split: &[(BranchNumber, SplitBranch)]) -> Result<()> {
        let old = session_refs(&self.ours.refs, self.old)?;
        let is_merged =
            split.iter().any(|(branch, one)| *branch == old.current_branch && one.merged.is_some());
        let branch = match is_merged {
            true => old.current_branch,
            false => self.written_branch(old.current_branch),
        };
        let (session, time) = (self.new, self.operation.time);
        self.store.engine.commit(CommitDurability::Later, &mut |context| {
            let refs = session_refs(&context.refs, session)?;
            let branch = refs.visible_branch(branch)?;
            let is_there = refs.current_branch == branch;
            let changes = vec![RecordChange::switched(session, branch, time)];
            let record = Record { operation: self.operation.clone(), changes };
            Ok(((!is_there).then_some(record), ()))
        })
    }
}

/// Returns the branch that an effect made visible again.
const fn shown(effect: &OperationEffect) -> Option<BranchNumber> {
    match effect {
        OperationEffect::BranchHidden { branch, hidden: false, .. } => Some(*branch),
        _ => None,
    }
}
