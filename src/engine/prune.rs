//! Retention: which revisions are folded into which, their combined changes, and the objects that
//! nothing refers to any more.

mod estimate;
mod prewritten;
mod unreferenced;

use super::delta_parts::encode_pieces;
use super::index::{find_operation, fold};
use super::lineage::{self, RevisionRange, RevisionRef};
use super::object;
use super::random::random;
use super::refs::{StoreRefs, session};
use super::{merge_base, table_rows};
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Delta, DeltaChange, DeltaPart, DeltaSide, FoldRow, ObjectKind, OperationEffect, OperationRow,
    RecordChange, RevisionHeader, RevisionRow, SequenceRow, SessionRemoval, decode_object,
};
use crate::model::{BranchNumber, Operation, OperationId, SessionNumber, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use estimate::PruneEstimate;
pub(crate) use prewritten::PrewrittenObjects;
pub(crate) use unreferenced::unreferenced_blobs;

/// Largest number of revisions folded by one record: readers of the tail hold their rows in memory.
pub(crate) const MAX_FOLD_REVISIONS: u64 = 2000;
/// Number of revision rows per read.
const ROWS: usize = 1000;

/// A range of revisions on a branch to be folded: those from `first` up to, but not including,
/// `last`, into `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoldRange {
    pub(crate) branch: BranchNumber,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A fold as it will be written to the journal.
pub(crate) struct PlannedFold {
    pub(crate) change: RecordChange,
    /// Number of revisions that are folded away.
    pub(crate) count: u64,
    /// The space that they free.
    pub(crate) freed: PruneEstimate,
}

/// Returns the revisions that must not be folded into others: heads, fork points, merges and merged
/// revisions, resets and their targets.
pub(crate) fn pinned_revisions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
) -> Result<BTreeSet<u64>> {
    let mut named = BTreeSet::new();
    for branch in &session(refs, number)?.branches {
        named.extend(branch.head.map(|head| head.sequence));
        named.extend(branch.base.map(|(_, sequence)| sequence));
    }
    for (place, target) in table_rows::rows(view, key::RESETS, of(number))? {
        named.extend(key::last_number(&place));
        named.extend(key::last_number(&target));
    }
    for joint in merge_base::merge_revisions(view, number)? {
        // A later merge must distinguish the changes that this merge brought from later ones.
        named.extend([joint.at.sequence, joint.merged]);
    }
    Ok(named)
}

/// Returns the next fold range of a branch after `after`: consecutive revisions that are not pinned
/// and were made up to `until`. Their target is the next revision, or the last of them if the next
/// one is a reset or if there are more than [`MAX_FOLD_REVISIONS`].
pub(crate) fn next_fold_range(
    view: &dyn Snapshot,
    number: SessionNumber,
    after: RevisionRef,
    until: Timestamp,
    named: &BTreeSet<u64>,
) -> Result<Option<FoldRange>> {
    let branch = after.branch;
    let mut rest = RevisionRange { branch, after: after.sequence, to: u64::MAX - 1 };
    // The first revision of the range, the last one so far, and their number.
    let mut run: Option<(u64, u64, u64)> = None;
    loop {
        let rows = lineage::revisions(view, number, rest, ScanDirection::Ascending, ROWS)?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        rest.after = *last;
        for (sequence, row) in &rows {
            let header = RevisionHeader::decode(&row.header)
                .map_err(Error::corrupt(format!("the header of #{sequence}")))?;
            let stays = named.contains(sequence) || row.effective > until;
            match (&mut run, stays) {
                (None, false) => run = Some((*sequence, *sequence, 1)),
                (None, true) if row.effective > until => return Ok(None),
                (None, true) => {}
                // The claims of a reset come from elsewhere, so nothing is folded into it: the
                // revision before it stays.
                (Some((first, end, count)), true) if header.reset.is_some() => {
                    if *count > 1 {
                        return Ok(Some(FoldRange { branch, first: *first, last: *end }));
                    }
                    run = None;
                }
                (Some((first, ..)), true) => {
                    return Ok(Some(FoldRange { branch, first: *first, last: *sequence }));
                }
                (Some((first, end, count)), false) => {
                    (*end, *count) = (*sequence, *count + 1);
                    if *count > MAX_FOLD_REVISIONS {
                        return Ok(Some(FoldRange { branch, first: *first, last: *end }));
                    }
                }
            }
        }
    }
}

/// Returns the first pinned revision inside the fold range, if any.
pub(crate) fn first_named(
    view: &dyn Snapshot,
    number: SessionNumber,
    run: &FoldRange,
    named: &BTreeSet<u64>,
) -> Result<Option<u64>> {
    for sequence in named.range(run.first..run.last) {
        // Sequence numbers are counted over all branches, so check that it is on this one.
        let at = RevisionRef { branch: run.branch, sequence: *sequence };
        if lineage::find(view, number, at)?.is_some() {
            return Ok(Some(*sequence));
        }
    }
    Ok(None)
}

/// Plans the fold of a range, as part of a pruning.
pub(crate) fn fold(
    view: &dyn Snapshot,
    number: SessionNumber,
    run: &FoldRange,
    pruning: OperationId,
) -> Result<PlannedFold> {
    fold_after(view, number, run, None, pruning)
}

/// Plans a fold like [`fold()`], in a record that contains the fold `before` first. If that fold
/// goes into the first revision of this range, its changes are included.
pub(crate) fn fold_after(
    view: &dyn Snapshot,
    number: SessionNumber,
    run: &FoldRange,
    before: Option<&RecordChange>,
    pruning: OperationId,
) -> Result<PlannedFold> {
    let FoldRange { branch, first, last } = *run;
    let range = RevisionRange { branch, after: first.saturating_sub(1), to: last };
    let rows = lineage::revisions(view, number, range, ScanDirection::Ascending, usize::MAX)?;
    if rows.first().map(|(one, _)| *one) != Some(first)
        || rows.last().map(|(one, _)| *one) != Some(last)
    {
        return Err(Error::Conflict(format!(
            "the revisions up to #{last} were folded differently since: undo that first"
        )));
    }
    let (mut deltas, mut freed) = (Vec::new(), PruneEstimate::default());
    let chained = match before {
        Some(RecordChange::Folded { branch: on, last: into, delta, .. })
            if (*on, *into) == (branch, first) =>
        {
            Some(delta)
        }
        _ => None,
    };
    for part in chained.into_iter().flatten() {
        let DeltaPart::Inline(encoded) = part else { continue };
        deltas
            .push(decode_object(ObjectKind::Delta, &encoded.0).map_err(Error::corrupt("a delta"))?);
    }
    for (sequence, row) in &rows {
        if *sequence == first && chained.is_some() {
            continue;
        }
        if *sequence < last {
            freed.body(&row.body);
        }
        for part in &row.parts {
            let encoded = object::encoded(view, *part)?;
            let delta = object::decoded(ObjectKind::Delta, *part, &encoded)?;
            freed.part(*part, &encoded, &delta)?;
            deltas.push(delta);
        }
    }
    let delta = combine_deltas(deltas.iter().map(Vec::as_slice), &mut random)?;
    freed.fold(number, run, &delta)?;
    let change = RecordChange::Folded { session: number, branch, first, last, pruning, delta };
    Ok(PlannedFold { change, count: rows.len() as u64 - 1, freed })
}

/// Combines the changes of consecutive deltas into the parts of one delta.
pub(crate) fn combine_deltas<'a>(
    deltas: impl Iterator<Item = &'a [u8]>,
    salt: &mut dyn FnMut() -> Result<[u8; 16]>,
) -> Result<Vec<DeltaPart>> {
    let mut together: BTreeMap<Vec<u8>, (DeltaSide, DeltaSide)> = BTreeMap::new();
    for delta in deltas {
        for change in Delta::decode(delta).map_err(Error::corrupt("a delta"))?.changes {
            together
                .entry(change.key)
                .and_modify(|(_, new)| *new = change.new.clone())
                .or_insert((change.old, change.new));
        }
    }
    together.retain(|_, (old, new)| old != new);
    if together.is_empty() {
        return Ok(Vec::new());
    }
    let changes = together.into_iter().map(|(key, (old, new))| DeltaChange { key, old, new });
    Ok(encode_pieces(changes, salt)?.1)
}

/// Checks that the revisions that an operation folded into this one can be restored.
pub(crate) fn check_unfoldable(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    operation: &OperationId,
) -> Result<()> {
    let sequence = at.sequence;
    if let Some(SequenceRow::Folded(branch, into)) = lineage::sequence_row(view, number, sequence)?
    {
        // A long range is folded in several steps, each into the next; the later step is undone
        // first.
        let next = RevisionRef { branch, sequence: into };
        if !fold::rows(view, number, next)?
            .iter()
            .any(|fold| fold.operation == *operation && fold.first == sequence && !fold.swept)
        {
            let into = lineage::final_fold_target(view, number, into)?;
            return Err(Error::Conflict(format!(
                "#{sequence} was itself folded into #{into} since: undo that first"
            )));
        }
    }
    let folds = fold::rows(view, number, at)?;
    match folds.iter().position(|fold| fold.operation == *operation) {
        Some(place) if folds[place].swept => Err(Error::Conflict(format!(
            "the revisions that were folded into #{sequence} were permanently deleted"
        ))),
        Some(0) => Ok(()),
        Some(_) => Err(Error::Conflict(format!(
            "earlier revisions were folded into #{sequence} since: undo that first"
        ))),
        None => Err(Error::Conflict(format!(
            "the revisions that were folded into #{sequence} are back already"
        ))),
    }
}

/// Checks that no earlier revision was folded into one of `first` to `last`: the changes of both
/// could not be separated.
pub(crate) fn check_no_outer_fold(
    view: &dyn Snapshot,
    number: SessionNumber,
    branch: BranchNumber,
    (first, last): (u64, u64),
) -> Result<()> {
    let from = of(number).branch(branch).number(first).build();
    let to = of(number).branch(branch).number(last.saturating_add(1)).build();
    for (place, row) in table_rows::rows_between(view, key::FOLDS, &from, &to)? {
        let fold = FoldRow::decode(&row).map_err(Error::corrupt("a fold"))?;
        if fold.first < first {
            let sequence = key::number_at(&place, 8).unwrap_or(0);
            return Err(Error::Conflict(format!(
                "earlier revisions were folded into #{sequence}: undo that first"
            )));
        }
    }
    Ok(())
}

/// Returns whether the data that an operation hid was permanently deleted. For a redo, that is
/// recorded with the first operation.
pub(crate) fn is_swept(view: &dyn Snapshot, row: &OperationRow) -> Result<bool> {
    let undo = row.takes_back.map(|undo| find_operation(view, &undo)).transpose()?.flatten();
    let first = undo.and_then(|undo| undo.takes_back);
    let first = first.map(|first| find_operation(view, &first)).transpose()?.flatten();
    Ok(first.as_ref().unwrap_or(row).is_swept())
}

/// Checks that an undone pruning can be redone.
pub(crate) fn check_pruning(view: &dyn Snapshot, id: &OperationId) -> Result<()> {
    if let Some(row) = find_operation(view, id)?
        && is_swept(view, &row)?
    {
        return Err(Error::Conflict("it is too late to redo it: prune again instead".to_owned()));
    }
    Ok(())
}

/// A pruning that can still be undone.
pub(crate) struct PendingPruning {
    pub(crate) session: SessionNumber,
    pub(crate) operation: OperationId,
    pub(crate) time: Timestamp,
}

/// Returns whether a pruning is listed for the next sweep.
pub(crate) fn is_pending(view: &dyn Snapshot, operation: &Operation) -> Result<bool> {
    Ok(view.get(key::PRUNINGS, &fold::pruning_key(operation))?.is_some())
}

/// Returns the sessions that a pruning dropped, or whose texts it dropped, and that are still
/// dropped.
pub(crate) fn pruned_sessions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    operation: &OperationId,
) -> Result<Vec<SessionNumber>> {
    let mut pruned = BTreeSet::new();
    for effect in find_operation(view, operation)?.into_iter().flat_map(|row| row.effects) {
        let (OperationEffect::SessionDropped { of } | OperationEffect::TextDropped { of, .. }) =
            effect
        else {
            continue;
        };
        let session = session(refs, of)?;
        if session.removal == Some(SessionRemoval::Pruned(*operation))
            || session.dropped.iter().any(|text| text.pruning.as_ref() == Some(operation))
        {
            pruned.insert(of);
        }
    }
    Ok(pruned.into_iter().collect())
}

/// Returns the prunings up to a time that were not swept yet, oldest first.
pub(crate) fn prunings(view: &dyn Snapshot, until: Timestamp) -> Result<Vec<PendingPruning>> {
    let to = key::KeyBuilder::new().time(until).end();
    let rows = table_rows::rows_between(view, key::PRUNINGS, &[], &to)?;
    Ok(rows
        .iter()
        .filter_map(|(place, session)| {
            Some(PendingPruning {
                session: key::short_at(session, 0)?,
                operation: OperationId::from_bytes(*place.last_chunk()?),
                time: key::time_at(place, 0)?,
            })
        })
        .collect())
}

/// Returns the rows of the revisions that a pruning folded into others: their deltas will be
/// deleted.
fn taken_out(view: &dyn Snapshot, pruning: &PendingPruning) -> Result<Vec<RevisionRow>> {
    let row = find_operation(view, &pruning.operation)?
        .ok_or_else(|| Error::missing(format!("the operation {}", pruning.operation)))?;
    let mut rows = Vec::new();
    for effect in &row.effects {
        let OperationEffect::Folded { branch, last, .. } = effect else { continue };
        let at = RevisionRef { branch: *branch, sequence: *last };
        for fold in fold::rows(view, pruning.session, at)? {
            if fold.operation == pruning.operation && !fold.swept {
                let folded = fold::folded(view, pruning.session, at, &fold)?;
                rows.extend(folded.into_iter().map(|(_, row)| row));
            }
        }
    }
    Ok(rows)
}
