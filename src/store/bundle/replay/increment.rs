//! What an export that continues an earlier one contains: the operations written since, and the
//! state before them.

use super::{ReplayAction, SessionReplay, is_omitted};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::index::find_operation_of;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::table_rows;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{BegunOperation, CheckpointRow, OperationEffect, OperationRow};
use crate::model::{BranchNumber, Checkpoint, CheckpointId, OperationId, SessionNumber};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Returns the index of the first effect of an operation that was written at `position` or later;
/// `None` if no record of the operation was written then.
pub(in crate::store::bundle) fn first_new_effect(
    row: &OperationRow,
    position: u64,
) -> Option<usize> {
    if row.position >= position {
        return Some(0);
    }
    let later = row.continued.iter().find(|(continued, _)| *continued >= position);
    later.map(|(_, effects)| usize::try_from(*effects).unwrap_or(usize::MAX))
}

/// Returns the operations of a session that wrote something at `position` or later, in the order in
/// which they began.
pub(in crate::store::bundle) fn operations_since(
    view: &ReadSnapshot,
    number: SessionNumber,
    position: u64,
) -> Result<Vec<OperationRow>> {
    let (from, to) = (of(number).number(position).build(), of(number).end());
    let scan = |table| table_rows::rows_between(view, table, &from, &to);
    let mut continued = BTreeSet::new();
    if position > 0 {
        let ids = scan(key::CONTINUATIONS)?;
        continued.extend(ids.iter().filter_map(|(place, _)| place.last_chunk::<16>().copied()));
    }
    let mut operations = Vec::new();
    for id in continued.into_iter().map(OperationId::from_bytes) {
        let lost = || Error::missing(format!("the operation {id}"));
        let row = find_operation_of(view, number, &id)?.ok_or_else(lost)?;
        if row.position < position {
            operations.push(row);
        }
    }
    operations.sort_by_key(|row| row.position);
    for (_, row) in scan(key::OPERATIONS)? {
        operations.push(OperationRow::decode(&row).map_err(Error::corrupt("an operation"))?);
    }
    Ok(operations)
}

/// Returns the part of an operation that was written at the position `since` or later, and how many
/// effects come before that part, without the [omitted](is_omitted) ones.
pub(in crate::store::bundle) fn new_part(mut row: OperationRow, since: u64) -> (OperationRow, u64) {
    let old = first_new_effect(&row, since).unwrap_or(0).min(row.effects.len());
    let left_out = row.effects.drain(..old).filter(|effect| !is_omitted(effect)).count();
    (row, left_out as u64)
}

/// Returns whether the new part of an operation can be replayed only together with everything
/// before it.
pub(super) fn needs_all_before(row: &OperationRow, since: u64) -> bool {
    let first = first_new_effect(row, since).unwrap_or(0);
    let folds = |effect: &OperationEffect| {
        matches!(effect, OperationEffect::Folded { .. } | OperationEffect::Unfolded { .. })
    };
    row.is_swept() || row.effects.iter().skip(first).any(folds)
}

/// Returns whether an operation that wrote something at the position `since` or later has erased
/// data there.
pub(in crate::store::bundle) fn erases(row: &OperationRow, since: u64) -> bool {
    let purged = |effect: &OperationEffect| matches!(effect, OperationEffect::Purged { .. });
    row.is_swept() || (row.position >= since && row.effects.iter().any(purged))
}

/// Returns the checkpoint that an effect is about.
const fn checkpoint_of(effect: &OperationEffect) -> Option<CheckpointId> {
    match effect {
        OperationEffect::CheckpointMade { id } => Some(*id),
        OperationEffect::CheckpointChanged { old } | OperationEffect::CheckpointHidden { old } => {
            Some(old.id)
        }
        _ => None,
    }
}

impl SessionReplay<'_> {
    /// Returns the visible checkpoints that the operations are about.
    pub(super) fn visible_checkpoints(&self) -> Result<Vec<Checkpoint>> {
        if self.is_partial {
            let mut ids = BTreeSet::new();
            for effect in self.operations.iter().flat_map(|row| &row.effects) {
                ids.extend(checkpoint_of(effect));
            }
            let found = ids.iter().map(|id| checkpoint::by_id(self.view, self.number, id));
            return found.filter_map(Result::transpose).collect();
        }
        let rows = table_rows::rows(self.view, key::CHECKPOINTS, of(self.number))?;
        let rows = rows.iter().map(|(_, row)| {
            let row = CheckpointRow::decode(row).map_err(Error::corrupt("a checkpoint"))?;
            Ok(row.checkpoint)
        });
        rows.collect()
    }

    /// Sets the state of the replay to what it was before the operations that are replayed.
    pub(super) fn go_back(&mut self) -> Result<()> {
        if !self.is_partial {
            return Ok(());
        }
        let mut hides = false;
        let mut branch_changes: HashMap<BranchNumber, usize> = HashMap::new();
        let mut seen = HashSet::new();
        for row in &self.operations {
            for effect in &row.effects {
                hides |= matches!(effect, OperationEffect::CheckpointHidden { .. });
                if let OperationEffect::BranchChanged { branch, .. } = effect {
                    *branch_changes.entry(*branch).or_default() += 1;
                }
                if let Some(id) = checkpoint_of(effect)
                    && seen.insert(id)
                {
                    // A checkpoint with a number from before the operation was made before it.
                    let is_made = matches!(effect, OperationEffect::CheckpointMade { .. });
                    let versions = self.checkpoints.get(&id);
                    let number = versions.and_then(|all| all.last()).map(|one| one.sequence);
                    if !is_made || number.is_some_and(|number| number <= row.sequence) {
                        self.made.insert(id);
                    }
                    // The first version is from before the operations.
                    if !is_made && let Some(versions) = self.checkpoints.get_mut(&id) {
                        versions.pop();
                    }
                }
            }
        }
        for (branch, new) in branch_changes {
            let all = self.refs.branch(branch)?.changes.len();
            self.branches.insert(branch, all.saturating_sub(new));
        }
        if hides {
            let all = CheckpointFilter::default();
            let all = checkpoint::list_written(self.view, self.number, &all)?;
            self.visible = all.into_iter().map(|one| (one.id, one.time)).collect();
            let effects = self.operations.iter().rev().flat_map(|row| row.effects.iter().rev());
            for effect in effects {
                match effect {
                    OperationEffect::CheckpointMade { id } => drop(self.visible.remove(id)),
                    OperationEffect::CheckpointChanged { old }
                    | OperationEffect::CheckpointHidden { old } => {
                        self.visible.insert(old.id, old.time);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the number of branches that the session had before the start of the replay.
    pub(in crate::store::bundle) fn branches_before(&self) -> u64 {
        let made = |action: &ReplayAction| {
            matches!(action, ReplayAction::Effect(OperationEffect::BranchMade { .. }))
        };
        let new = self.actions.iter().filter(|placed| placed.is_new && made(&placed.action));
        self.refs.branches.len().saturating_sub(new.count()) as u64
    }

    /// Returns the operations that began before the range and continue in it, each with the number
    /// of its effects before the range.
    pub(in crate::store::bundle) fn begun_operations(
        &self,
        from: u64,
        to: u64,
    ) -> Vec<BegunOperation> {
        let mut passed: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
        for (which, effects) in self.left_out.iter().enumerate() {
            passed.insert(which, (*effects, false));
        }
        for placed in &self.actions {
            let (effects, continues) = passed.entry(placed.which).or_default();
            let is_before = !placed.is_new || placed.key.0 <= from;
            if placed.is_wanted(from, to) {
                *continues = true;
            } else if is_before && matches!(placed.action, ReplayAction::Effect(_)) {
                *effects += 1;
            }
        }
        let begun =
            passed.into_iter().filter(|(_, (effects, continues))| *effects > 0 && *continues);
        begun
            .filter_map(|(which, (effects, _))| {
                let operation = self.operations.get(which)?.operation.id;
                Some(BegunOperation { operation, effects })
            })
            .collect()
    }
}
