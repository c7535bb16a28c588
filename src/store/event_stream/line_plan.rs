//! Plans what a line of an event stream changes: checkpoints, tags and branches. Resolves the
//! revision selectors in it.

use crate::engine::lineage::{self, RevisionRef};
use crate::engine::plan_context::PlanContext;
use crate::engine::refs::{MAIN, session as session_refs};
use crate::engine::{checkpoint, timeline};
use crate::error::{Error, Result};
use crate::format::{
    BranchChange, BranchEvent, CheckpointEvent, RecordChange, RevisionSelector, SequenceRow,
    SessionRefs, TagEvent,
};
use crate::model::{
    BranchMetadata, BranchNumber, Checkpoint, CheckpointId, SessionNumber, Timestamp,
};
use crate::store::CheckpointFilter;
use crate::store::branch::check_branch_name;
use crate::store::validate::check_tag;

/// Checks that a revision at this time is not before the last revision of the branch.
pub(super) fn check_not_before_head(
    refs: &SessionRefs,
    branch: BranchNumber,
    at: Timestamp,
) -> Result<()> {
    let branch = refs.branch(branch)?;
    match branch.head.filter(|head| head.effective > at) {
        None => Ok(()),
        Some(head) => Err(Error::invalid(format!(
            "{at} is before the last revision of '{}', which was made at {}: use that time or a \
             later one",
            branch.name, head.effective
        ))),
    }
}

/// Returns the revision that a selector names; `None` for the state before the first revision.
/// `branch` is the branch of the line.
pub(super) fn resolve_selector(
    context: &PlanContext<'_>,
    number: SessionNumber,
    branch: &str,
    target: &RevisionSelector,
) -> Result<Option<RevisionRef>> {
    let view = context.view()?;
    if let Some(tag) = &target.tag {
        let filter = CheckpointFilter { tag: Some(tag.clone()), ..Default::default() };
        let newest = checkpoint::list(&view, number, &filter)?.into_iter().next();
        let newest = newest.ok_or_else(|| Error::not_found("tag", tag.clone()))?;
        let Some(sequence) = newest.revision else { return Ok(None) };
        return match lineage::sequence_row(&view, number, sequence)? {
            Some(SequenceRow::Revision(branch)) => Ok(Some(RevisionRef { branch, sequence })),
            _ => Err(Error::missing(format!("revision #{sequence}"))),
        };
    }
    let Some(time) = target.at else { return Ok(None) };
    let refs = session_refs(&context.refs, number)?;
    let name = target.branch.as_deref().unwrap_or(branch);
    let on = refs.branch_by_name(name)?;
    let (at, _) =
        timeline::revision_at(&view, &context.refs, number, on, time)?.ok_or_else(|| {
            Error::invalid(format!(
                "branch '{name}' has no revision at or before {time}: use a later 'at'"
            ))
        })?;
    match target.back {
        0 => Ok(Some(at)),
        back => timeline::nth_ancestor(&view, &context.refs, number, at, back)?
            .ok_or_else(|| {
                Error::invalid(format!(
                    "branch '{name}' has no revision {back} before the one at {time}: use a smaller \
                     'back'"
                ))
            })
            .map(Some),
    }
}

/// Returns the checkpoint that a line makes; `None` if it exists already with the same content. A
/// checkpoint with the same event key is replaced and keeps its id and number. `new_head` is the
/// number of the revision that the record of this line makes, if it makes one.
pub(super) fn make_checkpoint(
    context: &PlanContext<'_>,
    refs: &SessionRefs,
    (session, branch): (SessionNumber, BranchNumber),
    (id, time): (CheckpointId, Timestamp),
    event: &CheckpointEvent,
    new_head: Option<u64>,
) -> Result<Option<Checkpoint>> {
    let own = refs.branch(branch)?;
    let revision = match &event.of {
        Some(target) => {
            resolve_selector(context, session, &own.name, target)?.map(|at| at.sequence)
        }
        None => new_head.or(own.head.map(|head| head.sequence)),
    };
    let known = event.key.as_ref().map(|key| checkpoint::by_key(&context.view()?, session, key));
    let known = known.transpose()?.flatten();
    let mut tags = event.tags.clone();
    tags.sort();
    tags.dedup();
    let made = Checkpoint {
        id,
        sequence: refs.next_sequence + u64::from(new_head.is_some()),
        time,
        branch,
        revision,
        message: event.message.clone(),
        tags,
        trigger: event.trigger,
        body: event.body.clone().without_nulls(),
        key: event.key.clone(),
    };
    Ok(match known {
        Some(known) => checkpoint::replaced(&known, made),
        None => Some(made),
    })
}

/// Returns the newest checkpoint with this message or tag, with its tags changed as the line says.
pub(super) fn retagged_checkpoint(
    context: &PlanContext<'_>,
    number: SessionNumber,
    event: &TagEvent,
) -> Result<Checkpoint> {
    event.add.iter().try_for_each(|tag| check_tag(tag))?;
    let name = &event.checkpoint;
    let all = checkpoint::list(&context.view()?, number, &CheckpointFilter::default())?;
    let found = all.into_iter().find(|one| one.message == *name || one.tags.contains(name));
    let mut found = found.ok_or_else(|| Error::not_found("checkpoint", name.clone()))?;
    found.tags.retain(|tag| !event.remove.contains(tag));
    found.tags.extend(event.add.iter().cloned());
    found.tags.sort();
    found.tags.dedup();
    Ok(found)
}

/// Returns the changes that a branch line makes: a new branch, or changes of an existing one.
pub(super) fn branch_changes(
    context: &PlanContext<'_>,
    refs: &SessionRefs,
    session: SessionNumber,
    time: Timestamp,
    event: &BranchEvent,
) -> Result<Vec<RecordChange>> {
    let merged_metadata = |old: &BranchMetadata| BranchMetadata {
        hypothesis: event.hypothesis.clone().unwrap_or_else(|| old.hypothesis.clone()),
        approach: event.approach.clone().unwrap_or_else(|| old.approach.clone()),
        success_criteria: event
            .success_criteria
            .clone()
            .unwrap_or_else(|| old.success_criteria.clone()),
        results: event.results.clone().unwrap_or_else(|| old.results.clone()),
        extra: event.extra.clone().unwrap_or_else(|| old.extra.clone()),
    };
    if let Some(branch) = refs.branch_named(&event.name) {
        if event.from.is_some() || event.base.is_some() {
            return Err(Error::Duplicate { kind: "branch", id: event.name.clone() });
        }
        let old = refs.branch(branch)?.latest_change();
        let status = event.status.unwrap_or(old.status);
        let metadata = merged_metadata(&old.metadata);
        let mut changes = Vec::new();
        if (status, &metadata) != (old.status, &old.metadata) {
            let change = BranchChange { time, status, metadata };
            changes.push(RecordChange::branch_changed(session, branch, change));
        }
        if let Some(hidden) = event.taken_back {
            changes.push(RecordChange::BranchHidden { session, branch, hidden });
        }
        return Ok(changes);
    }
    check_branch_name(&event.name)?;
    let from = event.from.as_deref().unwrap_or(MAIN);
    let on = refs.branch_by_name(from)?;
    let at = match &event.base {
        Some(target) => resolve_selector(context, session, from, target)?,
        None => timeline::head_of(&context.refs, session, on)?,
    };
    let (base, head) = match at {
        None => (on, None),
        Some(at) => (at.branch, Some(timeline::head_at(&context.view()?, session, at)?.0)),
    };
    let status = event.status.unwrap_or_default();
    let change =
        BranchChange { time, status, metadata: merged_metadata(&BranchMetadata::default()) };
    let name = event.name.clone();
    Ok(vec![RecordChange::Branch { session, name, base, head, change: Box::new(change) }])
}
