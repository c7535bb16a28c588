//! Compares the operations that two sessions of one id share.

use super::export_mark::is_left_out;
use super::purged_copy::PurgedCopy;
use super::replay::increment::operations_since;
use crate::engine::checkpoint;
use crate::engine::index::find_operation_of;
use crate::engine::lineage::RevisionRef;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::error::Result;
use crate::format::{OperationEffect, OperationRow};
use crate::model::{CheckpointId, OperationId, SessionNumber};
use crate::store::Store;
use std::collections::{BTreeSet, HashMap};

/// The result of comparing the operations that two sessions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum SharedHistory {
    /// They are the same under the same numbers, apart from purges.
    Same,
    /// A revision, checkpoint or branch has different numbers.
    OtherNumbers,
    /// A revision, checkpoint or fact differs in more than what a purge writes.
    OtherContent,
}

impl Store {
    /// Returns whether a revision, checkpoint or branch has different numbers in two sessions of
    /// one id. `of` has the operations to compare, and how many effects of each.
    pub(in crate::store) fn has_other_numbers(
        &self,
        one: SessionNumber,
        other: SessionNumber,
        of: &HashMap<OperationId, usize>,
    ) -> Result<bool> {
        let view = self.engine.follower.written_view()?;
        for row in operations_since(&view, one, 0)? {
            let count = of.get(&row.operation.id).copied().unwrap_or(0);
            if count > 0
                && let Some(there) = find_operation_of(&view, other, &row.operation.id)?
                && has_other_numbers(&view, (one, &row), (other, &there), count)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares the operations that two sessions of one id share. What was permanently pruned from
    /// one of them, the names of branches, and a checkpoint that only one of them changed later are
    /// not compared.
    pub(in crate::store) fn compare_shared(
        &self,
        one: SessionNumber,
        other: SessionNumber,
    ) -> Result<SharedHistory> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, one, 0)?;
        let is_purge = |effect: &OperationEffect| matches!(effect, OperationEffect::Purged { .. });
        let was_purged = rows.iter().any(|row| row.effects.iter().any(is_purge));
        let mut copy = PurgedCopy::new(&self.engine, &view, (one, other), was_purged);
        let mut checkpoints = BTreeSet::new();
        let mut is_same = true;
        for row in rows {
            let Some(there) = find_operation_of(&view, other, &row.operation.id)? else { continue };
            if has_other_numbers(&view, (one, &row), (other, &there), usize::MAX)? {
                return Ok(SharedHistory::OtherNumbers);
            }
            if row.is_swept() || there.is_swept() {
                continue;
            }
            is_same = is_same && has_effects(&mut copy, (&row, &there), &mut checkpoints)?;
        }
        let is_same = is_same
            && has_checkpoints(&mut copy, (&view, one, other), checkpoints)?
            && copy.has_named()?;
        Ok(if is_same { SharedHistory::Same } else { SharedHistory::OtherContent })
    }
}

/// Returns whether the revisions and facts of an operation are the same in both sessions. Adds the
/// checkpoints that it made to `checkpoints`.
fn has_effects(
    copy: &mut PurgedCopy<'_>,
    (row, there): (&OperationRow, &OperationRow),
    checkpoints: &mut BTreeSet<CheckpointId>,
) -> Result<bool> {
    for (here, there) in bundled(row).zip(bundled(there)) {
        let is_same = match (here, there) {
            (OperationEffect::Revision { branch, sequence }, _) => {
                copy.has_revision(RevisionRef { branch: *branch, sequence: *sequence })?
            }
            (
                OperationEffect::Facts { page: here, .. },
                OperationEffect::Facts { page: there, .. },
            ) => copy.has_facts(*here, *there)?,
            (OperationEffect::CheckpointMade { id }, _) => {
                checkpoints.insert(*id);
                true
            }
            _ => true,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether these checkpoints are the same in both sessions, except checkpoints that only
/// one of them changed later.
fn has_checkpoints(
    copy: &mut PurgedCopy<'_>,
    (view, one, other): (&ReadSnapshot, SessionNumber, SessionNumber),
    checkpoints: BTreeSet<CheckpointId>,
) -> Result<bool> {
    let mut different = BTreeSet::new();
    for id in checkpoints {
        let here = checkpoint::by_id(view, one, &id)?;
        let there = checkpoint::by_id(view, other, &id)?;
        if let Some((here, there)) = here.zip(there)
            && !copy.has_checkpoint(&here, &there)?
        {
            different.insert(id);
        }
    }
    if different.is_empty() {
        return Ok(true);
    }
    let mut changed = changed_checkpoints(view, one, other)?;
    changed.append(&mut changed_checkpoints(view, other, one)?);
    Ok(changed.is_superset(&different))
}

fn bundled(row: &OperationRow) -> impl Iterator<Item = &OperationEffect> {
    row.effects.iter().filter(|effect| !is_left_out(effect))
}

/// Returns the checkpoints that a session changed by effects that another session does not have.
fn changed_checkpoints(
    view: &ReadSnapshot,
    one: SessionNumber,
    other: SessionNumber,
) -> Result<BTreeSet<CheckpointId>> {
    let mut changed = BTreeSet::new();
    for row in operations_since(view, one, 0)? {
        let there = find_operation_of(view, other, &row.operation.id)?;
        let shared = there.map_or(0, |there| bundled(&there).count());
        for effect in bundled(&row).skip(shared) {
            if let OperationEffect::CheckpointChanged { old }
            | OperationEffect::CheckpointHidden { old } = effect
            {
                changed.insert(old.id);
            }
        }
    }
    Ok(changed)
}

/// Returns whether one of the first `count` effects of an operation has different numbers in two
/// sessions.
fn has_other_numbers(
    view: &ReadSnapshot,
    (one, here): (SessionNumber, &OperationRow),
    (other, there): (SessionNumber, &OperationRow),
    count: usize,
) -> Result<bool> {
    if here.is_swept() || there.is_swept() {
        return Ok(false);
    }
    for (here, there) in bundled(here).zip(bundled(there)).take(count) {
        let is_same = match (here, there) {
            (OperationEffect::Revision { .. }, OperationEffect::Revision { .. })
            | (OperationEffect::BranchMade { .. }, OperationEffect::BranchMade { .. }) => {
                here == there
            }
            (OperationEffect::CheckpointMade { id }, _) => {
                let here = checkpoint::by_id(view, one, id)?;
                let there = checkpoint::by_id(view, other, id)?;
                let both = here.zip(there);
                both.is_none_or(|(here, there)| here.sequence == there.sequence)
            }
            _ => true,
        };
        if !is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
