//! The witness of refs: what was seen of each ref on this machine, in a folder of the keyring for
//! each remote. All stores of the keyring share it, so a new or restored store notices a remote
//! that was set back.
//!
//! It may lag behind the remote, but is never ahead of it. So a lost file is not an error.

use super::known::write_entry;
use super::rotate::check_ended;
use super::track::KnownRef;
use super::{ReadRef, Remote, RemoteAccess};
use crate::backend::{files, plain_file};
use crate::error::{Error, Result};
use crate::format::remote::{RefRelation, RemoteKeyFile, SeenRef, SeenRefs};
use crate::model::{RemoteId, SessionHandle};
use crate::store::Store;
use crate::store::keyring::Keyring;
use std::path::{Path, PathBuf};

/// A larger file is not a witness.
const MAX_FILE_BYTES: u64 = 1 << 10;

impl Remote {
    /// Makes pushes and pulls accept the history of a session that the remote has, even if this
    /// machine has seen a later or another one.
    #[must_use]
    pub fn accepting_history(mut self) -> Self {
        self.accepts_history = true;
        self
    }

    /// Makes pushes and pulls refuse a state that is older than the one seen by the machine that
    /// wrote this key or grant.
    #[must_use]
    pub fn having_seen(mut self, access: &RemoteAccess) -> Self {
        self.seen = access.seen();
        self
    }

    /// Returns whether a ref must be read before it is written. A store that was restored may know
    /// the very state to which the remote was set back.
    pub(super) fn must_read_before_write(
        &self,
        store: &Store,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
        is_first: bool,
    ) -> bool {
        let Some(known) = known else { return true };
        let version = known.read.opened.content.version;
        let is_behind = || self.witnesses(store, handle).any(|seen| seen.version > version);
        is_first && (self.accepts_history || is_behind())
    }

    /// Checks that a ref is the one that was seen, or a later version of it. Returns `known`, or
    /// `None` if another history is accepted.
    pub(super) fn check_history<'a>(
        &self,
        store: &Store,
        handle: &SessionHandle,
        known: Option<&'a KnownRef>,
        read: &ReadRef,
    ) -> Result<Option<&'a KnownRef>> {
        let known_seen = known.map(|known| known.read.opened.seen());
        let mut all = known_seen.into_iter().chain(self.witnesses(store, handle));
        match all.find_map(|seen| breach_of(read, &seen)) {
            None => Ok(known),
            Some(_) if self.accepts_history => Ok(None),
            Some(what) => {
                let session = read.opened.content.info.name.clone();
                Err(Error::RemoteHistory { session, what })
            }
        }
    }

    /// Reads the ref of a session. A missing ref is an error if it existed before.
    pub(super) fn read_current(
        &self,
        store: &Store,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
    ) -> Result<Option<ReadRef>> {
        let read = self.read_ref(handle)?;
        if read.is_none() {
            self.check_absent(store, handle, known)?;
        }
        Ok(read)
    }

    /// Checks that a missing ref did not exist before.
    pub(super) fn check_absent(
        &self,
        store: &Store,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
    ) -> Result<()> {
        let was_there = known.is_some() || self.witnesses(store, handle).next().is_some();
        if !was_there || self.accepts_history {
            return Ok(());
        }
        let known = known.map(|known| known.read.opened.content.info.name.clone());
        let session = known.unwrap_or_else(|| handle.to_string());
        Err(Error::RemoteHistory { session, what: "has no data of it any more" })
    }

    /// Notes the version of a ref that was accepted. Errors are ignored, as the witness may lag.
    pub(super) fn note_seen(&self, store: &Store, handle: &SessionHandle, seen: &SeenRef) {
        if let Some(folder) = store.witness_folder(self.id) {
            note(&folder, handle, seen, self.accepts_history);
        }
    }

    /// Returns what was seen of a ref, by this machine and by the one that wrote the key file.
    fn witnesses(
        &self,
        store: &Store,
        handle: &SessionHandle,
    ) -> impl Iterator<Item = SeenRef> + use<> {
        let folder = store.witness_folder(self.id);
        let here = folder.and_then(|folder| read_seen(&folder, handle));
        here.into_iter().chain(self.seen.get(handle).copied())
    }
}

impl Store {
    /// Returns what was seen of the refs of a remote, for its key file: by the stores of this
    /// keyring, and by the machine that wrote this key.
    ///
    /// # Errors
    /// If the keyring cannot be read.
    pub fn seen_refs(&self, key: &RemoteKeyFile) -> Result<SeenRefs> {
        let mut all = key.seen.clone();
        let Some(folder) = self.witness_folder(key.remote) else { return Ok(all) };
        for handle in files::names_in(&folder)?.iter().filter_map(|name| name.parse().ok()) {
            if let Some(seen) = read_seen(&folder, &handle) {
                let latest = all.entry(handle).or_insert(seen);
                if seen.version > latest.version {
                    *latest = seen;
                }
            }
        }
        Ok(all)
    }

    /// Notes what the machine that wrote a key file has seen.
    pub(super) fn note_seen_in(&self, access: &RemoteAccess) {
        if let Some(folder) = self.witness_folder(access.remote()) {
            access.seen().iter().for_each(|(handle, seen)| note(&folder, handle, seen, false));
        }
    }

    /// Returns the key of a remote for another machine, with what was seen of the remote here.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a rotation of the key has not ended; if the keyring cannot be read.
    pub fn export_remote_key(&self, key: &RemoteKeyFile) -> Result<RemoteKeyFile> {
        check_ended(key.is_rotating())?;
        Ok(RemoteKeyFile { seen: self.seen_refs(key)?, ..key.for_others() })
    }

    fn witness_folder(&self, remote: RemoteId) -> Option<PathBuf> {
        Some(Keyring::of(&self.engine.options)?.refs_seen(&remote))
    }
}

/// Returns in words how a ref contradicts what was seen; `None` if it does not.
fn breach_of(read: &ReadRef, seen: &SeenRef) -> Option<&'static str> {
    match read.opened.relation(seen) {
        RefRelation::Same | RefRelation::Later | RefRelation::LaterUnlinked => None,
        RefRelation::SetBack => Some("has an earlier version"),
        RefRelation::Replaced => Some("has another history"),
    }
}

fn read_seen(folder: &Path, handle: &SessionHandle) -> Option<SeenRef> {
    let bytes = plain_file::read(&folder.join(handle.to_string()), MAX_FILE_BYTES).ok()?;
    SeenRef::decode(&bytes).ok()
}

/// Writes what was seen of a ref, unless the file has the same or a later version. With
/// `may_go_back`, it also replaces a later or another version.
fn note(folder: &Path, handle: &SessionHandle, seen: &SeenRef, may_go_back: bool) {
    let here = read_seen(folder, handle);
    if here.is_none_or(|here| here.version < seen.version || (may_go_back && here != *seen)) {
        let _ = write_entry(folder, &handle.to_string(), &seen.encode());
    }
}
