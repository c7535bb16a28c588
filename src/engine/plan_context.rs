//! The input for planning a write: the refs, a snapshot on demand, and cached heads of branches.

use super::encoded_change::DigestedEntry;
use super::head_cache::HeadCache;
use super::journal_follower::JournalFollower;
use super::read_snapshot::ReadSnapshot;
use super::state::RevisionState;
use crate::engine::refs::StoreRefs;
use crate::error::Result;
use crate::format::{BranchHead, Record};
use crate::model::{BranchNumber, SessionNumber};
use std::sync::Arc;

/// Plans the record of a commit, if any, and computes the result of the commit. It is called again
/// if another writer appends first.
pub(crate) type RecordPlanner<'a, T> =
    &'a mut dyn FnMut(&PlanContext<'_>) -> Result<PlannedRecord<T>>;

/// The record to be written, if any, and the result of the commit.
pub(crate) type PlannedRecord<T> = (Option<Record>, T);

/// The input of a [`RecordPlanner`].
pub(crate) struct PlanContext<'a> {
    pub(super) follower: &'a JournalFollower,
    pub(super) heads: &'a HeadCache,
    pub(crate) refs: Arc<StoreRefs>,
    /// Whether the append lock is held. Then the known tail is up to date, and the journal is not
    /// read.
    pub(super) locked: bool,
}

impl PlanContext<'_> {
    /// Returns the same context with refs that include changes of the record that is being planned,
    /// such as a new branch.
    pub(crate) fn with_refs(&self, refs: StoreRefs) -> Self {
        Self { refs: Arc::new(refs), ..*self }
    }

    /// Returns the snapshot that the plan is based on. Reading only the refs is cheaper. Without
    /// the append lock it may be newer than the refs, but then the write is planned again.
    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        if self.locked { self.follower.view_known() } else { self.follower.written_view() }
    }

    /// Returns the entries of these keys at a branch's head.
    pub(crate) fn head_entries(
        &self,
        session: SessionNumber,
        branch: BranchNumber,
        head: Option<&BranchHead>,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<DigestedEntry>>> {
        self.heads.entries(self, (session, branch), head, keys)
    }

    /// Returns the claims at a branch's head.
    pub(crate) fn head_state(
        &self,
        session: SessionNumber,
        branch: BranchNumber,
    ) -> Result<Arc<RevisionState>> {
        self.heads.state(self, (session, branch))
    }
}
