//! Rewrites sessions on a remote that still has data which was erased here.

use super::track::SharedPart;
use super::{PurgeActivity, Remote};
use crate::error::Result;
use crate::format::remote::PurgeTrack;
use crate::model::{SessionHandle, SessionId};
use crate::store::{Session, Store, WriteContext};
use serde::Serialize;

/// Why a session is rewritten on a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewriteReason {
    /// Secrets were purged.
    Purged,
    /// Pruned data was swept.
    Swept,
    /// A join with another remote changed the order of its operations.
    Reordered,
}

/// What was done with a remote because of purges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedPurges {
    /// What all contacts did since the last [`Remote::take_purge_activity`].
    pub activity: PurgeActivity,
    /// The names of the sessions that were rewritten.
    pub rewritten: Vec<String>,
    /// The names of the sessions that must be rewritten, but were not, because they have operations
    /// that were not pushed.
    pub unpushed: Vec<String>,
}

/// A session that must be rewritten because of a purge.
pub(super) struct PurgedSession {
    pub(super) handle: SessionHandle,
    id: SessionId,
    session: Session,
    /// The number of its operations that were not pushed.
    operations: u64,
}

impl Store {
    /// Finishes what purges need on a remote: writes the notices, purges here what others purged,
    /// and rewrites the sessions that were pushed with what was purged. It does not rewrite
    /// sessions that have operations which were not pushed, or that hold a secret which cannot be
    /// purged. Also returns what was done before an error.
    ///
    /// # Errors
    /// Any error before the first push; else the first error of a push, after all others were
    /// tried.
    pub fn finish_purges(
        &self,
        act: &WriteContext,
        remote: &Remote,
    ) -> (FinishedPurges, Result<()>) {
        let mut finished = FinishedPurges::default();
        let done = self.rewrite_purged(act, remote, &mut finished);
        finished.activity = remote.take_purge_activity();
        (finished, done)
    }

    fn rewrite_purged(
        &self,
        act: &WriteContext,
        remote: &Remote,
        finished: &mut FinishedPurges,
    ) -> Result<()> {
        let locked = remote.lock(self)?;
        self.exchange_purges(act, remote)?;
        drop(locked);
        let mut done = Ok(());
        let held = self.purge_track(remote.id)?.held;
        // A session that holds a secret which cannot be purged needs a push that names it.
        let can_rewrite = |one: &PurgedSession| !held.contains(&one.id);
        for one in self.sessions_to_rewrite(remote)?.into_iter().filter(can_rewrite) {
            let name = one.session.summary()?.info.name;
            if one.operations > 0 {
                finished.unpushed.push(name);
                continue;
            }
            match self.push(act, remote, &one.session) {
                Ok(pushed) => finished.rewritten.extend(pushed.rewritten.map(|_| name)),
                Err(error) => done = done.and(Err(error)),
            }
        }
        done
    }

    /// Returns the sessions on a remote that must be rewritten because of a purge.
    pub(super) fn sessions_to_rewrite(&self, remote: &Remote) -> Result<Vec<PurgedSession>> {
        let track = self.purge_track(remote.id)?;
        let mut found = Vec::new();
        for session in self.sessions_with(&self.tracked_handles(remote.id)?, &remote.keys)? {
            let id = session.summary()?.info.id;
            let handle = remote.keys.handle(&id)?;
            let Some(known) = remote.last_ref(self, &handle)? else { continue };
            let reason = self.rewrite_reason(&session, &known.shared, &track)?;
            if reason == Some(RewriteReason::Purged) {
                let operations = self.unshared(&session, Some(&known.shared))?.0;
                found.push(PurgedSession { handle, id, session, operations });
            }
        }
        Ok(found)
    }

    /// Returns why a session must be rewritten on a remote, if it must.
    pub(super) fn rewrite_reason(
        &self,
        session: &Session,
        shared: &SharedPart,
        track: &PurgeTrack,
    ) -> Result<Option<RewriteReason>> {
        let id = session.summary()?.info.id;
        if track.rewrites.contains(&id)
            || self.was_purged_since(session.number, &shared.end, shared.last)?
        {
            return Ok(Some(RewriteReason::Purged));
        }
        let is_swept = self.was_erased_since(session.number, &shared.end, shared.last)?;
        Ok(is_swept.then_some(RewriteReason::Swept))
    }
}
