//! What a store has that is not on a remote, as far as the store knows: no request is made.

use super::RemoteAccess;
use super::track::read_track;
use crate::backend;
use crate::engine::refs::visible_sessions;
use crate::error::Result;
use crate::format::ExportMark;
use crate::format::remote::RefTrack;
use crate::model::{SessionHandle, Timestamp};
use crate::store::{Session, Store};
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// What was written to a session and is not on a remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpushedWork {
    /// How many operations are not there.
    pub operations: u64,
    /// When the first of them was made.
    pub since: Option<Timestamp>,
}

impl Store {
    /// Returns the sessions that were pushed to a remote or pulled from it, in the order in which
    /// they came here.
    ///
    /// # Errors
    /// If the store cannot be read or is damaged.
    pub fn shared_sessions(&self, access: &RemoteAccess) -> Result<Vec<Session>> {
        let Some(folder) = self.track_folder(access.remote()) else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(backend::Error::io("list", &folder))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let handles: BTreeSet<SessionHandle> = names.filter_map(|name| name.parse().ok()).collect();
        let keys = access.keys();
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
    /// it; all of it if it never was.
    ///
    /// # Errors
    /// [`Error::NotGranted`](crate::Error::NotGranted) if this is the grant of another session; if
    /// the store cannot be read or is damaged.
    pub fn unpushed(&self, access: &RemoteAccess, session: &Session) -> Result<UnpushedWork> {
        let end = self.shared_end(access, session)?;
        let (operations, since) = self.written_since(session.number, &end)?;
        Ok(UnpushedWork { operations, since })
    }

    /// Returns up to where a session is on a remote.
    pub(super) fn shared_end(
        &self,
        access: &RemoteAccess,
        session: &Session,
    ) -> Result<ExportMark> {
        let handle = access.handle(&session.summary()?.info.id)?;
        let Some(folder) = self.track_folder(access.remote()) else {
            return Ok(ExportMark::default());
        };
        match read_track(&folder.join(handle.to_string()))? {
            Some(RefTrack { end, .. }) if self.has_export_mark(&end)? => Ok(end),
            _ => Ok(ExportMark::default()),
        }
    }
}
