//! The changes of one step, with the numbers that they have in the new session.

use super::{KEPT_APART, Reapply};
use crate::engine::checkpoint;
use crate::engine::compare::compare;
use crate::engine::index::{find_operation_of, fold};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::CommitTarget;
use crate::engine::refs::session as session_refs;
use crate::engine::revision_plan::{self, ClaimChange};
use crate::engine::{blob, timeline};
use crate::error::{Error, Result};
use crate::format::{
    BranchHead, ParentRevision, RecordChange, RevisionHeader, SequenceRow, SessionRefs,
};
use crate::model::{BranchNumber, Checkpoint, CheckpointId, Operation};
use crate::store::bundle::replay::ReplayStep;
use crate::store::remote::TAG_DIGITS;
use std::collections::BTreeSet;

/// The changes of a step for the new session.
#[derive(Default)]
pub(super) struct PlannedStep {
    pub(super) changes: Vec<RecordChange>,
    /// The number of the revision or checkpoint in the old session, and in the new one.
    pub(super) number: Option<(u64, u64)>,
    /// The number of the branch in the old session, and in the new one.
    pub(super) branch: Option<(BranchNumber, BranchNumber)>,
    /// A checkpoint that is left out, because others recorded one for the same event.
    pub(super) left_out: Option<CheckpointId>,
}

impl From<RecordChange> for PlannedStep {
    fn from(change: RecordChange) -> Self {
        Self { changes: vec![change], ..Self::default() }
    }
}

pub(super) fn branch_of_revision(change: &RecordChange) -> Option<BranchNumber> {
    match change {
        RecordChange::Revision { header, .. } => {
            RevisionHeader::decode(&header.0).ok().map(|header| header.branch)
        }
        _ => None,
    }
}

impl Reapply<'_> {
    /// Returns the changes of a step for the new session.
    pub(super) fn planned(
        &self,
        context: &PlanContext<'_>,
        step: &ReplayStep,
    ) -> Result<PlannedStep> {
        let mut all = PlannedStep::default();
        for change in &step.changes {
            let planned = self.change(context, &step.operation, change)?;
            all.changes.extend(planned.changes);
            all.number = planned.number.or(all.number);
            all.branch = planned.branch.or(all.branch);
            all.left_out = planned.left_out.or(all.left_out);
        }
        Ok(all)
    }

    fn change(
        &self,
        context: &PlanContext<'_>,
        operation: &Operation,
        change: &RecordChange,
    ) -> Result<PlannedStep> {
        let mut change = change.clone();
        match &mut change {
            RecordChange::Revision { header, .. } => {
                let header =
                    RevisionHeader::decode(&header.0).map_err(Error::corrupt("a revision"))?;
                return self.revision(context, operation, &header);
            }
            RecordChange::Checkpoint { checkpoint, .. } => {
                return self.checkpoint(context, checkpoint);
            }
            RecordChange::CheckpointShown { checkpoint, .. } => {
                if self.left_out_checkpoints.contains(&checkpoint.id) {
                    return Ok(PlannedStep::default());
                }
                self.place_checkpoint(checkpoint);
                if checkpoint::by_id(&context.view()?, self.new, &checkpoint.id)?.is_some() {
                    let checkpoint = checkpoint.clone();
                    return Ok(RecordChange::Checkpoint { session: self.new, checkpoint }.into());
                }
            }
            RecordChange::CheckpointHidden { id, last, .. } => {
                let here = context.view()?;
                if checkpoint::by_id(&here, self.new, id)?.is_none() {
                    return Ok(PlannedStep::default());
                }
                let hidden = BTreeSet::from([*id]);
                *last = checkpoint::last_time_without(&here, self.new, &hidden)?;
            }
            RecordChange::Branch { name, base, head, .. } => {
                let (before, now) = self.branch(context, (name, base, head))?;
                return Ok(PlannedStep { branch: Some((before, now)), ..change.into() });
            }
            RecordChange::BranchHidden { branch, hidden: true, .. }
                if !self.made.contains_key(branch)
                    && self.is_continued_by_others(*branch)? =>
            {
                return Ok(PlannedStep::default());
            }
            RecordChange::BranchChanged { branch, .. } => *branch = self.made_branch(*branch),
            RecordChange::BranchHidden { branch, hidden, .. } => {
                let own = *branch;
                *branch = self.made_branch(own);
                if !*hidden && self.is_name_taken(context, *branch)? {
                    let here = session_refs(&self.ours.refs, self.old)?.branch(own)?;
                    // The branch was hidden again later.
                    if here.hidden {
                        return Ok(PlannedStep::default());
                    }
                    return Err(name_taken(&here.name));
                }
            }
            RecordChange::Switched { branch, .. } => {
                *branch = self.written_branch(*branch);
            }
            RecordChange::TakesBack { operation, .. }
                // Nothing of the undone operation was written again.
                if find_operation_of(&context.view()?, self.new, operation)?.is_none() =>
            {
                return Ok(PlannedStep::default());
            }
            // Others undid the same pruning.
            RecordChange::Unfolded { branch, last, .. }
                if !self.has_folds(context, RevisionRef { branch: *branch, sequence: *last })? =>
            {
                return Ok(PlannedStep::default());
            }
            RecordChange::Segment { blob, offset, .. }
                if blob::end(&context.view()?, self.new, blob)? != *offset =>
            {
                return Err(both_read(blob));
            }
            RecordChange::Bookmark { source, .. } => self.check_bookmark(context, source)?,
            RecordChange::TextMissing { blob, .. } => return Err(both_read(blob)),
            _ => {}
        }
        Ok(change.into())
    }

    /// Returns whether revisions are folded into a revision of the new session.
    fn has_folds(&self, context: &PlanContext<'_>, at: RevisionRef) -> Result<bool> {
        Ok(fold::row(&context.view()?, self.new, at)?.is_some())
    }

    /// Returns the number that a branch has in the new session.
    fn made_branch(&self, branch: BranchNumber) -> BranchNumber {
        self.made.get(&branch).copied().unwrap_or(branch)
    }

    /// Returns whether others made another branch with the name of this branch.
    fn is_name_taken(&self, context: &PlanContext<'_>, branch: BranchNumber) -> Result<bool> {
        let refs = session_refs(&context.refs, self.new)?;
        let named = refs.branch_named(&refs.branch(branch)?.name);
        Ok(named.is_some_and(|other| other != branch))
    }

    /// Returns whether a branch, or a branch that began on it, has something in the new session
    /// that it does not have here: others wrote it. A branch whose creation was undone does not
    /// count.
    fn is_continued_by_others(&self, branch: BranchNumber) -> Result<bool> {
        let theirs = session_refs(&self.theirs.refs, self.new)?;
        let here = session_refs(&self.ours.refs, self.old)?;
        let own = theirs.branch(branch)?;
        if own.hidden {
            return Ok(false);
        }
        if let Some(head) = own.head
            && !self.is_revision_here(head)?
        {
            return Ok(true);
        }
        for number in branch + 1..theirs.branches.len() as BranchNumber {
            let other = theirs.branch(number)?;
            if other.hidden || other.base.is_none_or(|(base, _)| base != branch) {
                continue;
            }
            let is_shared = here
                .branches
                .get(number as usize)
                .is_some_and(|own| own.name == other.name && own.base == other.base);
            if !is_shared || self.is_continued_by_others(number)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_revision_here(&self, head: BranchHead) -> Result<bool> {
        let Some(SequenceRow::Revision(branch)) =
            lineage::sequence_row(self.ours, self.old, head.sequence)?
        else {
            return Ok(false);
        };
        let at = RevisionRef { branch, sequence: head.sequence };
        Ok(timeline::head_at(self.ours, self.old, at)?.0.id == head.id)
    }

    /// Plans a revision with the changes of the revision that has this header.
    fn revision(
        &self,
        context: &PlanContext<'_>,
        operation: &Operation,
        header: &RevisionHeader,
    ) -> Result<PlannedStep> {
        let at = RevisionRef { branch: header.branch, sequence: header.sequence };
        let ours = self.ours;
        let before = timeline::parent_of(ours, &ours.refs, self.old, at)?;
        let done = compare(ours, &ours.refs, self.old, before, Some(at))?;
        let restored =
            |change| revision_plan::restoring_change(ours, &ours.refs, self.old, Some(at), change);
        let changes: Vec<ClaimChange> = done.into_iter().map(restored).collect::<Result<_>>()?;
        let branch = self.written_branch(at.branch);
        let place = CommitTarget { session: self.new, branch, time: header.time, operation };
        let merged =
            header.parents.get(1).map(|merged| self.parent(context, merged)).transpose()?;
        // Written even if it changes nothing: others may have made the same changes, or a purge
        // removed the difference.
        let planned = revision_plan::plan_always(context, place, &changes, merged)?;
        let number = Some((at.sequence, planned.head.sequence));
        Ok(PlannedStep { changes: planned.changes, number, ..PlannedStep::default() })
    }

    /// Returns a parent of a revision, with the parent's number and id in the new session.
    fn parent(&self, context: &PlanContext<'_>, parent: &ParentRevision) -> Result<ParentRevision> {
        let Some(sequence) = self.numbers.get(&parent.sequence) else { return Ok(*parent) };
        let head = self.head(context, *sequence)?;
        Ok(ParentRevision { sequence: head.sequence, id: head.id })
    }

    fn head(&self, context: &PlanContext<'_>, sequence: u64) -> Result<BranchHead> {
        let view = context.view()?;
        match lineage::sequence_row(&view, self.new, sequence)? {
            Some(SequenceRow::Revision(branch)) => {
                Ok(timeline::head_at(&view, self.new, RevisionRef { branch, sequence })?.0)
            }
            _ => Err(Error::missing(format!("revision #{sequence}"))),
        }
    }

    fn checkpoint(&self, context: &PlanContext<'_>, known: &Checkpoint) -> Result<PlannedStep> {
        if self.left_out_checkpoints.contains(&known.id) {
            return Ok(PlannedStep::default());
        }
        let mut checkpoint = known.clone();
        let here = context.view()?;
        let row = lineage::sequence_row(&here, self.new, known.sequence)?;
        let is_shared = !self.numbers.contains_key(&known.sequence)
            && row == Some(SequenceRow::Checkpoint(known.id));
        self.place_checkpoint(&mut checkpoint);
        let number = match self.numbers.get(&known.sequence) {
            Some(_) => None,
            // Others undid the creation of the checkpoint.
            None if is_shared && checkpoint::by_id(&here, self.new, &known.id)?.is_none() => {
                return Ok(PlannedStep::default());
            }
            None if is_shared => None,
            None => {
                if let Some(revision) = checkpoint.revision {
                    self.check_not_pruned(&here, revision)?;
                }
                if let Some(event) = &checkpoint.key
                    && let Some(recorded) = checkpoint::by_key(&here, self.new, event)?
                {
                    let number = Some((known.sequence, recorded.sequence));
                    let left_out = Some(known.id);
                    return Ok(PlannedStep { number, left_out, ..PlannedStep::default() });
                }
                checkpoint.sequence = session_refs(&context.refs, self.new)?.next_sequence;
                Some((known.sequence, checkpoint.sequence))
            }
        };
        let change = RecordChange::checkpoint(self.new, checkpoint);
        Ok(PlannedStep { number, ..change.into() })
    }

    /// Gives a checkpoint the numbers of the new session.
    fn place_checkpoint(&self, checkpoint: &mut Checkpoint) {
        let own = checkpoint.revision.is_some_and(|revision| self.numbers.contains_key(&revision));
        let branch = checkpoint.branch;
        let moved = self.moved.get(&branch).filter(|_| own);
        let other = self.made.get(&branch).or(moved);
        checkpoint.branch = other.copied().unwrap_or(branch);
        let now = |number: u64| self.numbers.get(&number).copied().unwrap_or(number);
        checkpoint.revision = checkpoint.revision.map(now);
        checkpoint.sequence = now(checkpoint.sequence);
    }

    /// Gives a new branch its name, base and head in the new session. Returns its number in the old
    /// session, and in the new one.
    fn branch(
        &self,
        context: &PlanContext<'_>,
        (name, base, head): (&mut String, &mut BranchNumber, &mut Option<BranchHead>),
    ) -> Result<(BranchNumber, BranchNumber)> {
        let refs = session_refs(&context.refs, self.new)?;
        let moved_head = head.and_then(|head| self.numbers.get(&head.sequence));
        let moved = self.moved.get(base).filter(|_| moved_head.is_some());
        match (moved_head, &head) {
            (Some(now), _) => *head = Some(self.head(context, *now)?),
            (None, Some(head)) => self.check_not_pruned(&context.view()?, head.sequence)?,
            (None, None) => {}
        }
        *base = self.made.get(base).or(moved).copied().unwrap_or(*base);
        if refs.branch_named(name).is_some() {
            *name = self.free_branch_name(refs, name);
        }
        Ok((self.next_branch, refs.branches.len() as BranchNumber))
    }

    /// Returns a name for a branch that no other branch has.
    pub(super) fn free_branch_name(&self, refs: &SessionRefs, name: &str) -> String {
        let first = format!("{}.{}", without_tag(name), self.tag);
        let numbered = (2_u64..).map(|count| format!("{first}-{count}"));
        let mut names = std::iter::once(first.clone()).chain(numbered);
        names.find(|name| refs.branch_named(name).is_none()).unwrap_or(first.clone())
    }

    /// Checks that others did not import more of a source than was imported here.
    fn check_bookmark(&self, context: &PlanContext<'_>, source: &str) -> Result<()> {
        let at = |refs: &SessionRefs| {
            refs.bookmarks.iter().find(|known| known.source == source).map(|known| known.bytes)
        };
        let theirs = at(session_refs(&context.refs, self.new)?);
        let ours = at(session_refs(&self.ours.refs, self.old)?);
        if theirs > ours { Err(both_read(source)) } else { Ok(()) }
    }
}

/// Returns the name of a branch without the tag that an earlier join gave it.
fn without_tag(name: &str) -> &str {
    let is_tag = |end: &str| {
        let tag = end.split_once('-').map_or(end, |(tag, _)| tag);
        tag.len() == TAG_DIGITS && tag.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    match name.rsplit_once('.') {
        Some((name, end)) if is_tag(end) => name,
        _ => name,
    }
}

fn both_read(source: &str) -> Error {
    Error::Conflict(format!(
        "'{source}' was read further here and on the remote: both cannot be joined. {KEPT_APART}"
    ))
}

fn name_taken(name: &str) -> Error {
    Error::Conflict(format!(
        "the creation of the branch '{name}' was redone here, and others made another branch of \
         its name: both cannot be joined until the redo is undone"
    ))
}
