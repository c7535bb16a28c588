//! Decides which branches cannot be joined.

use super::{Reapply, SplitReason};
use crate::engine::compare::compare_encoded;
use crate::engine::lineage::RevisionRef;
use crate::engine::materialize::materialize;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::state::{DifferenceBytes, StateDifferences};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{decode_entry, decode_key, encode_key};
use crate::model::{BranchNumber, claim};
use std::collections::BTreeSet;

/// A branch that cannot be joined.
pub(super) struct BranchConflict {
    /// The last revision of the branch that both sides have.
    pub(super) common: Option<RevisionRef>,
    pub(super) reason: SplitReason,
}

impl Reapply<'_> {
    /// Returns why revisions of a branch cannot follow those that others wrote to it; `None` if
    /// they can. `is_shown_again` says whether an operation that is written again makes the branch
    /// visible.
    pub(super) fn conflict(
        &self,
        branch: BranchNumber,
        revisions: &[RevisionRef],
        is_shown_again: bool,
    ) -> Result<Option<BranchConflict>> {
        let (ours, theirs) = (self.ours, &self.theirs);
        let own = revisions.iter().filter(|at| at.branch == branch);
        let Some(first) = own.min_by_key(|at| at.sequence).copied() else { return Ok(None) };
        let common = timeline::parent_of(ours, &ours.refs, self.old, first)?;
        if self.kept_apart.contains(&branch) {
            return Ok(Some(BranchConflict { common, reason: SplitReason::Dangling }));
        }
        let is_undone = session_refs(&theirs.refs, self.new)?.branch(branch)?.hidden;
        let is_hidden_here = session_refs(&ours.refs, self.old)?.branch(branch)?.hidden;
        if is_undone && !is_hidden_here && !is_shown_again {
            return Ok(Some(BranchConflict { common, reason: SplitReason::Undone }));
        }
        let head = timeline::head_of(&theirs.refs, self.new, branch)?;
        if head == common {
            return Ok(None);
        }
        let changed = match compare_encoded(theirs, &theirs.refs, self.new, common, head) {
            // Others pruned the common revision. The old session still has its state.
            Err(Error::Folded { .. }) => {
                let state = |view: &ReadSnapshot, number, at: Option<RevisionRef>| {
                    let at = at.unwrap_or(RevisionRef { branch: 0, sequence: 0 });
                    materialize(view, &view.refs, number, at)
                };
                let (before, now) =
                    (state(ours, self.old, common)?, state(theirs, self.new, head)?);
                StateDifferences::between(&before, &now)
            }
            changed => changed?,
        };
        let referenced = references(&changed)?;
        let changed: BTreeSet<&[u8]> = changed.iter().map(|(key, ..)| key).collect();
        for at in revisions.iter().copied() {
            let before = timeline::parent_of(ours, &ours.refs, self.old, at)?;
            let own = compare_encoded(ours, &ours.refs, self.old, before, Some(at))?;
            let both = own.iter().find(|(key, ..)| changed.contains(key));
            if let Some((key, ..)) = both {
                let claim = decode_key(key).map_err(Error::corrupt("a delta"))?.to_string();
                return Ok(Some(BranchConflict { common, reason: SplitReason::Changed(claim) }));
            }
            let removed =
                |(key, _, new): &DifferenceBytes<'_>| new.is_none() && referenced.contains(*key);
            if own.iter().any(|one| removed(&one)) {
                return Ok(Some(BranchConflict { common, reason: SplitReason::Dangling }));
            }
        }
        Ok(None)
    }
}

/// Returns the keys of the claims that changed claims refer to.
fn references(changed: &StateDifferences) -> Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    for (key, _, new) in changed.iter() {
        let Some(entry) = new else { continue };
        let key = decode_key(key).map_err(Error::corrupt("a delta"))?;
        let entry = decode_entry(entry).map_err(Error::corrupt(format_args!("the {key}")))?;
        let targets = claim::references(key.kind, &entry.value);
        found.extend(targets.iter().map(encode_key));
    }
    Ok(found)
}
