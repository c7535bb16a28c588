//! Up to where a session was exported, and what was written since.

use super::replay::increment::{erases, first_new_effect, new_part, operations_since};
use super::replay::is_omitted;
use crate::backend::Snapshot;
use crate::engine::index::find_operation_of;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::error::Result;
use crate::format::{ExportMark, OperationEffect, OperationRow};
use crate::model::{OperationId, SessionNumber, Timestamp};
use crate::store::Store;
use std::collections::{HashMap, HashSet};

pub(super) fn mark_of(view: &ReadSnapshot, number: SessionNumber) -> Result<ExportMark> {
    let sequence = session_refs(&view.refs, number)?.next_sequence - 1;
    mark_at(view, view.position(), sequence)
}

fn mark_at(view: &ReadSnapshot, position: u64, sequence: u64) -> Result<ExportMark> {
    Ok(ExportMark { position, sequence, last: view.hash_before(position)? })
}

/// Returns whether a mark belongs to the history of this store.
pub(super) fn is_of(view: &ReadSnapshot, mark: &ExportMark) -> Result<bool> {
    Ok(mark.position <= view.position() && view.hash_before(mark.position)? == mark.last)
}

impl Store {
    /// Returns whether a mark belongs to the history of this store.
    pub(in crate::store) fn has_export_mark(&self, mark: &ExportMark) -> Result<bool> {
        is_of(&self.engine.follower.written_view()?, mark)
    }

    pub(in crate::store) fn export_mark(&self, number: SessionNumber) -> Result<ExportMark> {
        mark_of(&self.engine.follower.written_view()?, number)
    }

    /// Returns whether only facts were written to a session since a mark, besides purges.
    pub(in crate::store) fn wrote_only_facts_since(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
    ) -> Result<bool> {
        let view = self.engine.follower.written_view()?;
        let new = operations_since(&view, number, mark.position)?.into_iter();
        Ok(new.map(|row| new_part(row, mark.position).0).all(|row| {
            let stays = |effect: &OperationEffect| {
                matches!(effect, OperationEffect::Facts { .. } | OperationEffect::Purged { .. })
            };
            row.takes_back.is_none() && row.effects.iter().all(stays)
        }))
    }

    /// Returns whether anything was written to a session at a position or later.
    pub(in crate::store) fn was_written_since(
        view: &ReadSnapshot,
        number: SessionNumber,
        position: u64,
    ) -> Result<bool> {
        Ok(!operations_since(view, number, position)?.is_empty())
    }

    /// Returns whether something up to the sequence number `last` was permanently deleted from a
    /// session since a mark, or may have been.
    pub(in crate::store) fn was_erased_since(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
        last: u64,
    ) -> Result<bool> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, mark.position)?;
        Ok(rows.iter().any(|row| erases_up_to(row, mark, last)))
    }

    /// Returns whether something up to the sequence number `last` was purged from a session since a
    /// mark, or may have been.
    pub(in crate::store) fn was_purged_since(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
        last: u64,
    ) -> Result<bool> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, mark.position)?;
        let is_purge = |row: &OperationRow| row.position >= mark.position && !row.is_swept();
        Ok(rows.iter().any(|row| is_purge(row) && erases_up_to(row, mark, last)))
    }

    /// Returns how many effects each operation of a session has.
    pub(in crate::store) fn operation_effects(
        &self,
        number: SessionNumber,
    ) -> Result<HashMap<OperationId, usize>> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, 0)?.into_iter();
        Ok(rows.map(|row| (row.operation.id, row.effects.len())).collect())
    }

    /// Returns the prunings of revisions since a mark that are in force, newest first.
    pub(in crate::store) fn prunings_since(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
    ) -> Result<Vec<OperationId>> {
        let view = self.engine.follower.written_view()?;
        let folds = |effect: &OperationEffect| matches!(effect, OperationEffect::Folded { .. });
        let mut prunings = Vec::new();
        for row in operations_since(&view, number, mark.position)?.into_iter().rev() {
            let new = new_part(row.clone(), mark.position).0;
            if row.is_swept() || !new.effects.iter().any(folds) {
                continue;
            }
            // To undo a redo is to undo the operation that the redo brought back.
            let found = |id: OperationId| find_operation_of(&view, number, &id);
            let undo = row.takes_back.map(found).transpose()?.flatten();
            let first = undo.and_then(|undo| undo.takes_back).map(found).transpose()?.flatten();
            let done = first.unwrap_or(row);
            if done.taken_back_by.is_none() && !prunings.contains(&done.operation.id) {
                prunings.push(done.operation.id);
            }
        }
        Ok(prunings)
    }

    /// Returns how many operations of a session since a mark wrote something that a bundle can
    /// contain, and their earliest time. Older operations count too if they are in `before`.
    pub(in crate::store) fn written_since(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
        before: &[OperationId],
    ) -> Result<(u64, Option<Timestamp>)> {
        let view = self.engine.follower.written_view()?;
        let (mut count, mut first) = (0, None);
        let mut rows = operations_since(&view, number, mark.position)?;
        let known: HashSet<OperationId> = rows.iter().map(|row| row.operation.id).collect();
        for id in before.iter().filter(|id| !known.contains(id)) {
            rows.extend(find_operation_of(&view, number, id)?);
        }
        for row in rows {
            let time = row.operation.time;
            let row = new_part(row, mark.position).0;
            if row.takes_back.is_some() || !row.effects.iter().all(is_left_out) {
                count += 1;
                first = Some(first.map_or(time, |first: Timestamp| first.min(time)));
            }
        }
        Ok((count, first))
    }

    /// Returns for each operation of a session before a mark how many of its effects a bundle can
    /// contain. Effects after the mark do not count.
    pub(in crate::store) fn effects_before(
        &self,
        number: SessionNumber,
        mark: &ExportMark,
    ) -> Result<HashMap<OperationId, usize>> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, 0)?.into_iter();
        let before = rows.filter(|row| row.position < mark.position);
        Ok(before
            .map(|row| {
                let effects = first_new_effect(&row, mark.position).unwrap_or(usize::MAX);
                let effects = row.effects.iter().take(effects).filter(|one| !is_left_out(one));
                (row.operation.id, effects.count())
            })
            .collect())
    }

    /// Returns the operations of a session that others do not have. `shared` has the number of
    /// effects that others have of each operation.
    pub(in crate::store) fn unshared_operations(
        &self,
        number: SessionNumber,
        shared: &HashMap<OperationId, usize>,
    ) -> Result<Vec<OperationId>> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, 0)?.into_iter();
        Ok(rows.filter(|row| !is_shared(row, shared)).map(|row| row.operation.id).collect())
    }

    /// Returns the mark before the first operation after `since` that others do not have, or the
    /// mark of the end. `shared` has the number of effects that others have of each operation.
    pub(in crate::store) fn first_unshared(
        &self,
        number: SessionNumber,
        since: &ExportMark,
        shared: &HashMap<OperationId, usize>,
    ) -> Result<ExportMark> {
        let view = self.engine.follower.written_view()?;
        let rows = operations_since(&view, number, since.position)?;
        let unshared = rows.iter().filter(|row| !is_shared(row, shared)).map(|row| {
            // If others have the beginning of an operation, the rest begins at `since`.
            let position = row.position.max(since.position);
            (position, row.sequence)
        });
        match unshared.min() {
            Some((position, sequence)) => mark_at(&view, position, sequence),
            None => mark_of(&view, number),
        }
    }
}

/// Returns whether an operation has erased something up to the sequence number `last` since a mark,
/// or may have.
fn erases_up_to(row: &OperationRow, mark: &ExportMark, last: u64) -> bool {
    let is_after = |effect: &OperationEffect| matches!(effect, OperationEffect::Purged { first, .. } if *first > last);
    erases(row, mark.position) && !row.effects.iter().all(is_after)
}

/// Returns whether bundles leave out an effect. They contain purged data as it is after the purge,
/// without the purge itself.
pub(super) const fn is_left_out(effect: &OperationEffect) -> bool {
    is_omitted(effect) || matches!(effect, OperationEffect::Purged { .. })
}

/// Returns whether others have all effects of an operation that a bundle can contain.
fn is_shared(row: &OperationRow, shared: &HashMap<OperationId, usize>) -> bool {
    let effects = row.effects.iter().filter(|effect| !is_left_out(effect)).count();
    if effects == 0 && row.takes_back.is_none() {
        return true;
    }
    let known = shared.get(&row.operation.id);
    known.is_some_and(|known| *known >= effects || row.is_swept())
}
