//! Finds the session and the branch that a write goes to. The write itself may begin them.

use super::SessionWrite;
use crate::engine::plan_context::PlanContext;
use crate::engine::refs::{self, StoreRefs, advance_by, session as session_refs};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{BranchChange, RecordChange, SessionRefs};
use crate::model::{
    BranchMetadata, BranchNumber, BranchStatus, SessionMetadata, SessionNumber, Timestamp,
};
use crate::store::branch::check_branch_name;
use crate::store::resolve_moment::ResolvedMoment;
use std::collections::BTreeSet;

/// The session that a write goes to.
#[derive(Clone, Debug)]
pub(super) enum SessionTarget {
    /// A session that exists.
    Known(SessionNumber),
    /// The session of this kind and name. If there is none, the write begins it.
    Named(Box<SessionMetadata>),
}

impl SessionTarget {
    /// Returns the number of a known session; 0 for a session that is only named.
    pub(super) const fn number(&self) -> SessionNumber {
        match self {
            Self::Known(number) => *number,
            Self::Named(_) => 0,
        }
    }
}

/// The revision that a write follows.
#[derive(Clone, Debug)]
pub(super) struct PrecedingRevision {
    pub(super) moment: ResolvedMoment,
    /// The name of the branch to begin at the revision if another revision follows it already.
    pub(super) fork: Option<String>,
}

/// The session and branch that a write goes to, and the changes that begin them.
pub(super) struct WritePlace {
    pub(super) session: SessionNumber,
    /// The branch of the new revision.
    pub(super) branch: BranchNumber,
    /// The branch of the checkpoint if no claim changes. Then the write begins no branch.
    pub(super) branch_as_is: BranchNumber,
    /// The change that begins the session, if it does not exist.
    pub(super) begun_session: Option<RecordChange>,
    /// The changes that begin the branch and check it out.
    pub(super) branch_changes: Vec<RecordChange>,
    /// The refs after these changes; `None` if there are none.
    pub(super) refs: Option<StoreRefs>,
}

impl WritePlace {
    pub(super) fn begins_branch(&self) -> bool {
        matches!(self.branch_changes.first(), Some(RecordChange::Branch { .. }))
    }
}

impl SessionWrite<'_> {
    /// Finds the session and branch of the write. If the write begins them, they are added to a
    /// copy of the refs, so that the rest of the plan finds them like any others.
    pub(super) fn place(&self, context: &PlanContext<'_>, time: Timestamp) -> Result<WritePlace> {
        let mut refs = None;
        let (number, begun_session) = self.session_number(&context.refs)?;
        if let Some(change) = &begun_session {
            advance_by(refs.get_or_insert_with(|| StoreRefs::clone(&context.refs)), change)?;
        }
        let session = session_refs(refs.as_ref().unwrap_or(&context.refs), number)?;
        let (branch, begins) = match (&self.preceding, &self.branch) {
            // A write that changes no claim begins no branch.
            (Some(preceding), _) if self.steps.is_empty() => (preceding.moment.branch, None),
            (Some(preceding), _) => {
                self.branch_after(context, (number, session), preceding, time)?
            }
            (None, None) => (session.current_branch, None),
            (None, Some(name)) => (session.branch_by_name(name)?, None),
        };
        let branch_as_is = match &self.preceding {
            Some(preceding) if begins.is_some() => preceding.moment.branch,
            _ => branch,
        };
        let mut branch_changes = Vec::from_iter(begins);
        if self.preceding.is_some() && session.current_branch != branch {
            branch_changes.push(RecordChange::switched(number, branch, time));
        }
        for change in &branch_changes {
            advance_by(refs.get_or_insert_with(|| StoreRefs::clone(&context.refs)), change)?;
        }
        let session = number;
        Ok(WritePlace { session, branch, branch_as_is, begun_session, branch_changes, refs })
    }

    /// Returns the number of the session, and the change that begins it if it does not exist.
    fn session_number(&self, refs: &StoreRefs) -> Result<(SessionNumber, Option<RecordChange>)> {
        let info = match &self.target {
            SessionTarget::Known(number) => return Ok((*number, None)),
            SessionTarget::Named(info) => info,
        };
        if let Some(number) = refs::of_kind(refs, info.kind, &info.name)? {
            return Ok((number, None));
        }
        let number = refs.sessions.len() as SessionNumber;
        Ok((number, Some(RecordChange::Session { info: Box::new(SessionMetadata::clone(info)) })))
    }

    /// Returns the branch whose head is the preceding revision. If there is none, returns the
    /// number of a new branch, and the change that begins it.
    fn branch_after(
        &self,
        context: &PlanContext<'_>,
        (number, session): (SessionNumber, &SessionRefs),
        preceding: &PrecedingRevision,
        time: Timestamp,
    ) -> Result<(BranchNumber, Option<RecordChange>)> {
        let moment = &preceding.moment;
        let is_head = |branch: BranchNumber| -> Result<bool> {
            let refs = session.branch(branch)?;
            Ok(!refs.hidden && refs.head.map(|head| head.sequence) == moment.revision())
        };
        let own = moment.at.map_or(moment.branch, |at| at.branch);
        // The current branch may have been created at the revision and checked out afterwards.
        for branch in [moment.branch, own, session.current_branch] {
            if is_head(branch)? {
                return Ok((branch, None));
            }
        }
        let Some(name) = &preceding.fork else {
            let revision = match moment.revision() {
                Some(sequence) => format!("#{sequence}"),
                None => format!("the beginning of '{}'", session.branch(own)?.name),
            };
            return Err(Error::Conflict(format!(
                "another revision already follows {revision}: write after that revision, or name a \
                 new branch"
            )));
        };
        let name = free_branch_name(session, name);
        check_branch_name(&name)?;
        let head = moment.at.map(|at| timeline::head_at(&context.view()?, number, at));
        let head = head.transpose()?.map(|(head, _)| head);
        let metadata = BranchMetadata::default();
        let change = BranchChange { time, status: BranchStatus::Active, metadata };
        let begins = RecordChange::Branch {
            session: number,
            name,
            base: own,
            head,
            change: Box::new(change),
        };
        Ok((session.branches.len() as BranchNumber, Some(begins)))
    }
}

/// Returns the name if no branch has it, else the first of `name-2`, `name-3`, ... that is free.
fn free_branch_name(session: &SessionRefs, name: &str) -> String {
    if session.branch_named(name).is_none() {
        return name.to_owned();
    }
    let branches = session.branches.iter().filter(|branch| !branch.hidden);
    let taken: BTreeSet<&str> = branches.map(|branch| branch.name.as_str()).collect();
    let mut names = (2_u64..).map(|count| format!("{name}-{count}"));
    names.find(|numbered| !taken.contains(numbered.as_str())).unwrap_or_default()
}
