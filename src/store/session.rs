//! A session of a store, and its branches and checkpoints.

use super::resolve_moment::ResolvedMoment;
use super::write::{SessionWrite, WriteReport, check_tag};
use super::write_context::WriteContext;
use super::{Store, current_number};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::commit::{CommitDurability, PlanContext};
use crate::engine::head_cache::branch_of;
use crate::engine::journal_follower::ReadSnapshot;
use crate::engine::lineage::RevisionRef;
use crate::engine::refs::{JOINED, UNFINISHED, session as session_refs};
use crate::engine::revision_plan::{self, CommitTarget};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{BranchChange, ParentRevision, Record, RecordChange, ResetSource, SessionRefs};
use crate::model::{
    AutoTrigger, BranchMetadata, BranchNumber, BranchStatus, Checkpoint, CheckpointId,
    CheckpointTrigger, Operation, SessionKind, SessionMetadata, SessionNumber, StateDigest,
    Timestamp,
};
use std::fmt;

/// The metadata of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its name, unique within its kind.
    pub name: String,
    /// The kind of the session.
    pub kind: SessionKind,
    /// The agent that works in it.
    pub agent: Option<String>,
    /// The agent's own id of the session.
    pub agent_session: Option<String>,
    /// When it began, if not now.
    pub started_at: Option<Timestamp>,
    /// Whether it becomes the last used session even if there is one.
    pub takes_over: bool,
}

impl NewSession {
    /// Makes a debugging session with this name, begun by a person: it becomes the last used one.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), takes_over: true, ..Self::default() }
    }

    /// Makes a session begun by an import: it becomes the last used one only if there is none.
    pub fn imported(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

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
    /// How many revisions and checkpoints it has.
    pub last_sequence: u64,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// How many claims the current branch has.
    pub claims: u64,
    /// How many facts were recorded.
    pub facts: u64,
    /// The time of its earliest revision, checkpoint or fact.
    pub first_event: Option<Timestamp>,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// Microseconds between scheduled checkpoints.
    pub schedule_micros: Option<i64>,
    /// The sources imported into it, with the bytes imported of each.
    pub sources: Vec<(String, u64)>,
    /// The agents' own ids of sessions that joined it.
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

/// A session in a list of one kind.
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

/// A branch at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchSummary {
    /// The name of the branch.
    pub name: String,
    /// The branch and revision it was forked from; `None` for `main`.
    pub base: Option<(String, Option<u64>)>,
    /// The number of its head then.
    pub revision: Option<u64>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The status of the branch.
    pub status: BranchStatus,
    /// Its hypothesis and outcome.
    pub metadata: BranchMetadata,
    /// Whether it was checked out then.
    pub current: bool,
}

/// A session of a store. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    pub(crate) store: Store,
    pub(crate) number: SessionNumber,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session")
            .field("store", &self.store)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Returns a summary of this session.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn summary(&self) -> Result<SessionSummary> {
        let (refs, _) = self.store.engine.follower.refs()?;
        let current = current_number(&refs) == Some(self.number);
        let session = session_refs(&refs, self.number)?;
        let mut summary = SessionSummary::of(self.number, session, current);
        summary.facts -= self.store.facts_taken_back(session)?.min(summary.facts);
        Ok(summary)
    }

    /// Returns the store of this session.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        self.store.engine.follower.view()
    }

    /// Begins a write, which [`SessionWrite::commit`] completes.
    pub const fn write<'a>(&'a self, act: &'a WriteContext) -> SessionWrite<'a> {
        SessionWrite::new(self, act)
    }

    /// Returns the point with everything that is recorded, on the current branch.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn head(&self) -> Result<ResolvedMoment> {
        let (refs, _) = self.store.engine.follower.refs()?;
        let branch = session_refs(&refs, self.number)?.current_branch;
        Ok(ResolvedMoment {
            branch,
            at: timeline::head_of(&refs, self.number, branch)?,
            time: None,
            checkpoint: None,
        })
    }

    /// Returns the checkpoints that match the filter, newest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<Checkpoint>> {
        checkpoint::list(&self.view()?, self.number, filter)
    }

    /// Returns the checkpoint with this event key.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn checkpoint_of(&self, event: &str) -> Result<Option<Checkpoint>> {
        checkpoint::by_key(&self.view()?, self.number, event)
    }

    /// Adds tags to a checkpoint and removes others. Returns the changed checkpoint.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such checkpoint, [`Error::Invalid`] for a tag that is not
    /// valid.
    pub fn tag(
        &self,
        act: &WriteContext,
        id: &CheckpointId,
        add: &[String],
        remove: &[String],
    ) -> Result<Checkpoint> {
        add.iter().try_for_each(|tag| check_tag(tag))?;
        let (checkpoint, _) = self.amend_checkpoint(act, id, |checkpoint| {
            checkpoint.tags.retain(|tag| !remove.contains(tag));
            checkpoint.tags.extend(add.iter().cloned());
            checkpoint.tags.sort();
            checkpoint.tags.dedup();
        })?;
        Ok(checkpoint)
    }

    /// Changes a checkpoint's message, tags and body. `amend` receives the checkpoint under the
    /// writer's lock, so concurrent amendments do not overwrite each other; it runs again after a
    /// conflict. Returns the checkpoint, and whether this changed it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such checkpoint, [`Error::Invalid`] for a tag that is not
    /// valid; also if the store cannot be written.
    pub fn amend_checkpoint(
        &self,
        act: &WriteContext,
        id: &CheckpointId,
        amend: impl Fn(&mut Checkpoint),
    ) -> Result<(Checkpoint, bool)> {
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let old = checkpoint::by_id(&desk.view()?, self.number, id)?
                .ok_or_else(|| Error::not_found("checkpoint", id.to_string()))?;
            let mut wanted = old.clone();
            amend(&mut wanted);
            let mut new = old.clone();
            new.message = wanted.message;
            new.tags = wanted.tags;
            new.body = wanted.body.without_nulls();
            new.tags.iter().try_for_each(|tag| check_tag(tag))?;
            if new != old {
                self.store.gate().made(&mut new);
            }
            let changes = vec![RecordChange::Checkpoint {
                session: self.number,
                checkpoint: Box::new(new.clone()),
            }];
            let record = Record { operation: operation.clone(), changes };
            let changed = new != old;
            Ok((changed.then_some(record), (new, changed)))
        })
    }

    /// Returns the time of the latest checkpoint. Reads only the refs.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn last_checkpoint_at(&self) -> Result<Option<Timestamp>> {
        let (refs, _) = self.store.engine.follower.refs()?;
        Ok(session_refs(&refs, self.number)?.last_checkpoint)
    }

    /// Sets the interval of scheduled checkpoints, which are made by the next write when due;
    /// `None` ends them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an interval of less than a second.
    pub fn schedule(&self, act: &WriteContext, every_micros: Option<i64>) -> Result<()> {
        if every_micros.is_some_and(|micros| micros < 1_000_000) {
            return Err(Error::invalid("a schedule needs at least a second between checkpoints"));
        }
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let known = session_refs(&desk.refs, self.number)?.schedule;
            let changes = vec![RecordChange::Schedule { session: self.number, every_micros }];
            let record = Record { operation: operation.clone(), changes };
            Ok(((known != every_micros).then_some(record), ()))
        })
    }

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
        metadata: BranchMetadata,
    ) -> Result<()> {
        check_branch_name(name)?;
        let gate = self.store.gate();
        gate.name("name", name)?;
        let mut metadata = metadata;
        gate.branch(&mut metadata);
        let operation = act.operation()?;
        let change = BranchChange { time: act.now, status: BranchStatus::Active, metadata };
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let session = session_refs(&desk.refs, self.number)?;
            if session.branch_named(name).is_some() {
                return Err(Error::Duplicate { kind: "branch", id: name.to_owned() });
            }
            let (base, head) = match from {
                Some(ResolvedMoment { branch, at: None, .. }) => (*branch, None),
                Some(ResolvedMoment { at: Some(at), .. }) => {
                    (at.branch, Some(timeline::head_at(&desk.view()?, self.number, *at)?.0))
                }
                None => {
                    let branch = session.current_branch;
                    let head = session.branch(branch)?.head;
                    let base = match &head {
                        Some(head) => branch_of(desk, self.number, branch, head.sequence)?,
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
                change: change.clone(),
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
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let session = session_refs(&desk.refs, self.number)?;
            let branch = branch_by_name(session, name)?;
            let old = session.branch(branch)?.latest_change();
            let (mut status, mut metadata) = (old.status, old.metadata.clone());
            update(&mut status, &mut metadata);
            if metadata != old.metadata {
                self.store.gate().branch(&mut metadata);
            }
            let changed = (status, &metadata) != (old.status, &old.metadata);
            let change = BranchChange { time: act.now, status, metadata };
            let changes =
                vec![RecordChange::BranchChanged { session: self.number, branch, change }];
            let record = Record { operation: operation.clone(), changes };
            Ok((changed.then_some(record), changed))
        })
    }

    /// Checks out another branch, with the automatic checkpoint for it (unless `quietly`). Returns
    /// the previous branch; `None` if the branch was checked out already.
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
        let id = CheckpointId::from_bytes(crate::engine::commit::random()?);
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let session = session_refs(&desk.refs, self.number)?;
            let branch = branch_by_name(session, name)?;
            if branch == session.current_branch {
                return Ok((None, None));
            }
            let left = session.branch(session.current_branch)?.name.clone();
            let mut changes =
                vec![RecordChange::Switched { session: self.number, branch, time: act.now }];
            if !quietly {
                let checkpoint = Checkpoint {
                    id,
                    sequence: session.next_sequence,
                    time: act.now,
                    branch,
                    revision: session.branch(branch)?.head.map(|head| head.sequence),
                    message: format!("switched from {left} to {name}"),
                    tags: vec!["auto".to_owned()],
                    trigger: CheckpointTrigger::Automatic(AutoTrigger::BranchSwitch),
                    body: crate::model::Value::Null,
                    key: None,
                };
                changes.push(RecordChange::Checkpoint {
                    session: self.number,
                    checkpoint: Box::new(checkpoint),
                });
            }
            Ok((Some(Record { operation: operation.clone(), changes }), Some(left)))
        })
    }

    /// Returns the name of a branch by its number, as found in a checkpoint.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn branch_name(&self, branch: BranchNumber) -> Result<String> {
        let (refs, _) = self.store.engine.follower.refs()?;
        Ok(session_refs(&refs, self.number)?.branch(branch)?.name.clone())
    }

    /// Returns the branches as they were at a moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn branches(&self, point: &ResolvedMoment) -> Result<Vec<BranchSummary>> {
        let view = self.view()?;
        branches(&view, self.number, point)
    }

    /// Makes the claims of the current branch equal to those at a moment, by a new revision, so
    /// that nothing is lost and `undo` works. The cost does not depend on the size of the state.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub fn restore(&self, act: &WriteContext, to: &ResolvedMoment) -> Result<WriteReport> {
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |desk| {
            let session = session_refs(&desk.refs, self.number)?;
            let branch = session.current_branch;
            let place =
                CommitTarget { session: self.number, branch, time: act.now, operation: &operation };
            let head = session.branch(branch)?.head;
            let mut done =
                WriteReport::begun(&operation, &session.info, &session.branch(branch)?.name);
            let planned = self.plan_reset(desk, place, to.at)?;
            let same = head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
            if same == (planned.head.digest, planned.head.count) {
                return Ok((None, done));
            }
            done.revision = Some((planned.head.sequence, planned.head.id));
            let record = Record { operation: operation.clone(), changes: planned.changes };
            Ok((Some(record), done))
        })
    }

    pub(crate) fn plan_reset(
        &self,
        desk: &PlanContext<'_>,
        place: CommitTarget<'_>,
        to: Option<RevisionRef>,
    ) -> Result<revision_plan::PlannedRevision> {
        match to {
            None => revision_plan::plan_reset(
                desk,
                place,
                ResetSource::Empty,
                (StateDigest::EMPTY, 0),
                &[],
            ),
            Some(at) => {
                let (head, _) = timeline::head_at(&desk.view()?, self.number, at)?;
                let parent = ParentRevision { sequence: head.sequence, id: head.id };
                let claims = (head.digest, head.count);
                revision_plan::plan_reset(desk, place, ResetSource::To(parent), claims, &[])
            }
        }
    }

    /// Commits fixed changes as one record.
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

pub(crate) fn branches(
    view: &ReadSnapshot,
    number: SessionNumber,
    point: &ResolvedMoment,
) -> Result<Vec<BranchSummary>> {
    let session = session_refs(&view.refs, number)?;
    let time = point.time.unwrap_or(Timestamp::from_micros(i64::MAX));
    let current = match point.time {
        Some(time) => timeline::branch_at(view, number, time)?,
        None => session.current_branch,
    };
    let mut found = Vec::new();
    for (place, branch) in (0..).zip(&session.branches) {
        let created = branch.changes.first().map(|change| change.time).unwrap_or_default();
        // A change never counts before the branch was created, whatever the clock said.
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
        let revision = match point.time {
            None => branch.head.map(|head| head.sequence),
            Some(time) => timeline::revision_at(view, &view.refs, number, place, time)?
                .map(|(at, _)| at.sequence),
        };
        found.push(BranchSummary {
            name: branch.name.clone(),
            base,
            revision,
            created_at: created,
            status: change.status,
            metadata: change.metadata.clone(),
            current: place == current,
        });
    }
    Ok(found)
}

pub(super) fn branch_by_name(session: &SessionRefs, name: &str) -> Result<BranchNumber> {
    session.branch_named(name).ok_or_else(|| Error::not_found("branch", name))
}

/// Checks that a moment expression can name the branch.
pub(crate) fn check_branch_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let first = name.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !first || name.len() > 100 || !name.chars().all(allowed) || name.eq_ignore_ascii_case("head")
    {
        return Err(Error::invalid(format!(
            "'{}' is not a branch name: begin with a letter or digit, then use letters, digits, \
            '-', '_', '.' \
             or '/', at most 100 bytes",
            name.escape_debug()
        )));
    }
    Ok(())
}
