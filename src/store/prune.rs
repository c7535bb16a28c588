//! Pruning: hides checkpoints that no rule keeps, and folds unnamed revisions into the next kept
//! one. It can be undone until it is swept.

mod sweep;

pub use sweep::SweepReport;

use super::Store;
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::session_retention::{DroppedSession, DroppedSource};
use super::write_context::WriteContext;
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::commit::CommitDurability;
use crate::engine::lineage::RevisionRef;
use crate::engine::lookup;
use crate::engine::prune::{self, PlannedFold, PruneEstimate};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::StoreRefs;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, decode_entry, encode_key};
use crate::model::{
    BranchNumber, Checkpoint, Kind, Operation, OperationId, RetentionPolicy, RetentionReason,
    SessionKind, SessionNumber, Timestamp, Value,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The default period in which a pruning can be undone: 14 days, in microseconds.
pub const UNDO_MICROS: i64 = 14 * 24 * 3_600_000_000;

/// A checkpoint with the reasons to keep it; it is pruned if there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointVerdict {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The reasons to keep it.
    pub reasons: Vec<RetentionReason>,
}

/// Revisions that are folded into a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoldSummary {
    /// The name of the branch.
    pub branch: String,
    /// The number of the first folded revision.
    pub first: u64,
    /// The number of the revision they are folded into.
    pub into: u64,
    /// The number of folded revisions, without that one.
    pub revisions: u64,
}

/// What a pruning did, or would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneReport {
    /// The operation, for `undo`; `None` for a preview, or if there was nothing to do.
    pub operation: Option<OperationId>,
    /// All checkpoints of the session, newest first.
    pub verdicts: Vec<CheckpointVerdict>,
    /// The folds.
    pub folds: Vec<FoldSummary>,
    /// Debugging sessions that are dropped.
    pub sessions: Vec<DroppedSession>,
    /// Transcripts and outputs that are dropped, of other debugging sessions.
    pub transcripts: Vec<DroppedSource>,
    /// An estimate of the index bytes that a sweep will free: checkpoints, revisions, their
    /// keyframes and large values, texts and sessions, minus what replaces them. The overhead of
    /// index files is not included.
    pub bytes: u64,
}

/// The fold that contains a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldAtMoment {
    /// How many of the folded revisions were made at or before the time.
    pub count: u64,
    /// The number of the revision that contains their changes.
    pub into: u64,
}

impl Session {
    /// Returns what pruning would do, without doing it.
    pub fn prune_preview(
        &self,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Result<PruneReport> {
        let view = self.view()?;
        let verdicts = self.verdicts(&view, retention, now)?;
        let kept = verdicts.iter().filter(|one| !one.reasons.is_empty());
        let named = self.referenced_revisions(&view, kept.map(|one| &one.checkpoint))?;
        let mut pruned = PruneReport { verdicts, ..PruneReport::default() };
        let mut freed = PruneEstimate::default();
        let until = now.plus_micros(-retention.revisions);
        let branches = session_refs(&view.refs, self.number)?.branches.len();
        for branch in 0..branches as BranchNumber {
            let mut at = RevisionRef { branch, sequence: 0 };
            while let Some(run) = prune::next_fold_range(&view, self.number, at, until, &named)? {
                let none = OperationId::from_bytes([0; 16]);
                let planned = prune::fold(&view, self.number, &run, none)?;
                pruned.add(&view.refs, self.number, &planned)?;
                freed.add(planned.freed);
                at.sequence = run.last - 1;
            }
        }
        let sessions = self.expired_sessions(&view, retention, now)?;
        let texts = self.expired_texts(&view, retention, now)?;
        pruned.add_ended(sessions, texts);
        self.measure(&view, &mut pruned, freed)?;
        Ok(pruned)
    }

    /// Hides checkpoints that no rule keeps, and sessions and texts of sessions that ended as long
    /// ago as the rules say. Folds unnamed revisions that are old enough into the next kept one. It
    /// keeps heads, fork points, merges and merged revisions, restores and undos with their
    /// targets, and the revisions that checkpoints or programs name. The state at every kept
    /// revision and checkpoint is unchanged; a time inside a fold means the revision before the
    /// fold. Undo restores everything until [`Store::sweep`] removes it.
    ///
    /// It is done in steps: if it is interrupted, undo covers the finished steps.
    pub fn prune(&self, act: &WriteContext, retention: &RetentionPolicy) -> Result<PruneReport> {
        let (view, mut freed) = (self.view()?, PruneEstimate::default());
        let mut pruned = self.prune_into(act, retention, &mut |more| freed.add(more))?;
        self.measure(&view, &mut pruned, freed)?;
        Ok(pruned)
    }

    /// Does the same as [`prune`](Self::prune), without estimating the freed bytes, which takes
    /// many reads.
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
        freed: &mut dyn FnMut(PruneEstimate),
    ) -> Result<PruneReport> {
        let operation = act.operation()?;
        let mut pruned = PruneReport::default();
        let began = self.hide_unkept(act.now, &operation, retention, &mut pruned)?;
        let mut prune = FoldPhase { operation: &operation, retention, now: act.now, began };
        let branches =
            session_refs(&self.store.engine.follower.refs()?.0, self.number)?.branches.len();
        for branch in 0..branches as BranchNumber {
            let mut at = RevisionRef { branch, sequence: 0 };
            while let ControlFlow::Continue(next) = prune.step(self, at, &mut pruned, freed)? {
                at = next;
            }
        }
        self.store.engine.sync()?;
        pruned.operation = prune.began.then_some(operation.id);
        Ok(pruned)
    }

    /// Returns the fold that contains the time of a moment; `None` if none does, or if the moment
    /// names a checkpoint.
    pub fn folded_at(&self, moment: &ResolvedMoment) -> Result<Option<FoldAtMoment>> {
        let (Some(time), None) = (moment.time, &moment.checkpoint) else { return Ok(None) };
        let view = self.view()?;
        let own = RevisionRef { branch: moment.branch, sequence: 0 };
        let places = match moment.at {
            Some(at) if at.branch == moment.branch => vec![at],
            // The branch may begin inside a fold, or the time may be before the branch began.
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

    /// Returns the sequence numbers of this session that checkpoints of programs name, each with
    /// the name of one of these programs.
    pub(super) fn programs(&self, view: &ReadSnapshot) -> Result<BTreeMap<u64, String>> {
        let own = &session_refs(&view.refs, self.number)?.info.name;
        let mut found = BTreeMap::new();
        for named in program_references(view)?.into_iter().filter(|named| named.agent == *own) {
            found.entry(named.sequence).or_insert(named.program);
        }
        Ok(found)
    }

    /// Returns the revisions that must not be folded into others: because of the history, of
    /// programs, or of these checkpoints.
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

    /// Hides checkpoints, sessions and texts by the rules. Returns whether there were any.
    fn hide_unkept(
        &self,
        now: Timestamp,
        operation: &Operation,
        retention: &RetentionPolicy,
        pruned: &mut PruneReport,
    ) -> Result<bool> {
        let session = self.number;
        let (verdicts, sessions, texts, hidden) =
            self.store.engine.commit(CommitDurability::Later, &mut |context| {
                let view = context.view()?;
                let verdicts = self.verdicts(&view, retention, now)?;
                let sessions = self.expired_sessions(&view, retention, now)?;
                let texts = self.expired_texts(&view, retention, now)?;
                let last = verdicts.iter().find(|one| !one.reasons.is_empty());
                let last = last.map(|one| one.checkpoint.time);
                let unkept = verdicts.iter().filter(|one| one.reasons.is_empty());
                let mut changes: Vec<_> = unkept
                    .map(|one| RecordChange::CheckpointHidden {
                        session,
                        id: one.checkpoint.id,
                        last,
                    })
                    .collect();
                // The texts of a dropped session are dropped with it.
                let is_of_kept_session = |text: &&DroppedSource| {
                    sessions.iter().all(|one| one.session_number() != text.session_number())
                };
                let dropped = texts.iter().filter(is_of_kept_session);
                changes.extend(dropped.map(|text| text.change(session, operation.id)));
                changes.extend(sessions.iter().map(|one| one.change(session, operation.id)));
                let hidden = !changes.is_empty();
                changes.insert(0, RecordChange::Pruned { session });
                let record = Record { operation: operation.clone(), changes };
                Ok((hidden.then_some(record), (verdicts, sessions, texts, hidden)))
            })?;
        let ended = sessions
            .iter()
            .map(DroppedSession::session_number)
            .chain(texts.iter().map(DroppedSource::session_number));
        self.store.forget_text_copies(ended)?;
        pruned.verdicts = verdicts;
        pruned.add_ended(sessions, texts);
        Ok(hidden)
    }

    /// Estimates how many bytes the pruning frees, using a snapshot from before it.
    fn measure(
        &self,
        view: &ReadSnapshot,
        pruned: &mut PruneReport,
        mut freed: PruneEstimate,
    ) -> Result<()> {
        for one in pruned.verdicts.iter().filter(|one| one.reasons.is_empty()) {
            freed.checkpoint(self.number, &one.checkpoint)?;
        }
        freed.add_sessions(view, pruned.sessions.iter().map(DroppedSession::session_number))?;
        for text in &mut pruned.transcripts {
            text.measure(view)?;
            freed.text(text.bytes);
        }
        pruned.bytes = freed.bytes(view)?;
        Ok(())
    }
}

/// A sequence number of a session that a program's checkpoint names.
pub(super) struct ProgramReference {
    /// The name of the session.
    pub(super) agent: String,
    sequence: u64,
    /// The name of the program.
    pub(super) program: String,
}

/// Returns all references in checkpoints of programs.
pub(super) fn program_references(view: &ReadSnapshot) -> Result<Vec<ProgramReference>> {
    let mut found = Vec::new();
    for (place, session) in view.refs.sessions.latest(SessionKind::Program, usize::MAX)? {
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

/// Returns all values that the claims of a kind have had on `main`.
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
            // A long range is folded in several steps, each into the next.
            Some(before) if before.branch == *name && before.into == *first => {
                before.into = *last;
                before.revisions += planned.count;
            }
            _ => self.folds.push(FoldSummary {
                branch: name.clone(),
                first: *first,
                into: *last,
                revisions: planned.count,
            }),
        }
        Ok(())
    }

    fn add_ended(&mut self, sessions: Vec<DroppedSession>, mut texts: Vec<DroppedSource>) {
        texts.retain(|text| {
            sessions.iter().all(|one| one.session_number() != text.session_number())
        });
        (self.sessions, self.transcripts) = (sessions, texts);
    }

    /// Returns how many checkpoints are dropped.
    #[must_use]
    pub fn dropped_checkpoints(&self) -> usize {
        self.verdicts.iter().filter(|one| one.reasons.is_empty()).count()
    }

    /// Returns how many revisions are folded.
    #[must_use]
    pub fn folded_revisions(&self) -> u64 {
        self.folds.iter().map(|fold| fold.revisions).sum()
    }
}

/// The second phase of a pruning, which folds revisions.
struct FoldPhase<'a> {
    operation: &'a Operation,
    retention: &'a RetentionPolicy,
    now: Timestamp,
    /// Whether this pruning has written a record.
    began: bool,
}

impl FoldPhase<'_> {
    /// Folds the next ranges of a branch after `at`, in one record. Returns where to continue;
    /// breaks if there were none.
    fn step(
        &mut self,
        session: &Session,
        at: RevisionRef,
        pruned: &mut PruneReport,
        freed: &mut dyn FnMut(PruneEstimate),
    ) -> Result<ControlFlow<(), RevisionRef>> {
        let commit = session.store.engine.commit(CommitDurability::Later, &mut |context| {
            let view = context.view()?;
            // Read again: a revision that was named meanwhile is kept.
            let checkpoints =
                checkpoint::list(&view, session.number, &CheckpointFilter::default())?;
            let named = session.referenced_revisions(&view, checkpoints.iter())?;
            let until = self.now.plus_micros(-self.retention.revisions);
            let (mut at, mut planned) = (at, Vec::new());
            while planned.iter().map(|one: &PlannedFold| one.count).sum::<u64>()
                < prune::MAX_FOLD_REVISIONS
                && let Some(run) = prune::next_fold_range(&view, session.number, at, until, &named)?
            {
                planned.push(prune::fold(&view, session.number, &run, self.operation.id)?);
                at.sequence = run.last - 1;
            }
            let mut changes: Vec<_> = planned.iter().map(|one| one.change.clone()).collect();
            // A concurrent sweep may have swept the steps so far.
            if !changes.is_empty() && !prune::is_pending(&view, self.operation)? {
                changes.insert(0, RecordChange::Pruned { session: session.number });
            }
            let record = Record { operation: self.operation.clone(), changes };
            Ok(((!planned.is_empty()).then_some(record), (at, planned)))
        });
        let (next, planned) = commit?;
        if planned.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        self.began = true;
        let (refs, _) = session.store.engine.follower.refs()?;
        for one in planned {
            pruned.add(&refs, session.number, &one)?;
            freed(one.freed);
        }
        // Readers hold the tail in memory, so it must not grow too long.
        session.store.engine.apply_if_long(crate::engine::journal_follower::APPLY_BYTES)?;
        Ok(ControlFlow::Continue(next))
    }
}

impl Store {
    /// Returns whether a pruning after `time` can still be undone.
    pub fn pruned_since(&self, time: Timestamp) -> Result<bool> {
        let pending =
            prune::prunings(&self.engine.follower.view()?, Timestamp::from_micros(i64::MAX))?;
        Ok(pending.last().is_some_and(|newest| newest.time > time))
    }
}
