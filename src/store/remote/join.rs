//! Joining a session that was changed here and on the remote.
//!
//! What was pushed keeps its ids and numbers. What was not pushed is written again after it, in a
//! new session that is built beside the old one and replaces it in one record. Until then the new
//! session is hidden. After an error the old session is as before, except that prunings that were
//! not pushed may have been undone.

use super::other_remotes::TrackElsewhere;
use super::pull::{Pull, TakenPacks};
use super::track::KnownRef;
use crate::backend::Snapshot;
use crate::engine::commit::CommitDurability;
use crate::engine::index::find_operation_of;
use crate::engine::refs::session as session_refs;
use crate::engine::session_rows::SessionLookup;
use crate::error::{Error, Result};
use crate::format::{ExportMark, Record, RecordChange, SessionRemoval};
use crate::model::{BranchNumber, Operation, SessionMetadata, SessionNumber};
use crate::store::Store;
use crate::store::bundle::PackTarget;
use crate::store::bundle::reapply::{JoinedWork, KEPT_APART, Reapply, ReapplyError};
use crate::store::bundle::shared_history::SharedHistory;
use std::collections::BTreeSet;

/// The maximum number of attempts to join. Another attempt follows if the session was written to
/// meanwhile, or if one more branch must be kept apart.
const MAX_ATTEMPTS: u32 = 8;

/// What joining did.
pub(super) struct Joined {
    pub(super) packs: TakenPacks,
    pub(super) reapplied: JoinedWork,
    /// The end of what is on the remote, in the new session.
    pub(super) end: ExportMark,
}

impl Pull<'_> {
    /// Joins a session with the operations that others pushed. `info` describes the joined session.
    pub(super) fn join(
        &self,
        old: SessionNumber,
        known: Option<&KnownRef>,
        info: &SessionMetadata,
    ) -> Result<Joined> {
        let (store, remote) = (self.store, self.remote);
        let operation = self.act.operation()?;
        let (pushed, last) = (KnownRef::end_of(known), KnownRef::last_of(known));
        // Without notices, the packs would bring back what was purged.
        let has_notices =
            remote.notices_key().is_some() && !store.purge_track(remote.id)?.notices.is_empty();
        if !has_notices && store.was_purged_since(old, &pushed, last)? {
            return Err(Error::Conflict(
                "a purge here was not pushed yet, and the session was changed on the remote \
                 meanwhile: both cannot be joined"
                    .to_owned(),
            ));
        }
        let elsewhere = store.tracks_elsewhere(remote.id, &store.session_at(old))?;
        let mut kept_apart = BTreeSet::new();
        for _ in 0..MAX_ATTEMPTS {
            store.give_up_incomplete(&operation, info)?;
            let new = store.begin_beside(&operation, info)?;
            match self.join_into((old, new), (&operation, &kept_apart, &elsewhere)) {
                Ok(Some(joined)) => {
                    store.forget_text_copies([old])?;
                    // Until there is a new generation, each process applies the removal of the
                    // session itself.
                    store.maintain(0).ok();
                    return Ok(joined);
                }
                // Something was written to the session meanwhile.
                Ok(None) => {}
                Err(ReapplyError::Dangling(branch)) => {
                    kept_apart.insert(branch);
                }
                Err(ReapplyError::Failed(error)) => {
                    store.give_up_incomplete(&operation, info)?;
                    return Err(match error {
                        Error::Folded { sequence, .. } => Error::Conflict(format!(
                            "#{sequence} was permanently pruned here before it was pushed, and the \
                             session was changed on the remote meanwhile: both cannot be joined. \
                             {KEPT_APART}"
                        )),
                        error => error,
                    });
                }
            }
        }
        store.give_up_incomplete(&operation, info)?;
        Err(Error::Conflict(
            "the session is written to all the time: try again when less is written".to_owned(),
        ))
    }

    /// Builds the joined session `new`, and lets it replace the session `old`; `None` if `old` was
    /// written to meanwhile.
    fn join_into(
        &self,
        (old, new): (SessionNumber, SessionNumber),
        (operation, kept_apart, elsewhere): (
            &Operation,
            &BTreeSet<BranchNumber>,
            &[TrackElsewhere],
        ),
    ) -> Result<Option<Joined>, ReapplyError> {
        let store = self.store;
        let target = PackTarget { into: Some(new), keeps_checkout: true, ..PackTarget::default() };
        let packs = self.take_packs(None, target)?;
        let since = store.first_unshared(old, &ExportMark::default(), &packs.effects)?;
        self.check_shared((old, new), &since, &packs)?;
        self.undo_prunings((old, new), &since)?;
        let view = store.engine.follower.written_view()?;
        let end = store.export_mark(new)?;
        let tag = store.clone_tag();
        let reapply = Reapply::new(store, (old, new), operation, &tag, kept_apart, &view)?;
        let reapplied = reapply.all(&since)?;
        store.check_elsewhere(elsewhere, (old, new))?;
        store.note_reordered(elsewhere, new)?;
        let is_replaced = store.engine.commit(CommitDurability::Now, &mut |context| {
            let removal =
                |number| -> Result<_> { Ok(session_refs(&context.refs, number)?.removal) };
            if removal(old)?.is_some() || removal(new)? != Some(SessionRemoval::Incomplete) {
                return Err(Error::Conflict(
                    "the session was dropped, or pulled by another process, meanwhile: try again"
                        .to_owned(),
                ));
            }
            let now = context.view()?;
            let is_same = !Store::was_written_since(&now, old, view.position())?;
            let changes = vec![RecordChange::SessionReplaced { session: new, of: old }];
            let record = Record { operation: operation.clone(), changes };
            Ok((is_same.then_some(record), is_same))
        })?;
        Ok(is_replaced.then_some(Joined { packs, reapplied, end }))
    }

    /// Checks that the operations that both the remote and this store have are the same, under the
    /// same numbers.
    fn check_shared(
        &self,
        (old, new): (SessionNumber, SessionNumber),
        since: &ExportMark,
        packs: &TakenPacks,
    ) -> Result<()> {
        let &Self { store, remote, handle, read, .. } = self;
        match store.compare_shared(old, new)? {
            SharedHistory::OtherNumbers if store.written_since(old, since, &[])?.0 > 0 => {
                store.note_other_order(remote, (handle, read), old, &packs.effects)?;
                let session = store.session_at(old).summary()?.info.name;
                Err(Error::OtherOrder { session })
            }
            SharedHistory::OtherContent if !remote.accepts_history => Err(Error::RemoteHistory {
                session: read.opened.content.info.name.clone(),
                what: "has other content, which no purge explains,",
            }),
            _ => Ok(()),
        }
    }

    /// Undoes the prunings since a mark, because they hide data that is to be written again. The
    /// next pruning hides the same again.
    fn undo_prunings(
        &self,
        (old, new): (SessionNumber, SessionNumber),
        since: &ExportMark,
    ) -> Result<()> {
        let view = self.store.engine.follower.written_view()?;
        let session = self.store.session_at(old);
        for pruning in self.store.prunings_since(old, since)? {
            // This pruning was pushed, so it hides nothing that is written again.
            if find_operation_of(&view, new, &pruning)?.is_some() {
                continue;
            }
            session.undo(self.act, Some(&pruning.to_string()))?;
        }
        Ok(())
    }
}

impl Store {
    /// Begins a session with the same id as another one, hidden until it replaces that one.
    fn begin_beside(&self, operation: &Operation, info: &SessionMetadata) -> Result<SessionNumber> {
        self.engine.commit(CommitDurability::Later, &mut |context| {
            let number = context.refs.sessions.len() as SessionNumber;
            let changes = vec![RecordChange::SessionBegun { info: Box::new(info.clone()) }];
            Ok((Some(Record { operation: operation.clone(), changes }), number))
        })
    }

    /// Deletes the incomplete sessions with this id: their join failed, or its process was killed.
    fn give_up_incomplete(&self, operation: &Operation, info: &SessionMetadata) -> Result<()> {
        self.engine.commit(CommitDurability::Later, &mut |context| {
            let known = context.refs.sessions.find(SessionLookup::Id(info.id))?;
            let known = known.into_iter();
            let left =
                known.filter(|(_, session)| session.removal == Some(SessionRemoval::Incomplete));
            let changes: Vec<_> =
                left.map(|(session, _)| RecordChange::SessionAbandoned { session }).collect();
            let record = Record { operation: operation.clone(), changes };
            Ok(((!record.changes.is_empty()).then_some(record), ()))
        })
    }
}
