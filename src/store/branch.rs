//! The branches of a session: creates, changes, checks out and lists them.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::write_context::WriteContext;
use crate::engine::commit::CommitDurability;
use crate::engine::random::random;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{head_branch, session as session_refs};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{BranchChange, Record, RecordChange};
use crate::model::{
    AutoTrigger, BranchMetadata, BranchStatus, Checkpoint, CheckpointId, CheckpointTrigger,
    SessionNumber, Timestamp,
};

/// A branch at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchSummary {
    /// The name of the branch.
    pub name: String,
    /// The branch and revision it was forked from; `None` for `main`. The revision is `None` if the
    /// branch had none at the fork.
    pub base: Option<(String, Option<u64>)>,
    /// The sequence number of its head at the moment.
    pub revision: Option<u64>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its status or metadata last changed, up to the moment.
    pub changed_at: Timestamp,
    /// The status of the branch.
    pub status: BranchStatus,
    /// Its hypothesis, approach, criteria of success and outcome.
    pub metadata: BranchMetadata,
    /// Whether it was checked out at the moment.
    pub current: bool,
}

impl Session {
    /// Creates a branch at a moment (`None`: at the head of the current branch). The cost does not
    /// depend on the size of the state.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if there is a branch with this name, [`Error::Invalid`] for a name that
    /// is not valid.
    pub fn create_branch(
        &self,
        act: &WriteContext,
        name: &str,
        from: Option<&ResolvedMoment>,
        mut metadata: BranchMetadata,
    ) -> Result<()> {
        check_branch_name(name)?;
        let gate = self.store.gate();
        gate.name("name", name)?;
        gate.branch(&mut metadata);
        let operation = act.operation()?;
        let change = BranchChange { time: act.now, status: BranchStatus::Active, metadata };
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let session = session_refs(&context.refs, self.number)?;
            if session.branch_named(name).is_some() {
                return Err(Error::Duplicate { kind: "branch", id: name.to_owned() });
            }
            let (base, head) = match from {
                Some(ResolvedMoment { branch, at: None, .. }) => (*branch, None),
                Some(ResolvedMoment { at: Some(at), .. }) => {
                    (at.branch, Some(timeline::head_at(&context.view()?, self.number, *at)?.0))
                }
                None => {
                    let branch = session.current_branch;
                    let head = session.branch(branch)?.head;
                    let base = match &head {
                        Some(head) => {
                            head_branch(&context.refs, self.number, branch, head.sequence)?
                        }
                        None => branch,
                    };
                    (base, head)
                }
            };
            let changes = vec![RecordChange::Branch {
                session: self.number,
                name: name.to_owned(),
                base,
                head,
                change: Box::new(change.clone()),
            }];
            Ok((Some(Record { operation: operation.clone(), changes }), ()))
        })
    }

    /// Changes a branch's status and metadata. Returns whether this changed anything.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such branch.
    pub fn update_branch(
        &self,
        act: &WriteContext,
        name: &str,
        update: impl Fn(&mut BranchStatus, &mut BranchMetadata),
    ) -> Result<bool> {
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let session = session_refs(&context.refs, self.number)?;
            let branch = session.branch_by_name(name)?;
            let old = session.branch(branch)?.latest_change();
            let (mut status, mut metadata) = (old.status, old.metadata.clone());
            update(&mut status, &mut metadata);
            if metadata != old.metadata {
                self.store.gate().branch(&mut metadata);
            }
            let changed = (status, &metadata) != (old.status, &old.metadata);
            let change = BranchChange { time: act.now, status, metadata };
            let changes = vec![RecordChange::branch_changed(self.number, branch, change)];
            let record = Record { operation: operation.clone(), changes };
            Ok((changed.then_some(record), changed))
        })
    }

    /// Checks out another branch, and makes an automatic checkpoint unless `quietly`. Returns the
    /// previous branch; `None` if the branch was checked out already.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such branch.
    pub fn switch_branch(
        &self,
        act: &WriteContext,
        name: &str,
        quietly: bool,
    ) -> Result<Option<String>> {
        let operation = act.operation()?;
        let id = CheckpointId::from_bytes(random()?);
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let session = session_refs(&context.refs, self.number)?;
            let branch = session.branch_by_name(name)?;
            if branch == session.current_branch {
                return Ok((None, None));
            }
            let left = session.branch(session.current_branch)?.name.clone();
            let mut changes = vec![RecordChange::switched(self.number, branch, act.now)];
            if !quietly {
                let checkpoint = Checkpoint {
                    branch,
                    revision: session.branch(branch)?.head.map(|head| head.sequence),
                    message: format!("switched from {left} to {name}"),
                    tags: vec!["auto".to_owned()],
                    trigger: CheckpointTrigger::Automatic(AutoTrigger::BranchSwitch),
                    ..Checkpoint::new(id, session.next_sequence, act.now)
                };
                changes.push(RecordChange::checkpoint(self.number, checkpoint));
            }
            Ok((Some(Record { operation: operation.clone(), changes }), Some(left)))
        })
    }

    /// Returns the branches as they were at a moment.
    pub fn branches(&self, moment: &ResolvedMoment) -> Result<Vec<BranchSummary>> {
        branches(&self.view()?, self.number, moment)
    }
}

pub(crate) fn branches(
    view: &ReadSnapshot,
    number: SessionNumber,
    moment: &ResolvedMoment,
) -> Result<Vec<BranchSummary>> {
    let session = session_refs(&view.refs, number)?;
    let time = moment.time.unwrap_or(Timestamp::from_micros(i64::MAX));
    let current = match moment.time {
        Some(time) => timeline::branch_at(view, number, time)?,
        None => session.current_branch,
    };
    let mut found = Vec::new();
    for (place, branch) in (0..).zip(&session.branches) {
        let created = branch.changes.first().map(|change| change.time).unwrap_or_default();
        // A change with a time before the creation of the branch counts from the creation.
        let change = branch.changes.iter().rfind(|change| change.time.max(created) <= time);
        // `main` exists before the session's first moment.
        let Some(change) = change.or_else(|| branch.changes.first().filter(|_| place == 0)) else {
            continue;
        };
        if branch.hidden {
            continue;
        }
        let base = branch
            .base
            .map(|(base, sequence)| {
                let name = session.branch(base)?.name.clone();
                Ok::<_, Error>((name, (sequence > 0).then_some(sequence)))
            })
            .transpose()?;
        let revision = match moment.time {
            None => branch.head.map(|head| head.sequence),
            Some(time) => timeline::revision_at(view, &view.refs, number, place, time)?
                .map(|(at, _)| at.sequence),
        };
        found.push(BranchSummary {
            name: branch.name.clone(),
            base,
            revision,
            created_at: created,
            changed_at: change.time.max(created),
            status: change.status,
            metadata: change.metadata.clone(),
            current: place == current,
        });
    }
    Ok(found)
}

/// Checks that the name is one that a moment expression can contain.
pub(crate) fn check_branch_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let first = name.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !first || name.len() > 100 || !name.chars().all(allowed) || name.eq_ignore_ascii_case("head")
    {
        return Err(Error::invalid(format!(
            "'{}' is not a branch name: begin with a letter, a digit or '_', then use letters, \
             digits, '-', '_', '.' or '/', at most 100 bytes; not 'head'",
            name.escape_debug()
        )));
    }
    Ok(())
}
