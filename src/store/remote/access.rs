//! What opens a remote: the key of all of it, or the grant of one session.

use super::Remote;
use crate::error::{Error, Result};
use crate::format::remote::{RemoteGrant, RemoteKeyFile, RemoteKeys, SeenRefs, SessionKey};
use crate::model::{RemoteId, SessionHandle, SessionId};
use crate::store::Store;

/// What opens a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteAccess {
    /// The key of the remote: it opens all sessions.
    Key(RemoteKeyFile),
    /// The grant of one session.
    Grant(RemoteGrant),
}

impl RemoteAccess {
    /// Returns the id of the remote.
    #[must_use]
    pub const fn remote(&self) -> RemoteId {
        match self {
            Self::Key(key) => key.remote,
            Self::Grant(grant) => grant.remote,
        }
    }

    /// Returns the key of the remote; `None` if this is a grant.
    #[must_use]
    pub const fn key(&self) -> Option<&RemoteKeyFile> {
        match self {
            Self::Key(key) => Some(key),
            Self::Grant(_) => None,
        }
    }

    /// Returns the handle of a session on the remote.
    ///
    /// # Errors
    /// [`Error::NotGranted`] if this is the grant of another session.
    pub fn handle(&self, session: &SessionId) -> Result<SessionHandle> {
        self.keys().handle(session)
    }

    /// Returns the keys from the key file or the grant.
    pub(super) fn keys(&self) -> AccessKeys {
        match self {
            Self::Key(key) => AccessKeys::All(key.keys()),
            Self::Grant(grant) => AccessKeys::One(grant.clone()),
        }
    }

    /// Returns the versions of the refs that the machine which wrote the key file or grant had
    /// seen.
    pub(super) fn seen(&self) -> SeenRefs {
        match self {
            Self::Key(key) => key.seen.clone(),
            Self::Grant(grant) => SeenRefs::from([(grant.handle, grant.seen)]),
        }
    }
}

impl From<RemoteKeyFile> for RemoteAccess {
    fn from(key: RemoteKeyFile) -> Self {
        Self::Key(key)
    }
}

impl From<RemoteGrant> for RemoteAccess {
    fn from(grant: RemoteGrant) -> Self {
        Self::Grant(grant)
    }
}

/// The keys from a key file or a grant.
pub(super) enum AccessKeys {
    /// The keys of the whole remote.
    All(RemoteKeys),
    /// The key of one session.
    One(RemoteGrant),
}

impl AccessKeys {
    /// Returns the handle of a session on the remote.
    pub(super) fn handle(&self, session: &SessionId) -> Result<SessionHandle> {
        match self {
            Self::All(keys) => Ok(keys.handle(session)),
            Self::One(grant) if grant.session == *session => Ok(grant.handle),
            Self::One(_) => Err(Error::NotGranted),
        }
    }

    /// Returns the key of the session with this handle.
    pub(super) fn session(&self, handle: &SessionHandle) -> Result<SessionKey> {
        match self {
            Self::All(keys) => Ok(keys.session(handle)),
            Self::One(grant) if grant.handle == *handle => Ok(grant.key.clone()),
            Self::One(_) => Err(Error::NotGranted),
        }
    }

    /// Returns the keys of the whole remote.
    pub(super) const fn all(&self) -> Result<&RemoteKeys> {
        match self {
            Self::All(keys) => Ok(keys),
            Self::One(_) => Err(Error::NotGranted),
        }
    }

    /// Returns the only session that can be opened; `None` if all can.
    pub(super) const fn only(&self) -> Option<&SessionHandle> {
        match self {
            Self::All(_) => None,
            Self::One(grant) => Some(&grant.handle),
        }
    }
}

impl Store {
    /// Makes the grant of the session with this handle. It opens this session only, also what is
    /// pushed later, until the key of the remote is rotated. No pack is read.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the session is not on the remote; [`Error::RemoteHistory`] if the
    /// remote has another history of it than was seen; [`Error::NotGranted`] if the remote was
    /// opened with a grant; [`Error::Conflict`] if a rotation of the key has not ended; any error
    /// of the depot.
    pub fn grant(&self, remote: &Remote, handle: &SessionHandle) -> Result<RemoteGrant> {
        let keys = remote.keys.all()?;
        remote.check_rotated()?;
        let known = remote.known_ref(self, handle)?;
        let missing = || Error::not_found("session on the remote", handle.to_string());
        let read = remote.read_current(self, handle, known.as_ref())?.ok_or_else(missing)?;
        remote.check_history(self, handle, known.as_ref(), &read)?;
        Ok(RemoteGrant {
            remote: remote.id,
            session: read.opened.content.info.id,
            handle: *handle,
            key: keys.session(handle),
            seen: read.opened.seen(),
        })
    }
}
