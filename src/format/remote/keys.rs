//! The keys of a remote, derived from its secret.

use crate::backend::debug_by_name;
use crate::format::record::RecordBytes;
use crate::model::{SessionHandle, SessionId};
use serde::{Deserialize, Serialize};

/// The keys of a whole remote.
#[derive(Clone)]
pub struct RemoteKeys {
    names: [u8; 32],
    marker: [u8; 32],
    sessions: [u8; 32],
    notices: [u8; 32],
    is_rotated: bool,
}

impl RemoteKeys {
    /// Derives the keys from the secret of the remote.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        let derive = |purpose: &str| blake3::derive_key(purpose, secret);
        Self {
            names: derive("forge names of a remote, version 1"),
            marker: derive("forge marker of a remote, version 1"),
            sessions: derive("forge sessions of a remote, version 1"),
            notices: derive("forge notices of a remote, version 1"),
            is_rotated: false,
        }
    }

    /// Returns the keys with this key of names. A remote keeps its key of names when its secret is
    /// replaced.
    #[must_use]
    pub fn with_names(mut self, names: [u8; 32]) -> Self {
        self.is_rotated |= self.names != names;
        self.names = names;
        self
    }

    /// Returns the key of names.
    #[must_use]
    pub const fn names(&self) -> &[u8; 32] {
        &self.names
    }

    /// Returns whether the remote had another secret before.
    #[must_use]
    pub const fn is_rotated(&self) -> bool {
        self.is_rotated
    }

    /// Returns the handle of a session. It does not reveal the session's id.
    #[must_use]
    pub fn handle(&self, session: &SessionId) -> SessionHandle {
        let hash = blake3::keyed_hash(&self.names, session.as_bytes());
        SessionHandle::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"))
    }

    /// Returns the key of a session's ref. It is derived from the handle, so that a clone can read
    /// the refs of sessions that it does not have.
    #[must_use]
    pub fn session(&self, handle: &SessionHandle) -> SessionKey {
        SessionKey(blake3::keyed_hash(&self.sessions, handle.as_bytes()).into())
    }

    /// Returns the key of the notices of purges.
    #[must_use]
    pub const fn notices(&self) -> &[u8; 32] {
        &self.notices
    }

    /// Returns a hash which shows that the marker with this text was written with the secret.
    pub(super) fn marker_hash(&self, text: &str) -> [u8; 16] {
        let hash = blake3::keyed_hash(&self.marker, text.as_bytes());
        *hash.as_bytes().first_chunk().expect("16 of 32 bytes")
    }
}

/// The key of one session's ref. It opens this session for reading and pushing, and no other
/// session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// Creates the key from these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key, to be passed on as a grant.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the key that encrypts the ref.
    pub(super) fn content(&self) -> [u8; 32] {
        blake3::derive_key("forge content of a ref, version 1", &self.0)
    }

    /// Returns the key of the links between the versions of the ref.
    pub(super) fn links(&self) -> [u8; 32] {
        blake3::derive_key("forge links of a ref, version 1", &self.0)
    }
}

/// The key of one pack: 32 random bytes, kept in the ref that names the pack.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RecordBytes", into = "RecordBytes")]
pub struct PackKey([u8; 32]);

impl PackKey {
    /// Creates the key from these bytes, which must be random.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<PackKey> for RecordBytes {
    fn from(key: PackKey) -> Self {
        Self(key.0.to_vec())
    }
}

impl TryFrom<RecordBytes> for PackKey {
    type Error = &'static str;

    fn try_from(bytes: RecordBytes) -> Result<Self, Self::Error> {
        bytes.0.try_into().map(Self).map_err(|_| "a key of a pack has 32 bytes")
    }
}

debug_by_name!(RemoteKeys, SessionKey, PackKey);
