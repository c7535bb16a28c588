//! Merge bases: the ancestors of two branches, and the last revisions that both have in common.

use super::index::find_operation_of;
use super::lineage::{self, RevisionRef};
use super::table_rows;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::refs::StoreRefs;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{RevisionBody, SequenceRow};
use crate::model::{BranchNumber, SessionNumber};
use std::collections::{BTreeMap, BTreeSet};

/// A revision with two parents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeRevision {
    pub(crate) at: RevisionRef,
    /// The sequence number of the merged revision.
    pub(crate) merged: u64,
    /// Whether the merge was not undone.
    pub(crate) in_force: bool,
}

/// Returns the revisions of a session that have two parents.
pub(crate) fn merge_revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
) -> Result<Vec<MergeRevision>> {
    let mut merges = Vec::new();
    for (place, merged) in table_rows::rows(view, key::MERGES, of(number))? {
        let at = RevisionRef {
            branch: key::short_at(&place, 4).unwrap_or(0),
            sequence: key::last_number(&place).unwrap_or(0),
        };
        let row = lineage::revision(view, number, at)?;
        let body = RevisionBody::decode(&row.body)
            .map_err(Error::corrupt(format_args!("the body of #{}", at.sequence)))?;
        let operation = find_operation_of(view, number, &body.operation.id)?;
        merges.push(MergeRevision {
            at,
            merged: key::number_at(&merged, 0).unwrap_or(0),
            in_force: operation.is_none_or(|row| row.taken_back_by.is_none()),
        });
    }
    Ok(merges)
}

/// The ancestors of a revision, as the highest sequence number on each branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct RevisionAncestry(BTreeMap<BranchNumber, u64>);

impl RevisionAncestry {
    /// Returns whether a revision is one of the ancestors.
    pub(crate) fn holds(&self, at: RevisionRef) -> bool {
        self.0.get(&at.branch).is_some_and(|upto| at.sequence <= *upto)
    }

    /// Adds a revision and all earlier ones on its branch.
    fn reach(&mut self, at: RevisionRef) {
        if at.sequence > 0 {
            let upto = self.0.entry(at.branch).or_insert(0);
            *upto = at.sequence.max(*upto);
        }
    }

    /// Returns the union of two sets of ancestors.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|(branch, upto)| {
            self.reach(RevisionRef { branch: *branch, sequence: *upto });
        });
        self
    }
}

/// Returns the ancestors of a revision, including itself: its first parents, and the revisions that
/// its claims come from.
///
/// A merged branch counts as long as the claims still contain the merge: not if the merge was
/// undone or the branch was reset to before it. Then it can be merged again.
pub(crate) fn ancestry(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    merges: &[MergeRevision],
    at: RevisionRef,
) -> Result<RevisionAncestry> {
    let mut found = RevisionAncestry::default();
    let mut open = vec![at];
    let mut seen = BTreeSet::new();
    while let Some(at) = open.pop() {
        if !seen.insert((at.branch, at.sequence)) {
            continue;
        }
        for range in lineage::state_ranges(view, refs, number, at)? {
            let end = RevisionRef { branch: range.branch, sequence: range.to };
            for parents in lineage::log_ranges(refs, number, end)? {
                found.reach(RevisionRef { branch: parents.branch, sequence: parents.to });
            }
            for merge in merges {
                let is_in_range = merge.at.branch == range.branch
                    && (range.after + 1..=range.to).contains(&merge.at.sequence);
                if is_in_range && merge.in_force {
                    open.push(place(view, number, merge.merged)?);
                }
            }
        }
    }
    for parents in lineage::log_ranges(refs, number, at)? {
        found.reach(RevisionRef { branch: parents.branch, sequence: parents.to });
    }
    Ok(found)
}

fn place(view: &dyn Snapshot, number: SessionNumber, sequence: u64) -> Result<RevisionRef> {
    match lineage::sequence_row(view, number, sequence)? {
        Some(SequenceRow::Revision(branch) | SequenceRow::Folded(branch, _)) => {
            Ok(RevisionRef { branch, sequence })
        }
        _ => Err(Error::missing(format!("revision #{sequence}"))),
    }
}

/// Returns the merge bases with their ancestors, newest first: the last common ancestor on each
/// branch, unless it is an ancestor of a newer base. There are several if both branches merged the
/// same other branches.
pub(crate) fn bases(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    merges: &[MergeRevision],
    (ours, theirs): (&RevisionAncestry, &RevisionAncestry),
) -> Result<Vec<(RevisionRef, RevisionAncestry)>> {
    let mut common = Vec::new();
    for (branch, upto) in &ours.0 {
        let Some(other) = theirs.0.get(branch) else { continue };
        let from = of(number).branch(*branch).build();
        let to = of(number).branch(*branch).number(upto.min(other).saturating_add(1)).build();
        let last = view.scan(key::REVISIONS, &from, &to, ScanDirection::Descending, 1)?;
        if let Some((place, _)) = last.first() {
            let at =
                RevisionRef { branch: *branch, sequence: key::last_number(place).unwrap_or(0) };
            common.push((at, ancestry(view, refs, number, merges, at)?));
        }
    }
    common.sort_by_key(|(at, _)| std::cmp::Reverse(at.sequence));
    let mut bases: Vec<(RevisionRef, RevisionAncestry)> = Vec::new();
    for (at, known) in common {
        // Only a base hides its ancestors. A common revision that a base hides may have an ancestor
        // which the base lost by a reset, so that ancestor can be a base itself.
        if !bases.iter().any(|(_, ancestors)| ancestors.holds(at)) {
            bases.push((at, known));
        }
    }
    Ok(bases)
}
