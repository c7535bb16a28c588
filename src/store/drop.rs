//! Drops checkpoints of a session, or a whole session. What is dropped is hidden at once. `undo`
//! brings it back until a sweep removes it, as after a pruning.

use super::Store;
use super::prune::program_references;
use super::session::Session;
use super::validate::check_tag;
use super::write_context::WriteContext;
use crate::engine::checkpoint;
use crate::engine::commit::CommitDurability;
use crate::engine::index::find_operation;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::session_rows::SessionLookup;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, SessionRemoval};
use crate::model::{Checkpoint, CheckpointId, OperationId, SessionId, SessionKind};
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// Drops these checkpoints: lists, tags and [`Session::checkpoint_of`] do not find them any
    /// more. Their revisions stay until a pruning folds them. `undo` brings the checkpoints back
    /// until [`Store::sweep`] removes them. Returns the dropped checkpoints.
    ///
    /// # Errors
    /// [`Error::NotFound`] if one of them does not exist, [`Error::Conflict`] if a program needs
    /// one of them; then none is dropped.
    pub fn drop_checkpoints(
        &self,
        act: &WriteContext,
        ids: &[CheckpointId],
    ) -> Result<Vec<Checkpoint>> {
        self.drop_and_amend_checkpoints(act, ids, &[], |_| ())
    }

    /// Drops checkpoints like [`Session::drop_checkpoints`], and changes the message, tags and body
    /// of other checkpoints in the same record, since they may refer to the dropped ones. `amend`
    /// receives each of the `amended` checkpoints under the writer's lock, and again after a
    /// conflict.
    ///
    /// # Errors
    /// As [`Session::drop_checkpoints`]; also [`Error::NotFound`] if an amended checkpoint does not
    /// exist or is one of the dropped ones, and [`Error::Invalid`] for a tag that is not valid.
    pub fn drop_and_amend_checkpoints(
        &self,
        act: &WriteContext,
        ids: &[CheckpointId],
        amended: &[CheckpointId],
        amend: impl Fn(&mut Checkpoint),
    ) -> Result<Vec<Checkpoint>> {
        let (operation, session) = (act.operation()?, self.number);
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let view = context.view()?;
            let known = |id: &CheckpointId| Ok((*id, self.known_checkpoint(&view, id)?));
            let dropped: BTreeMap<_, _> = ids.iter().map(known).collect::<Result<_>>()?;
            self.check_unneeded(&view, dropped.values())?;
            let mut changes = Vec::new();
            for id in amended.iter().collect::<BTreeSet<_>>() {
                if dropped.contains_key(id) {
                    return Err(Error::not_found("remaining checkpoint", id.to_string()));
                }
                let new = self.amended(&self.known_checkpoint(&view, id)?, &amend)?;
                changes.extend(new.map(|new| RecordChange::checkpoint(session, new)));
            }
            if !dropped.is_empty() {
                changes.push(RecordChange::Pruned { session });
                let gone = dropped.keys().copied().collect();
                let last = checkpoint::last_time_without(&view, session, &gone)?;
                let hidden = |id| RecordChange::CheckpointHidden { session, id, last };
                changes.extend(gone.into_iter().map(hidden));
            }
            let record = Record { operation: operation.clone(), changes };
            let is_empty = record.changes.is_empty();
            Ok(((!is_empty).then_some(record), dropped.into_values().collect()))
        })
    }

    pub(super) fn known_checkpoint(
        &self,
        view: &ReadSnapshot,
        id: &CheckpointId,
    ) -> Result<Checkpoint> {
        let known = checkpoint::by_id(view, self.number, id)?;
        known.ok_or_else(|| Error::not_found("checkpoint", id.to_string()))
    }

    /// Returns a checkpoint as `amend` changes it; `None` if that changes nothing.
    pub(super) fn amended(
        &self,
        old: &Checkpoint,
        amend: impl Fn(&mut Checkpoint),
    ) -> Result<Option<Checkpoint>> {
        let mut wanted = old.clone();
        amend(&mut wanted);
        let (message, tags, body) = (wanted.message, wanted.tags, wanted.body.without_nulls());
        let mut new = Checkpoint { message, tags, body, ..old.clone() };
        new.tags.iter().try_for_each(|tag| check_tag(tag))?;
        if new == *old {
            return Ok(None);
        }
        self.store.gate().amended_checkpoint(&mut new);
        Ok((new != *old).then_some(new))
    }

    /// Checks that no program names one of these checkpoints.
    fn check_unneeded<'a>(
        &self,
        view: &ReadSnapshot,
        mut checkpoints: impl Iterator<Item = &'a Checkpoint>,
    ) -> Result<()> {
        let programs = self.programs(view)?;
        let needed = checkpoints.find_map(|one| Some((one.sequence, programs.get(&one.sequence)?)));
        match needed {
            Some((sequence, program)) => Err(Error::Conflict(format!(
                "the program '{program}' needs the checkpoint #{sequence}: leave it out"
            ))),
            None => Ok(()),
        }
    }
}

impl Store {
    /// Drops a session of any kind: it is in no list any more, and its name is free for a new
    /// session at once. Until [`Store::sweep`] removes it, [`Session::undo`] brings it back, unless
    /// another session has its name by then; [`Store::dropped_session`] finds it. If it was the
    /// session used last, the debugging session with the latest event takes that place. Returns
    /// the operation.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it is dropped already, or if a program needs it.
    pub fn drop_session(&self, act: &WriteContext, session: &Session) -> Result<OperationId> {
        let (operation, number) = (act.operation()?, session.number);
        self.engine.commit(CommitDurability::Now, &mut |context| {
            let refs = session_refs(&context.refs, number)?;
            let name = &refs.info.name;
            if refs.removal.is_some() {
                return Err(Error::Conflict("the session is dropped already".to_owned()));
            }
            if refs.info.kind == SessionKind::Debug {
                let named = program_references(&context.view()?)?;
                if let Some(needed) = named.into_iter().find(|one| one.agent == *name) {
                    return Err(Error::Conflict(format!(
                        "the program '{}' needs the session '{name}': drop the program first",
                        needed.program
                    )));
                }
            }
            let pruning = operation.id;
            let mut changes = vec![
                RecordChange::Pruned { session: number },
                RecordChange::SessionDropped { session: number, of: number, pruning },
            ];
            if context.refs.last_used == Some(number) {
                let latest = context.refs.sessions.latest(SessionKind::Debug, 2)?;
                let other = latest.into_iter().find(|(other, _)| *other != number);
                changes.extend(other.map(|(session, _)| RecordChange::Used { session }));
            }
            Ok((Some(Record { operation: operation.clone(), changes }), ()))
        })?;
        self.forget_text_copies([number])?;
        Ok(operation.id)
    }

    /// Returns whether the session with this id was dropped or pruned here and can come back.
    pub fn is_session_hidden(&self, id: SessionId) -> Result<bool> {
        let (refs, _) = self.engine.follower.refs()?;
        let found = refs.sessions.find(SessionLookup::Id(id))?;
        let mut removals = found.into_iter().map(|(_, session)| session.removal);
        Ok(removals.any(|removal| matches!(removal, Some(SessionRemoval::Pruned(_)))))
    }

    /// Returns the session of this kind, and with this name or id, that [`Store::drop_session`]
    /// dropped last. `None` if it was brought back or swept since. [`Session::undo`] brings it
    /// back.
    pub fn dropped_session(&self, kind: SessionKind, name: &str) -> Result<Option<Session>> {
        let view = self.engine.follower.view()?;
        let mut last = None;
        for one in view.refs.sessions.all() {
            let (number, session) = one?;
            let Some(SessionRemoval::Pruned(operation)) = session.removal else { continue };
            let info = &session.info;
            if info.kind != kind || (info.name != name && info.id.to_string() != name) {
                continue;
            }
            // A session that a pruning hid is brought back by undoing the pruning, in the session
            // to which that operation belongs.
            if let Some(row) =
                find_operation(&view, &operation)?.filter(|row| row.session == number)
            {
                last = last.max(Some((row.position, number)));
            }
        }
        Ok(last.map(|(_, number)| self.session_at(number)))
    }
}
