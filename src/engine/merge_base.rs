//! Merge bases: how far the ancestors of two branches reach, and the last revisions they share.

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
    let mut joints = Vec::new();
    for (place, merged) in table_rows::rows(view, key::MERGES, of(number))? {
        let at = RevisionRef {
            branch: key::short_at(&place, 4).unwrap_or(0),
            sequence: key::last_number(&place).unwrap_or(0),
        };
        let row = lineage::revision(view, number, at)?;
        let body = RevisionBody::decode(&row.body)
            .map_err(Error::corrupt(format_args!("the body of #{}", at.sequence)))?;
        let operation = find_operation_of(view, number, &body.operation.id)?;
        joints.push(MergeRevision {
            at,
            merged: key::number_at(&merged, 0).unwrap_or(0),
            in_force: operation.is_none_or(|row| row.taken_back_by.is_none()),
        });
    }
    Ok(joints)
}

/// The ancestors of a revision, as the highest sequence number on each branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct RevisionAncestry(BTreeMap<BranchNumber, u64>);

impl RevisionAncestry {
    /// Whether a revision is one of the ancestors.
    pub(crate) fn holds(&self, at: RevisionRef) -> bool {
        self.0.get(&at.branch).is_some_and(|upto| at.sequence <= *upto)
    }

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
    joints: &[MergeRevision],
    at: RevisionRef,
) -> Result<RevisionAncestry> {
    let mut found = RevisionAncestry::default();
    let mut open = vec![at];
    let mut seen = BTreeSet::new();
    while let Some(at) = open.pop() {
        if !seen.insert((at.branch, at.sequence)) {
            continue;
        }
        for stretch in lineage::state_ranges(view, refs, number, at)? {
            let end = RevisionRef { branch: stretch.branch, sequence: stretch.to };
            for parents in lineage::log_ranges(refs, number, end)? {
                found.reach(RevisionRef { branch: parents.branch, sequence: parents.to });
            }
            for joint in joints {
                let is_on_the_way = joint.at.branch == stretch.branch
                    && (stretch.after + 1..=stretch.to).contains(&joint.at.sequence);
                if is_on_the_way && joint.in_force {
                    open.push(place(view, number, joint.merged)?);
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

/// Returns the merge bases, newest first: each common ancestor that is not an ancestor of a base
/// found before. There are several if both branches merged the same other branches.
pub(crate) fn bases(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    joints: &[MergeRevision],
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
            common.push((at, ancestry(view, refs, number, joints, at)?));
        }
    }
    common.sort_by_key(|(at, _)| std::cmp::Reverse(at.sequence));
    let mut bases: Vec<(RevisionRef, RevisionAncestry)> = Vec::new();
    for (at, known) in common {
        // Only a revision that was taken hides its ancestors: a branch that was reset has lost what
        // it had merged.
        if !bases.iter().any(|(_, taken)| taken.holds(at)) {
            bases.push((at, known));
        }
    }
    Ok(bases)
}
