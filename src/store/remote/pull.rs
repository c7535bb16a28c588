//! Pulling a session: the packs that are new are imported.

use super::track::KnownRef;
use super::{DepotRead, ReadRef, Remote};
use crate::engine::refs::present_session;
use crate::error::{DepotError, Error, Result};
use crate::format::ExportMark;
use crate::format::remote::{RefPack, RefRelation, open_pack, pack_name, ref_name};
use crate::model::{OperationId, SessionHandle, SessionId};
use crate::store::{Session, Store, WriteContext};
use std::collections::HashMap;
use std::io::Cursor;

/// How often a ref is read again that names packs which were joined meanwhile.
const MAX_ATTEMPTS: u32 = 5;

/// What a pull did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullReport {
    /// The name of the session here.
    pub session: String,
    /// The version of its ref.
    pub version: u64,
    /// How many operations were new here.
    pub operations: u64,
    /// The secrets in what was pulled that this store redacts, in words. They cannot be removed
    /// without changing ids: a purge removes them everywhere.
    pub secrets: Vec<String>,
}

impl Store {
    /// Pulls what others have pushed of a session. `name` is its name here if it is new and another
    /// session has its name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the session is not on the remote; [`Error::Conflict`] if it was
    /// changed here and on the remote; [`Error::RemoteHistory`] if the remote has another history
    /// of it than was seen; any error of an import or of the depot.
    pub fn pull(
        &self,
        act: &WriteContext,
        remote: &Remote,
        handle: &SessionHandle,
        name: Option<&str>,
    ) -> Result<PullReport> {
        let _locked = remote.lock(self)?;
        let known = remote.known_ref(self, handle)?;
        let tag = known.as_ref().map(|known| &known.read.tag);
        match (remote.depot.get(&ref_name(handle), tag)?, known) {
            (DepotRead::Whole { bytes, tag }, known) => {
                let read = remote.opened(handle, bytes, tag)?;
                self.take_in(act, remote, handle, known.as_ref(), read, name)
            }
            (DepotRead::Unchanged, Some(known)) => {
                let content = known.read.opened.content;
                let session = self.shared_session(content.info.id)?;
                let session = session.map_or(Ok(content.info.name), |one| name_of(&one))?;
                let version = content.version;
                Ok(PullReport { session, version, ..PullReport::default() })
            }
            (DepotRead::Absent, Some(known)) => {
                let session = known.read.opened.content.info.name;
                Err(Error::RemoteHistory { session, what: "has nothing any more" })
            }
            (DepotRead::Absent | DepotRead::Unchanged, None) => {
                Err(Error::not_found("session on the remote", handle.to_string()))
            }
        }
    }

    /// Returns the session with this id that was not removed.
    fn shared_session(&self, id: SessionId) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.written_refs()?;
        Ok(present_session(&refs, id)?.map(|number| self.session_at(number)))
    }

    /// Imports the packs of a ref that are new, and notes the ref as known.
    pub(super) fn take_in(
        &self,
        act: &WriteContext,
        remote: &Remote,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
        mut read: ReadRef,
        name: Option<&str>,
    ) -> Result<PullReport> {
        for _ in 0..MAX_ATTEMPTS {
            match self.take_in_once(act, remote, handle, known, &read, name) {
                Err(Error::Depot(DepotError::Damaged { name: lost, reason })) => {
                    // Packs may have been joined since the ref was read.
                    match remote.read_ref(handle)? {
                        Some(now) if now.tag != read.tag => read = now,
                        _ => return Err(DepotError::Damaged { name: lost, reason }.into()),
                    }
                }
                other => return other,
            }
        }
        Err(Error::Conflict("the session is pushed all the time: try again later".to_owned()))
    }

    fn take_in_once(
        &self,
        act: &WriteContext,
        remote: &Remote,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
        read: &ReadRef,
        name: Option<&str>,
    ) -> Result<PullReport> {
        let content = &read.opened.content;
        let seen = known.map_or(0, |known| known.read.opened.content.version);
        let since = known.map_or_else(ExportMark::default, |known| known.end);
        if let Some(known) = known {
            let what = match read.opened.relation(seen, &known.read.opened.link) {
                RefRelation::Same | RefRelation::Later | RefRelation::LaterUnlinked => None,
                RefRelation::SetBack => Some("has an earlier version than was seen"),
                RefRelation::Replaced => Some("has another history than was seen"),
            };
            if let Some(what) = what {
                let session = content.info.name.clone();
                return Err(Error::RemoteHistory { session, what });
            }
            if content.version > seen {
                self.check_unshared(content.info.id, &since)?;
            }
        }
        let mut report = PullReport { version: content.version, ..PullReport::default() };
        let mut done: HashMap<OperationId, usize> = HashMap::new();
        let mut begins = Vec::with_capacity(content.packs.len());
        for pack in &content.packs {
            let begin = known.and_then(|known| known.begin_of(pack));
            if pack.last <= seen {
                begins.push(begin.unwrap_or_default());
                continue;
            }
            begins.push(match begin {
                Some(begin) => begin,
                None => self.mark_of(content.info.id)?,
            });
            let bytes = remote.pack(handle, pack)?;
            let taken = self.import_pack(act, &mut Cursor::new(bytes), name)?;
            report.operations += taken.operations;
            report.secrets.extend(taken.secrets);
            for (operation, effects) in taken.effects {
                let known = done.entry(operation).or_default();
                *known = effects.max(*known);
            }
        }
        let session = self.shared_session(content.info.id)?;
        let Some(session) = session else {
            return Err(Error::Internal("a pulled session is not there".to_owned()));
        };
        report.session = name_of(&session)?;
        let end = self.first_unshared(session.number, &since, &done)?;
        let stored = read.stored.clone();
        remote.keep_ref(self, handle, (&read.tag, stored), (begins, end))?;
        Ok(report)
    }

    /// Refuses to pull if something was written here that cannot come after what was pushed.
    fn check_unshared(&self, id: SessionId, since: &ExportMark) -> Result<()> {
        let Some(session) = self.shared_session(id)? else { return Ok(()) };
        if self.wrote_only_facts_since(session.number, since)? {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "the session '{}' was changed here and on the remote: nothing was pulled or pushed",
            name_of(&session)?
        )))
    }

    /// Returns the mark of the end of a session; the default one if it is not here.
    fn mark_of(&self, id: SessionId) -> Result<ExportMark> {
        match self.shared_session(id)? {
            Some(session) => self.export_mark(session.number),
            None => Ok(ExportMark::default()),
        }
    }
}

fn name_of(session: &Session) -> Result<String> {
    Ok(session.summary()?.info.name)
}

impl KnownRef {
    /// Returns where a pack begins in this store, if one that began with the same version is known.
    fn begin_of(&self, pack: &RefPack) -> Option<ExportMark> {
        let mut known = self.read.opened.content.packs.iter().zip(&self.begins);
        known.find(|(other, _)| other.first == pack.first).map(|(_, begin)| *begin)
    }
}

impl Remote {
    /// Reads a pack and decrypts it.
    fn pack(&self, handle: &SessionHandle, pack: &RefPack) -> Result<Vec<u8>> {
        let sealed = match &pack.inline {
            Some(bytes) => bytes.0.clone(),
            None => {
                let object = pack_name(handle, &pack.name);
                match self.depot.get(&object, None)? {
                    DepotRead::Whole { bytes, .. } => bytes,
                    DepotRead::Absent | DepotRead::Unchanged => {
                        return Err(Error::from(DepotError::Damaged {
                            name: object,
                            reason: "it is not there, though the session needs it".to_owned(),
                        }));
                    }
                }
            }
        };
        pack.check_stored(&sealed)?;
        Ok(open_pack(&self.place(*handle), &pack.name, &pack.key, &sealed)?)
    }
}
