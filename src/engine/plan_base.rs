//! The store that a write is planned on: the refs, and a snapshot on demand.

use super::journal_follower::JournalFollower;
use super::read_snapshot::ReadSnapshot;
use crate::engine::refs::StoreRefs;
use crate::error::Result;

/// The store that a plan is based on, without the cache of heads.
#[derive(Clone, Copy)]
pub(crate) struct PlanBase<'a> {
    pub(crate) follower: &'a JournalFollower,
    pub(crate) refs: &'a StoreRefs,
    /// Whether the append lock is held. Then the known tail is up to date, and the journal is not
    /// read.
    pub(crate) locked: bool,
}

impl PlanBase<'_> {
    /// Returns a snapshot of the store. Without the append lock it may be newer than the refs, but
    /// then the write is planned again.
    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        if self.locked { self.follower.view_known() } else { self.follower.written_view() }
    }
}
