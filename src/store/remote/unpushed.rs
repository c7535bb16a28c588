//! What a store has that is not on a remote, as far as the store knows: no request is made.

use super::access::AccessKeys;
use super::track::SharedPart;
use super::{RemoteAccess, RewriteReason};
use crate::engine::refs::visible_sessions;
use crate::error::Result;
use crate::format::ExportMark;
use crate::format::remote::RefTrack;
use crate::model::{NoticeSalt, SessionHandle, Timestamp};
use crate::store::{Session, Store};
use std::collections::BTreeSet;

/// What was written to a session and is not on a remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpushedWork {
    /// How many operations are not on the remote.
    pub operations: u64,
    /// The earliest time of these operations.
    pub since: Option<Timestamp>,
    /// Why the session must be rewritten on the remote, if it must.
    pub rewrite: Option<RewriteReason>,
}

impl Store {
    /// Returns the sessions that were pushed to a remote or pulled from it, in the order in which
    /// they came here.
    ///
    /// # Errors
    /// If the store cannot be read or is damaged.
    pub fn shared_sessions(&self, access: &RemoteAccess) -> Result<Vec<Session>> {
        self.sessions_with(&self.tracked_handles(access.remote())?, &access.keys())
    }

    /// Returns the sessions that have one of these handles, in the order in which they came here.
    pub(super) fn sessions_with(
        &self,
        handles: &BTreeSet<SessionHandle>,
        keys: &AccessKeys,
    ) -> Result<Vec<Session>> {
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        let (refs, _) = self.engine.follower.written_refs_to_read()?;
        let mut shared = Vec::new();
        for one in visible_sessions(&refs) {
            let (number, session) = one?;
            if keys.handle(&session.info.id).is_ok_and(|handle| handles.contains(&handle)) {
                shared.push(self.session_at(number));
            }
        }
        Ok(shared)
    }

    /// Returns what was written to a session since it was last pushed to a remote or pulled from
    /// it; everything if it never was pushed or pulled.
    ///
    /// # Errors
    /// [`Error::NotGranted`](crate::Error::NotGranted) if `access` is a grant for another session;
    /// other errors if the store cannot be read or is damaged.
    pub fn unpushed(&self, access: &RemoteAccess, session: &Session) -> Result<UnpushedWork> {
        let shared = self.shared_part(access, session)?;
        let (operations, since) = self.unshared(session, shared.as_ref())?;
        let rewrite = match shared {
            Some(shared) => {
                self.rewrite_reason(session, &shared, &self.purge_track(access.remote())?)?
            }
            None => None,
        };
        Ok(UnpushedWork { operations, since, rewrite })
    }

    /// Returns how many purges made in this store have notices that were not written to a remote
    /// yet, as far as the store knows: no request is made.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) if the list of notices is damaged.
    pub fn pending_purges(&self, access: &RemoteAccess) -> Result<u64> {
        let pending = self.purge_track(access.remote())?.pending;
        // The notices of one purge share a salt.
        let purges: BTreeSet<NoticeSalt> = pending.iter().map(|notice| notice.salt).collect();
        Ok(purges.len() as u64)
    }

    /// Returns how many operations of a session a remote does not have, and their earliest time.
    pub(super) fn unshared(
        &self,
        session: &Session,
        shared: Option<&SharedPart>,
    ) -> Result<(u64, Option<Timestamp>)> {
        match shared {
            Some(SharedPart { end, unshared, .. }) => {
                self.written_since(session.number, end, unshared.as_deref().unwrap_or_default())
            }
            None => self.written_since(session.number, &ExportMark::default(), &[]),
        }
    }

    /// Returns what a remote has of a session; `None` for nothing.
    pub(super) fn shared_part(
        &self,
        access: &RemoteAccess,
        session: &Session,
    ) -> Result<Option<SharedPart>> {
        let handle = access.handle(&session.summary()?.info.id)?;
        match self.ref_track(access.remote(), &handle)? {
            Some(RefTrack { session: number, end, last, unshared, .. })
                if number == session.number && self.has_export_mark(&end)? =>
            {
                Ok(Some(SharedPart { end, last, unshared }))
            }
            _ => Ok(None),
        }
    }
}
