//! Merges one branch into another, and previews merges.

use super::redaction_gate::RedactionCounts;
use super::session::Session;
use super::validate::check_claim;
use super::write_context::WriteContext;
use crate::diff::{self, AncestorState, ClaimConflict, ClaimMap, ConflictResolution, MergeSide};
use crate::engine::commit::CommitDurability;
use crate::engine::compare::compare;
use crate::engine::lineage::RevisionRef;
use crate::engine::merge_base::{
    MergeRevision, RevisionAncestry, ancestry, bases, merge_revisions,
};
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::{CommitTarget, PlannedRevision};
use crate::engine::random::random;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::StoreRefs;
use crate::engine::refs::session as session_refs;
use crate::engine::revision_plan;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{BranchChange, BranchHead, ParentRevision, Record, RecordChange, ResetSource};
use crate::model::{
    AutoTrigger, BranchNumber, BranchStatus, Checkpoint, CheckpointId, CheckpointTrigger,
    EntryChange, Key, Operation, OperationId, RevisionId, SessionNumber,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The branches to merge, and how conflicts are settled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeRequest {
    /// The branch whose changes are merged.
    pub source: String,
    /// The branch to merge into; `None` for the current branch.
    pub target: Option<String>,
    /// The side that is taken for a conflict that `settled` does not contain. With `None`, such a
    /// conflict prevents the merge.
    pub prefer: Option<MergeSide>,
    /// How conflicts are settled, by claim and field (`None` for the claim as a whole).
    pub settled: BTreeMap<(Key, Option<String>), ConflictResolution>,
    /// Whether the merge makes no checkpoint.
    pub without_checkpoint: bool,
}

/// The outcome of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeResult {
    /// The target already contains the source, so nothing was written.
    AlreadyMerged,
    /// The target did not change since the fork, so it gets the claims of the source.
    FastForward,
    /// The target gets the changes of both branches.
    Merged,
    /// A conflict is not settled, so nothing was written.
    Conflicts,
}

/// A conflict, and how it was settled.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeConflict {
    /// The conflicting changes.
    pub conflict: ClaimConflict,
    /// How it was settled; `None` if it is not settled.
    pub settled: Option<ConflictResolution>,
}

/// What a merge did, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeReport {
    /// The id of the operation, for `undo`; `None` if nothing was written.
    pub operation: Option<OperationId>,
    /// The branch whose changes are merged.
    pub source: String,
    /// The branch into which they are merged.
    pub target: String,
    /// The numbers of the merge bases, newest first; empty if the branches have no revision in
    /// common.
    pub bases: Vec<u64>,
    /// The outcome.
    pub result: MergeResult,
    /// The conflicts, by claim and field.
    pub conflicts: Vec<MergeConflict>,
    /// The changes on the target.
    pub changes: Vec<EntryChange>,
    /// The number and id of the revision of the merge; `None` if nothing was written.
    pub revision: Option<(u64, RevisionId)>,
    /// The checkpoint of the merge, if it made one.
    pub checkpoint: Option<Checkpoint>,
}

/// A computed merge.
struct MergePlan {
    source: (BranchNumber, Option<BranchHead>),
    target: BranchNumber,
    report: MergeReport,
}

/// The tag of a merge's checkpoint.
const TAG: &str = "branch_merged";
/// If two branches have several merge bases, these are merged first, recursively. Below this depth,
/// a difference between two of them counts as changed by both sides.
const MAX_DEPTH: usize = 6;

impl Session {
    /// Returns what a merge would do. Writes nothing.
    pub fn merge_preview(&self, merging: &MergeRequest) -> Result<MergeReport> {
        let view = self.view()?;
        Ok(self.plan_from(&view, &view.refs, &self.clean(merging))?.report)
    }

    /// Merges the changes of one branch into another, by a revision with two parents.
    ///
    /// Both branches are compared with their merge base. If a conflict is not settled by `merging`,
    /// nothing is written. No rules apply, except that evidence of both sides may move a
    /// confidence.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a branch that does not exist; [`Error::Invalid`] if a branch is
    /// merged into itself, or if `merging` settles what is not a conflict; [`Error::Dangling`] if a
    /// claim would refer to a missing claim after settling; also if the store cannot be written.
    pub fn merge(&self, act: &WriteContext, merging: &MergeRequest) -> Result<MergeReport> {
        self.merge_as(&act.operation()?, CommitDurability::Now, merging)
    }

    /// Merges like [`Session::merge`], as this operation.
    pub(super) fn merge_as(
        &self,
        operation: &Operation,
        durability: CommitDurability,
        merging: &MergeRequest,
    ) -> Result<MergeReport> {
        let merging = self.clean(merging);
        let id = CheckpointId::from_bytes(random()?);
        self.store.engine.commit(durability, &mut |context| {
            let view = context.view()?;
            let mut plan = self.plan_from(&view, &context.refs, &merging)?;
            let planned = match plan.report.result {
                MergeResult::AlreadyMerged | MergeResult::Conflicts => {
                    return Ok((None, plan.report));
                }
                MergeResult::FastForward | MergeResult::Merged => {
                    self.plan_merge(context, operation, &plan)?
                }
            };
            let session = session_refs(&context.refs, self.number)?;
            let head = planned.head;
            let mut changes = planned.changes;
            let now = session.branch(plan.source.0)?.latest_change();
            if now.status != BranchStatus::Merged {
                let (status, metadata) = (BranchStatus::Merged, now.metadata.clone());
                let change = BranchChange { time: operation.time, status, metadata };
                let branch = plan.source.0;
                changes.push(RecordChange::branch_changed(self.number, branch, change));
            }
            if !merging.without_checkpoint {
                let checkpoint = Checkpoint {
                    branch: plan.target,
                    revision: Some(head.sequence),
                    message: format!("merged {} into {}", merging.source, plan.report.target),
                    tags: vec!["auto".to_owned(), TAG.to_owned()],
                    trigger: CheckpointTrigger::Automatic(AutoTrigger::BranchSwitch),
                    ..Checkpoint::new(id, head.sequence + 1, operation.time)
                };
                changes.push(RecordChange::checkpoint(self.number, checkpoint.clone()));
                plan.report.checkpoint = Some(checkpoint);
            }
            plan.report.operation = Some(operation.id);
            plan.report.revision = Some((head.sequence, head.id));
            Ok((Some(Record { operation: operation.clone(), changes }), plan.report))
        })
    }

    /// Redacts the values given for conflicts.
    fn clean(&self, merging: &MergeRequest) -> MergeRequest {
        let mut merging = merging.clone();
        let mut removed = RedactionCounts::new();
        for settled in merging.settled.values_mut() {
            if let ConflictResolution::Value(value) = settled {
                self.store.gate().value(value, &mut removed);
            }
        }
        merging
    }

    fn plan_merge(
        &self,
        context: &PlanContext<'_>,
        operation: &Operation,
        plan: &MergePlan,
    ) -> Result<PlannedRevision> {
        let (session, branch) = (self.number, plan.target);
        let place = CommitTarget { session, branch, time: operation.time, operation };
        let source = plan.source.1.ok_or_else(|| {
            Error::Internal("a branch without revisions cannot be merged".to_owned())
        })?;
        let parent = ParentRevision { sequence: source.sequence, id: source.id };
        if plan.report.result == MergeResult::FastForward {
            let claims = (source.digest, source.count);
            return revision_plan::plan_reset(
                context,
                place,
                ResetSource::To(parent),
                claims,
                &[parent],
            );
        }
        let view = context.view()?;
        let theirs = timeline::head_of(&context.refs, session, plan.source.0)?;
        let changes = plan.report.changes.iter().map(|change| {
            let mut change = revision_plan::restoring_change(
                &view,
                &context.refs,
                session,
                theirs,
                change.clone(),
            )?;
            check_claim(&mut change).map(|()| change)
        });
        revision_plan::plan_always(
            context,
            place,
            &changes.collect::<Result<Vec<_>>>()?,
            Some(parent),
        )
    }

    fn plan_from(
        &self,
        view: &ReadSnapshot,
        refs: &StoreRefs,
        merging: &MergeRequest,
    ) -> Result<MergePlan> {
        let session = session_refs(refs, self.number)?;
        let source = session.branch_by_name(&merging.source)?;
        let target = match &merging.target {
            Some(name) => session.branch_by_name(name)?,
            None => session.current_branch,
        };
        if source == target {
            return Err(Error::invalid(format!(
                "'{}' cannot be merged into itself: name another branch",
                merging.source
            )));
        }
        let report = MergeReport {
            operation: None,
            source: merging.source.clone(),
            target: session.branch(target)?.name.clone(),
            bases: Vec::new(),
            result: MergeResult::AlreadyMerged,
            conflicts: Vec::new(),
            changes: Vec::new(),
            revision: None,
            checkpoint: None,
        };
        let head = session.branch(source)?.head;
        let mut plan = MergePlan { source: (source, head), target, report };
        let Some(theirs) = timeline::head_of(refs, self.number, source)? else {
            return Ok(plan);
        };
        let ours = timeline::head_of(refs, self.number, target)?;
        let known = MergeContext {
            view,
            refs,
            number: self.number,
            joints: merge_revisions(view, self.number)?,
        };
        let own = known.ancestry(ours)?;
        let other = known.ancestry(Some(theirs))?;
        let common = bases(view, refs, self.number, &known.joints, (&own, &other))?;
        plan.report.bases = common.iter().map(|(at, _)| at.sequence).collect();
        if own.holds(theirs) {
            return Ok(plan);
        }
        if ours.is_none_or(|ours| other.holds(ours)) {
            plan.report.result = MergeResult::FastForward;
            plan.report.changes = compare(view, refs, self.number, ours, Some(theirs))?;
            check_resolutions_used(merging, &BTreeSet::new())?;
            return Ok(plan);
        }
        let (base, ours, theirs) = known.sides(&common, ours, theirs)?;
        let mut settled = Vec::new();
        let merge = diff::merge_by(&base, &ours, &theirs, &mut |conflict| {
            let place = (conflict.key.clone(), conflict.field.clone());
            let by = merging.settled.get(&place).cloned();
            let by = by.or(merging.prefer.map(ConflictResolution::Side));
            settled.push((place, by.clone()));
            by.unwrap_or(ConflictResolution::Side(MergeSide::Ours))
        });
        let settled: BTreeMap<_, _> = settled.into_iter().collect();
        check_resolutions_used(merging, &settled.keys().cloned().collect())?;
        let conflicts = merge.conflicts.into_iter().map(|conflict| {
            let place = (conflict.key.clone(), conflict.field.clone());
            MergeConflict { settled: settled.get(&place).cloned().flatten(), conflict }
        });
        plan.report.conflicts = conflicts.collect();
        plan.report.changes = diff::compare(&ours, &merge.state);
        plan.report.result = MergeResult::Merged;
        if plan.report.conflicts.iter().any(|one| one.settled.is_none()) {
            plan.report.result = MergeResult::Conflicts;
        } else if let Some((from, to)) = diff::dangling(&ours, &theirs, &merge.state).pop() {
            return Err(Error::Dangling { from: from.to_string(), to: to.to_string() });
        }
        Ok(plan)
    }
}

/// Checks that `merging` settles only conflicts.
fn check_resolutions_used(
    merging: &MergeRequest,
    conflicts: &BTreeSet<(Key, Option<String>)>,
) -> Result<()> {
    match merging.settled.keys().find(|place| !conflicts.contains(place)) {
        None => Ok(()),
        Some((key, field)) => {
            let field = field.as_ref().map(|field| format!(", field '{field}',"));
            Err(Error::invalid(format!(
                "the {key}{} is not in conflict: settle only the reported conflicts",
                field.unwrap_or_default()
            )))
        }
    }
}

/// The data from which a merge is computed.
struct MergeContext<'a> {
    view: &'a ReadSnapshot,
    refs: &'a StoreRefs,
    number: SessionNumber,
    /// The merges of the session, by which the ancestry of a revision is found.
    joints: Vec<MergeRevision>,
}

type CommonAncestors = [(RevisionRef, RevisionAncestry)];

impl MergeContext<'_> {
    fn ancestry(&self, at: Option<RevisionRef>) -> Result<RevisionAncestry> {
        match at {
            None => Ok(RevisionAncestry::default()),
            Some(at) => ancestry(self.view, self.refs, self.number, &self.joints, at),
        }
    }

    /// Returns the states of the common ancestor and of both sides. With one common ancestor or
    /// none, they have only the claims that may differ.
    fn sides(
        &self,
        common: &CommonAncestors,
        ours: Option<RevisionRef>,
        theirs: RevisionRef,
    ) -> Result<(AncestorState, ClaimMap, ClaimMap)> {
        if let [] | [_] = common {
            let base = common.first().map(|(at, _)| *at);
            let own = compare(self.view, self.refs, self.number, base, ours)?;
            let other = compare(self.view, self.refs, self.number, base, Some(theirs))?;
            let mut state = ClaimMap::new();
            for change in own.iter().chain(&other) {
                state.extend(change.old.clone().map(|entry| (change.key.clone(), entry)));
            }
            let applied = |changes: &[EntryChange]| {
                let mut state = state.clone();
                diff::apply(&mut state, changes);
                state
            };
            return Ok((state.clone().into(), applied(&own), applied(&other)));
        }
        let base = self.ancestor(common, 0)?;
        Ok((base, self.state(ours)?, self.state(Some(theirs))?))
    }

    fn state(&self, at: Option<RevisionRef>) -> Result<ClaimMap> {
        let all = compare(self.view, self.refs, self.number, None, at)?;
        Ok(all.into_iter().filter_map(|change| Some((change.key, change.new?))).collect())
    }

    /// Merges several common ancestors into one state.
    fn ancestor(&self, common: &CommonAncestors, depth: usize) -> Result<AncestorState> {
        let Some(((first, reach), rest)) = common.split_first() else {
            return Ok(AncestorState::default());
        };
        let mut found: AncestorState = self.state(Some(*first))?.into();
        let mut reach = reach.clone();
        for (at, other) in rest {
            let base = if depth < MAX_DEPTH {
                let before = (&reach, other);
                let before = bases(self.view, self.refs, self.number, &self.joints, before)?;
                Some(self.ancestor(&before, depth + 1)?)
            } else {
                None
            };
            found = found.with(base.as_ref(), &self.state(Some(*at))?);
            reach = reach.joined(other);
        }
        Ok(found)
    }
}
