//! Restores the claims of an earlier moment by a new revision.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::write_context::WriteContext;
use super::write_report::WriteReport;
use crate::engine::commit::CommitDurability;
use crate::engine::lineage::RevisionRef;
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::{CommitTarget, PlannedRevision};
use crate::engine::refs::session as session_refs;
use crate::engine::revision_plan;
use crate::engine::timeline;
use crate::error::Result;
use crate::format::{ParentRevision, Record, ResetSource};
use crate::model::StateDigest;

impl Session {
    /// Makes the claims of the current branch equal to those at a moment, by a new revision, so
    /// that nothing is lost and `undo` works. Writes nothing if they are equal already. The cost
    /// does not depend on the size of the state.
    pub fn restore(&self, act: &WriteContext, to: &ResolvedMoment) -> Result<WriteReport> {
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let session = session_refs(&context.refs, self.number)?;
            let branch = session.current_branch;
            let target =
                CommitTarget { session: self.number, branch, time: act.now, operation: &operation };
            let on = session.branch(branch)?;
            let mut report = WriteReport::begun(&operation, &session.info, &on.name);
            let planned = self.plan_reset(context, target, to.at)?;
            let current = on.head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
            if current == (planned.head.digest, planned.head.count) {
                return Ok((None, report));
            }
            report.revision = Some((planned.head.sequence, planned.head.id));
            let record = Record { operation: operation.clone(), changes: planned.changes };
            Ok((Some(record), report))
        })
    }

    /// Plans the revision that gives a branch the claims of the revision `to`, or no claims if
    /// `to` is `None`.
    pub(crate) fn plan_reset(
        &self,
        context: &PlanContext<'_>,
        target: CommitTarget<'_>,
        to: Option<RevisionRef>,
    ) -> Result<PlannedRevision> {
        let (source, claims) = match to {
            None => (ResetSource::Empty, (StateDigest::EMPTY, 0)),
            Some(at) => {
                let (head, _) = timeline::head_at(&context.view()?, self.number, at)?;
                let parent = ParentRevision { sequence: head.sequence, id: head.id };
                (ResetSource::To(parent), (head.digest, head.count))
            }
        };
        revision_plan::plan_reset(context, target, source, claims, &[])
    }
}
