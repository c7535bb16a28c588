//! Applies prunings to the tables: revisions are folded into a later one, or unfolded; what a
//! pruning hid is permanently deleted.

use super::super::lineage::{self, RevisionRange, RevisionRef};
use super::super::refs::{StoreRefs, session};
use super::super::{checkpoint, table_rows};
use super::{RecordIndexer, find_operation_of, history_place, object, operations_of};
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    Delta, DeltaPart, FoldRow, ObjectKind, OperationEffect, OperationRow, RevisionRow, SequenceRow,
};
use crate::model::{
    BranchNumber, ObjectId, Operation, OperationId, SessionId, SessionNumber, Value,
};
use std::collections::BTreeSet;

/// Begins a key with the revision `at`. In the key of a fold into `at`, the number of its first
/// revision follows.
fn place(number: SessionNumber, at: RevisionRef) -> KeyBuilder {
    of(number).branch(at.branch).number(at.sequence)
}

/// Returns the key of the row for a pruning that was not swept yet.
pub(crate) fn pruning_key(operation: &Operation) -> Vec<u8> {
    KeyBuilder::new().time(operation.time).bytes(operation.id.as_bytes()).build()
}

/// Returns the folds into a revision, the latest first. A later fold begins at an earlier revision.
pub(crate) fn rows(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<Vec<FoldRow>> {
    some_rows(view, number, at, usize::MAX)
}

/// Returns the latest fold into a revision; `None` if nothing was folded into it.
pub(crate) fn row(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<Option<FoldRow>> {
    Ok(some_rows(view, number, at, 1)?.pop())
}

fn some_rows(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    limit: usize,
) -> Result<Vec<FoldRow>> {
    let (from, to) = (place(number, at).build(), place(number, at).end());
    view.scan(key::FOLDS, &from, &to, ScanDirection::Ascending, limit)?
        .iter()
        .map(|(_, row)| FoldRow::decode(row).map_err(Error::corrupt("a fold")))
        .collect()
}

/// Returns the revisions of a fold into `at`, including `at`, as they were before the fold, the
/// earliest first. After a sweep they have only their headers, and `at` is missing.
pub(crate) fn folded(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    fold: &FoldRow,
) -> Result<Vec<(u64, RevisionRow)>> {
    table_rows::rows(view, key::FOLDED, place(number, at).number(fold.first))?
        .into_iter()
        .map(|(place, row)| {
            let sequence = key::last_number(&place).unwrap_or(0);
            let row = RevisionRow::decode(&row)
                .map_err(Error::corrupt(format!("revision #{sequence}")))?;
            Ok((sequence, row))
        })
        .collect()
}

/// Returns the row of `at` as it was before a fold; `None` if the fold was swept.
pub(crate) fn before(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    fold: &FoldRow,
) -> Result<Option<RevisionRow>> {
    let aside = place(number, at).number(fold.first).number(at.sequence).build();
    view.get(key::FOLDED, &aside)?
        .map(|row| RevisionRow::decode(&row))
        .transpose()
        .map_err(Error::corrupt(format!("revision #{}", at.sequence)))
}

impl RecordIndexer<'_> {
    /// Adds the row of a pruning, by which a sweep finds it.
    pub(super) fn pruned(&mut self, session: SessionNumber) -> Result<()> {
        let place = pruning_key(&self.placed.record.operation);
        // An incomplete session repeats the pruning of the session that it will replace. Until then
        // the row belongs to that one.
        if self.incomplete == Some(session) && self.view().get(key::PRUNINGS, &place)?.is_some() {
            return Ok(());
        }
        self.rows.put(key::PRUNINGS, place, session.to_be_bytes().to_vec());
        Ok(())
    }

    /// Folds the revisions from `first` to the one before `at` into `at`. `delta` has the combined
    /// changes of all of them and of `at`, and `operation` is the pruning.
    pub(super) fn fold(
        &mut self,
        refs: &StoreRefs,
        (number, at): (SessionNumber, RevisionRef),
        first: u64,
        (operation, delta): (OperationId, &[DeltaPart]),
    ) -> Result<OperationEffect> {
        let id = session(refs, number)?.info.id;
        let RevisionRef { branch, sequence: last } = at;
        let range = RevisionRange { branch, after: first.saturating_sub(1), to: last };
        let view = self.view();
        let old = lineage::revisions(&view, number, range, ScanDirection::Ascending, usize::MAX)?;
        let ends = (old.first().map(|(one, _)| *one), old.last().map(|(one, _)| *one));
        let (Some((_, before)), true) = (old.last(), ends == (Some(first), Some(last))) else {
            return Err(Error::missing(format!("a revision that is folded into #{last}")));
        };
        let mut after = RevisionRow { parts: Vec::new(), bytes: 0, ..before.clone() };
        for (sequence, row) in &old {
            let one = RevisionRef { branch, sequence: *sequence };
            self.forget_history(&id, number, one, row)?;
            let aside = place(number, at).number(first).number(*sequence).build();
            self.rows.put(key::FOLDED, aside, row.encode());
            if *sequence < last {
                let own = place(number, one).build();
                self.rows.delete(key::REVISIONS, own.clone());
                self.rows.delete(key::KEYFRAMES, own);
                let time = of(number).branch(branch).time(row.effective).number(*sequence).build();
                self.rows.delete(key::TIMES, time);
                let numbered = of(number).number(*sequence).build();
                let into = SequenceRow::Folded(branch, last);
                self.rows.put(key::SEQUENCES, numbered, into.encode());
            }
        }
        // Folding does not change the state, so its size stays, whatever `delta` adds to it.
        let state_bytes = after.state_bytes;
        self.delta(&id, number, at, delta, &mut after)?;
        after.state_bytes = state_bytes;
        self.rows.put(key::REVISIONS, place(number, at).build(), after.encode());
        let count = old.len() as u64 - 1;
        let fold = FoldRow { first, count, operation, swept: false };
        self.rows.put(key::FOLDS, place(number, at).number(first).build(), fold.encode());
        Ok(OperationEffect::Folded { branch, first, last })
    }

    /// Undoes the latest fold into `at`: all its revisions exist again.
    pub(super) fn unfold(
        &mut self,
        refs: &StoreRefs,
        number: SessionNumber,
        at: RevisionRef,
    ) -> Result<OperationEffect> {
        let id = session(refs, number)?.info.id;
        let RevisionRef { branch, sequence: last } = at;
        let fold = row(&self.view(), number, at)?
            .ok_or_else(|| Error::missing(format!("the list of revisions folded into #{last}")))?;
        let together = lineage::revision(&self.view(), number, at)?;
        self.forget_history(&id, number, at, &together)?;
        self.forget_objects(&together.parts)?;
        self.rows.delete(key::FOLDS, place(number, at).number(fold.first).build());
        for (sequence, row) in folded(&self.view(), number, at, &fold)? {
            let one = RevisionRef { branch, sequence };
            self.rows
                .delete(key::FOLDED, place(number, at).number(fold.first).number(sequence).build());
            for (ordinal, part) in row.parts.iter().enumerate() {
                let content = object::content(&self.view(), ObjectKind::Delta, *part)?;
                for change in Delta::scan(&content).map_err(Error::corrupt("a delta"))? {
                    let place = history_place(&id, number, one, change.key_in(&content));
                    self.rows.put(key::HISTORY, place, (ordinal as u32).to_be_bytes().to_vec());
                }
            }
            self.rows.put(key::REVISIONS, place(number, one).build(), row.encode());
            if sequence < last {
                let time = of(number).branch(branch).time(row.effective).number(sequence).build();
                self.rows.put(key::TIMES, time, Vec::new());
                let numbered = of(number).number(sequence).build();
                self.rows.put(key::SEQUENCES, numbered, SequenceRow::Revision(branch).encode());
            }
        }
        Ok(OperationEffect::Unfolded { branch, first: fold.first, last })
    }

    /// Permanently deletes the checkpoints and revisions that a pruning hid. The headers of the
    /// revisions stay.
    pub(super) fn sweep(&mut self, number: SessionNumber, operation: &OperationId) -> Result<()> {
        let mut pruning_row = find_operation_of(&self.view(), number, operation)?
            .ok_or_else(|| Error::missing(format!("the operation {operation}")))?;
        let (mut checkpoints, mut revisions) = (Vec::new(), 0);
        for effect in std::mem::take(&mut pruning_row.effects) {
            match effect {
                OperationEffect::CheckpointHidden { old } => {
                    checkpoints.push((old.sequence, old.id));
                }
                OperationEffect::Folded { branch, last, .. } => {
                    let at = RevisionRef { branch, sequence: last };
                    revisions += self.sweep_fold(number, at, operation)?;
                }
                OperationEffect::Swept { checkpoints: before, revisions: also } => {
                    checkpoints.extend(before);
                    revisions += also;
                }
                _ => {}
            }
        }
        let hid = !checkpoints.is_empty();
        pruning_row.effects.push(OperationEffect::Swept { checkpoints, revisions });
        pruning_row.continued.push((self.placed.position, OperationRow::ALL_EFFECTS));
        self.put_continuation(number, *operation);
        self.rows.delete(key::PRUNINGS, pruning_key(&pruning_row.operation));
        self.put_operation(pruning_row);
        if hid {
            self.forget_copies(number, operation)?;
        }
        Ok(())
    }

    /// Deletes the objects with these names.
    pub(super) fn forget_named(&mut self, blobs: &[ObjectId]) -> Result<()> {
        for id in blobs {
            if let Some(object) = object::find_number(&self.view(), id)? {
                self.forget_objects(&[object])?;
            }
        }
        Ok(())
    }

    /// Clears the copies of permanently deleted checkpoints in other operations, such as one that
    /// changed the checkpoint earlier: their messages, tags, further data and event keys.
    fn forget_copies(&mut self, number: SessionNumber, operation: &OperationId) -> Result<()> {
        let rows = operations_of(&self.view(), number)?;
        let mut gone = BTreeSet::new();
        for (id, hider) in checkpoint::last_hiding_operations(rows.iter()) {
            if hider == *operation && checkpoint::by_id(&self.view(), number, &id)?.is_none() {
                gone.insert(id);
            }
        }
        for mut row in rows {
            let mut changed = false;
            for effect in &mut row.effects {
                if let OperationEffect::CheckpointHidden { old }
                | OperationEffect::CheckpointChanged { old } = effect
                    && gone.contains(&old.id)
                {
                    old.message.clear();
                    old.tags.clear();
                    (old.body, old.key) = (Value::Null, None);
                    changed = true;
                }
            }
            if changed {
                self.put_operation(row);
            }
        }
        Ok(())
    }

    /// Permanently deletes the revisions that this operation folded into `at`, except their
    /// headers. Returns how many they were.
    fn sweep_fold(
        &mut self,
        number: SessionNumber,
        at: RevisionRef,
        operation: &OperationId,
    ) -> Result<u64> {
        // The fold may have been undone since, and another operation may have folded the same
        // revisions.
        let mut folds = rows(&self.view(), number, at)?.into_iter();
        let Some(fold) = folds.find(|fold| fold.operation == *operation && !fold.swept) else {
            return Ok(0);
        };
        let own = place(number, at).number(fold.first);
        for (sequence, mut row) in folded(&self.view(), number, at, &fold)? {
            self.forget_objects(&row.parts)?;
            let aside = own.clone().number(sequence).build();
            if sequence == at.sequence {
                // This revision also has a row in the table of revisions, with its header.
                self.rows.delete(key::FOLDED, aside);
            } else {
                (row.body, row.parts, row.bytes) = (Vec::new(), Vec::new(), 0);
                self.rows.put(key::FOLDED, aside, row.encode());
            }
        }
        let count = fold.count;
        let swept = FoldRow { swept: true, ..fold };
        self.rows.put(key::FOLDS, own.build(), swept.encode());
        Ok(count)
    }

    /// Removes a revision's changes from the histories of claims.
    fn forget_history(
        &mut self,
        id: &SessionId,
        number: SessionNumber,
        at: RevisionRef,
        row: &RevisionRow,
    ) -> Result<()> {
        for part in &row.parts {
            let content = object::content(&self.view(), ObjectKind::Delta, *part)?;
            for change in Delta::scan(&content).map_err(Error::corrupt("a delta"))? {
                let place = history_place(id, number, at, change.key_in(&content));
                self.rows.delete(key::HISTORY, place);
            }
        }
        Ok(())
    }

    /// Deletes these objects. The caller ensures that nothing refers to them any more.
    pub(super) fn forget_objects(&mut self, numbers: &[u64]) -> Result<()> {
        for number in numbers {
            object::object_row_keys(&self.view(), *number)?
                .into_iter()
                .for_each(|(table, key)| self.rows.delete(table, key));
            self.named_number(*number)?;
        }
        Ok(())
    }
}

/// Returns the row of the revision `sequence` of a branch as it was before it was folded into the
/// revision `into`.
pub(crate) fn find(
    view: &dyn Snapshot,
    number: SessionNumber,
    branch: BranchNumber,
    (sequence, into): (u64, u64),
) -> Result<RevisionRow> {
    let at = RevisionRef { branch, sequence: into };
    for fold in rows(view, number, at)? {
        let aside = place(number, at).number(fold.first).number(sequence).build();
        if let Some(row) = view.get(key::FOLDED, &aside)? {
            return RevisionRow::decode(&row)
                .map_err(Error::corrupt(format!("revision #{sequence}")));
        }
    }
    Err(Error::missing(format!("revision #{sequence}")))
}
