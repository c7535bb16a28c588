//! Sessions that an agent began both here and on the remote.
//!
//! An agent that resumes its session on another machine may begin to write before the session was
//! pulled. What it wrote then belongs to the pulled session.

use super::pull::{Pull, TakenRef, refused_join};
use crate::engine::refs::of_kind;
use crate::engine::session_rows::SessionLookup;
use crate::error::{Error, Result};
use crate::model::{SessionMetadata, SessionNumber};
use crate::store::bundle::PackTarget;

/// How many attempts to import a session may fail because its agent began one here meanwhile. The
/// attempt after that imports it as a separate session.
const MAX_ATTEMPTS: u32 = 2;

impl Pull<'_> {
    /// Imports a session that is not here. If its agent began one here that was never pushed, both
    /// are joined if they can be.
    pub(super) fn take_new(&self, name: Option<&str>) -> Result<TakenRef> {
        let taken = self.take_beside(name);
        let Err(Error::Conflict(reason)) = taken else { return taken };
        match self.store.shared_session(self.read.opened.content.info.id)? {
            // The session was written to as soon as its first pack had been imported.
            Some(here) => self.take_or_join(here.number, None),
            None => Err(Error::Conflict(reason)),
        }
    }

    /// Imports a session as a new one, or joins it with the one that its agent began here.
    fn take_beside(&self, name: Option<&str>) -> Result<TakenRef> {
        let mut info = self.read.opened.content.info.clone();
        if let Some(name) = name {
            name.clone_into(&mut info.name);
        }
        for _ in 0..MAX_ATTEMPTS {
            let before =
                self.store.engine.follower.written_refs()?.0.sessions.len() as SessionNumber;
            if let Some(begun) = self.begun_here(&info)? {
                match self.join_begun(begun, &info) {
                    // They cannot be joined: they stay two sessions.
                    Err(Error::Conflict(_) | Error::SharedElsewhere { .. })
                        if !self.remote.refuses_joins => {}
                    done => return done,
                }
            }
            let target = PackTarget { name, begun_before: Some(before), ..PackTarget::default() };
            match self.take_in_order(None, target) {
                Err(Error::Conflict(_)) if self.begun_here(&info)? >= Some(before) => {}
                done => return done,
            }
        }
        let target = PackTarget { name, ..PackTarget::default() };
        self.take_in_order(None, target)
    }

    /// Joins the session that an agent began here with its session on the remote. The joined
    /// session replaces the one that was begun here.
    fn join_begun(&self, begun: SessionNumber, info: &SessionMetadata) -> Result<TakenRef> {
        if self.remote.refuses_joins {
            return Err(refused_join(self.read, true));
        }
        let refs = self.store.engine.follower.written_refs()?.0;
        if of_kind(&refs, info.kind, &info.name)?.is_some_and(|other| other != begun) {
            return Err(Error::Duplicate { kind: "session", id: info.name.clone() });
        }
        Ok(self.join(begun, None, info)?.into())
    }

    /// Returns the newest session of the same agent session and kind that this store began and that
    /// is not known to be on the remote.
    fn begun_here(&self, info: &SessionMetadata) -> Result<Option<SessionNumber>> {
        let Some(agent) = &info.agent_session else { return Ok(None) };
        let refs = self.store.engine.follower.written_refs()?.0;
        let shared = self.store.tracked_handles(self.remote.id)?;
        let own = refs.sessions.find(SessionLookup::Agent(agent))?.into_iter().rev();
        let mut begun = own.filter(|(_, session)| {
            let id = session.info.id;
            let is_shared = self.remote.handle(&id).is_ok_and(|handle| shared.contains(&handle));
            session.removal.is_none()
                && session.info.kind == info.kind
                && !is_shared
                && self.store.id_tag(id).is_none()
        });
        Ok(begun.next().map(|(number, _)| number))
    }
}
