//! Which branches cannot be joined: both sides changed the same claim.

use super::Reapply;
use crate::engine::compare::compare_encoded;
use crate::engine::lineage::RevisionRef;
use crate::engine::materialize::materialize;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::state::StateDifferences;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::decode_key;
use crate::model::BranchNumber;
use std::collections::BTreeSet;

/// Why a branch cannot be joined.
pub(super) struct BranchConflict {
    /// The last revision of the branch that both sides have.
    pub(super) common: Option<RevisionRef>,
    /// A claim that both sides changed.
    pub(super) claim: Option<String>,
}

impl Reapply<'_> {
    /// Returns why revisions of a branch cannot follow what others wrote to it; `None` if they can.
    /// `theirs` shows the new session before anything is written again.
    pub(super) fn conflict(
        &self,
        view: &ReadSnapshot,
        theirs: &ReadSnapshot,
        branch: BranchNumber,
        revisions: &[RevisionRef],
    ) -> Result<Option<BranchConflict>> {
        let own = revisions.iter().filter(|at| at.branch == branch);
        let Some(first) = own.min_by_key(|at| at.sequence).copied() else { return Ok(None) };
        let common = timeline::parent_of(view, &view.refs, self.old, first)?;
        if self.kept_apart.contains(&branch) {
            return Ok(Some(BranchConflict { common, claim: None }));
        }
        let head = timeline::head_of(&theirs.refs, self.new, branch)?;
        if head == common {
            return Ok(None);
        }
        let changed = match compare_encoded(theirs, &theirs.refs, self.new, common, head) {
            // Others pruned the common revision: its state is still here.
            Err(Error::Folded { .. }) => {
                let state = |view: &ReadSnapshot, number, at: Option<RevisionRef>| {
                    let at = at.unwrap_or(RevisionRef { branch: 0, sequence: 0 });
                    materialize(view, &view.refs, number, at)
                };
                let (before, now) =
                    (state(view, self.old, common)?, state(theirs, self.new, head)?);
                StateDifferences::between(&before, &now)
            }
            changed => changed?,
        };
        let changed: BTreeSet<&[u8]> = changed.iter().map(|(key, ..)| key).collect();
        for at in revisions.iter().copied() {
            let before = timeline::parent_of(view, &view.refs, self.old, at)?;
            let own = compare_encoded(view, &view.refs, self.old, before, Some(at))?;
            let both = own.iter().find(|(key, ..)| changed.contains(key));
            if let Some((key, ..)) = both {
                let claim = decode_key(key).map_err(Error::corrupt("a delta"))?.to_string();
                return Ok(Some(BranchConflict { common, claim: Some(claim) }));
            }
        }
        Ok(None)
    }
}
