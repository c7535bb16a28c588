//! The changes that reverse an operation, and the checks that they are still possible.

use super::super::current_number;
use super::super::session::Session;
use super::swept;
use crate::diff;
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::compare;
use crate::engine::index::operations_of;
use crate::engine::lineage::RevisionRef;
use crate::engine::lookup;
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::{CommitTarget, PlannedRevision};
use crate::engine::prune;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{StoreRefs, advance_by, session as session_refs};
use crate::engine::revision_plan::{self, ClaimChange};
use crate::engine::session_rows::SessionLookup;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{BookmarkRow, OperationEffect, OperationRow, RecordChange, encode_key};
use crate::model::{
    BranchNumber, CheckpointId, Key, Operation, SessionKind, SessionNumber, StateDigest,
};
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// Returns the changes by which `operation`, an undo or redo, reverses the effects of `target`,
    /// and the last revision among them. `done_by` is the operation that last applied these
    /// effects: `target` or its last redo.
    ///
    /// # Errors
    /// [`Error::Conflict`] if an effect cannot be reversed: because it is permanent, or because of
    /// what was done since.
    pub(super) fn inverse_changes(
        &self,
        context: &PlanContext<'_>,
        view: &ReadSnapshot,
        operation: &Operation,
        target: &OperationRow,
        done_by: &OperationRow,
    ) -> Result<(Vec<RecordChange>, Option<PlannedRevision>)> {
        let session = self.number;
        let mut changes = Vec::new();
        let (mut hidden, mut folded) = (BTreeSet::new(), Vec::new());
        // For each source, its bookmark before the operation. An import moves the bookmark in every
        // record.
        let mut bookmarks: BTreeMap<&String, &Option<Box<BookmarkRow>>> = BTreeMap::new();
        let is_swept = prune::is_swept(view, target)?;
        for effect in target.effects.iter().rev() {
            match effect {
                OperationEffect::Revision { .. }
                | OperationEffect::Facts { .. }
                | OperationEffect::Switched { elsewhere: true, .. } => {}
                OperationEffect::CheckpointMade { id } => {
                    // What the operation did later to this checkpoint is undone with its creation.
                    changes.retain(|change| restored_checkpoint(change) != Some(id));
                    if checkpoint::by_id(view, session, id)?.is_some() {
                        hidden.insert(*id);
                    }
                }
                OperationEffect::CheckpointChanged { old } => {
                    // If the checkpoint was hidden since, there is nothing to do.
                    if checkpoint::by_id(view, session, &old.id)?.is_some() {
                        changes.push(RecordChange::Checkpoint { session, checkpoint: old.clone() });
                    }
                }
                OperationEffect::CheckpointHidden { old } => {
                    if is_swept {
                        return Err(swept(target));
                    }
                    // If the operation replaced the checkpoint by another one with its id, and that
                    // one is hidden now, there is nothing to do.
                    let made = OperationEffect::CheckpointMade { id: old.id };
                    if target.effects.contains(&made)
                        && checkpoint::by_id(view, session, &old.id)?.is_none()
                    {
                        continue;
                    }
                    changes
                        .push(RecordChange::CheckpointShown { session, checkpoint: old.clone() });
                }
                OperationEffect::BranchMade { branch } => {
                    let branch = *branch;
                    self.check_unused(context, branch, target, done_by)?;
                    changes.push(RecordChange::BranchHidden { session, branch, hidden: true });
                }
                OperationEffect::BranchHidden { branch, hidden, .. } => {
                    let (branch, hidden) = (*branch, !hidden);
                    if !hidden {
                        self.check_name_free(context, branch)?;
                    }
                    changes.push(RecordChange::BranchHidden { session, branch, hidden });
                }
                OperationEffect::BranchChanged { branch, old } => {
                    let mut change = old.clone();
                    change.time = operation.time;
                    changes.push(RecordChange::branch_changed(session, *branch, change));
                }
                OperationEffect::Switched { old, .. } => {
                    changes.push(RecordChange::switched(session, *old, operation.time));
                }
                OperationEffect::Bookmark { source, old, bytes } => {
                    // The loop begins with the last effect, so only the last bookmark that the
                    // operation set for a source is compared.
                    if !bookmarks.contains_key(source)
                        && self.bookmark(source)?.map_or(0, |bookmark| bookmark.bytes) != *bytes
                    {
                        return Err(Error::Conflict(format!(
                            "more of {source} was imported since: undo that first"
                        )));
                    }
                    bookmarks.insert(source, old);
                }
                OperationEffect::Schedule { old } => {
                    changes.push(RecordChange::Schedule { session, every_micros: *old });
                }
                OperationEffect::Folded { branch, last, .. } => {
                    let at = RevisionRef { branch: *branch, sequence: *last };
                    prune::check_unfoldable(view, session, at, &target.operation.id)?;
                    changes.push(RecordChange::Unfolded { session, branch: *branch, last: *last });
                }
                OperationEffect::Unfolded { branch, first, last } => {
                    let run = prune::FoldRange { branch: *branch, first: *first, last: *last };
                    let pruning = target.takes_back.unwrap_or(target.operation.id);
                    prune::check_pruning(view, &pruning)?;
                    let before = changes.last();
                    let planned = prune::fold_after(view, session, &run, before, pruning)?;
                    changes.push(planned.change);
                    folded.push(run);
                }
                OperationEffect::SessionDropped { of } => {
                    check_session_free(context, *of)?;
                    changes.push(RecordChange::SessionShown { session, of: *of });
                    let is_debug =
                        session_refs(&context.refs, *of)?.info.kind == SessionKind::Debug;
                    if is_debug && current_number(&context.refs).is_none() {
                        changes.push(RecordChange::Used { session: *of });
                    }
                }
                OperationEffect::SessionShown { of } => {
                    // The operation that brought it back may itself have made it the last used one.
                    let is_used_since = || -> Result<bool> {
                        let mut since = operations_of(view, *of)?.into_iter();
                        Ok(since.any(|row| row.position > target.position))
                    };
                    let current = context.refs.pinned == Some(*of)
                        || (context.refs.last_used == Some(*of) && is_used_since()?);
                    let own = session_refs(&context.refs, *of)?;
                    let name = &own.info.name;
                    if own.removal.is_some() {
                        return Err(Error::Conflict(format!(
                            "the session '{name}' was pruned again since: there is nothing to redo"
                        )));
                    }
                    if current {
                        return Err(Error::Conflict(format!(
                            "the session '{name}' is in use again: prune or drop it again when it \
                             has ended"
                        )));
                    }
                    let pruning = target.takes_back.unwrap_or(target.operation.id);
                    prune::check_pruning(view, &pruning)?;
                    changes.push(RecordChange::SessionDropped { session, of: *of, pruning });
                }
                OperationEffect::TextDropped { of, blob, bytes, old } => {
                    if self.dropped_by(context, *of, blob)? != (*bytes, true) {
                        return Err(Error::Conflict(format!(
                            "'{blob}' was pruned again since: it is too late to undo it"
                        )));
                    }
                    let (of, blob, bytes) = (*of, blob.clone(), *old);
                    changes.push(RecordChange::TextShown { session, of, blob, bytes });
                }
                OperationEffect::TextShown { of, blob, bytes } => {
                    if self.dropped_by(context, *of, blob)?.0 >= *bytes {
                        return Err(Error::Conflict(format!(
                            "'{blob}' was pruned again since: there is nothing to redo"
                        )));
                    }
                    let pruning = target.takes_back.unwrap_or(target.operation.id);
                    prune::check_pruning(view, &pruning)?;
                    let (of, blob, bytes) = (*of, blob.clone(), *bytes);
                    changes.push(RecordChange::TextDropped { session, of, blob, bytes, pruning });
                }
                OperationEffect::Purged { .. } => {
                    return Err(Error::Conflict(
                        "a purge cannot be undone: the secret was permanently removed".to_owned(),
                    ));
                }
                OperationEffect::Swept { .. } => return Err(swept(target)),
            }
        }
        changes.extend(bookmarks.into_iter().map(|(source, old)| RecordChange::Bookmark {
            session,
            source: source.clone(),
            bookmark: old.clone(),
        }));
        self.check_unnamed(view, &folded, &hidden)?;
        let last = checkpoint::last_time_without(view, session, &hidden)?;
        // Checkpoints are hidden first, because one that is shown again may have the id or the
        // event key of one that is hidden.
        let hide = |id| RecordChange::CheckpointHidden { session, id, last };
        changes.splice(0..0, hidden.into_iter().map(hide));
        let mut planned = None;
        // The revision of the next branch has the number after that of this one.
        let mut advanced: Option<PlanContext<'_>> = None;
        for (branch, (first, last)) in revisions(done_by) {
            let context = advanced.as_ref().unwrap_or(context);
            let place = CommitTarget { session, branch, time: operation.time, operation };
            if let Some(plan) = self.inverse_revision(context, view, place, first, last)? {
                let mut refs = StoreRefs::clone(&context.refs);
                plan.changes.iter().try_for_each(|change| advance_by(&mut refs, change))?;
                advanced = Some(context.with_refs(refs));
                changes.extend(plan.changes.iter().cloned());
                planned = Some(plan);
            }
        }
        // An undo hides the facts of the undone operation, and a redo shows them again.
        let (whose, facts_hidden) = match target.takes_back {
            None => (target.operation.id, true),
            Some(first) => (first, false),
        };
        if whose != target.operation.id {
            changes.push(RecordChange::TakesBack { session, operation: whose, facts_hidden });
        }
        changes.push(RecordChange::TakesBack {
            session,
            operation: target.operation.id,
            facts_hidden: facts_hidden && whose == target.operation.id,
        });
        Ok((changes, planned))
    }

    /// Returns how many bytes at the beginning of a blob are dropped, and whether that can be
    /// undone.
    fn dropped_by(
        &self,
        context: &PlanContext<'_>,
        of: SessionNumber,
        blob: &str,
    ) -> Result<(u64, bool)> {
        let dropped = &session_refs(&context.refs, of)?.dropped;
        let text = dropped.iter().find(|text| text.blob == blob);
        Ok(text.map_or((0, false), |text| (text.bytes, text.pruning.is_some())))
    }

    /// Checks that these ranges can be folded again: only the checkpoints in `hidden` name a
    /// revision that would be folded into another one.
    fn check_unnamed(
        &self,
        view: &ReadSnapshot,
        runs: &[prune::FoldRange],
        hidden: &BTreeSet<CheckpointId>,
    ) -> Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        let checkpoints = checkpoint::list(view, self.number, &CheckpointFilter::default())?;
        let stay = checkpoints.iter().filter(|one| !hidden.contains(&one.id));
        let named = self.referenced_revisions(view, stay)?;
        for run in runs {
            if let Some(sequence) = prune::first_named(view, self.number, run, &named)? {
                return Err(Error::Conflict(format!(
                    "#{sequence} has been needed since it was brought back: prune again instead"
                )));
            }
        }
        Ok(())
    }

    /// Checks that a branch can be shown again: no other branch has its name.
    fn check_name_free(&self, context: &PlanContext<'_>, branch: BranchNumber) -> Result<()> {
        let session = session_refs(&context.refs, self.number)?;
        let name = &session.branch(branch)?.name;
        match session.branch_named(name) {
            Some(other) if other != branch => Err(Error::Conflict(format!(
                "another branch was named '{name}' since: undo that first"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that the creation of a branch can be undone: the branch is not checked out, its
    /// claims are those that the operation left, and no other operation forked a branch from it.
    fn check_unused(
        &self,
        context: &PlanContext<'_>,
        branch: BranchNumber,
        target: &OperationRow,
        done_by: &OperationRow,
    ) -> Result<()> {
        let session = session_refs(&context.refs, self.number)?;
        let own = session.branch(branch)?;
        let name = &own.name;
        // Undone work does not count. So the claims are compared with those that the operation left
        // on the branch or, if it made no revision there, with those at the fork.
        let left = revisions(done_by).get(&branch).map(|(_, last)| (branch, *last)).or(own.base);
        let begun = match left {
            None | Some((_, 0)) => (StateDigest::EMPTY, 0),
            Some((branch, sequence)) => {
                let at = RevisionRef { branch, sequence };
                let (head, _) = timeline::head_at(&context.view()?, self.number, at)?;
                (head.digest, head.count)
            }
        };
        let has_own = own.head.is_some_and(|head| (head.digest, head.count) != begun);
        let is_own = |branch| target.effects.contains(&OperationEffect::BranchMade { branch });
        let has_child = (0..).zip(&session.branches).any(|(number, other)| {
            !other.hidden && other.base.is_some_and(|(base, _)| base == branch) && !is_own(number)
        });
        // A checkout by the same operation is undone together with the branch.
        let leaves = target.effects.iter().any(OperationEffect::is_own_switch);
        if session.current_branch == branch && !leaves {
            return Err(Error::Conflict(format!(
                "the branch '{name}' is checked out: switch to another one first"
            )));
        }
        if has_own || has_child {
            return Err(Error::Conflict(format!(
                "the branch '{name}' was worked on since: undo that first"
            )));
        }
        Ok(())
    }

    /// Returns a revision that undoes the revisions from `first` to `last` of a branch; `None` if
    /// it would change nothing. If no revision follows `last`, it is a reset to the state before
    /// `first`. Otherwise it contains the inverse changes.
    ///
    /// # Errors
    /// [`Error::Conflict`] if one of these claims has changed since `last`, or if earlier revisions
    /// were folded into these; [`Error::Folded`] if `first` or `last` was folded.
    fn inverse_revision(
        &self,
        context: &PlanContext<'_>,
        view: &ReadSnapshot,
        place: CommitTarget<'_>,
        first: u64,
        last: u64,
    ) -> Result<Option<PlannedRevision>> {
        let branch = place.branch;
        for sequence in [first, last] {
            self.of_sequence(view, sequence)?;
        }
        prune::check_no_outer_fold(view, self.number, branch, (first, last))?;
        let at = RevisionRef { branch, sequence: first };
        let before = timeline::parent_of(view, &context.refs, self.number, at)?;
        let head = session_refs(&context.refs, self.number)?.branch(branch)?.head;
        if head.is_some_and(|head| head.sequence == last) {
            return self.plan_reset(context, place, before).map(Some);
        }
        let after = Some(RevisionRef { branch, sequence: last });
        let done = compare::compare(view, &context.refs, self.number, before, after)?;
        let now = timeline::head_of(&context.refs, self.number, branch)?;
        let since = compare::compare(view, &context.refs, self.number, after, now)?;
        if let Some(again) =
            since.iter().find(|change| done.iter().any(|one| one.key == change.key))
        {
            let by = self.last_change_by(context, view, now, &again.key)?;
            return Err(Error::Conflict(format!(
                "the {} was changed again since{by}: undo that first",
                again.key
            )));
        }
        let opposite: Vec<ClaimChange> = diff::invert(done)
            .into_iter()
            .map(|change| {
                revision_plan::restoring_change(view, &context.refs, self.number, before, change)
            })
            .collect::<Result<_>>()?;
        revision_plan::plan(context, place, &opposite, &mut None)
    }

    /// Names the operation that last changed a claim: `, by 'gap fill' (0123abcd)`. Empty if it is
    /// not found.
    fn last_change_by(
        &self,
        context: &PlanContext<'_>,
        view: &ReadSnapshot,
        head: Option<RevisionRef>,
        key: &Key,
    ) -> Result<String> {
        let Some(head) = head else { return Ok(String::new()) };
        let touched = lookup::history(view, &context.refs, self.number, head, &encode_key(key))?;
        let Some(last) = touched.first().map(|change| change.at) else { return Ok(String::new()) };
        let made = |effect: &OperationEffect| {
            matches!(effect, OperationEffect::Revision { branch, sequence }
                if (*branch, *sequence) == (last.branch, last.sequence))
        };
        let rows = self.operation_rows(view, usize::MAX)?;
        let by = rows.iter().find(|row| row.effects.iter().any(made));
        Ok(by.map_or_else(String::new, |row| {
            format!(", by '{}' ({})", row.operation.verb, row.operation.id.short())
        }))
    }
}

/// Returns the id of the checkpoint that a change writes.
fn restored_checkpoint(change: &RecordChange) -> Option<&CheckpointId> {
    match change {
        RecordChange::Checkpoint { checkpoint, .. }
        | RecordChange::CheckpointShown { checkpoint, .. } => Some(&checkpoint.id),
        _ => None,
    }
}

/// Returns the numbers of the first and the last revision that an operation made on each branch.
fn revisions(row: &OperationRow) -> BTreeMap<BranchNumber, (u64, u64)> {
    let mut revisions = BTreeMap::new();
    for effect in &row.effects {
        if let OperationEffect::Revision { branch, sequence } = effect {
            let known = revisions.entry(*branch).or_insert((*sequence, *sequence));
            known.0 = known.0.min(*sequence);
            known.1 = known.1.max(*sequence);
        }
    }
    revisions
}

/// Checks that a session can be brought back: it is still dropped, and no session that is not
/// removed has its id, its agent's id, or its kind and name.
fn check_session_free(context: &PlanContext<'_>, number: SessionNumber) -> Result<()> {
    let own = session_refs(&context.refs, number)?;
    if own.removal.is_none() {
        return Err(Error::Conflict(format!("'{}' was brought back already", own.info.name)));
    }
    let info = &own.info;
    let agent = info.agent_session.as_deref();
    let sessions = &context.refs.sessions;
    let mut others = sessions.find(SessionLookup::Name(&info.name))?;
    others.retain(|(_, other)| other.info.kind == info.kind);
    others.extend(sessions.find(SessionLookup::Id(info.id))?);
    others.extend(agent.map_or(Ok(Vec::new()), |id| sessions.find(SessionLookup::Agent(id)))?);
    match others.into_iter().find(|(_, other)| other.removal.is_none()) {
        Some((_, other)) => Err(Error::Conflict(format!(
            "another session '{}' has replaced it since: drop that one first",
            other.info.name
        ))),
        None => Ok(()),
    }
}
