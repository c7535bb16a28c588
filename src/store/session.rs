//! A session of a store: its summary and its checkpoints.

use super::Store;
use crate::backend::debug_by_name;
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::commit::CommitDurability;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{JOINED, REMOVED, UNFINISHED, session as session_refs};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, SessionRefs, SessionRemoval};
use crate::model::{
    BranchNumber, Checkpoint, Operation, SessionMetadata, SessionNumber, Timestamp,
};

/// A summary of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// Whether it is the current session.
    pub current: bool,
    /// The current branch.
    pub branch: String,
    /// How many branches it has.
    pub branches: u64,
    /// The greatest sequence number that was assigned; 0 if there is none. Revisions and
    /// checkpoints that were pruned or undone count too.
    pub last_sequence: u64,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// How many claims the current branch has.
    pub claims: u64,
    /// How many facts it has, without facts that were undone.
    pub facts: u64,
    /// The time of its earliest revision, checkpoint or fact.
    pub first_event: Option<Timestamp>,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// Microseconds between scheduled checkpoints; `None` if there is no schedule.
    pub schedule_micros: Option<i64>,
    /// The sources imported into it, each with the number of bytes that were imported.
    pub sources: Vec<(String, u64)>,
    /// The agents' own ids of the sessions that were joined to it.
    pub joined: Vec<String>,
    pub(crate) number: SessionNumber,
}

impl SessionSummary {
    pub(crate) fn of(number: SessionNumber, session: &SessionRefs, current: bool) -> Self {
        let branch = session.branches.get(session.current_branch as usize);
        Self {
            info: session.info.clone(),
            current,
            branch: branch.map(|branch| branch.name.clone()).unwrap_or_default(),
            branches: session.branches.iter().filter(|branch| !branch.hidden).count() as u64,
            last_sequence: session.next_sequence - 1,
            checkpoints: session.checkpoints,
            claims: branch.and_then(|branch| branch.head).map_or(0, |head| head.count),
            facts: session.facts,
            first_event: session.first_event,
            last_event: session.last_event,
            last_checkpoint: session.last_checkpoint,
            schedule_micros: session.schedule,
            sources: session
                .bookmarks
                .iter()
                .filter(|bookmark| {
                    let source = &bookmark.source;
                    !source.starts_with(JOINED) && !source.starts_with(UNFINISHED)
                })
                .map(|bookmark| (bookmark.source.clone(), bookmark.bytes))
                .collect(),
            joined: session
                .bookmarks
                .iter()
                .filter_map(|bookmark| bookmark.source.strip_prefix(JOINED))
                .map(str::to_owned)
                .collect(),
            number,
        }
    }
}

/// An entry of a list of the sessions of one kind.
#[derive(Clone, Debug)]
pub struct SessionListEntry {
    /// The session itself.
    pub session: Session,
    /// The name of the session.
    pub name: String,
    /// When it began.
    pub started_at: Timestamp,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
}

/// A session of a store. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    pub(crate) store: Store,
    pub(crate) number: SessionNumber,
}

debug_by_name!(Session { store, number });

impl Session {
    /// Returns a summary of this session.
    pub fn summary(&self) -> Result<SessionSummary> {
        let (refs, _) = self.store.engine.follower.refs()?;
        self.store.summary(&refs, self.number, session_refs(&refs, self.number)?)
    }

    /// Returns the store of this session.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        let view = self.store.engine.follower.view()?;
        if session_refs(&view.refs, self.number)?.removal == Some(SessionRemoval::Swept) {
            return Err(Error::Conflict(REMOVED.to_owned()));
        }
        Ok(view)
    }

    /// Returns whether the session was permanently removed, or replaced by a pull, as far as this
    /// process knows. Then this value cannot be used any more: open the session again.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        let refs = self.store.engine.follower.known_refs();
        let session = refs.sessions.get(self.number).ok().flatten();
        session.is_some_and(|session| session.removal == Some(SessionRemoval::Swept))
    }

    /// Returns the checkpoints that match the filter, newest first.
    pub fn checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<Checkpoint>> {
        checkpoint::list(&self.view()?, self.number, filter)
    }

    /// Returns the checkpoints that match the filter, the last written first. The order differs
    /// from that of [`Session::checkpoints`] after a clock was wrong.
    pub fn written_checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<Checkpoint>> {
        checkpoint::list_written(&self.view()?, self.number, filter)
    }

    /// Returns the checkpoint with this event key.
    pub fn checkpoint_of(&self, event: &str) -> Result<Option<Checkpoint>> {
        checkpoint::by_key(&self.view()?, self.number, event)
    }

    /// Returns the time of the latest checkpoint. Reads only the refs.
    pub fn last_checkpoint_at(&self) -> Result<Option<Timestamp>> {
        let (refs, _) = self.store.engine.follower.refs()?;
        Ok(session_refs(&refs, self.number)?.last_checkpoint)
    }

    /// Returns the name of a branch by its number, as found in a checkpoint.
    pub fn branch_name(&self, branch: BranchNumber) -> Result<String> {
        let (refs, _) = self.store.engine.follower.refs()?;
        Ok(session_refs(&refs, self.number)?.branch(branch)?.name.clone())
    }

    /// Commits changes that do not depend on the present state, as one record.
    pub(crate) fn commit_changes(
        &self,
        operation: &Operation,
        durability: CommitDurability,
        changes: &[RecordChange],
    ) -> Result<()> {
        self.store.engine.commit(durability, &mut |_| {
            let record = Record { operation: operation.clone(), changes: changes.to_vec() };
            Ok((Some(record), ()))
        })
    }
}
