//! Tracks: what a store knows of the refs and notices on a remote. They are a file for each
//! session, and one for the notices, in the folder of the store. A store without a folder has them
//! in memory.

use super::rotate::open_ref;
use super::{DepotTag, ReadRef, Remote};
use crate::backend::files::{self, LockedFile};
use crate::backend::{self, locked, plain_file};
use crate::error::{Error, RemoteFormatError, Result};
use crate::format::remote::{MAX_REF_BYTES, PurgeTrack, RefTrack};
use crate::format::{ExportMark, RecordBytes};
use crate::model::{OperationId, RemoteId, SessionHandle, SessionNumber};
use crate::store::Store;
use crate::store::folder::REMOTES_FOLDER;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::MutexGuard;
use std::time::Duration;

/// The extension of a file that is being written.
const NEW: &str = "new";
/// A larger file is no track. A track has a ref, some bytes for each of its packs, and ids of
/// operations.
const MAX_TRACK_BYTES: u64 = MAX_REF_BYTES as u64 + (64 << 20);
/// The file with the notices of a remote.
const PURGES_FILE: &str = "purges";
/// A larger file has more notices than a remote can have.
const MAX_PURGES_BYTES: u64 = 1 << 30;
/// How long a push or pull waits for another one of the same store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A ref that the store has pushed or pulled.
pub(super) struct KnownRef {
    pub(super) read: ReadRef,
    /// Whether it is encrypted with the key that the remote had before a rotation.
    pub(super) is_earlier: bool,
    /// Where each pack of the ref begins in this store.
    pub(super) begins: Vec<ExportMark>,
    /// What the remote has of the session.
    pub(super) shared: SharedPart,
}

/// What a remote has of a session.
pub(super) struct SharedPart {
    /// The end of the part of the session that is on the remote.
    pub(super) end: ExportMark,
    /// The last sequence number that is on the remote; [`u64::MAX`] if that is not known.
    pub(super) last: u64,
    /// The operations before `end` that are not on the remote, if a join with another remote
    /// reordered the session. The session must then be joined with this remote too.
    pub(super) unshared: Option<Vec<OperationId>>,
}

impl KnownRef {
    /// Returns whether the session has another order here than on the remote.
    pub(super) const fn is_reordered(&self) -> bool {
        self.shared.unshared.is_some()
    }

    /// Returns the end of the part of the session that is on the remote; the default mark if that
    /// is not known.
    pub(super) fn end_of(known: Option<&Self>) -> ExportMark {
        known.map_or_else(ExportMark::default, |known| known.shared.end)
    }

    /// Returns the last sequence number that is on the remote; [`u64::MAX`] if that is not known.
    pub(super) fn last_of(known: Option<&Self>) -> u64 {
        known.map_or(u64::MAX, |known| known.shared.last)
    }
}

/// The tracks of a store without a folder, by remote.
pub(in crate::store) type Tracks = BTreeMap<RemoteId, RemoteTracks>;

/// What a store without a folder knows of a remote.
#[derive(Default)]
pub(in crate::store) struct RemoteTracks {
    refs: BTreeMap<SessionHandle, RefTrack>,
    purges: PurgeTrack,
}

impl Remote {
    /// Returns what the store knows of the ref of a session; `None` if the session was reordered
    /// since, or in the cases of [`Remote::last_ref`].
    pub(super) fn known_ref(
        &self,
        store: &Store,
        handle: &SessionHandle,
    ) -> Result<Option<KnownRef>> {
        Ok(self.last_ref(store, handle)?.filter(|known| !known.is_reordered()))
    }

    /// Returns what the store knows of the ref of a session, also if the session was reordered
    /// since. `None` if the track is missing, damaged or from another history of the store, or if
    /// the session was removed or replaced here: then the track is made again from the packs.
    pub(super) fn last_ref(
        &self,
        store: &Store,
        handle: &SessionHandle,
    ) -> Result<Option<KnownRef>> {
        let Some(track) = store.ref_track(self.id, handle)? else { return Ok(None) };
        if !store.has_export_mark(&track.end)? {
            return Ok(None);
        }
        let RefTrack { session, tag, stored, begins, end, last, unshared } = track;
        let (key, earlier) = (self.keys.session(handle)?, self.earlier.session(handle));
        let (opened, is_earlier) =
            match open_ref(&self.place(*handle), (&key, earlier.as_ref()), &stored.0) {
                // It is encrypted with a key that is not known here any more.
                Err(RemoteFormatError::Damaged { .. }) => return Ok(None),
                opened => opened?,
            };
        let read = ReadRef { tag: DepotTag::new(tag), stored: stored.0, opened };
        // A session that was removed or replaced here is pulled whole again.
        let now = store.shared_session(read.opened.content.info.id)?;
        let is_current = now.is_some_and(|now| now.number == session);
        let shared = SharedPart { end, last, unshared };
        Ok(is_current.then_some(KnownRef { read, is_earlier, begins, shared }))
    }

    /// Returns whether this version of a ref is the known one, this store pushed all its packs, and
    /// the session was reordered here since.
    pub(super) fn has_other_order(
        &self,
        store: &Store,
        handle: &SessionHandle,
        tag: &DepotTag,
    ) -> Result<bool> {
        let known = self.last_ref(store, handle)?;
        Ok(known.is_some_and(|known| {
            let is_own = store.is_only_pusher(&known.read.opened.content);
            is_own && known.is_reordered() && known.read.tag == *tag
        }))
    }

    /// Replaces what the store knows of the ref of a session.
    pub(super) fn keep_ref(
        &self,
        store: &Store,
        (handle, session): (&SessionHandle, SessionNumber),
        (tag, stored): (&DepotTag, Vec<u8>),
        (begins, shared): (Vec<ExportMark>, SharedPart),
    ) -> Result<()> {
        let (tag, stored) = (tag.as_str().to_owned(), RecordBytes(stored));
        let SharedPart { end, last, unshared } = shared;
        let track = RefTrack { session, tag, stored, begins, end, last, unshared };
        store.keep_ref_track(self.id, handle, track)
    }

    /// Locks the remotes of this store, so that no other process pushes or pulls with it. The lock
    /// is released when the value is dropped; `None` for a store without a folder. From then on the
    /// store knows that it was in contact with this remote.
    ///
    /// # Errors
    /// See [`Store::lock_remotes`].
    pub(super) fn lock(&self, store: &Store) -> Result<Option<LockedFile>> {
        let Some(folder) = store.track_folder(self.id) else {
            store.held_tracks().entry(self.id).or_default();
            return Ok(None);
        };
        for folder in folder.parent().into_iter().chain([folder.as_path()]) {
            files::create_private_folder(folder).map_err(backend::Error::io("create", folder))?;
        }
        store.lock_remotes()
    }
}

impl Store {
    /// Locks the remotes of this store, so that no other process pushes, pulls or purges with it.
    /// `None` if it never had a remote, or has no folder.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another process holds the lock for more than 10 seconds.
    pub(in crate::store) fn lock_remotes(&self) -> Result<Option<LockedFile>> {
        let Some(folder) = self.path().map(|path| path.join(REMOTES_FOLDER)) else {
            return Ok(None);
        };
        if !folder.exists() {
            return Ok(None);
        }
        let locked = LockedFile::at(&folder.join("lock"), LOCK_TIMEOUT)?;
        locked.map(Some).ok_or_else(|| {
            let why = "another push or pull of this store is running: try again when it has ended";
            Error::Conflict(why.to_owned())
        })
    }

    /// Returns the remotes that this store has tracks of.
    pub(super) fn contacted_remotes(&self) -> Result<Vec<RemoteId>> {
        match self.path() {
            Some(path) => ids_in(&path.join(REMOTES_FOLDER)),
            None => Ok(self.held_tracks().keys().copied().collect()),
        }
    }

    /// Returns the sessions on a remote whose refs the store knows.
    pub(super) fn tracked_handles(&self, remote: RemoteId) -> Result<BTreeSet<SessionHandle>> {
        match self.track_folder(remote) {
            Some(folder) => Ok(ids_in(&folder)?.into_iter().collect()),
            None => {
                let known = self.held_tracks();
                let refs = known.get(&remote).into_iter().flat_map(|held| held.refs.keys());
                Ok(refs.copied().collect())
            }
        }
    }

    /// Returns the track of a ref. `None` if there is none, or if it is damaged.
    pub(super) fn ref_track(
        &self,
        remote: RemoteId,
        handle: &SessionHandle,
    ) -> Result<Option<RefTrack>> {
        let Some(folder) = self.track_folder(remote) else {
            let known = self.held_tracks();
            return Ok(known.get(&remote).and_then(|known| known.refs.get(handle)).cloned());
        };
        let bytes = plain_file::read_if_there(&folder.join(handle.to_string()), MAX_TRACK_BYTES)?;
        Ok(bytes.and_then(|bytes| RefTrack::decode(&bytes).ok()))
    }

    /// Replaces the track of a ref. Its file may be lost in a power cut: then it is made again from
    /// the packs.
    pub(super) fn keep_ref_track(
        &self,
        remote: RemoteId,
        handle: &SessionHandle,
        track: RefTrack,
    ) -> Result<()> {
        let Some(folder) = self.track_folder(remote) else {
            self.held_tracks().entry(remote).or_default().refs.insert(*handle, track);
            return Ok(());
        };
        let path = folder.join(handle.to_string());
        Ok(files::replace(&path, &path.with_extension(NEW), &track.encode())?)
    }

    /// Returns what the store knows of the notices of a remote.
    pub(super) fn purge_track(&self, remote: RemoteId) -> Result<PurgeTrack> {
        let Some(path) = self.purges_path(remote) else {
            let known = self.held_tracks();
            return Ok(known.get(&remote).map(|known| known.purges.clone()).unwrap_or_default());
        };
        match plain_file::read_if_there(&path, MAX_PURGES_BYTES)? {
            Some(bytes) => PurgeTrack::decode(&bytes).map_err(Error::corrupt(path.display())),
            None => Ok(PurgeTrack::default()),
        }
    }

    /// Replaces what the store knows of the notices of a remote. Durable on return if the store has
    /// a folder.
    pub(super) fn keep_purge_track(&self, remote: RemoteId, track: &PurgeTrack) -> Result<()> {
        let Some(path) = self.purges_path(remote) else {
            track.clone_into(&mut self.held_tracks().entry(remote).or_default().purges);
            return Ok(());
        };
        files::replace(&path, &path.with_extension(NEW), &track.encode())?;
        Ok(files::sync_folder(files::folder_of(&path))?)
    }

    fn purges_path(&self, remote: RemoteId) -> Option<PathBuf> {
        Some(self.track_folder(remote)?.join(PURGES_FILE))
    }

    /// Returns the folder of the tracks of a remote; `None` for a store without a folder.
    pub(super) fn track_folder(&self, remote: RemoteId) -> Option<PathBuf> {
        Some(self.path()?.join(REMOTES_FOLDER).join(remote.to_string()))
    }

    /// Returns the tracks of a store without a folder.
    fn held_tracks(&self) -> MutexGuard<'_, Tracks> {
        locked(&self.tracks)
    }
}

/// Returns the names in a folder that are ids; none if the folder does not exist.
fn ids_in<T: FromStr>(folder: &Path) -> Result<Vec<T>> {
    let names = files::names_in(folder)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}
