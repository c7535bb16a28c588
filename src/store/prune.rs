//! Pruning: checkpoints that no rule keeps go out of sight, revisions that nothing names fold into the next one that stays.
//! It can be taken back until it is swept.

mod sweep;

pub use sweep::SweepReport;

use super::Store;
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::session_retention::{DroppedSession, DroppedSource};
use super::write_context::WriteContext;
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::commit::{CommitDurability, PlanContext};
use crate::engine::journal_follower::ReadSnapshot;
use crate::engine::lineage::RevisionRef;
use crate::engine::lookup;
use crate::engine::prune::{self, PlannedFold, PruneEstimate};
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, StoreRefs, decode_entry, encode_key};
use crate::model::{
    BranchNumber, Checkpoint, Kind, Operation, OperationId, RetentionPolicy, RetentionReason,
    SessionKind, SessionNumber, Timestamp, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// How long pruning can be taken back, unless somebody says otherwise: 14 days, in microseconds.
pub const UNDO_MICROS: i64 = 14 * 24 * 3_600_000_000;

/// A checkpoint and why it stays; it goes if there is no reason.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointVerdict {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Why it stays.
    pub reasons: Vec<RetentionReason>,
}

/// Revisions that fold, or were folded, into a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldSummary {
    /// The branch.
    pub branch: String,
    /// The number of the first of them.
    pub first: u64,
    /// The number of the revision they fold into.
    pub into: u64,
    /// How many there are, without that one.
    pub count: u64,
}

/// What a pruning does, or did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneReport {
    /// The operation, for `undo`; `None` if it was only looked at, or there was nothing to do.
    pub operation: Option<OperationId>,
    /// All checkpoints of the session, newest first.
    pub verdicts: Vec<CheckpointVerdict>,
    /// The revisions that fold.
    pub folds: Vec<FoldSummary>,
    /// Debugging sessions that are dropped.
    pub sessions: Vec<DroppedSession>,
    /// Transcripts and outputs that are dropped, of any other debugging session.
    pub texts: Vec<DroppedSource>,
    /// About how many bytes of the index are free once it is swept: of checkpoints, revisions, their full states and large
    /// values, texts and sessions, less what stands for them. What the files of the index add to that is not counted.
    pub bytes: u64,
}

/// What was folded at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldAtMoment {
    /// How many revisions were made between the one that stands for the time and the time itself.
    pub count: u64,
    /// The number of the revision that holds what they changed.
    pub into: u64,
}

impl Session {
    /// What pruning would do, without doing it.
    ///
    /// # Errors
    /// As every read.
    pub fn prune_preview(
        &self,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Result<PruneReport> {
        let view = self.view()?;
        let verdicts = self.verdicts(&view, retention, now)?;
        let stay = verdicts.iter().filter(|one| !one.reasons.is_empty());
        let named = self.referenced_revisions(&view, stay.map(|one| &one.checkpoint))?;
        let mut pruned = PruneReport { verdicts, ..PruneReport::default() };
        let mut going = PruneEstimate::default();
        let until = now.plus_micros(-retention.revisions);
        let branches = session_refs(&view.refs, self.number)?.branches.len();
        for branch in 0..branches as BranchNumber {
            let mut at = RevisionRef { branch, sequence: 0 };
            while let Some(run) = prune::next_fold_range(&view, self.number, at, until, &named)? {
                let none = OperationId::from_bytes([0; 16]);
                let planned = prune::fold(&view, self.number, &run, none)?;
                pruned.add(&view.refs, self.number, &planned)?;
                going.add(planned.going);
                at.sequence = run.last - 1;
            }
        }
        let sessions = self.expired_sessions(&view, retention, now)?;
        let texts = self.expired_texts(&view, retention, now)?;
        pruned.add_ended(sessions, texts);
        self.measure(&view, &mut pruned, going)?;
        Ok(pruned)
    }

    /// Takes checkpoints that no rule keeps out of sight, and folds revisions that nothing names into the next one that
    /// stays. Heads, forks, what was gone back to and what checkpoints name stay. The state at every revision and
    /// checkpoint that stays is what it was; a time in between means the revision before it. Undo brings all of it back
    /// until [`Store::sweep`] drops it.
    ///
    /// It is done piece by piece: interrupted anywhere, what was pruned so far is pruned whole, and undo knows it.
    ///
    /// # Errors
    /// As every write.
    pub fn prune(&self, act: &WriteContext, retention: &RetentionPolicy) -> Result<PruneReport> {
        let (view, mut going) = (self.view()?, PruneEstimate::default());
        let mut pruned = self.prune_into(act, retention, &mut |more| going.add(more))?;
        self.measure(&view, &mut pruned, going)?;
        Ok(pruned)
    }

    /// As [`prune`](Self::prune), without finding out how many bytes that frees: much is read for that.
    ///
    /// # Errors
    /// As every write.
    pub fn prune_unmeasured(
        &self,
        act: &WriteContext,
        retention: &RetentionPolicy,
    ) -> Result<PruneReport> {
        self.prune_into(act, retention, &mut drop)
    }

    fn prune_into(
        &self,
        act: &WriteContext,
        retention: &RetentionPolicy,
        going: &mut dyn FnMut(PruneEstimate),
    ) -> Result<PruneReport> {
        let operation = act.operation()?;
        let mut pruned = PruneReport::default();
        let began = self.hide_checkpoints(act.now, &operation, retention, &mut pruned)?;
        let mut prune = FoldPhase { operation: &operation, retention, now: act.now, began };
        let branches =
            session_refs(&self.store.engine.follower.refs()?.0, self.number)?.branches.len();
        for branch in 0..branches as BranchNumber {
            let mut at = RevisionRef { branch, sequence: 0 };
            while let ControlFlow::Continue(next) = prune.step(self, at, &mut pruned, going)? {
                at = next;
            }
        }
        self.store.engine.sync()?;
        pruned.operation = prune.began.then_some(operation.id);
        Ok(pruned)
    }

    /// Folds all that came before a branch's head, whatever its age, as one operation: for what is done with.
    ///
    /// # Errors
    /// As every write.
    pub(crate) fn fold_all(&self, act: &WriteContext) -> Result<PruneReport> {
        let retention = RetentionPolicy { revisions: 0, ..RetentionPolicy::none() };
        self.prune_unmeasured(act, &retention)
    }

    /// What is folded between the revision that stands for a point and the point's time.
    ///
    /// # Errors
    /// As every read.
    pub fn folded_at(&self, point: &ResolvedMoment) -> Result<Option<FoldAtMoment>> {
        let (Some(time), None) = (point.time, &point.checkpoint) else { return Ok(None) };
        let view = self.view()?;
        let own = RevisionRef { branch: point.branch, sequence: 0 };
        let places = match point.at {
            Some(at) if at.branch == point.branch => vec![at],
            // The branch may have begun with what is folded, or the time lie before it began.
            Some(at) => vec![own, at],
            None => vec![own],
        };
        for place in places {
            if let Some((count, into)) = timeline::folded_after(&view, self.number, place, time)? {
                return Ok(Some(FoldAtMoment { count, into }));
            }
        }
        Ok(None)
    }

    fn verdicts(
        &self,
        view: &ReadSnapshot,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Result<Vec<CheckpointVerdict>> {
        let all = checkpoint::list(view, self.number, &CheckpointFilter::default())?;
        let programs = self.programs(view)?;
        let judged = retention.retention_reasons(&all, now);
        let with = |(checkpoint, mut keeps): (Checkpoint, Vec<RetentionReason>)| {
            keeps.extend(programs.get(&checkpoint.sequence).cloned().map(RetentionReason::Program));
            CheckpointVerdict { checkpoint, reasons: keeps }
        };
        Ok(all.into_iter().zip(judged).map(with).collect())
    }

    /// The numbers of this session that checkpoints of programs name, each with one of these programs.
    fn programs(&self, view: &ReadSnapshot) -> Result<BTreeMap<u64, String>> {
        let own = &session_refs(&view.refs, self.number)?.info.name;
        let mut found = BTreeMap::new();
        for named in program_references(view)?.into_iter().filter(|named| named.agent == *own) {
            found.entry(named.sequence).or_insert(named.program);
        }
        Ok(found)
    }

    /// The revisions that something names, with these checkpoints.
    pub(super) fn referenced_revisions<'a>(
        &self,
        view: &ReadSnapshot,
        checkpoints: impl Iterator<Item = &'a Checkpoint>,
    ) -> Result<BTreeSet<u64>> {
        let mut named = prune::pinned_revisions(view, &view.refs, self.number)?;
        named.extend(checkpoints.filter_map(|one| one.revision));
        named.extend(self.programs(view)?.into_keys());
        Ok(named)
    }

    /// Returns whether there was anything to hide.
    fn hide_checkpoints(
        &self,
        now: Timestamp,
        operation: &Operation,
        retention: &RetentionPolicy,
        pruned: &mut PruneReport,
    ) -> Result<bool> {
        let session = self.number;
        let (verdicts, sessions, texts, hidden) =
            self.store.engine.commit(CommitDurability::Later, &mut |desk| {
                let view = desk.view()?;
                let verdicts = self.verdicts(&view, retention, now)?;
                let sessions = self.expired_sessions(&view, retention, now)?;
                let texts = self.expired_texts(&view, retention, now)?;
                let last = verdicts.iter().find(|one| !one.reasons.is_empty());
                let last = last.map(|one| one.checkpoint.time);
                let going = verdicts.iter().filter(|one| one.reasons.is_empty());
                let mut changes: Vec<_> = going
                    .map(|one| RecordChange::CheckpointHidden {
                        session,
                        id: one.checkpoint.id,
                        last,
                    })
                    .collect();
                // Of a session that goes whole its texts go with it.
                let stays = |text: &&DroppedSource| {
                    sessions.iter().all(|one| one.session_number() != text.session_number())
                };
                let going = texts.iter().filter(stays);
                changes.extend(going.map(|text| text.change(session, operation.id)));
                changes.extend(sessions.iter().map(|one| one.change(session, operation.id)));
                let hidden = !changes.is_empty();
                changes.insert(0, RecordChange::Pruned { session });
                let record = Record { operation: operation.clone(), changes };
                Ok((hidden.then_some(record), (verdicts, sessions, texts, hidden)))
            })?;
        let gone = sessions
            .iter()
            .map(DroppedSession::session_number)
            .chain(texts.iter().map(DroppedSource::session_number));
        gone.into_iter().try_for_each(|number| self.store.forget_text_copy(number))?;
        pruned.verdicts = verdicts;
        pruned.add_ended(sessions, texts);
        Ok(hidden)
    }

    /// Finds out how many bytes it frees, in a view from before it.
    fn measure(
        &self,
        view: &ReadSnapshot,
        pruned: &mut PruneReport,
        mut going: PruneEstimate,
    ) -> Result<()> {
        for one in pruned.verdicts.iter().filter(|one| one.reasons.is_empty()) {
            going.checkpoint(self.number, &one.checkpoint)?;
        }
        for session in &pruned.sessions {
            going.session(view, session.session_number())?;
        }
        for text in &mut pruned.texts {
            text.measure(view)?;
            going.text(text.bytes);
        }
        pruned.bytes = going.bytes(view)?;
        Ok(())
    }
}

/// A number of a session that a program's checkpoint names.
pub(super) struct ProgramReference {
    /// The name of the session.
    pub(super) agent: String,
    sequence: u64,
    program: String,
}

/// All that checkpoints of programs name.
pub(super) fn program_references(view: &ReadSnapshot) -> Result<Vec<ProgramReference>> {
    let mut found = Vec::new();
    for (place, session) in view.refs.sessions.all() {
        if session.info.kind != SessionKind::Program {
            continue;
        }
        for value in every_version(view, place, Kind::Program)? {
            let Some(Value::Map(agents)) = value.field("agents") else { continue };
            for (agent, state) in agents {
                let sequence = state.field("sequence").and_then(Value::as_i64);
                if let Some(sequence) = sequence.and_then(|one| u64::try_from(one).ok()) {
                    let (agent, program) = (agent.clone(), session.info.name.clone());
                    found.push(ProgramReference { agent, sequence, program });
                }
            }
        }
    }
    Ok(found)
}

/// All values that the claims of a kind have had on `main`.
fn every_version(view: &ReadSnapshot, number: SessionNumber, kind: Kind) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let Some(at) = timeline::head_of(&view.refs, number, 0)? else { return Ok(found) };
    let state = crate::engine::materialize::materialize(view, &view.refs, number, at)?;
    for (key, _) in state.encoded() {
        let key = crate::format::decode_key(key).map_err(Error::corrupt("a claim's key"))?;
        if key.kind != kind {
            continue;
        }
        for change in lookup::history(view, &view.refs, number, at, &encode_key(&key))? {
            let Some(bytes) = lookup::delta_side_bytes(view, &change.new)? else { continue };
            let entry = decode_entry(&bytes).map_err(Error::corrupt(format!("the {key}")))?;
            found.push(entry.value);
        }
    }
    Ok(found)
}

impl PruneReport {
    fn add(
        &mut self,
        refs: &StoreRefs,
        number: SessionNumber,
        planned: &PlannedFold,
    ) -> Result<()> {
        let RecordChange::Folded { branch, first, last, .. } = &planned.change else {
            return Ok(());
        };
        let name = &session_refs(refs, number)?.branch(*branch)?.name;
        match self.folds.last_mut() {
            // A long run is folded in several steps, each into the next.
            Some(before) if before.branch == *name && before.into == *first => {
                before.into = *last;
                before.count += planned.count;
            }
            _ => self.folds.push(FoldSummary {
                branch: name.clone(),
                first: *first,
                into: *last,
                count: planned.count,
            }),
        }
        Ok(())
    }

    fn add_ended(&mut self, sessions: Vec<DroppedSession>, mut texts: Vec<DroppedSource>) {
        texts.retain(|text| {
            sessions.iter().all(|one| one.session_number() != text.session_number())
        });
        (self.sessions, self.texts) = (sessions, texts);
    }

    /// How many checkpoints go.
    #[must_use]
    pub fn dropped_checkpoints(&self) -> usize {
        self.verdicts.iter().filter(|one| one.reasons.is_empty()).count()
    }

    /// How many revisions are folded.
    #[must_use]
    pub fn folded_revisions(&self) -> u64 {
        self.folds.iter().map(|fold| fold.count).sum()
    }
}

/// The second half of a pruning.
struct FoldPhase<'a> {
    operation: &'a Operation,
    retention: &'a RetentionPolicy,
    now: Timestamp,
    began: bool,
}

impl FoldPhase<'_> {
    /// Folds the next runs of a branch behind `at`; says where to go on, if there were any.
    fn step(
        &mut self,
        session: &Session,
        at: RevisionRef,
        pruned: &mut PruneReport,
        going: &mut dyn FnMut(PruneEstimate),
    ) -> Result<ControlFlow<(), RevisionRef>> {
        let planned =
            session.store.engine.commit(CommitDurability::Later, &mut |desk: &PlanContext<
                '_,
            >| {
                let view = desk.view()?;
                // Whatever somebody named meanwhile stays.
                let checkpoints =
                    checkpoint::list(&view, session.number, &CheckpointFilter::default())?;
                let named = session.referenced_revisions(&view, checkpoints.iter())?;
                let until = self.now.plus_micros(-self.retention.revisions);
                let (mut at, mut planned) = (at, Vec::new());
                while planned.iter().map(|one: &PlannedFold| one.count).sum::<u64>()
                    < prune::MAX_FOLD_REVISIONS
                    && let Some(run) =
                        prune::next_fold_range(&view, session.number, at, until, &named)?
                {
                    planned.push(prune::fold(&view, session.number, &run, self.operation.id)?);
                    at.sequence = run.last - 1;
                }
                let mut changes: Vec<_> = planned.iter().map(|one| one.change.clone()).collect();
                // Somebody may have swept what was pruned so far.
                if !changes.is_empty() && !prune::is_pending(&view, self.operation)? {
                    changes.insert(0, RecordChange::Pruned { session: session.number });
                }
                let record = Record { operation: self.operation.clone(), changes };
                Ok(((!planned.is_empty()).then_some(record), (at, planned)))
            })?;
        let (next, planned) = planned;
        if planned.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        self.began = true;
        let (refs, _) = session.store.engine.follower.refs()?;
        for one in planned {
            pruned.add(&refs, session.number, &one)?;
            going(one.going);
        }
        // Whoever reads holds the tail in memory.
        session.store.engine.apply_if_long(crate::engine::maintain::APPLY_BYTES)?;
        Ok(ControlFlow::Continue(next))
    }
}

impl Store {
    /// Whether something was pruned after a time that can still be taken back.
    ///
    /// # Errors
    /// As every read.
    pub fn pruned_since(&self, time: Timestamp) -> Result<bool> {
        let pending =
            prune::prunings(&self.engine.follower.view()?, Timestamp::from_micros(i64::MAX))?;
        Ok(pending.last().is_some_and(|newest| newest.time > time))
    }
}
